"""The classification report: numbers of each class against scikit-learn's, and the files."""

import csv
import json
import os
import pty
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from ptrun.engine import Scores
from ptrun.meter import wilson_interval
from ptrun.report import document, per_class, write_report
from ptrun.rundir import RunDir
from ptrun.tables import print_report

CLASSES = ("cat", "dog, wild", 'the "owl"')
ACTUAL = [0, 0, 0, 0, 1, 1, 1, 2]
PREDICTED = [0, 0, 0, 1, 1, 1, 0, 1]


def scores(actual: list[int], predicted: list[int], classes: int = 3) -> Scores:
    matrix = torch.from_numpy(confusion_matrix(actual, predicted, labels=range(classes)))
    return Scores(loss=0.5, correct=int(matrix.trace()), top3=len(actual), n=len(actual), confusion=matrix)


def test_numbers_of_each_class() -> None:
    assert per_class(scores(ACTUAL, PREDICTED), CLASSES) == [
        {"class": "cat", "precision": 3 / 4, "recall": 3 / 4, "f1": 3 / 4, "support": 4},
        {"class": "dog, wild", "precision": 2 / 4, "recall": 2 / 3, "f1": 4 / 7, "support": 3},
        {"class": 'the "owl"', "precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1},
    ]


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40))
def test_equals_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    actual, predicted = (list(labels) for labels in zip(*pairs, strict=True))
    rows = per_class(scores(actual, predicted, 5), tuple("abcde"))
    expected = precision_recall_fscore_support(actual, predicted, labels=range(5), zero_division=0)
    for key, values in zip(("precision", "recall", "f1", "support"), expected, strict=True):
        assert [row[key] for row in rows] == pytest.approx(values.tolist(), abs=1e-15), key


def test_document() -> None:
    report = document(scores(ACTUAL, PREDICTED), CLASSES)
    assert report == {
        "loss": 0.5,
        "accuracy": 5 / 8,
        "accuracy_interval_95": list(wilson_interval(5, 8)),
        "top3_accuracy": 1.0,
        "n": 8,
        "per_class": per_class(scores(ACTUAL, PREDICTED), CLASSES),
        "classes": list(CLASSES),
        "confusion": [[3, 1, 0], [1, 2, 0], [0, 1, 0]],  # rows: actual, columns: predicted
    }


def test_files(work: Path) -> None:
    report = document(scores(ACTUAL, PREDICTED), CLASSES)
    folder = write_report(RunDir(work), "report/other", report)
    assert folder == work / "report" / "other"
    assert {path.name for path in folder.iterdir()} == {"report.json", "per_class.csv", "confusion.csv"}
    assert json.loads((folder / "report.json").read_text()) == report
    assert rows(folder / "per_class.csv") == [
        ["class", "precision", "recall", "f1", "support"],
        ["cat", "0.75", "0.75", "0.75", "4"],
        ["dog, wild", "0.5", repr(2 / 3), repr(4 / 7), "3"],
        ['the "owl"', "0.0", "0.0", "0.0", "1"],
    ]
    assert rows(folder / "confusion.csv") == [
        ["actual \\ predicted", "cat", "dog, wild", 'the "owl"'],
        ["cat", "3", "1", "0"],
        ["dog, wild", "1", "2", "0"],
        ['the "owl"', "0", "1", "0"],
    ]


def test_a_new_report_replaces_the_old(work: Path) -> None:
    for predicted in (PREDICTED, ACTUAL):
        write_report(RunDir(work), "report", document(scores(ACTUAL, predicted), CLASSES))
    assert json.loads((work / "report" / "report.json").read_text())["accuracy"] == 1.0
    assert rows(work / "report" / "confusion.csv")[1:] == [
        ["cat", "4", "0", "0"], ["dog, wild", "0", "3", "0"], ['the "owl"', "0", "0", "1"],
    ]  # fmt: skip


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("columns", ["20", "40"])
def test_numbers_are_never_cut_on_a_narrow_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    counts = torch.arange(25).reshape(5, 5) + 12345600
    found = Scores(loss=0.5, correct=1, top3=1, n=int(counts.sum()), confusion=counts)
    report = document(found, tuple(f"class {i}" for i in range(5)))
    context = {"recipe": "tiny", "checkpoint": "last.pt", "epoch": 1, "data": "x", "chosen_on": None, "report": None}
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal, monkeypatch.context() as patched:
        patched.setattr("sys.stdout", terminal)
        print_report(report | context)
        terminal.flush()
        shown = os.read(master, 100_000).decode()
    os.close(master)
    lines = [line.split() for line in shown.splitlines()]
    for i, row in enumerate(counts.tolist()):
        assert ["class", str(i), *map(str, row)] in lines
        support = f"{sum(row):,}"
        assert any(line[:2] == ["class", str(i)] and line[-1] == support for line in lines)

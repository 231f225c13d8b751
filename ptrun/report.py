"""The classification report: what a confusion matrix says of each class."""

import csv
from pathlib import Path
from typing import Any

from ptrun.atomic import replace_json
from ptrun.engine import Scores
from ptrun.rundir import RunDir


def per_class(scores: Scores, classes: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return precision, recall, F1 and support of each class; 0 where a class was never predicted or never there."""
    matrix = scores.confusion
    hits, actual, predicted = matrix.diagonal(), matrix.sum(1), matrix.sum(0)
    rows = []
    for name, hit, support, claimed in zip(classes, hits.tolist(), actual.tolist(), predicted.tolist(), strict=True):
        row = {"class": name, "precision": _share(hit, claimed), "recall": _share(hit, support)}
        rows.append(row | {"f1": _share(2 * hit, support + claimed), "support": support})
    return rows


def document(scores: Scores, classes: tuple[str, ...]) -> dict[str, Any]:
    """Return the whole report in plain values."""
    return {
        "loss": scores.loss,
        "accuracy": scores.accuracy,
        "accuracy_interval_95": list(scores.interval),
        "top3_accuracy": scores.top3 / scores.n,
        "n": scores.n,
        "per_class": per_class(scores, classes),
        "classes": list(classes),
        "confusion": scores.confusion.tolist(),
    }


def write_report(run: RunDir, folder: str, report: dict[str, Any]) -> Path:
    """Write report.json, per_class.csv and confusion.csv into a folder of the run; return that folder."""
    path = run.path / folder
    path.mkdir(parents=True, exist_ok=True)
    replace_json(path / "report.json", report)
    rows = report["per_class"]
    _write_csv(path / "per_class.csv", [list(rows[0]), *(list(row.values()) for row in rows)])
    counts = [[name, *row] for name, row in zip(report["classes"], report["confusion"], strict=True)]
    _write_csv(path / "confusion.csv", [["actual \\ predicted", *report["classes"]], *counts])
    return path


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _write_csv(path: Path, rows: list[list[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)

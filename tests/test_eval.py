"""`ptrun eval` on trained runs: its numbers against predictions made by hand, its files, and its refusals."""

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Ran
from own_set_recipe import write_noise_recipe
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from torch import Tensor
from torch.nn import functional as F

import ptrun
from ptrun.data.images import Images, open_images

RUN = "20260101-000000-seven"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of quickstart on digits, three epochs long."""
    from ptrun.main import run

    root = tmp_path_factory.mktemp("trained")
    options = ["--data", "digits", "--epochs", "3", "--val-fraction", "0.2", "--quiet", "--output-dir", str(root)]
    assert run(["train", "quickstart", *options]) == 0
    (path,) = root.glob("quickstart/*")
    return path


@pytest.fixture
def run(trained: Path, work: Path) -> Path:
    """A copy of it in `runs`."""
    return Path(shutil.copytree(trained, work / "runs" / "quickstart" / RUN)).relative_to(work)


def evaluated(invoke: Callable[..., Ran], *arguments: object) -> dict[str, Any]:
    ran = invoke("eval", *arguments, "--json", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    report: dict[str, Any] = json.loads(ran.out)
    return report


def digits() -> tuple[Tensor, Tensor]:
    """Return the test set of digits: uint8 [359, 1, 28, 28] and labels [359]."""
    spec = Images("digits", size=28)
    test = open_images(spec, override=None, data_dir=None, device="cpu", seed=0, val_fraction=0.0).test
    return test.images, test.labels


@pytest.mark.usefixtures("run")
def test_numbers_equal_predictions_made_by_hand(invoke: Callable[..., Ran]) -> None:
    report = evaluated(invoke, "quickstart")
    images, labels = digits()
    model = ptrun.load("quickstart")
    with torch.no_grad():
        logits = model.model(model.preprocess(images))
    predicted = logits.argmax(1)

    assert report["n"] == len(labels) == 359
    assert report["accuracy"] == (predicted == labels).sum().item() / 359
    assert report["accuracy"] > 0.8
    assert report["loss"] == pytest.approx(F.cross_entropy(logits, labels, label_smoothing=0.1).item(), rel=1e-5)
    top3 = (logits.argsort(1, descending=True)[:, :3] == labels[:, None]).any(1)
    assert report["top3_accuracy"] == top3.sum().item() / 359

    matrix = torch.zeros(10, 10, dtype=torch.int64)
    for actual, guess in zip(labels.tolist(), predicted.tolist(), strict=True):
        matrix[actual, guess] += 1
    assert not torch.equal(matrix, matrix.T)  # otherwise this could not tell rows from columns
    assert report["confusion"] == matrix.tolist() == confusion_matrix(labels, predicted).tolist()

    expected = precision_recall_fscore_support(labels, predicted, labels=range(10))
    for key, values in zip(("precision", "recall", "f1", "support"), expected, strict=True):
        assert [row[key] for row in report["per_class"]] == pytest.approx(values.tolist(), abs=1e-15), key
    assert [row["class"] for row in report["per_class"]] == list(model.classes) == list("0123456789")


def test_equals_what_training_reported(invoke: Callable[..., Ran], run: Path) -> None:
    report = evaluated(invoke, "last")
    result = json.loads((run / "result.json").read_text())["test"]
    assert {key: report[key] for key in ("accuracy", "n")} == {key: result[key] for key in ("accuracy", "n")}
    assert report["loss"] == pytest.approx(result["loss"], rel=1e-12)
    assert report["accuracy_interval_95"] == result["interval_95"]
    assert report["epoch"] == 3


@pytest.mark.parametrize(
    "word", ["quickstart", "fashion", "last", RUN, "seven", "2026", f"runs/quickstart/{RUN}", f"quickstart/{RUN}"]
)
def test_every_word_names_the_same_checkpoint(invoke: Callable[..., Ran], run: Path, word: str) -> None:
    report = evaluated(invoke, word)
    assert report["checkpoint"] == str(run / "checkpoints" / "last.pt")
    assert (report["recipe"], report["data"], report["data_origin"]) == ("quickstart", "digits", "scikit-learn")


@pytest.mark.parametrize(("fraction", "chosen_on"), [("0.2", "validation"), ("0", "test")])
def test_says_which_set_chose_the_best(invoke: Callable[..., Ran], fraction: str, chosen_on: str) -> None:
    options = ("--data", "digits", "--epochs", "1", "--batch-size", "512", "--val-fraction", fraction, "--quiet")
    assert invoke("train", "quickstart", *options).code == 0
    assert evaluated(invoke, "best")["chosen_on"] == chosen_on
    assert evaluated(invoke, "last")["chosen_on"] is None
    line = invoke("eval", "best").out.splitlines()[1]
    assert line.startswith("accuracy ")
    assert line.endswith(f", n = 359), chosen on the {chosen_on} set")
    assert invoke("eval", "last").out.splitlines()[1].endswith(", n = 359)")


def test_names_the_checkpoint_that_was_used(invoke: Callable[..., Ran], run: Path) -> None:
    last, previous = (run / "checkpoints" / f"{which}.pt" for which in ("last", "previous"))
    last.write_bytes(last.read_bytes()[:-1])
    broken = last.read_bytes()
    ran = invoke("eval", "last", "--json", "--quiet")
    report = json.loads(ran.out)
    assert (ran.code, report["checkpoint"], report["epoch"]) == (0, str(previous), 2)
    assert ran.err.startswith(f"warning: checkpoint {last} is damaged")
    assert f"{previous}, epoch 2\n" in invoke("eval", "last").out
    assert last.read_bytes() == broken  # an evaluation moves nothing
    previous.unlink()
    ran = invoke("eval", "last")
    assert (ran.code, ran.out) == (3, "")


def test_best_is_another_checkpoint(invoke: Callable[..., Ran], run: Path) -> None:
    report = evaluated(invoke, "best")
    assert report["checkpoint"] == str(run / "checkpoints" / "best.pt")
    assert report["epoch"] == json.loads((run / "result.json").read_text())["best"]["epoch"]


def test_files(invoke: Callable[..., Ran], run: Path) -> None:
    report = evaluated(invoke, "last")
    assert report["report"] == str(run / "report")
    assert {path.name for path in (run / "report").iterdir()} == {"report.json", "per_class.csv", "confusion.csv"}
    written = json.loads((run / "report" / "report.json").read_text())
    assert written | {"report": report["report"]} == report

    rows = table(run / "report" / "per_class.csv")
    assert rows[0] == ["class", "precision", "recall", "f1", "support"]
    assert rows[1:] == [[str(value) for value in row.values()] for row in report["per_class"]]

    rows = table(run / "report" / "confusion.csv")
    assert rows[0] == ["actual \\ predicted", *"0123456789"]
    assert [[int(count) for count in row[1:]] for row in rows[1:]] == report["confusion"]
    supports = [row["support"] for row in report["per_class"]]
    assert [sum(int(count) for count in row[1:]) for row in rows[1:]] == supports  # rows are the actual classes


def table(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_as_a_table(invoke: Callable[..., Ran], run: Path) -> None:
    report = evaluated(invoke, "last")
    ran = invoke("eval", "last")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == f"quickstart on digits  {run}/checkpoints/last.pt, epoch 3"
    low, high = report["accuracy_interval_95"]
    interval = f"95 % interval {low * 100:.2f} to {high * 100:.2f} %, n = 359"
    assert lines[1] == f"accuracy              {report['accuracy'] * 100:.2f} % ({interval})"
    assert lines[-1] == f"report  {run}/report"
    seven = next(re.split("  +", line) for line in lines if line.startswith("7 "))
    row = report["per_class"][7]
    assert seven == ["7", *(f"{row[key] * 100:.2f} %" for key in ("precision", "recall", "f1")), str(row["support"])]
    counts = [line.split() for line in lines if line.startswith("7 ")][1]
    assert counts == ["7", *(str(count) if count else "·" for count in report["confusion"][7])]


@pytest.mark.parametrize(("required", "code"), [("0", 0), ("0.5", 0), ("1", 1), ("0.9999", 1)])
def test_required_accuracy(invoke: Callable[..., Ran], run: Path, required: str, code: int) -> None:
    ran = invoke("eval", "last", "--require-accuracy", required, "--json", "--quiet")
    accuracy = json.loads(ran.out)["accuracy"]  # the result is printed in either case
    assert ran.code == code
    below = f"error: accuracy {accuracy:.4f} is below the required {required}\n"
    assert ran.err == (below if code else "")
    assert (run / "report" / "report.json").is_file()


@pytest.mark.usefixtures("run")
def test_exactly_the_required_accuracy_is_enough(invoke: Callable[..., Ran]) -> None:
    accuracy = evaluated(invoke, "last")["accuracy"]
    assert invoke("eval", "last", "--quiet", "--require-accuracy", repr(accuracy)).code == 0


def test_other_data_keeps_the_normalisation_of_training(invoke: Callable[..., Ran], work: Path) -> None:
    write_noise_recipe(work / "noise.py")
    assert invoke("train", "./noise.py", "--quiet").code == 0
    own = evaluated(invoke, "noise")
    other = evaluated(invoke, "noise", "--data", "digits")
    assert (own["data"], own["n"], other["data"], other["n"]) == ("noise", 30, "digits", 359)
    assert other["report"] == f"{own['report']}/digits"
    assert json.loads((Path(own["report"]) / "report.json").read_text())["n"] == 30  # its own report is still there

    images, labels = digits()
    model = ptrun.load("noise")
    with torch.no_grad():
        logits = model.model((images / 255 - 0.25) / 0.5)
    assert other["loss"] == pytest.approx(F.cross_entropy(logits, labels).item(), rel=1e-5)


def test_data_of_other_classes_is_refused(invoke: Callable[..., Ran], work: Path) -> None:
    write_noise_recipe(work / "noise.py", classes="abcd")
    assert invoke("train", "./noise.py", "--quiet").code == 0
    (run,) = (work / "runs" / "noise").iterdir()
    ran = invoke("eval", "noise", "--data", "digits")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"error: runs/noise/{run.name}/checkpoints/last.pt was trained on noise (a, b, c, …); "
        "digits has other classes (0, 1, 2, …), "
        "so its labels mean nothing to this model\n"
    )


def test_file_outside_a_run(invoke: Callable[..., Ran], run: Path, work: Path) -> None:
    expected = evaluated(invoke, "last")["confusion"]
    (run / "checkpoints" / "last.pt").rename(work / "mine.pt")
    ran = invoke("eval", "mine.pt", "--json", "--quiet")
    report = json.loads(ran.out)
    assert report["confusion"] == expected
    assert report["report"] is None
    assert {path.name for path in work.iterdir()} == {"runs", "mine.pt"}


def test_file_of_an_unknown_recipe(invoke: Callable[..., Ran], work: Path) -> None:
    write_noise_recipe(work / "noise.py")
    assert invoke("train", "./noise.py", "--quiet").code == 0
    next(work.glob("runs/noise/*/checkpoints/last.pt")).rename(work / "mine.pt")
    ran = invoke("eval", "mine.pt")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: unknown recipe 'noise'")
    assert evaluated(invoke, "mine.pt", "--recipe", "./noise.py")["n"] == 30


def test_weights_of_another_model(invoke: Callable[..., Ran], run: Path, work: Path) -> None:
    (run / "checkpoints" / "last.pt").rename(work / "mine.pt")
    ran = invoke("eval", "mine.pt", "--recipe", "lenet")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: recipe ")
    assert "momentum, normalize" in ran.err


def test_a_read_only_run_is_evaluated_all_the_same(invoke: Callable[..., Ran], run: Path) -> None:
    (run / "report").touch()  # nobody can make a folder here
    ran = invoke("eval", "last", "--json")
    assert (ran.code, json.loads(ran.out)["report"]) == (0, None)
    assert ran.err == f"warning: the report was not written into {run}: File exists\n"


@pytest.mark.usefixtures("run")
def test_device_that_is_not_there(invoke: Callable[..., Ran]) -> None:
    ran = invoke("eval", "last", "--device", "cuda:99")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: --device cuda:99: this machine has ")

"""Progress: one plain line an epoch, a bar on a terminal, nothing with --quiet."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pytest
from conftest import Ran

from ptrun.displays import epoch_line

STOCHASTIC = Path(__file__).parent / "recipes" / "stochastic.py"
ROW = {
    "kind": "epoch", "epoch": 3, "step": 1407,
    "train_loss": 0.12345, "train_accuracy": 0.98765, "validation_loss": 0.2, "validation_accuracy": 1.0,
    "test_loss": 12.5, "test_accuracy": 0.05, "images_per_s": 11234.5, "epoch_s": 5.34,
}  # fmt: skip


def test_an_epoch_as_a_line() -> None:
    assert epoch_line(10, ROW) == (
        "epoch  3/10  train loss 0.1235 acc 98.77 %  validation loss 0.2000 acc 100.00 %  test loss 12.5000 acc  5.00 %"
        "  11,234 images/s  5.3 s"
    )
    without = {key: value for key, value in ROW.items() if "validation" not in key}
    assert epoch_line(3, without) == (
        "epoch 3/3  train loss 0.1235 acc 98.77 %  test loss 12.5000 acc  5.00 %  11,234 images/s  5.3 s"
    )


def test_a_usual_line_fits_120_columns() -> None:
    row = {key: value for key, value in ROW.items() if "validation" not in key}
    assert (
        len(epoch_line(1000, row | {"epoch": 1000, "test_accuracy": 1.0, "images_per_s": 1e6, "epoch_s": 999.9})) <= 120
    )


@pytest.mark.parametrize("arguments", [(), ("--quiet",)])
def test_elsewhere_than_on_a_terminal_there_are_plain_lines_or_none(
    invoke: Callable[..., Ran], arguments: tuple[str, ...]
) -> None:
    ran = invoke("train", STOCHASTIC, *arguments)
    number = r"\d+\.\d{4} acc +\d+\.\d\d %"
    line = (
        rf"epoch \d/2  train loss {number}  validation loss {number}  test loss {number}  [\d,]+ images/s  \d\.\d s\n"
    )
    assert re.fullmatch("" if arguments else f"({line}){{2}}", ran.err)
    assert "\x1b" not in ran.err + ran.out
    assert "epoch 1/2" not in ran.out


@pytest.mark.parametrize("options", [(), ("--log-interval", 1)])
def test_a_training_goes_on_where_its_progress_cannot_be_written(
    ptrun: Callable[..., Ran], work: Path, options: tuple[object, ...]
) -> None:
    with Path("/dev/full").open("w") as full:
        ran = ptrun("train", STOCHASTIC, "--json", *options, stderr=full)
    assert (ran.code, json.loads(ran.out)["status"]) == (0, "finished")
    assert len(list(work.glob("runs/*/*/result.json"))) == 1


def test_a_training_goes_on_when_the_reader_of_its_progress_has_left(spawn: Callable[..., "Popen[str]"]) -> None:
    process = spawn("train", STOCHASTIC, "--json")
    process.stderr.close()
    assert json.loads(process.stdout.read())["status"] == "finished"
    assert process.wait(10) == 0

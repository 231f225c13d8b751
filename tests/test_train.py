"""`ptrun train` on digits, through the real command line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran

QUICK = ("--data", "digits", "--epochs", "2", "--batch-size", "64")


def test_writes_a_complete_run(invoke: Callable[..., Ran], work: Path) -> None:
    ran = invoke("train", "lenet", *QUICK, "--name", "first")
    assert ran.code == 0, ran.err
    (run,) = (work / "runs" / "lenet").iterdir()
    assert run.name.endswith("-first")
    names = {path.name for path in run.iterdir() if not path.name.startswith("events.")}
    assert names == {
        ".lock", "checkpoints", "command.txt", "config.json", "environment.json", "metrics.jsonl",
        "recipe.py", "result.json", "uncommitted.patch",
    }  # fmt: skip
    assert {path.name for path in (run / "checkpoints").iterdir()} == {"last.pt", "previous.pt", "best.pt"}
    assert f"tensorboard --logdir runs/lenet/{run.name}" in ran.out
    assert "epoch 2/2" in ran.err
    assert "epoch 2/2" not in ran.out


def test_json_is_one_document_on_stdout(invoke: Callable[..., Ran]) -> None:
    ran = invoke("train", "quickstart", *QUICK, "--json", "--quiet")
    result = json.loads(ran.out)
    assert ran.err == ""
    assert (result["status"], result["reason"], result["epochs"], result["steps"]) == ("finished", "epochs", 2, 46)
    assert result["test"]["n"] == 359
    assert result["best"]["chosen_on"] == "test"


@pytest.mark.parametrize("recipe", ["lenet", "quickstart"])
def test_learns_digits(invoke: Callable[..., Ran], recipe: str) -> None:
    result = json.loads(invoke("train", recipe, "--data", "digits", "--json", "--quiet").out)
    assert result["test"]["accuracy"] > 0.9

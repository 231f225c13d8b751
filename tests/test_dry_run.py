"""`ptrun train --dry-run`: build and count everything, train and write nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from recipe_text import write_recipe

# Multiply-adds of one image, by hand: outputs x inputs of each output.
LENET = (6 * 28 * 28) * (5 * 5) + (16 * 10 * 10) * (6 * 5 * 5) + 400 * 120 + 120 * 84 + 84 * 10
QUICKSTART = 784 * 512 + 512 * 512 + 512 * 10


def dry_run(invoke: Callable[..., Ran], *arguments: object) -> dict[str, Any]:
    ran = invoke("train", *arguments, "--data", "digits", "--dry-run", "--json", "--quiet")
    assert ran.code == 0, ran.err
    plan: dict[str, Any] = json.loads(ran.out)
    return plan


@pytest.mark.parametrize(
    ("recipe", "parameters", "flops"), [("lenet", 61_706, 2 * LENET), ("quickstart", 669_706, 2 * QUICKSTART)]
)
def test_counts(invoke: Callable[..., Ran], recipe: str, parameters: int, flops: int) -> None:
    plan = dry_run(invoke, recipe)
    assert (plan["parameters"], plan["flops_per_image"]) == (parameters, flops)
    assert sum(layer["parameters"] for layer in plan["layers"]) == parameters


def test_flops_of_lenet_by_hand() -> None:
    assert 2 * LENET == 833_040


def test_layers_of_lenet(invoke: Callable[..., Ran]) -> None:
    layers = dry_run(invoke, "lenet")["layers"]
    assert [(layer["kind"], layer["output"], layer["parameters"]) for layer in layers] == [
        ("Conv2d", ["B", 6, 28, 28], 156), ("MaxPool2d", ["B", 6, 14, 14], 0), ("ReLU", ["B", 6, 14, 14], 0),
        ("Conv2d", ["B", 16, 10, 10], 2416), ("MaxPool2d", ["B", 16, 5, 5], 0), ("ReLU", ["B", 16, 5, 5], 0),
        ("Flatten", ["B", 400], 0),
        ("Linear", ["B", 120], 48_120), ("ReLU", ["B", 120], 0),
        ("Linear", ["B", 84], 10_164), ("ReLU", ["B", 84], 0),
        ("Linear", ["B", 10], 850),
    ]  # fmt: skip


def test_says_what_would_be_trained(invoke: Callable[..., Ran]) -> None:
    plan = dry_run(invoke, "lenet", "--preset", "paper", "--batch-size", "100", "--val-fraction", "0.1")
    assert (plan["data"], plan["data_origin"], plan["device"]) == ("digits", "scikit-learn", "cpu")
    assert plan["images"] == {"train": 1295, "validation": 143, "test": 359}
    assert (plan["epochs"], plan["batch_size"], plan["steps_per_epoch"]) == (20, 100, 13)
    assert plan["fields"]["pool"] == {"value": "avg", "source": "preset paper"}


def test_as_a_table(invoke: Callable[..., Ran]) -> None:
    ran = invoke("train", "lenet", "--data", "digits", "--dry-run")
    assert ran.code == 0
    assert "parameters  61,706\n" in ran.out
    assert "FLOPs       833,040 an image, forward\n" in ran.out
    assert "training    8 epochs of 23 steps of 64 images\n" in ran.out
    assert ran.out.endswith("Nothing was trained; no run was made.\n")


def test_writes_nothing(invoke: Callable[..., Ran], work: Path) -> None:
    dry_run(invoke, "quickstart", "--output-dir", "elsewhere", "--name", "mine")
    assert list(work.iterdir()) == []


def test_finds_what_training_would_find(invoke: Callable[..., Ran], work: Path) -> None:
    path = write_recipe(work / "tiny.py", (', reduction="none")', ")"))
    ran = invoke("train", path, "--dry-run")
    assert (ran.code, ran.out) == (2, "")
    assert "loss must return one value for each sample" in ran.err


@pytest.mark.parametrize("other", [["--fast-dev-run"], ["--resume", "last"]])
def test_excludes(invoke: Callable[..., Ran], other: list[str]) -> None:
    ran = invoke("train", "lenet", "--dry-run", *other)
    assert ran == Ran(2, "", "error: --fast-dev-run, --dry-run and --resume exclude each other; choose one\n")

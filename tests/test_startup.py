"""What is not imported: nothing heavy for help, completion and mistakes, no compiler and no torchvision to train."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from recipe_text import write_recipe

HEAVY = ("numpy", "torch", "torchvision")

RUN_ALL = """
import contextlib, io, json, sys
from ptrun.main import run

for line in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(line)
    modules = [name for name in ("numpy", "torch", "torchvision") if name in sys.modules]
    print(json.dumps({"code": code, "heavy": modules, "err": err.getvalue()}))
"""

TRAIN = """
import json, sys
from ptrun.main import run

code = run(sys.argv[1:])
print(json.dumps({
    "code": code,
    "compiler": type(sys.modules["torch._dynamo"]).__module__,
    "parts of it": [name for name in sys.modules if name.startswith(("torch._dynamo.", "torch._inductor"))],
    "others": [name for name in ("torchvision", "tensorflow", "matplotlib") if name in sys.modules],
}))
"""

COMPILE = """
import sys, torch
from ptrun.eager import import_torch

import_torch()
before = type(sys.modules["torch._dynamo"]).__module__
print(before, torch._dynamo.config.__name__, sys.modules["torch._dynamo"].__name__, torch.compiler.is_compiling())
"""


def python(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=100, **options
    )
    assert done.returncode == 0, done.stderr
    return done


def imported(stderr: str) -> set[str]:
    """Return the top-level packages in the output of -X importtime."""
    lines = [line for line in stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


@pytest.mark.parametrize("arguments", [["--help"], ["train", "lenet", "--help"], ["recipes"]])
def test_help_is_light(arguments: list[str]) -> None:
    done = python("-X", "importtime", "-m", "ptrun", *arguments)
    packages = imported(done.stderr)
    assert {"ptrun", "typer"} <= packages
    assert packages & {*HEAVY, "sklearn", "tensorboard", "PIL"} == set()
    assert "lenet" in done.stdout


def test_help_of_the_program_needs_no_tables_and_no_checks() -> None:
    packages = imported(python("-X", "importtime", "-m", "ptrun", "--help").stderr)
    assert packages & {"rich", "pydantic"} == set()


@pytest.mark.parametrize(
    ("words", "position", "expected"),
    [
        ("ptrun ", 1, ["train", "eval", "recipes", "show", "new"]),
        ("ptrun train le", 2, ["lenet"]),
        ("ptrun show qu", 2, ["quickstart"]),
        ("ptrun train lenet --dev", 3, ["--device"]),
    ],
)
def test_completion_is_light(words: str, position: int, expected: list[str]) -> None:
    variables = {"_PTRUN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(position)}
    done = python("-X", "importtime", "-m", "ptrun", env=os.environ | variables)
    assert done.stdout.split() == expected
    assert imported(done.stderr) & {*HEAVY} == set()


def test_usage_errors_are_light(invoke: Callable[..., Ran], work: Path) -> None:
    path = write_recipe(work / "tiny.py")
    (work / "broken.py").write_text("def model(:")
    (work / "bad.toml").write_text("lr = 'x'")
    assert invoke("train", path, "--epochs", "1", "--name", "done", "--quiet").code == 0
    lines = [
        "trian", "--versio", "train", "train lenett", "train ./no.py", "train ./broken.py", "train lenet extra",
        "train lenet --lrr 1", "train lenet --lr nan", "train lenet --lr", "train lenet --lr 1 --lr 2",
        "train lenet --devce cpu", "train lenet --device gpu", "train lenet --data mnits", "train lenet --preset papr",
        "train lenet --config no.toml", "train ./tiny.py --config bad.toml", "train lenet --max-time soon",
        "train lenet --checkpoint-every 0", "train lenet --log-interval 0", "train lenet --name a/b",
        "train lenet --resume xyzzy", "train lenet --dry-run --fast-dev-run", "train --resume done --lr 0.5",
        "train --resume done --width 9", "train --resume done --name other", "train lenet --resume done",
        "eval", "eval lenet", "eval xyzzy", "eval done --data mnits", "eval done --device gpu",
        "eval done --recipe lenett", "eval done --require-accuracy 2", "show", "show lenett", "show lenet --lrr 1",
        "new", "new mine", "new tiny.py", "new mine.py --from lenett", "recipes extra",
    ]  # fmt: skip
    done = python("-c", RUN_ALL, input=json.dumps([line.split() for line in lines]))
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == len(lines)
    assert [(line, result) for line, result in zip(lines, results, strict=True) if result["heavy"]] == []
    assert {line: result for line, result in zip(lines, results, strict=True) if result["code"] != 2} == {}
    assert all(r["err"].startswith("error: ") and r["err"].count("\n") == 1 for r in results)


def test_what_only_shows_is_light(work: Path) -> None:
    lines = [
        [],
        ["--version"],
        ["recipes", "--json"],
        ["show", "lenet"],
        ["show", "fashion", "--json"],
        ["new", "a.py"],
    ]
    results = [json.loads(line) for line in python("-c", RUN_ALL, input=json.dumps(lines)).stdout.splitlines()]
    assert results == [{"code": 0, "heavy": [], "err": ""}] * len(lines)
    assert [path.name for path in work.iterdir()] == ["a.py"]


def test_training_needs_neither_compiler_nor_torchvision() -> None:
    options = ["--data", "digits", "--epochs", "1", "--batch-size", "512", "--quiet", "--json"]
    last = python("-c", TRAIN, "train", "quickstart", *options).stdout.splitlines()[-1]
    assert json.loads(last) == {"code": 0, "compiler": "ptrun.eager", "parts of it": [], "others": []}


@pytest.mark.slow
def test_the_compiler_is_there_for_who_asks() -> None:
    assert python("-c", COMPILE).stdout == "ptrun.eager torch._dynamo.config torch._dynamo False\n"

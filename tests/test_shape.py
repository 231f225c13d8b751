"""The shape of the command line: names and help of every option, two streams, and colour only where it is wanted."""

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from conftest import Ran
from own_set_recipe import write_noise_recipe

from ptrun.cli import app
from ptrun.outline import read_outline
from ptrun.registry import recipe_paths

ESCAPE = "\x1b"
COLOUR = re.compile(r"\x1b\[[0-9;]*(3[0-7]|9[0-7])m")


def commands() -> dict[str, Any]:
    group = typer.main.get_command(app)
    return {"ptrun": group, **group.commands}  # type: ignore[attr-defined]


def options() -> Iterator[tuple[str, Any]]:
    for name, command in commands().items():
        yield from ((f"{name} {param.opts[0]}", param) for param in command.params)


def test_the_verbs() -> None:
    assert list(commands()) == ["ptrun", "train", "eval", "recipes", "show", "new"]


@pytest.mark.parametrize("name", commands())
def test_every_command_has_help(name: str) -> None:
    assert len(commands()[name].help) > 10


@pytest.mark.parametrize(("name", "param"), list(options()), ids=[name for name, _ in options()])
def test_every_option_has_help_and_a_regular_name(name: str, param: Any) -> None:
    assert param.help, name
    assert not getattr(param, "hidden", False)
    if param.param_type_name == "option":
        assert all(re.fullmatch(r"--[a-z]+(-[a-z]+)*|-[a-z]", option) for option in param.opts)
        assert param.envvar in (None, "PTRUN_" + param.opts[0].removeprefix("--").replace("-", "_").upper())


def test_an_option_means_the_same_in_every_command() -> None:
    seen: dict[str, Any] = {}
    for name, param in options():
        option = param.opts[0]
        if not option.startswith("--") or option in ("--data", "--recipe"):
            continue
        first = seen.setdefault(option, param)
        assert (param.help, param.default, param.envvar) == (first.help, first.default, first.envvar), name


@pytest.mark.parametrize("name", ["train", "eval", "recipes", "show", "new"])
def test_help_prints_every_option(invoke: Callable[..., Ran], name: str) -> None:
    ran = invoke(name, "--help")
    assert (ran.code, ran.err) == (0, "")
    for param in commands()[name].params:
        if param.param_type_name == "option":
            assert f"  {param.opts[0]}" in ran.out.replace("-q, ", "")


@pytest.mark.parametrize("recipe", recipe_paths().values(), ids=recipe_paths())
def test_every_field_of_a_shipped_recipe_is_described(recipe: Path) -> None:
    fields = read_outline(recipe).config.model_fields
    assert [name for name, info in fields.items() if not info.description] == []
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in fields)


@pytest.mark.parametrize("recipe", recipe_paths().values(), ids=recipe_paths())
def test_no_field_hides_behind_an_option(recipe: Path) -> None:
    taken = {option.removeprefix("--").replace("-", "_") for p in commands()["train"].params for option in p.opts}
    taken -= {"recipe"}
    assert set(read_outline(recipe).config.model_fields) & taken == set()


def test_results_on_stdout_progress_on_stderr(invoke: Callable[..., Ran], work: Path) -> None:
    write_noise_recipe(work / "noise.py")
    ran = invoke("train", "./noise.py", "--epochs", "2", "--json")
    assert json.loads(ran.out)["status"] == "finished"
    assert [line.partition("  ")[0] for line in ran.err.splitlines()] == ["epoch 1/2", "epoch 2/2"]
    for verb in (["train", "./noise.py"], ["eval", "noise"]):
        ran = invoke(*verb, "--quiet")
        assert (ran.code, ran.err) == (0, "")
        assert "noise on noise" in ran.out


@pytest.mark.parametrize("arguments", [["eval", "lenet"], ["train", "lenett"], ["show", "lenet", "--x"], ["trian"]])
def test_errors_on_stderr_even_with_json(invoke: Callable[..., Ran], arguments: list[str]) -> None:
    ran = invoke(*arguments, "--json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")


def test_files_and_pipes_get_plain_text(ptrun: Callable[..., Ran], work: Path) -> None:
    write_noise_recipe(work / "noise.py")
    forced = os.environ | {"TERM": "xterm-256color", "COLUMNS": "40"}
    ran = ptrun("train", "./noise.py", "--epochs", "2", env=forced)
    assert ran.code == 0, ran.err
    assert ESCAPE not in ran.out + ran.err
    assert "\r" not in ran.out + ran.err
    (run,) = work.glob("runs/noise/*")
    assert ran.out.endswith(f"tensorboard --logdir runs/noise/{run.name}\n")  # nothing is wrapped or cut
    assert len(ran.err.splitlines()) == 2


@pytest.mark.parametrize(
    "arguments", [["recipes"], ["recipes", "--json"], ["show", "lenet"], ["--help"], ["--version"]]
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_left(arguments: list[str], unbuffered: str) -> None:
    """As `ptrun recipes | head -n 0`: no traceback, no complaint of the interpreter."""
    reading, writing = os.pipe()
    os.close(reading)
    variables = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, "-m", "ptrun", *arguments]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, env=variables, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


TRAIN_EACH = """
import json, os, sys
from ptrun.main import run

for variables in json.loads(sys.argv[1]):
    os.environ |= variables
    assert run(["train", "./noise.py", "--epochs", "3"]) == 0
    print("NEXT", flush=True)
"""


def on_terminal(*variables: dict[str, str]) -> list[str]:
    """Return what a training writes, for each set of variables, when stdout and stderr are a terminal."""
    master, slave = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-c", TRAIN_EACH, json.dumps(variables)]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    written = b""
    with contextlib.suppress(OSError):  # raised when the other side has closed
        while chunk := os.read(master, 65536):
            written += chunk
    os.close(master)
    assert process.wait(timeout=60) == 0, written
    *parts, _ = written.decode().replace("\r\n", "\n").split("NEXT\n")
    return parts


def test_colours_and_bar_of_a_terminal(work: Path) -> None:
    write_noise_recipe(work / "noise.py")
    live, colourless, dumb = on_terminal(
        {"TERM": "xterm-256color"}, {"TERM": "xterm-256color", "NO_COLOR": "1"}, {"TERM": "dumb"}
    )
    assert COLOUR.search(live)
    assert "\r" in live  # a bar that is drawn again and again
    assert not COLOUR.search(colourless)
    assert ESCAPE not in dumb
    assert "\r" not in dumb
    for written in (live, colourless, dumb):
        assert written.count("epoch 3/3  train loss") == 1
        assert "test accuracy" in written

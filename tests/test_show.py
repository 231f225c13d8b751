"""`ptrun recipes` and `ptrun show`: what can be known of recipes."""

import json
from collections.abc import Callable
from pathlib import Path

from conftest import ROOT, Ran
from recipe_text import write_recipe

from ptrun.registry import SHIPPED

NAMES = sorted(path.stem for path in (ROOT / "recipes").glob("*.py"))


def test_recipes_as_json(invoke: Callable[..., Ran]) -> None:
    listed = json.loads(invoke("recipes", "--json").out)
    assert [entry["name"] for entry in listed] == NAMES
    assert listed[NAMES.index("lenet")] == {
        "name": "lenet",
        "aliases": [],
        "summary": "LeNet-5 on MNIST: a small convolutional network that reads handwritten digits.",
        "file": str(SHIPPED / "lenet.py"),
    }
    assert listed[NAMES.index("quickstart")]["aliases"] == ["fashion"]


def test_recipes_as_a_table(invoke: Callable[..., Ran], work: Path) -> None:
    write_recipe(work / "recipes" / "mine.py", ("One linear layer on digits.", "A [b]bold[/b] :star: claim."))
    ran = invoke("recipes")
    heading, *rows = [line.split() for line in ran.out.splitlines()]
    assert (ran.code, ran.err) == (0, "")
    assert heading == ["recipe", "also", "what", "it", "is", "file"]
    assert [row[0] for row in rows] == sorted([*NAMES, "mine"])
    mine = rows[sorted([*NAMES, "mine"]).index("mine")]
    assert mine == ["mine", "line", "A", "[b]bold[/b]", ":star:", "claim.", "recipes/mine.py"]


def test_a_broken_recipe_is_named_among_the_others(invoke: Callable[..., Ran], work: Path) -> None:
    write_recipe(work / "recipes" / "mine.py", ("def data(", "def dates("))
    ran = invoke("recipes")
    assert (ran.code, ran.err) == (0, "")
    lines = {line.split()[0]: line for line in ran.out.splitlines()}
    assert "recipe recipes/mine.py lacks data(…);" in lines["mine"]
    assert "LeNet-5" in lines["lenet"]


def test_show_as_json(invoke: Callable[..., Ran], work: Path) -> None:
    write_recipe(work / "tiny.py")
    shown = json.loads(invoke("show", "./tiny.py", "--json", "--lr", "0.5").out)
    assert shown["recipe"] == "tiny"
    assert shown["doc"] == "One linear layer on digits.\n\nA second paragraph."
    assert shown["presets"] == {"slow": {"lr": 0.01, "epochs": 9}, "fast": {"lr": 1.0}}
    assert list(shown["fields"]) == [
        "data", "seed", "epochs", "batch_size", "val_fraction", "lr", "width", "kind", "nesterov", "clip",
    ]  # fmt: skip
    assert shown["fields"]["lr"] == {
        "value": 0.5, "source": "flag", "bounds": "float, > 0, < 10", "description": "learning rate",
    }  # fmt: skip
    assert shown["fields"]["clip"]["value"] is None


def test_show_as_text(invoke: Callable[..., Ran], work: Path) -> None:
    write_recipe(work / "tiny.py", ('"look ahead"', '"in [red], as :star: [1, 2] say"'))
    ran = invoke("show", "./tiny.py", "--preset", "slow")
    lines = ran.out.splitlines()
    assert (ran.code, ran.err) == (0, "")
    assert lines[:4] == ["One linear layer on digits.", "", "A second paragraph.", ""]
    rows = {line.split()[0]: line.split() for line in lines[5:15]}
    assert rows["lr"] == ["lr", "0.01", "preset", "slow", "float,", ">", "0,", "<", "10", "learning", "rate"]
    assert rows["kind"] == ["kind", "sgd", "default", "sgd", "|", "adam", "optimizer"]
    assert rows["nesterov"][3:] == ["bool", "in", "[red],", "as", ":star:", "[1,", "2]", "say"]
    assert lines[15:] == ["", "--preset slow: lr=0.01 epochs=9", "", "--preset fast: lr=1.0"]


def test_help_lists_the_fields(invoke: Callable[..., Ran], work: Path) -> None:
    write_recipe(work / "tiny.py")
    for command in ("train", "show"):
        ran = invoke(command, "./tiny.py", "--help")
        words = " ".join(ran.out.split())
        assert (ran.code, ran.err) == (0, "")
        assert f"Usage: ptrun {command} [OPTIONS]" in words
        assert "Fields of tiny: --data" in words
        assert "--batch-size images per optimizer step [int, ≥ 1; default: 64]" in words
        assert "--kind optimizer [sgd | adam; default: sgd]" in words
        assert "Fields of tiny" not in invoke(command, "--help").out


def test_help_of_an_unknown_recipe(invoke: Callable[..., Ran]) -> None:
    ran = invoke("train", "lenett", "--help")
    assert ran.code == 2
    assert ran.err.startswith("error: unknown recipe 'lenett'")
    assert ran.err.endswith("; did you mean 'lenet'?\n")

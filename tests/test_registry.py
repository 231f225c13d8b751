"""Which recipes there are, and which one a word means."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, Ran
from recipe_text import write_recipe

from ptrun.errors import UsageError
from ptrun.registry import SHIPPED, find_outline, find_recipe, names_recipe, recipe_paths

NAMES = sorted(path.stem for path in (ROOT / "recipes").glob("*.py"))
KNOWN = f"(known: {', '.join(NAMES)})"


def test_shipped_recipes_are_known_anywhere(work: Path) -> None:
    assert recipe_paths() == {name: SHIPPED / f"{name}.py" for name in NAMES}
    assert list(work.iterdir()) == []


def test_local_recipes_come_first(work: Path) -> None:
    write_recipe(work / "recipes" / "lenet.py")
    write_recipe(work / "recipes" / "mine.py")
    own = {"lenet": Path("recipes/lenet.py"), "mine": Path("recipes/mine.py")}
    assert recipe_paths() == {name: SHIPPED / f"{name}.py" for name in NAMES} | own
    assert find_outline("lenet").summary == "One linear layer on digits."
    assert find_recipe(str(SHIPPED / "lenet.py")) == SHIPPED / "lenet.py"  # a path reaches the hidden one


def test_hidden_and_private_files_are_no_recipes(work: Path) -> None:
    for name in (".draft.py", "_parts.py", "__init__.py", "notes.txt"):
        write_recipe(work / "recipes" / name)
    assert list(recipe_paths()) == NAMES


def test_in_the_repository_nothing_is_listed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert recipe_paths() == {name: SHIPPED / f"{name}.py" for name in NAMES}


def test_aliases(work: Path) -> None:
    assert find_recipe("fashion") == SHIPPED / "quickstart.py"
    write_recipe(work / "recipes" / "mine.py")
    assert find_recipe("line") == Path("recipes/mine.py")
    write_recipe(work / "recipes" / "fashion.py")
    assert find_recipe("fashion") == Path("recipes/fashion.py")  # a name beats an alias


@pytest.mark.parametrize("alias", ["ALIASES = 3", "ALIASES = (", "ALIASES = names()"])
def test_a_broken_file_does_not_hide_the_others(work: Path, alias: str) -> None:
    (work / "recipes").mkdir()
    (work / "recipes" / "broken.py").write_text(alias)
    assert find_outline("fashion").name == "quickstart"


@pytest.mark.parametrize("word", ["./mine.py", "mine.py", "sub/../mine.py", "{work}/mine.py"])
def test_paths(work: Path, word: str) -> None:
    (work / "sub").mkdir()
    write_recipe(work / "mine.py")
    word = word.format(work=work)
    assert find_recipe(word) == Path(word)
    assert find_outline(word).name == "mine"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("lenett", "unknown recipe 'lenett' {known}; did you mean 'lenet'?"),
        ("fashon", "unknown recipe 'fashon' {known}; did you mean 'fashion'?"),
        ("xyzzy", "unknown recipe 'xyzzy' {known}"),
        ("", "unknown recipe '' {known}"),
        ("./no.py", "recipe file ./no.py does not exist; ptrun new ./no.py --from lenet writes one"),
        ("lenet.py", "recipe file lenet.py does not exist; ptrun new lenet.py --from lenet writes one"),
    ],
)
def test_unknown(word: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_recipe(word)
    assert str(caught.value) == message.format(known=KNOWN)
    assert not names_recipe(word)


def test_a_local_recipe_is_trained_shown_and_listed(invoke: Callable[..., Ran], work: Path) -> None:
    write_recipe(work / "recipes" / "lenet.py")
    assert json.loads(invoke("show", "line", "--json").out)["recipe"] == "lenet"
    listed = {entry["name"]: entry for entry in json.loads(invoke("recipes", "--json").out)}
    assert listed["lenet"]["file"] == "recipes/lenet.py"
    assert listed["lenet"]["aliases"] == ["line"]
    result = json.loads(invoke("train", "lenet", "--epochs", "1", "--json", "--quiet").out)
    assert (result["recipe"], result["data"]) == ("lenet", "digits")
    run = work / result["run"]
    assert (run / "recipe.py").read_bytes() == (work / "recipes" / "lenet.py").read_bytes()


def test_a_broken_recipe_is_listed_with_its_fault(invoke: Callable[..., Ran], work: Path) -> None:
    write_recipe(work / "recipes" / "mine.py")
    faults = {"broken": b"def model(:", "binary": b"\xff\xfe", "half": b'"""A draft."""'}
    for name, content in faults.items():
        (work / "recipes" / f"{name}.py").write_bytes(content)
    ran = invoke("recipes", "--json")
    assert (ran.code, ran.err) == (0, "")
    listed = {entry["name"]: entry for entry in json.loads(ran.out)}
    assert list(listed) == sorted([*NAMES, "mine", *faults])
    assert listed["mine"]["summary"] == "One linear layer on digits."
    assert listed["lenet"]["summary"].startswith("LeNet-5 on MNIST")
    assert listed["broken"] == {
        "name": "broken", "aliases": [], "file": "recipes/broken.py",
        "summary": "recipe recipes/broken.py, line 1 is not valid Python: invalid syntax",
    }  # fmt: skip
    assert listed["binary"]["summary"].startswith("recipe recipes/binary.py, line 1 is not valid Python: ")
    assert listed["half"]["summary"].startswith("recipe recipes/half.py lacks class Config(ptrun.Config), model(…)")
    table = invoke("recipes")
    assert (table.code, table.err) == (0, "")
    assert all(entry["summary"] in table.out for entry in listed.values())


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("x" * 300, f"unknown recipe '{'x' * 300}' {KNOWN}"),
        ("x" * 300 + ".py", f"recipe file {'x' * 300}.py does not exist; ptrun new {'x' * 300}.py --from lenet writes"),
        ("a\udcff.py", "recipe 'a\\udcff.py' is not UTF-8; choose another name or rename it"),
    ],
)
def test_a_name_that_no_file_can_have(invoke: Callable[..., Ran], word: str, reason: str) -> None:
    ran = invoke("train", word)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith(f"error: {reason}")

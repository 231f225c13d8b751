"""What is read of a recipe without running it, and files that are no recipe."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from recipe_text import TINY, write_recipe

from ptrun.config import Layer, resolve
from ptrun.errors import UsageError
from ptrun.outline import Outline, aliases_of, read_outline
from ptrun.registry import find_outline


def outline(work: Path, *changes: tuple[str, str]) -> Outline:
    return read_outline(write_recipe(work / "tiny.py", *changes))


def test_what_a_recipe_says_of_itself(work: Path) -> None:
    read = outline(work)
    assert (read.name, read.path) == ("tiny", work / "tiny.py")
    assert read.doc == "One linear layer on digits.\n\nA second paragraph."
    assert read.summary == "One linear layer on digits."
    assert read.aliases == ("line",)
    assert read.presets == {"slow": {"lr": 0.01, "epochs": 9}, "fast": {"lr": 1.0}}
    assert {name: info.default for name, info in read.config.model_fields.items()} == {
        "data": "auto", "seed": 0, "epochs": 2, "batch_size": 64, "val_fraction": 0.0,
        "lr": 0.1, "width": 10, "kind": "sgd", "nesterov": False, "clip": None,
    }  # fmt: skip


def test_docstring_presets_and_aliases_may_be_left_out(work: Path) -> None:
    text = TINY[TINY.index("from typing") :].replace('ALIASES = ("line",)', "")
    start, end = text.index("PRESETS"), text.index("def model")
    path = work / "bare.py"
    path.write_text(text[:start] + text[end:])
    read = read_outline(path)
    assert (read.doc, read.summary, read.presets, read.aliases) == ("", "", {}, ())


def test_only_what_needs_no_torch_is_executed(work: Path) -> None:
    calls = 'Path("touched").touch()\nTABLE = torch.arange(3)\nRATE = 0.25\n\nALIASES'
    read = outline(
        work,
        ("from typing import Literal\n", "from pathlib import Path\nfrom typing import Literal\nimport nosuchmodule\n"),
        ("ALIASES", calls),
        ("lr: float = Field(0.1", "lr: float = Field(RATE"),
        ('"fast": {"lr": 1.0}', '"fast": {"lr": RATE * 4}'),
    )
    assert read.config().model_dump()["lr"] == 0.25
    assert read.presets["fast"] == {"lr": 1.0}
    assert not (work / "touched").exists()


# What a recipe may say at its top, and how Config may use it: (before, field, its default).
FREE = {
    "a table of modules": ('ACTS = {"relu": nn.ReLU, "tanh": nn.Tanh}', "act: str = 'relu'", "relu"),
    "an enumeration": (
        "class Act(StrEnum):\n    RELU = 'relu'\n\n    def module(self):\n        return nn.ReLU()",
        "act: Act = Act.RELU",
        "relu",
    ),
    "a function": ("def rate(power: int) -> float:\n    return 10.0**power", "rate: float = rate(-2)", 0.01),
    "a constant of a constant": ("BASE = 2\nSIDE: int = BASE * 14", "side: int = SIDE", 28),
    "a constant of math": ("import math", "angle: float = math.pi", 3.141592653589793),
    "modules by other names": (
        "import torch.nn as nn\nimport torch.nn.functional as F\nfrom torch import optim as opt", "side: int = 3", 3
    ),
    "names of several targets": ("LOW = HIGH = 4", "side: int = HIGH", 4),
}  # fmt: skip


def write_free(path: Path, before: str, field: str) -> Path:
    return write_recipe(
        path,
        ("import torch\n", "from enum import StrEnum\nimport torch\n"),
        ("class Config(ptrun.Config):\n", f"{before}\n\n\nclass Config(ptrun.Config):\n    {field}\n"),
    )


@pytest.mark.parametrize(("before", "field", "default"), FREE.values(), ids=FREE.keys())
def test_a_recipe_binds_what_it_likes(
    invoke: Callable[..., Ran], work: Path, before: str, field: str, default: Any
) -> None:
    write_free(work / "free.py", before, field)
    name = field.partition(":")[0]
    ran = invoke("show", "./free.py", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["fields"][name]["value"] == default
    ran = invoke("train", "./free.py", "--max-time", "0s", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    (config,) = work.glob("runs/free/*/config.json")
    assert json.loads(config.read_text())["fields"][name] == {"value": default, "source": "default"}


def test_what_a_recipe_binds_is_read_without_torch(work: Path) -> None:
    paths = [write_free(work / f"free{i}.py", before, field) for i, (before, field, _) in enumerate(FREE.values())]
    code = (
        "import sys\nfrom ptrun.main import run\n"
        "codes = [run(['show', path, '--json']) for path in sys.argv[1:]]\n"
        "print(codes, [name for name in ('torch', 'numpy') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *map(str, paths)], capture_output=True, text=True, timeout=60)
    assert done.stderr == f"{[0] * len(FREE)} []\n"


@pytest.mark.parametrize(
    ("text", "aliases"),
    [
        ('ALIASES = ("a", "b")', ("a", "b")),
        ('ALIASES: tuple[str, ...] = ("a",)', ("a",)),
        ("ALIASES: tuple[str, ...]", ()),
        ("ALIASES = 3", ()),
        ("ALIASES = names()", ()),
        ("", ()),
        ("def broken(", ()),
    ],
)
def test_aliases(work: Path, text: str, aliases: tuple[str, ...]) -> None:
    (work / "some.py").write_text(text)
    assert aliases_of(work / "some.py") == aliases


def test_aliases_of_no_file(work: Path) -> None:
    assert aliases_of(work / "none.py") == ()


WRITE_ONE = "; ptrun new FILE --from lenet writes a complete one"
LIGHT = " (Config and PRESETS are read without torch: literals, typing, math, enum and ptrun only)"
PRESETS = ': PRESETS must be like {"paper": {"lr": 0.1}}'


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ([("def data(", "def dates(")], " lacks data(…)" + WRITE_ONE),
        ([("def model(", "def net("), ("def optimizer(", "def opt(")], " lacks model(…), optimizer(…)" + WRITE_ONE),
        ([("class Config(", "class Settings(")], " lacks class Config(ptrun.Config)" + WRITE_ONE),
        ([("class Config(ptrun.Config)", "class Config")], ": Config must be a class derived from ptrun.Config"),
        ([("-> nn.Module:", "-> nn.Module")], ", line 29 is not valid Python: expected ':'"),
        ([("Field(10, ge=1", "Field(ge=1")], ": Config gives width no default; every field needs one"),
        ([("Field(0.1", "Field(torch.pi")], ", line 19: NameError: name 'torch' is not defined" + LIGHT),
        ([('{"lr": 1.0}', '{"lr": 1 / 0}')], ", line 26: ZeroDivisionError: division by zero" + LIGHT),
        ([('{"lr": 1.0}}', "1.0}")], PRESETS),
        ([("PRESETS = {", 'PRESETS = ["slow"]\nOTHERS = {')], PRESETS),
    ],
)
def test_no_recipe(work: Path, changes: list[tuple[str, str]], fault: str) -> None:
    write_recipe(work / "tiny.py", *changes)
    with pytest.raises(UsageError) as caught:
        read_outline(Path("tiny.py"))
    assert str(caught.value) == f"recipe tiny.py{fault}"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", " lacks class Config(ptrun.Config), model(…), data(…), optimizer(…)"),
        (b"\xff\xfe", ", line 1 is not valid Python: (unicode error) 'utf-8' codec can't decode byte 0xff"),
        (b"x = 1\0", " is not valid Python: source code string cannot contain null bytes"),
    ],
)
def test_no_text(work: Path, content: bytes, reason: str) -> None:
    (work / "odd.py").write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_outline(Path("odd.py"))
    assert str(caught.value).startswith(f"recipe odd.py{reason}")


def test_functions_may_be_imported(work: Path) -> None:
    text = TINY.replace("def model(", "def network(") + "\nfrom elsewhere import model\n"
    (work / "shared.py").write_text(text)
    assert read_outline(work / "shared.py").name == "shared"


@pytest.mark.parametrize(("recipe", "preset"), [("lenet", "paper"), ("quickstart", "tutorial")])
def test_presets_of_the_shipped_recipes_are_valid(recipe: str, preset: str) -> None:
    found = find_outline(recipe)
    fields: dict[str, Any] = found.presets[preset]
    values = resolve(recipe, found.config, [Layer("preset", fields)]).config.model_dump()
    assert {name: values[name] for name in fields} == fields

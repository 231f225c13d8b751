"""The rules of the house (CONTRIBUTING.md) that a program can check."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

import ptrun

MODULES = sorted((ROOT / "ptrun").rglob("*.py"))
RECIPES = sorted((ROOT / "recipes").glob("*.py"))
JUNK_DRAWERS = {"utils", "util", "common", "helpers", "helper", "core", "base", "misc"}


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def test_imports_go_down_the_floors() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.parametrize("path", MODULES, ids=names(MODULES))
def test_files_and_functions_are_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 200
    bodies = {
        node.name: (node.end_lineno or 0) - node.body[0].lineno + 1  # a command's signature is its list of options
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: lines for name, lines in bodies.items() if lines > 40} == {}


@pytest.mark.parametrize("path", RECIPES, ids=names(RECIPES))
def test_recipes_are_one_screen(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 90


@pytest.mark.parametrize("path", RECIPES, ids=names(RECIPES))
def test_recipes_import_only_the_public_face(path: Path) -> None:
    for module, name in imports(path):
        top = module.partition(".")[0]
        assert top in {"ptrun", "torch", "torchvision"} | sys.stdlib_module_names, module
        if top == "ptrun":
            assert module == "ptrun"
            assert name is None or name in ptrun.__all__


def test_no_file_is_a_junk_drawer() -> None:
    parts = {part for path in [*MODULES, *RECIPES] for part in (path.stem, path.parent.name)}
    assert parts & JUNK_DRAWERS == set()


def imports(path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield (module, None) for `import module` and (module, name) for `from module import name`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (("." * node.level + (node.module or ""), alias.name) for alias in node.names)

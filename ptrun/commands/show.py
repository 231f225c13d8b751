"""`ptrun recipes`, `ptrun show` and `ptrun new`: what can be known of recipes without running one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from ptrun.arguments import FieldArguments
from ptrun.config import bounds, resolve
from ptrun.errors import UsageError, check_utf8
from ptrun.outline import read_outline
from ptrun.plan import requested_layers
from ptrun.registry import find_outline, find_recipe, recipe_paths


def recipes() -> list[dict[str, Any]]:
    """Return name, aliases, summary and file of each recipe that can be named here, or what is wrong with the file."""
    return [_summary(name, path) for name, path in recipe_paths().items()]


def show(
    recipe: str, arguments: FieldArguments, environ: Mapping[str, str], *, preset: str | None, config: Path | None
) -> dict[str, Any]:
    """Return a recipe's documentation, and its fields with value, source, bounds and description."""
    outline = find_outline(recipe)
    layers = requested_layers(outline, arguments, environ, preset, config)
    entries = resolve(outline.name, outline.config, layers).as_json()
    for name, info in outline.config.model_fields.items():
        entries[name] |= {"bounds": bounds(info), "description": info.description or ""}
    return {"recipe": outline.name, "doc": outline.doc, "fields": entries, "presets": outline.presets}


def new(file: Path, source: str) -> Path:
    """Copy a recipe to a new file and return its path; never write over a file."""
    check_utf8("file", str(file))
    if file.suffix != ".py":
        raise UsageError(f"a recipe is a Python file: ptrun new {file}.py --from {source}")
    original = find_recipe(source)
    try:
        content = original.read_bytes()
    except OSError as error:
        raise UsageError(f"recipe {original} cannot be read: {error.strerror}") from None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as target:
            _write_whole(target, file, content)
    except FileExistsError as error:
        raise UsageError(f"{error.filename} exists already; choose another name or remove it") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from None
    return file


def _write_whole(target: BinaryIO, file: Path, content: bytes) -> None:
    try:
        target.write(content)
        target.flush()
    except OSError:
        file.unlink()
        raise


def _summary(name: str, path: Path) -> dict[str, Any]:
    try:
        outline = read_outline(path)
    except UsageError as error:
        return {"name": name, "aliases": [], "summary": str(error), "file": str(path)}
    return {"name": name, "aliases": list(outline.aliases), "summary": outline.summary, "file": str(path)}

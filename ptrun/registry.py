"""Which recipes there are: `./recipes/NAME.py`, then the shipped ones, or any path."""

from contextlib import suppress
from pathlib import Path

from ptrun.errors import UsageError, check_utf8, did_you_mean
from ptrun.outline import Outline, aliases_of, read_outline

PACKAGE = Path(__file__).parent
# Inside an installed package; beside it in a source checkout.
SHIPPED = next((d for d in (PACKAGE / "recipes", PACKAGE.parent / "recipes") if d.is_dir()), PACKAGE / "recipes")


def folders() -> list[Path]:
    """Return the folders that are searched, in order."""
    own = Path("recipes")
    same = own.is_dir() and own.resolve() == SHIPPED.resolve()
    return [SHIPPED] if same else [own, SHIPPED]


def recipe_paths() -> dict[str, Path]:
    """Return every recipe by name; a local one hides a shipped one of the same name."""
    found: dict[str, Path] = {}
    for folder in folders():
        for path in sorted(folder.glob("[!_.]*.py")):
            found.setdefault(path.stem, path)
    return dict(sorted(found.items()))


def find_recipe(word: str) -> Path:
    """Return the file of a recipe given by name, alias or path; raise UsageError if there is none."""
    check_utf8("recipe", word)
    if word.endswith(".py") or "/" in word:
        path = Path(word)
        with suppress(OSError):  # not even a path, if it is too long for one
            if path.is_file():
                return path
        raise UsageError(f"recipe file {word} does not exist; ptrun new {word} --from lenet writes one")
    paths = recipe_paths()
    if word in paths:
        return paths[word]
    aliases = {alias: path for path in paths.values() for alias in aliases_of(path)}
    if word in aliases:
        return aliases[word]
    hint = did_you_mean(word, [*paths, *aliases])
    raise UsageError(f"unknown recipe '{word}' (known: {', '.join(paths)}){hint}")


def names_recipe(word: str) -> bool:
    """Whether `word` is the name, alias or path of a recipe."""
    try:
        return find_recipe(word).is_file()
    except UsageError:
        return False


def find_outline(word: str) -> Outline:
    """Return the outline of a recipe given by name, alias or path."""
    return read_outline(find_recipe(word))

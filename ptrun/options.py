"""The options of the commands, and what the shell completes."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option


def complete_recipe(incomplete: str) -> list[str]:
    """Return the names of recipes that begin so."""
    from ptrun.registry import recipe_paths

    return [name for name in recipe_paths() if name.startswith(incomplete)]


OutputDir = Annotated[Path, Option("--output-dir", envvar="PTRUN_OUTPUT_DIR", help="where runs are kept")]
DataDir = Annotated[
    Path | None, Option("--data-dir", envvar="PTRUN_DATA_DIR", help="where data sets lie, searched first")
]
Device = Annotated[str | None, Option(envvar="PTRUN_DEVICE", help="auto (default), cpu, cuda, cuda:N or mps")]
Preset = Annotated[str | None, Option(envvar="PTRUN_PRESET", help="a named variant of the recipe")]
ConfigFile = Annotated[
    Path | None, Option("--config", envvar="PTRUN_CONFIG", help="a TOML file of fields, or the config.json of a run")
]
Json = Annotated[bool, Option("--json", envvar="PTRUN_JSON", help="print one JSON document instead of a table")]
Debug = Annotated[bool, Option("--debug", envvar="PTRUN_DEBUG", help="show the traceback of an error")]
Quiet = Annotated[bool, Option("--quiet", "-q", envvar="PTRUN_QUIET", help="no progress, only the result")]
RecipeWord = Annotated[
    str, Argument(metavar="RECIPE", help="a recipe's name or file", autocompletion=complete_recipe, show_default=False)
]

# Of `train` alone.
Resume = Annotated[
    str | None,
    Option(
        metavar="WORD",
        envvar="PTRUN_RESUME",
        help="continue: last, best, a run's name, directory or file",
        show_default=False,
    ),
]
Force = Annotated[
    bool,
    Option("--force", envvar="PTRUN_FORCE", help="let a resumed run change fields that make it another experiment"),
]
Name = Annotated[str | None, Option(help="ends the run directory's name, instead of a random suffix")]
MaxTime = Annotated[str | None, Option(envvar="PTRUN_MAX_TIME", help="stop after so long: 90s, 10m, 1h30m")]
CheckpointEvery = Annotated[
    str | None, Option(envvar="PTRUN_CHECKPOINT_EVERY", help="also save every so many steps (500) or seconds (30s)")
]
LogInterval = Annotated[
    int | None, Option(min=1, envvar="PTRUN_LOG_INTERVAL", help="steps between two logged steps (default: 50)")
]
FastDevRun = Annotated[
    bool, Option("--fast-dev-run", envvar="PTRUN_FAST_DEV_RUN", help="run everything on two batches, keep nothing")
]
DryRun = Annotated[bool, Option("--dry-run", envvar="PTRUN_DRY_RUN", help="build and check everything, train nothing")]

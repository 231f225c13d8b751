"""The command line: what can be asked, who does it, and how the result is printed."""

import os
import shlex
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from ptrun import __version__, options
from ptrun.arguments import FieldArguments, RecipeCommand
from ptrun.errors import PtrunError, UsageError
from ptrun.formats import as_json
from ptrun.interrupt import EXIT_CODES

app = typer.Typer(
    epilog="Start with: ptrun train lenet",
    rich_markup_mode=None,  # plain help comes in half the time, and can be piped
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

FIELDS = {"ignore_unknown_options": True, "allow_extra_args": True}


@app.callback(invoke_without_command=True)
def root(ctx: typer.Context, version: Annotated[bool, Option("--version", help="print the version")] = False) -> None:
    """Run PyTorch experiments: a recipe says what, a flag says where, a run directory keeps what happened."""
    if version:
        print(f"ptrun {__version__}")
    elif ctx.invoked_subcommand is None:
        print(ctx.get_help())


@app.command(cls=RecipeCommand, context_settings=FIELDS)
def train(
    ctx: typer.Context,
    recipe: Annotated[
        str | None, Argument(metavar="RECIPE", help="a recipe's name or file", autocompletion=options.complete_recipe)
    ] = None,
    preset: options.Preset = None,
    config: options.ConfigFile = None,
    resume: options.Resume = None,
    force: options.Force = False,
    device: options.Device = None,
    output_dir: options.OutputDir = Path("runs"),
    name: options.Name = None,
    data_dir: options.DataDir = None,
    max_time: options.MaxTime = None,
    checkpoint_every: options.CheckpointEvery = None,
    log_interval: options.LogInterval = None,
    fast_dev_run: options.FastDevRun = False,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Train a recipe: ptrun train lenet --epochs 3 --lr 0.05

    Fields of the recipe are options too; `ptrun train RECIPE --help` lists them.
    """
    from ptrun.clock import parse_duration
    from ptrun.console import open_stderr
    from ptrun.displays import open_display
    from ptrun.eager import import_torch
    from ptrun.machine import parse_cadence
    from ptrun.plan import Request, make_plan
    from ptrun.tables import how_to_continue, print_dry_run, print_train_result

    stderr = open_stderr(quiet=quiet)
    if sum([fast_dev_run, dry_run, resume is not None]) > 1:
        raise UsageError("--fast-dev-run, --dry-run and --resume exclude each other; choose one")
    flags = {
        "device": device,
        "output_dir": output_dir,
        "name": name,
        "data_dir": data_dir,
        "max_seconds": parse_duration(max_time, "--max-time") if max_time is not None else None,
        "checkpoint_every": parse_cadence(checkpoint_every) if checkpoint_every is not None else None,
        "log_interval": log_interval,
    }
    command = shlex.join(["ptrun", *ctx.find_root().obj])
    plan = make_plan(recipe, _fields(ctx), os.environ, Request(flags, preset, config, resume, force, command))
    import_torch()
    display = partial(open_display, stderr, quiet=quiet)
    with redirect_stdout(sys.stderr):  # what a recipe prints is no result
        result = _train(plan, display, dry_run=dry_run, fast=fast_dev_run)
    _print(result, as_json, print_dry_run if dry_run else print_train_result)
    if result.get("status") == "interrupted":
        stderr.print(how_to_continue(result), soft_wrap=True)  # one line, to be copied
        raise typer.Exit(EXIT_CODES[result["reason"]])


@app.command("eval")
def evaluate(
    word: Annotated[str, Argument(metavar="WORD", help="a recipe, last, best, a run's name, directory or file")],
    data: Annotated[str, Option(help="another data set than the run's own: mnist, fashion, digits")] = "auto",
    recipe: Annotated[str | None, Option(help="for a checkpoint file that is in no run directory")] = None,
    require_accuracy: Annotated[
        float | None, Option(min=0, max=1, help="exit 1 below this accuracy, like 0.99")
    ] = None,
    device: options.Device = None,
    output_dir: options.OutputDir = Path("runs"),
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Evaluate a trained model: ptrun eval lenet"""
    from ptrun.console import open_stderr
    from ptrun.data.catalog import check_name
    from ptrun.eager import import_torch
    from ptrun.machine import check_device_name
    from ptrun.registry import find_outline
    from ptrun.tables import print_report
    from ptrun.words import find_checkpoint

    open_stderr(quiet=quiet)
    # What is wrong is found before torch is loaded.
    data = check_name(data)
    device = "auto" if device is None else device
    check_device_name(device)
    target = find_checkpoint(word, output_dir)
    if recipe is not None:
        find_outline(recipe)
    if require_accuracy is not None and require_accuracy != require_accuracy:
        raise UsageError("--require-accuracy nan is not a number; write a share like 0.99")
    import_torch()
    from ptrun.commands.evaluate import evaluate_target

    with redirect_stdout(sys.stderr):  # what a recipe prints is no result
        report = evaluate_target(target, data=data, data_dir=data_dir, device=device, recipe=recipe)
    _print(report, as_json, print_report)
    if require_accuracy is not None and report["accuracy"] < require_accuracy:
        raise PtrunError(f"accuracy {report['accuracy']:.4f} is below the required {require_accuracy:g}")


@app.command()
def recipes(as_json: options.Json = False, debug: options.Debug = False) -> None:
    """List the recipes that can be named here."""
    from ptrun.commands.show import recipes as listed
    from ptrun.tables import print_recipes

    _print(listed(), as_json, print_recipes)


@app.command(cls=RecipeCommand, context_settings=FIELDS)
def show(
    ctx: typer.Context,
    recipe: options.RecipeWord,
    preset: options.Preset = None,
    config: options.ConfigFile = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Show a recipe's fields, their values and where each comes from."""
    from ptrun.commands.show import show as shown
    from ptrun.tables import print_settings

    _print(shown(recipe, _fields(ctx), os.environ, preset=preset, config=config), as_json, print_settings)


@app.command()
def new(
    file: Annotated[Path, Argument(metavar="FILE", help="the recipe to write, like mine.py")],
    source: Annotated[str, Option("--from", help="the recipe to copy")] = "lenet",
    debug: options.Debug = False,
) -> None:
    """Copy a recipe to a file of your own."""
    from ptrun.commands.show import new as copy

    path = copy(file, source)
    print(f"wrote {path}; train it with: ptrun train ./{path}" if not path.is_absolute() else f"wrote {path}")


def _fields(ctx: typer.Context) -> FieldArguments:
    assert isinstance(ctx.obj, FieldArguments)
    return ctx.obj


def _train(plan: Any, display: Any, *, dry_run: bool, fast: bool) -> dict[str, Any]:
    from ptrun.commands import dry_run as building
    from ptrun.commands import train as training

    if dry_run:
        return building.dry_run(plan)
    return (training.fast_dev_run if fast else training.train)(plan, display)


def _print(result: Any, json: bool, show: Callable[[Any], None]) -> None:
    if json:
        print(as_json(result, indent=2))
    else:
        show(result)

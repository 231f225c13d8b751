"""The command line: options, printing, and the one place where errors become sentences and exit codes."""

import json
import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from ptrun import __version__
from ptrun.arguments import FieldArguments, RecipeCommand
from ptrun.errors import PtrunError, UsageError
from ptrun.options import (
    ConfigFile,
    DataDir,
    Debug,
    Device,
    Json,
    OutputDir,
    Preset,
    Quiet,
    RecipeWord,
    complete_recipe,
)

OFF = {"", "0", "false", "no", "off"}
INTERRUPTED = {"SIGINT": 130, "SIGTERM": 143}

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
        str | None, Argument(metavar="RECIPE", help="a recipe's name or file", autocompletion=complete_recipe)
    ] = None,
    preset: Preset = None,
    config: ConfigFile = None,
    resume: Annotated[
        str | None, Option(metavar="WORD", help="continue: last, best, a run's name, directory or file")
    ] = None,
    force: Annotated[
        bool, Option("--force", help="let a resumed run change fields that make it another experiment")
    ] = False,
    device: Device = "auto",
    output_dir: OutputDir = Path("runs"),
    name: Annotated[str | None, Option(help="ends the run directory's name, instead of a random suffix")] = None,
    data_dir: DataDir = None,
    max_time: Annotated[str | None, Option(envvar="PTRUN_MAX_TIME", help="stop after so long: 90s, 10m, 1h30m")] = None,
    checkpoint_every: Annotated[
        str | None, Option(envvar="PTRUN_CHECKPOINT_EVERY", help="also save every so many steps (500) or seconds (30s)")
    ] = None,
    log_interval: Annotated[
        int, Option(min=1, envvar="PTRUN_LOG_INTERVAL", help="steps between two logged steps")
    ] = 50,
    fast_dev_run: Annotated[bool, Option("--fast-dev-run", help="run everything on two batches, keep nothing")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="build and check everything, train nothing")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a recipe: ptrun train lenet --epochs 3 --lr 0.05

    Fields of the recipe are options too; `ptrun train RECIPE --help` lists them.
    """
    from ptrun.clock import parse_duration
    from ptrun.plan import Cadence, Machine, check_device_name, make_plan, parse_cadence
    from ptrun.rundir import check_run_name

    if sum([fast_dev_run, dry_run, resume is not None]) > 1:
        raise UsageError("--fast-dev-run, --dry-run and --resume exclude each other; choose one")
    machine = Machine(
        device=check_device_name(device),
        output_dir=output_dir,
        name=check_run_name(name),
        data_dir=data_dir,
        max_seconds=parse_duration(max_time, "--max-time") if max_time is not None else None,
        checkpoint_every=parse_cadence(checkpoint_every) if checkpoint_every is not None else Cadence(),
        log_interval=log_interval,
    )
    plan = make_plan(
        recipe, _fields(ctx), os.environ, machine, preset=preset, config=config, resume=resume, force=force
    )
    stderr = _start(quiet)
    if dry_run:
        from ptrun.commands.dry_run import dry_run as build_only

        return _print(build_only(plan), as_json, "print_dry_run")
    from ptrun.commands import train as command

    run = command.fast_dev_run if fast_dev_run else command.train
    result = run(plan, lambda job: _display(stderr, quiet, job))
    _print(result, as_json, "print_train_result")
    if result["reason"] in INTERRUPTED:
        message = f"stopped by {result['reason']}"
        if result["run"] is not None:
            again = ["ptrun", "train", "--resume", result["run"], *(["--data-dir", str(data_dir)] if data_dir else [])]
            message += f"; continue with: {shlex.join(again)}"
        stderr.print(message, soft_wrap=True)  # one line, to be copied
        raise typer.Exit(INTERRUPTED[result["reason"]])
    return None


@app.command("eval")
def evaluate(
    word: Annotated[str, Argument(metavar="WORD", help="a recipe, last, best, a run's name, directory or file")],
    data: Annotated[str, Option(help="another data set than the run's own: mnist, fashion, digits")] = "auto",
    recipe: Annotated[str | None, Option(help="for a checkpoint file that is in no run directory")] = None,
    require_accuracy: Annotated[
        float | None, Option(min=0, max=1, help="exit 1 below this accuracy, like 0.99")
    ] = None,
    device: Device = "auto",
    output_dir: OutputDir = Path("runs"),
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Evaluate a trained model: ptrun eval lenet"""
    from ptrun.data.catalog import check_name
    from ptrun.plan import check_device_name
    from ptrun.registry import find_outline
    from ptrun.words import find_checkpoint

    # What is wrong is found before torch is loaded.
    data = check_name(data)
    check_device_name(device)
    find_checkpoint(word, output_dir)
    if recipe is not None:
        find_outline(recipe)
    if require_accuracy is not None and require_accuracy != require_accuracy:
        raise UsageError("--require-accuracy nan is not a number; write a share like 0.99")
    _start(quiet)
    from ptrun.commands.evaluate import evaluate_word

    report = evaluate_word(word, output_dir=output_dir, data=data, data_dir=data_dir, device=device, recipe=recipe)
    _print(report, as_json, "print_report")
    if require_accuracy is not None and report["accuracy"] < require_accuracy:
        raise PtrunError(f"accuracy {report['accuracy']:.4f} is below the required {require_accuracy:g}")


@app.command()
def recipes(as_json: Json = False, debug: Debug = False) -> None:
    """List the recipes that can be named here."""
    from ptrun.commands.show import recipes as listed

    _print(listed(), as_json, "print_recipes")


@app.command(cls=RecipeCommand, context_settings=FIELDS)
def show(
    ctx: typer.Context,
    recipe: RecipeWord,
    preset: Preset = None,
    config: ConfigFile = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show a recipe's fields, their values and where each comes from."""
    from ptrun.commands.show import show as shown

    _print(shown(recipe, _fields(ctx), os.environ, preset=preset, config=config), as_json, "print_settings")


@app.command()
def new(
    file: Annotated[Path, Argument(metavar="FILE", help="the recipe to write, like mine.py")],
    source: Annotated[str, Option("--from", help="the recipe to copy")] = "lenet",
    debug: Debug = False,
) -> None:
    """Copy a recipe to a file of your own."""
    from ptrun.commands.show import new as copy

    path = copy(file, source)
    print(f"wrote {path}; train it with: ptrun train ./{path}" if not path.is_absolute() else f"wrote {path}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; errors are printed as one sentence on stderr."""
    # Looked for here, for errors before options are read.
    debug = "--debug" in arguments or os.environ.get("PTRUN_DEBUG", "").lower() not in OFF
    try:
        code = app(arguments, prog_name="ptrun", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except PtrunError as error:
        return _explain(str(error), error.exit_code, debug)
    except KeyboardInterrupt:
        return _explain("interrupted", 130, debug)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has left; nothing to say to it
        return 1  # as Typer and rich, which mostly see it first
    except OSError as error:
        if not (debug or error.strerror):
            raise
        return _explain(f"{error.filename or 'writing'}: {error.strerror}", 1, debug)
    except Exception as error:
        if not hasattr(error, "format_message"):  # Typer gives its usage errors no public name
            raise
        return _explain(error.format_message().rstrip("."), 2, debug)


def _explain(message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"error: {message}", file=sys.stderr)
    return code


def _fields(ctx: typer.Context) -> FieldArguments:
    assert isinstance(ctx.obj, FieldArguments)
    return ctx.obj


def _start(quiet: bool) -> Any:
    """Open stderr, and get torch ready to be imported."""
    from ptrun.console import open_stderr
    from ptrun.eager import postpone_compiler
    from ptrun.interrupt import ending_at_once

    console = open_stderr(quiet=quiet)
    with ending_at_once():
        import torch  # noqa: F401  # before the stand-in, which would hide the real module from it

    postpone_compiler()
    return console


def _display(stderr: Any, quiet: bool, job: Any) -> Any:
    from ptrun import displays
    from ptrun.console import is_live_terminal

    if quiet:
        return displays.Silent()
    return displays.Bar(stderr, job) if is_live_terminal(sys.stderr) else displays.Lines(stderr)


def _print(result: Any, as_json: bool, table: str) -> None:
    if as_json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
        return
    from ptrun import tables

    getattr(tables, table)(result)

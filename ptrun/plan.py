"""What a `train` command asks for, checked as far as that is possible without torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptrun.arguments import FieldArguments
from ptrun.config import Config, Layer, Resolved, file_layer, preset_layer, resolve, variable_layers
from ptrun.data.catalog import check_name
from ptrun.errors import UsageError
from ptrun.machine import Machine, make_machine
from ptrun.outline import Outline, read_outline
from ptrun.registry import find_outline
from ptrun.rundir import RunDir, check_run_name
from ptrun.words import Target, find_checkpoint

FREE_TO_CHANGE = {"epochs"}


@dataclass(frozen=True)
class Resumption:
    """The run that is continued, from which of its checkpoints, and the fields that change: `{name: (before, now)}`."""

    run: RunDir
    target: Target
    before: Mapping[str, Any]
    changed: Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True)
class Plan:
    """A recipe, its checked fields and the machine flags; for a resumed run, what is resumed."""

    outline: Outline
    resolved: Resolved
    machine: Machine
    command: str
    resumption: Resumption | None = None


@dataclass(frozen=True)
class Request:
    """What was typed, apart from the recipe and its fields."""

    flags: Mapping[str, Any] = field(default_factory=dict)  # of `Machine`; None where one was not given
    preset: str | None = None
    config: Path | None = None
    resume: str | None = None
    force: bool = False
    command: str = "ptrun train"


def make_plan(recipe: str | None, arguments: FieldArguments, environ: Mapping[str, str], request: Request) -> Plan:
    """Return the checked plan; raise UsageError for anything that can be found wrong before torch is loaded."""
    machine = make_machine(request.flags)
    check_run_name(machine.name)
    if request.resume is not None:
        return _plan_resumption(recipe, arguments, environ, request, request.resume)
    if request.force:
        raise UsageError("--force lets a resumed run change its fields; there is no --resume here")
    if recipe is None:
        raise UsageError("which recipe? Like `ptrun train lenet`; `ptrun recipes` lists them")
    outline = find_outline(recipe)
    layers = requested_layers(outline, arguments, environ, request.preset, request.config)
    resolved = _with_proper_data_name(resolve(outline.name, outline.config, layers))
    return Plan(outline, resolved, machine, request.command)


def _plan_resumption(
    recipe: str | None, arguments: FieldArguments, environ: Mapping[str, str], request: Request, word: str
) -> Plan:
    machine = make_machine(request.flags)
    target = find_checkpoint(word, machine.output_dir)
    run = target.run
    if run is None:
        raise UsageError(f"--resume {word}: the file is not in a run's checkpoints/, so there is no run to continue")
    if machine.name is not None:
        raise UsageError("--name names a new run; --resume continues one that has its name")
    recorded = run.config()
    if recipe is not None and find_outline(recipe).name != recorded["recipe"]:
        raise UsageError(f"--resume {word} is a run of {recorded['recipe']}, not of {recipe}; leave the recipe out")
    outline = read_outline(run.recipe_file, recorded["recipe"])  # what ran, not what the recipe has become
    layers = requested_layers(outline, arguments, environ, request.preset, request.config)
    layers += [Layer(entry["source"], {name: entry["value"]}) for name, entry in recorded["fields"].items()]
    resolved = _with_proper_data_name(resolve(outline.name, outline.config, layers))
    changed = _changes(run, resolved.config, request.force)
    machine = make_machine(request.flags, recorded["machine"])
    return Plan(outline, resolved, machine, request.command, Resumption(run, target, run.values(), changed))


def requested_layers(
    outline: Outline,
    arguments: FieldArguments,
    environ: Mapping[str, str],
    preset: str | None,
    config: Path | None,
) -> list[Layer]:
    """Return what the user set, strongest first: flags, variables, a file, a preset."""
    layers = [Layer("flag", arguments.parse(outline.name, outline.config)), *variable_layers(outline.config, environ)]
    if config is not None:
        layers.append(file_layer(config))
    if preset is not None:
        layers.append(preset_layer(outline.name, outline.presets, preset))
    return layers


def _with_proper_data_name(resolved: Resolved) -> Resolved:
    name = check_name(resolved.config.data)
    return Resolved(resolved.config.model_copy(update={"data": name}), resolved.sources)


def _changes(run: RunDir, config: Config, force: bool) -> dict[str, tuple[Any, Any]]:
    """Return `{field: (before, now)}` and enforce which fields a resumed run may change."""
    before, now = run.values(), config.model_dump(mode="json")
    changed = {name: (before.get(name), now[name]) for name in now if before.get(name) != now[name]}
    fixed = [name for name in changed if name in run.config()["model_fields"]]
    if fixed:
        raise UsageError(
            f"{_listed(fixed, changed)}: the model depends on it, so a resumed run cannot change it; start a new run"
        )
    guarded = [name for name in changed if name not in FREE_TO_CHANGE]
    if guarded and not force:
        raise UsageError(
            f"{_listed(guarded, changed)}: this makes it another experiment; add --force to do it all the same"
        )
    return changed


def _listed(names: list[str], changed: Mapping[str, tuple[Any, Any]]) -> str:
    return ", ".join(f"{name} was {changed[name][0]!r} and would be {changed[name][1]!r}" for name in names)

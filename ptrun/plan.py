"""What a `train` command asks for, checked as far as that is possible without torch."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptrun.arguments import FieldArguments
from ptrun.clock import parse_duration
from ptrun.config import Config, Layer, Resolved, file_layer, preset_layer, resolve, variable_layers
from ptrun.data.catalog import check_name
from ptrun.errors import UsageError
from ptrun.outline import Outline, read_outline
from ptrun.registry import find_outline
from ptrun.rundir import RunDir, check_run_name
from ptrun.words import Target, find_checkpoint

FREE_TO_CHANGE = {"epochs"}


@dataclass(frozen=True)
class Cadence:
    """How often to save: every so many steps, or seconds."""

    steps: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Machine:
    """The flags that say where and how, not what."""

    device: str = "auto"
    output_dir: Path = Path("runs")
    name: str | None = None
    data_dir: Path | None = None
    max_seconds: float | None = None
    checkpoint_every: Cadence = Cadence()
    log_interval: int = 50


@dataclass(frozen=True)
class Plan:
    """A recipe, its checked fields, the machine flags, and the checkpoint to continue from."""

    outline: Outline
    resolved: Resolved
    machine: Machine
    resume: Target | None = None
    changed: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def resumed_run(self) -> RunDir | None:
        """The run that is continued."""
        return self.resume.run if self.resume else None


def make_plan(
    recipe: str | None,
    arguments: FieldArguments,
    environ: Mapping[str, str],
    machine: Machine,
    *,
    preset: str | None = None,
    config: Path | None = None,
    resume: str | None = None,
    force: bool = False,
) -> Plan:
    """Return the checked plan; raise UsageError for anything that can be found wrong before torch is loaded."""
    check_run_name(machine.name)
    target = _resume_target(resume, recipe, machine)
    run = target.run if target else None
    outline = _outline(recipe, run)
    layers = requested_layers(outline, arguments, environ, preset, config)
    if run is not None:
        layers.append(Layer(f"run {run.name}", run.values()))
    resolved = resolve(outline.name, outline.config, layers)
    resolved = _with_proper_data_name(resolved)
    changed = _changes(run, resolved.config, force) if run else {}
    return Plan(outline, resolved, machine, target, changed)


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


def parse_cadence(text: str) -> Cadence:
    """Return what --checkpoint-every says: `500` is steps, `30s` (or `2m`) is time."""
    if text.isdecimal():
        if int(text) == 0:
            raise UsageError("--checkpoint-every 0 would save without end; write steps (500) or a time (30s)")
        return Cadence(steps=int(text))
    return Cadence(seconds=parse_duration(text, "--checkpoint-every"))


def check_device_name(name: str) -> str:
    """Return `name` if it can name a device; whether it is there is known once torch is loaded."""
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", name):
        raise UsageError(f"unknown device '{name}'; use auto, cpu, cuda, cuda:N or mps")
    return name


def _resume_target(word: str | None, recipe: str | None, machine: Machine) -> Target | None:
    if word is None:
        return None
    target = find_checkpoint(word, machine.output_dir)
    if target.run is None:
        raise UsageError(f"--resume {word}: the file is not in a run's checkpoints/, so there is no run to continue")
    if machine.name is not None:
        raise UsageError("--name names a new run; --resume continues one that has its name")
    trained = target.run.config()["recipe"]
    if recipe is not None and find_outline(recipe).name != trained:
        raise UsageError(f"--resume {word} is a run of {trained}, not of {recipe}; leave the recipe out")
    return target


def _outline(recipe: str | None, run: RunDir | None) -> Outline:
    if run is not None:  # what ran, not what the recipe has become
        return read_outline(run.recipe_file, run.config()["recipe"])
    if recipe is None:
        raise UsageError("which recipe? Like `ptrun train lenet`; `ptrun recipes` lists them")
    return find_outline(recipe)


def _with_proper_data_name(resolved: Resolved) -> Resolved:
    name = check_name(resolved.config.data)
    return Resolved(resolved.config.model_copy(update={"data": name}), resolved.sources)


def _changes(run: RunDir, config: Config, force: bool) -> dict[str, tuple[Any, Any]]:
    """Return `{field: (before, now)}` and enforce which fields a resumed run may change."""
    before, now = run.values(), config.model_dump(mode="json")
    changed = {name: (before[name], now[name]) for name in now if before.get(name) != now[name]}
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

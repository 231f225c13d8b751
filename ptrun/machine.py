"""The flags that say where and how a training runs, not what it is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from ptrun.clock import parse_duration
from ptrun.errors import UsageError, check_utf8

LONGEST = 10**12  # steps or seconds between two checkpoints


@dataclass(frozen=True)
class Cadence:
    """How often to save besides every epoch: every so many steps, or seconds, or not at all."""

    steps: int | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        # All digits and no exponent, so that `parse_cadence` gives back the very same.
        return str(self.steps) if self.seconds is None else f"{Decimal(repr(self.seconds)).normalize():f}s"


@dataclass(frozen=True)
class Machine:
    """The machine flags with their defaults."""

    output_dir: Path = Path("runs")
    name: str | None = None
    device: str = "auto"
    data_dir: Path | None = None
    max_seconds: float | None = None
    checkpoint_every: Cadence | None = None
    log_interval: int = 50

    def as_json(self) -> dict[str, Any]:
        """Return what a resumed run needs to go on in the same way."""
        return {
            "device": self.device,
            "data_dir": str(self.data_dir.resolve()) if self.data_dir else None,
            "checkpoint_every": str(self.checkpoint_every) if self.checkpoint_every else None,
            "log_interval": self.log_interval,
        }


def make_machine(flags: Mapping[str, Any], recorded: Mapping[str, Any] | None = None) -> Machine:
    """Return the flags that were given (not None), over those `recorded` in the run that is resumed, over defaults."""
    given = {name: value for name, value in flags.items() if value is not None}
    before = {name: value for name, value in (recorded or {}).items() if name not in given}
    if before.get("data_dir"):
        before["data_dir"] = Path(before["data_dir"])
    if before.get("checkpoint_every"):
        before["checkpoint_every"] = parse_cadence(before["checkpoint_every"])
    machine = Machine(**before | given)
    check_device_name(machine.device)
    for option, folder in (("--output-dir", machine.output_dir), ("--data-dir", machine.data_dir)):
        check_utf8(option, str(folder))
    return machine


def parse_cadence(text: str) -> Cadence:
    """Return what --checkpoint-every says: `500` is steps, `30s` (or `2m`) is time."""
    number = parse_duration(text, "--checkpoint-every")
    if number == 0:
        raise UsageError(f"--checkpoint-every {text} would save without end; write steps (500) or a time (30s)")
    if number > LONGEST:
        raise UsageError(f"--checkpoint-every is above {LONGEST:,}, and no training lasts that long; leave it out")
    return Cadence(steps=int(text)) if text.isascii() and text.isdecimal() else Cadence(seconds=number)


def check_device_name(name: str) -> None:
    """Raise UsageError if `name` cannot name a device; whether it is there is known once torch is loaded."""
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", name):
        raise UsageError(f"unknown device '{name}'; use auto, cpu, cuda, cuda:N or mps")

"""Progress of a training: a bar on a terminal, one plain line an epoch elsewhere, nothing with --quiet."""

import time
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ptrun.console import is_live_terminal
from ptrun.formats import percent

if TYPE_CHECKING:
    from ptrun.job import Job

REFRESH = 0.2  # seconds between two looks at the running loss, which on a GPU waits for the device


class Display(Protocol):
    """Shows progress to a person."""

    def step(self, job: "Job") -> None:
        """A step was done; called thousands of times a minute."""

    def epoch(self, job: "Job", row: dict[str, Any]) -> None:
        """An epoch was trained and evaluated."""

    def close(self) -> None:
        """Training has ended, in whatever way."""


class Silent:
    """Shows nothing."""

    def step(self, job: "Job") -> None:
        """Show nothing."""

    def epoch(self, job: "Job", row: dict[str, Any]) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Have nothing to close."""


class Lines:
    """One line an epoch, fit for a log file."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def step(self, job: "Job") -> None:
        """Show nothing."""

    def epoch(self, job: "Job", row: dict[str, Any]) -> None:
        """Print the line."""
        self._console.print(epoch_line(job.cfg.epochs, row))

    def close(self) -> None:
        """Have nothing to close."""


class Bar:
    """A live bar for the epoch under way, with the finished epochs as lines above it."""

    def __init__(self, console: Console, job: "Job") -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:,}/{task.total:,}"),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
        )
        self._console = console
        self._progress = Progress(*columns, console=console, refresh_per_second=5, speed_estimate_period=60)
        total = job.cfg.epochs * len(job.data.train)
        self._task = self._progress.add_task("", total=total, completed=job.samples_trained, numbers="")
        self._looked = 0.0
        self._progress.start()

    def step(self, job: "Job") -> None:
        """Move the bar, a few times a second."""
        if time.perf_counter() - self._looked < REFRESH:
            return
        self._looked = time.perf_counter()
        speed = job.meter.n / job.epoch_clock.seconds
        numbers = f"loss {job.meter.loss:.4f}  acc {percent(job.meter.accuracy):>8}  {speed:,.0f} images/s"
        label = f"epoch {job.position.epoch + 1}/{job.cfg.epochs}"
        self._progress.update(self._task, description=label, completed=job.samples_trained, numbers=numbers)

    def epoch(self, job: "Job", row: dict[str, Any]) -> None:
        """Print the finished epoch above the bar."""
        self._console.print(epoch_line(job.cfg.epochs, row))
        self._progress.update(self._task, completed=job.samples_trained)

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._progress.stop()


def epoch_line(epochs: int, row: dict[str, Any]) -> str:
    """Return one finished epoch as a line, of at most 120 columns without a validation split."""
    parts = [f"epoch {row['epoch']:{len(str(epochs))}}/{epochs}"]
    for split in ("train", "validation", "test"):
        if f"{split}_loss" in row:
            parts.append(f"{split} loss {row[f'{split}_loss']:.4f} acc {percent(row[f'{split}_accuracy']):>7}")
    parts.append(f"{row['images_per_s']:,.0f} images/s")
    return "  ".join([*parts, f"{row['epoch_s']:.1f} s"])


def open_display(console: Console, job: "Job", *, quiet: bool) -> Display:
    """Return the display that fits: none if quiet, a bar on a terminal, lines elsewhere."""
    if quiet:
        return Silent()
    return Bar(console, job) if is_live_terminal(console.file) else Lines(console)

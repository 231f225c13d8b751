"""Run contenders in turn, A B A B, each in a process of its own, and print what they reach beside each other."""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TypeVar

import torch

from ptrun.data.catalog import known
from ptrun.data.locate import find
from ptrun.environment import describe

T = TypeVar("T")

HERE = Path(__file__).parent
PTRUN = str(Path(sys.executable).with_name("ptrun"))
DISTURBED = 0.1  # cores that other programs use, above which a run waits or is repeated while there is patience


@dataclass(frozen=True)
class Data:
    """The data set that all contenders use, and the folder where it lies."""

    name: str
    folder: Path

    @property
    def flags(self) -> list[str]:
        """What tells ptrun to use it."""
        return ["--data", self.name, "--data-dir", str(self.folder)]


@dataclass
class Contest:
    """Figures of each contender, and how many cores other programs used meanwhile, at most."""

    rounds: int
    patience: float = 0.0  # seconds left for waiting and for repeating disturbed runs
    figures: dict[str, list[float]] = field(default_factory=dict)
    others: float = 0.0

    def run(self, contenders: Mapping[str, Callable[[], float]]) -> None:
        """Run each contender `rounds` times, in turn, after one round that only fills the caches."""
        self.figures, self.others = {name: [] for name in contenders}, 0.0
        for turn in range(self.rounds + 1):
            for name, contender in contenders.items():
                if turn == 0:
                    contender()
                else:
                    self.figures[name].append(self._undisturbed(contender))

    def _undisturbed(self, contender: Callable[[], float]) -> float:
        while True:
            while self.patience > 0 and busy_cores(lambda: time.sleep(2))[1] > DISTURBED:
                self.patience -= 2
            start = time.monotonic()
            figure, others = busy_cores(contender)
            if others < DISTURBED or self.patience <= 0:
                self.others = max(self.others, others)
                return figure
            self.patience -= time.monotonic() - start

    def ratio(self, over: str, under: str, *, least: float | None = None, most: float | None = None) -> None:
        """Print the ratios of two contenders, round by round, and whether their median is within the bounds."""
        ratios = [a / b for a, b in zip(self.figures[over], self.figures[under], strict=True)]
        print_line(f"{over} / {under}", ratios, ".3f", verdict(ratios, least, most))

    def difference(self, more: str, less: str, form: str, *, most: float) -> None:
        """Print the differences of two contenders, round by round, and whether their median is at most `most`."""
        differences = [a - b for a, b in zip(self.figures[more], self.figures[less], strict=True)]
        print_line(f"{more} - {less}", differences, form, verdict(differences, None, most))

    def print(self, title: str, unit: str, form: str = ",.0f") -> None:
        """Print what was measured, when and on which machine, and a line for each contender."""
        print_heading(f"{title}, {self.rounds} rounds in turn", unit, self.others)
        for name, values in self.figures.items():
            print_line(name, values, form)


def parse(description: str | None, rounds: int) -> tuple[Data, Contest]:
    """Return the data set, MNIST where it is and else the embedded digits, and an empty contest."""
    parser = argparse.ArgumentParser(description=description)
    folder = os.environ.get("PTRUN_DATA_DIR") or os.environ.get("PTRUN_TEST_DATA") or "data"
    parser.add_argument("--data-dir", type=Path, default=Path(folder), help="where MNIST/raw lies")
    parser.add_argument("--rounds", type=int, default=rounds, help="how often each contender runs")
    parser.add_argument("--patience", type=float, default=0, help="seconds to spend on waiting for a quiet machine")
    arguments = parser.parse_args()
    contest = Contest(arguments.rounds, arguments.patience)
    files = find(known("mnist"), arguments.data_dir)
    if files is None:
        print("MNIST is not here: these are figures for the embedded digits; name its folder with --data-dir")
        return Data("digits", arguments.data_dir), contest
    return Data("mnist", files[0].parents[2]), contest


def output(command: list[str]) -> str:
    """Run a command, which must succeed, and return what it printed on stdout."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def busy_cores(action: Callable[[], T]) -> tuple[T, float]:
    """Return the result of `action`, and how many cores other programs used meanwhile."""
    start, before = time.monotonic(), cpu_seconds_of_others()
    result = action()
    return result, (cpu_seconds_of_others() - before) / (time.monotonic() - start)


def cpu_seconds_of_others() -> float:
    """Return the CPU time that all programs but this one and its children have used since the start; Linux only."""
    try:
        fields = Path("/proc/stat").read_text(encoding="utf-8").split()[1:9]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, softirq, steal = (int(ticks) for ticks in fields)
    ours = os.times()
    busy = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return busy - (ours.user + ours.system + ours.children_user + ours.children_system)


def print_heading(title: str, unit: str, others: float | None = None) -> None:
    """Print what was measured, when and on which machine."""
    machine = describe(torch.device("cpu"))
    print(f"\n{title}")
    print(f"{date.today()}, {machine['cpu']}, {machine['threads']} threads, torch {torch.__version__}", end="")
    print("" if others is None else f"; other programs used up to {max(others, 0):.2f} cores")
    print(f"\n{unit:<44}{'min':>10}{'median':>10}{'max':>10}")


def print_line(name: str, values: list[float], form: str, note: str = "") -> None:
    """Print one line of figures."""
    shown = "".join(f"{value:>10{form}}" for value in (min(values), statistics.median(values), max(values)))
    print(f"{name:<44}{shown}{note}", flush=True)


def verdict(values: list[float], least: float | None, most: float | None) -> str:
    """Return whether the median keeps its bound."""
    if least is None and most is None:
        return ""
    middle = statistics.median(values)
    kept = (least is None or middle >= least) and (most is None or middle <= most)
    bound = f"at least {least:g}" if least is not None else f"at most {most:g}"
    return f"   {bound}: {'kept' if kept else 'MISSED'}"

"""Run contenders in turn, A B A B, each in a process of its own, and print what they reach beside each other."""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import torch

from ptrun.data.catalog import known
from ptrun.data.locate import find
from ptrun.environment import describe

HERE = Path(__file__).parent
PTRUN = str(Path(sys.executable).with_name("ptrun"))


@dataclass(frozen=True)
class Data:
    """The data set that all contenders use, and the folder where it lies."""

    name: str
    folder: Path

    @property
    def flags(self) -> list[str]:
        """What tells ptrun to use it."""
        return ["--data", self.name, "--data-dir", str(self.folder)]


def parse(description: str | None, rounds: int) -> tuple[Data, int]:
    """Return the data set, MNIST where it is and else the embedded digits, and how many rounds to run."""
    parser = argparse.ArgumentParser(description=description)
    folder = os.environ.get("PTRUN_DATA_DIR") or os.environ.get("PTRUN_TEST_DATA") or "data"
    parser.add_argument("--data-dir", type=Path, default=Path(folder), help="where MNIST/raw lies")
    parser.add_argument("--rounds", type=int, default=rounds, help="how often each contender runs")
    arguments = parser.parse_args()
    files = find(known("mnist"), arguments.data_dir)
    if files is None:
        print("MNIST is not here: these are figures for the embedded digits; name its folder with --data-dir")
        return Data("digits", arguments.data_dir), arguments.rounds
    return Data("mnist", files[0].parents[2]), arguments.rounds


def output(command: list[str]) -> str:
    """Run a command, which must succeed, and return what it printed on stdout."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def in_turn(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Return the figures of each contender, `rounds` of them, after one round that only fills the caches."""
    figures: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, run in contenders.items():
            figure = run()
            if turn:
                figures[name].append(figure)
    return figures


def print_heading(title: str, unit: str) -> None:
    """Print what was measured, when and on which machine."""
    machine = describe(torch.device("cpu"))
    load = os.getloadavg()[0]
    print(f"\n{title}")
    print(f"{date.today()}, {machine['cpu']}, {machine['threads']} threads, torch {torch.__version__}, load {load:.1f}")
    print(f"\n{unit:<44}{'min':>10}{'median':>10}{'max':>10}")


def print_figures(figures: dict[str, list[float]], form: str = ",.0f") -> None:
    """Print a line for each contender."""
    for name, values in figures.items():
        print_line(name, values, form)


def print_ratio(
    figures: dict[str, list[float]], over: str, under: str, *, least: float | None = None, most: float | None = None
) -> None:
    """Print the ratios of two contenders, round by round, and whether their median is within the bounds."""
    ratios = [a / b for a, b in zip(figures[over], figures[under], strict=True)]
    print_line(f"{over} / {under}", ratios, ".3f", verdict(ratios, least, most))


def print_difference(figures: dict[str, list[float]], more: str, less: str, form: str, *, most: float) -> None:
    """Print the differences of two contenders, round by round, and whether their median is at most `most`."""
    differences = [a - b for a, b in zip(figures[more], figures[less], strict=True)]
    print_line(f"{more} - {less}", differences, form, verdict(differences, None, most))


def print_line(name: str, values: list[float], form: str, note: str = "") -> None:
    """Print one line of figures."""
    shown = "".join(f"{value:>10{form}}" for value in (min(values), statistics.median(values), max(values)))
    print(f"{name:<44}{shown}{note}")


def verdict(values: list[float], least: float | None, most: float | None) -> str:
    """Return whether the median keeps its bound."""
    if least is None and most is None:
        return ""
    middle = statistics.median(values)
    kept = (least is None or middle >= least) and (most is None or middle <= most)
    bound = f"at least {least:g}" if least is not None else f"at most {most:g}"
    return f"   {bound}: {'kept' if kept else 'MISSED'}"

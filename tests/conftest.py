"""Two ways to run the real command line: in this process (fast), and as a process of its own (signals, start-up)."""

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: two test workers share two cores

# A slow machine is no fault; and with torch loaded, hypothesis itself needs seconds before its first example.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder, without the user's variables and data sets."""
    for name in [name for name in os.environ if name.startswith("PTRUN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(logging.getLogger("ptrun"), "handlers", [])  # else messages go to the stderr of an earlier test
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)


@pytest.fixture
def work() -> Path:
    """Return the empty folder that the test runs in."""
    return Path.cwd()


@pytest.fixture
def invoke(capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Return `invoke("train", "lenet", …)`, which runs a command in this process."""

    def run(*arguments: object) -> Ran:
        from ptrun.main import run as run_command

        capfd.readouterr()
        code = run_command([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def spawn() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Return `spawn("train", …)`, which starts `python -m ptrun` in a process of its own; none outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: object, **options: object) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "ptrun", *map(str, arguments)]
        defaults: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, **(defaults | options))  # type: ignore[call-overload]
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def ptrun(spawn: Callable[..., "subprocess.Popen[str]"]) -> Callable[..., Ran]:
    """Return `ptrun("train", …)`, which runs a command in a process of its own and waits for it."""

    def run(*arguments: object, **options: object) -> Ran:
        process = spawn(*arguments, **options)
        out, err = process.communicate(timeout=100)
        return Ran(process.returncode, out, err)

    return run


def real_data(name: str) -> Path:
    """Return the folder to pass as --data-dir for real MNIST or FashionMNIST, or skip the test."""
    places = [os.environ.get("PTRUN_TEST_DATA"), ROOT.parent / "shared" / "data"]
    if name == "fashion" and Path("/usr/share/datasets/fashion-mnist").is_dir():
        return Path("data")
    folder = {"mnist": "MNIST", "fashion": "FashionMNIST"}[name]
    for place in places:
        if place and (Path(place) / folder).is_dir():
            return Path(place)
    pytest.skip(f"real {name} is not here; set PTRUN_TEST_DATA to a folder that holds {folder}/raw")

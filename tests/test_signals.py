"""Ctrl-C and SIGTERM: a checkpoint at the next step, exit code 130 or 143, and a resume command that works."""

import json
import os
import pty
import re
import select
import shlex
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pytest
from conftest import Ran
from fingerprint import fingerprint

from ptrun.checkpoint import load_checkpoint

STOCHASTIC = Path(__file__).parent / "recipes" / "stochastic.py"
LONG = ("train", STOCHASTIC, "--epochs", 200)

Invoke = Callable[..., Ran]
Spawn = Callable[..., "Popen[str]"]


def environment(**variables: str) -> dict[str, str]:
    return os.environ | variables


def exit_code(process: "Popen[str]") -> int:
    """Return the code that a shell sees: 128 + N also for a process that signal N killed."""
    code = process.wait(20)
    return 128 - code if code < 0 else code


def run_of(folder: Path) -> Path:
    (run,) = folder.glob("*/*-*")
    return run


def wait_for(process: "Popen[str]", pattern: str) -> None:
    """Wait until a file is there, while the process lives."""
    while not list(Path().glob(pattern)):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_in_training(spawn: Spawn, invoke: Invoke, name: str, code: int) -> None:
    process = spawn(
        *LONG, "--output-dir", "my runs", "--checkpoint-every", 1, "--log-interval", 1, env=environment(PAUSE="0.05")
    )
    wait_for(process, "my runs/*/*/checkpoints/last.pt")
    process.send_signal(signal.Signals[name])
    sent = time.monotonic()
    assert exit_code(process) == code
    assert time.monotonic() - sent < 10
    out, err = process.communicate()
    run = run_of(Path("my runs"))
    step = load_checkpoint(run / "checkpoints" / "last.pt")["position"]["step"]
    assert f"{step} steps" in out
    command = re.search(r"continue with: (.*)", err)
    assert command
    assert f"stopped by {name}" in err
    assert "Traceback" not in err
    program, *arguments = shlex.split(command.group(1))
    assert program == "ptrun"
    epochs = (step + 2) // 3 + 1
    assert invoke(*arguments, "--epochs", epochs, "--log-interval", 1).code == 0
    assert load_checkpoint(run / "checkpoints" / "last.pt")["position"] == {
        "epoch": epochs,
        "seen": 0,
        "step": 3 * epochs,
    }


def test_in_evaluation(spawn: Spawn, invoke: Invoke) -> None:
    process = spawn(
        "train", STOCHASTIC, "--name", "cut", "--log-interval", 1, env=environment(STRIKE="SIGTERM evaluation 3")
    )
    assert exit_code(process) == 143
    out, err = process.communicate()
    assert "0 epochs, 3 steps" in out
    assert "epoch 1/2" not in err  # it was not evaluated to the end
    (cut,) = Path().glob("runs/*/*-cut")
    assert load_checkpoint(cut / "checkpoints" / "last.pt")["position"] == {"epoch": 0, "seen": 240, "step": 3}
    for arguments in (("--resume", "cut"), (STOCHASTIC, "--name", "whole")):
        assert invoke("train", *arguments, "--log-interval", 1).code == 0
    (whole,) = Path().glob("runs/*/*-whole")
    assert fingerprint(cut) == fingerprint(whole)


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize("delay", [0.1, 0.4, 0.8])
def test_while_starting(spawn: Spawn, name: str, code: int, delay: float) -> None:
    process = spawn(*LONG)
    time.sleep(delay)
    process.send_signal(signal.Signals[name])
    sent = time.monotonic()
    assert exit_code(process) == code
    assert time.monotonic() - sent < 10


def test_before_training(invoke: Invoke, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRIKE", "SIGINT evaluation 1")  # the shape check
    ran = invoke("train", STOCHASTIC)
    assert (ran.code, "Traceback" in ran.err) == (130, False)
    assert not (work / "runs").exists()


def test_the_second_signal_ends_at_once(spawn: Spawn) -> None:
    process = spawn(*LONG, "--checkpoint-every", 1, env=environment(STRIKE="SIGTERM training 2", HANG="60"))
    wait_for(process, "runs/*/*/checkpoints/last.pt")
    time.sleep(0.5)
    assert process.poll() is None  # the first signal waits for the step to end
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    assert exit_code(process) == 130
    assert time.monotonic() - sent < 2
    assert load_checkpoint(run_of(Path("runs")) / "checkpoints" / "last.pt")["position"]["step"] == 1


def test_an_interrupted_fast_dev_run_has_nothing_to_continue(
    invoke: Invoke, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRIKE", "SIGTERM training 1")
    ran = invoke("train", STOCHASTIC, "--fast-dev-run", "--quiet")
    assert (ran.code, ran.err) == (143, "stopped by SIGTERM\n")
    assert list(work.iterdir()) == []


def test_the_resumed_run_still_knows_the_data_folder(
    invoke: Invoke, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRIKE", "SIGINT training 1")
    assert invoke("train", STOCHASTIC, "--data-dir", "my data").code == 130
    monkeypatch.delenv("STRIKE")
    assert invoke("train", "--resume", "last").code == 0
    config = json.loads((run_of(work / "runs") / "config.json").read_text())
    assert config["machine"]["data_dir"] == str(work / "my data")


def test_a_signal_in_the_very_last_batch_does_not_unmake_the_end(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRIKE", "SIGTERM evaluation 9")
    ran = invoke("train", STOCHASTIC)
    assert ran.code == 0
    assert "2 epochs, 6 steps" in ran.out


def test_signals_mean_what_they_did_before_once_training_is_over(invoke: Invoke) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert invoke("train", STOCHASTIC).code == 0
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


class Terminal:
    """A process in a pseudo-terminal of its own."""

    def __init__(self, *arguments: object, **variables: str) -> None:
        self.screen = ""
        self._process, self._terminal = pty.fork()
        if self._process == 0:
            command = [sys.executable, "-m", "ptrun", *map(str, arguments)]
            os.execve(sys.executable, command, environment(**variables))

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def read_until(self, text: str) -> None:
        while text not in self.screen:
            assert self._read(), f"no {text!r} in {self.screen!r}"

    def exit_code(self) -> int:
        """Read to the end and return the code that a shell sees."""
        while self._read():
            pass
        code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        os.close(self._terminal)
        return 128 - code if code < 0 else code

    def _read(self) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], 30)
        try:
            content = os.read(self._terminal, 65536) if ready else b""
        except OSError:  # the process has closed its end
            content = b""
        self.screen += content.decode(errors="replace")
        return bool(content)


def test_a_bar_and_a_usable_terminal_after_ctrl_c() -> None:
    folder = "a-folder-whose-name-is-longer-than-a-line-of-the-terminal"
    command = ("train", STOCHASTIC, "--epochs", 200, "--output-dir", 2 * folder)
    terminal = Terminal(*command, PAUSE="0.05", TERM="xterm-256color", COLUMNS="100")
    terminal.read_until("epoch 2/200")
    terminal.type("\x03")
    assert terminal.exit_code() == 130
    shown = terminal.screen
    assert "━" in shown
    assert re.search(r"epoch 2/200.*images/s", shown)
    hidden, visible = shown.rfind("\x1b[?25l"), shown.rfind("\x1b[?25h")
    assert -1 < hidden < visible
    assert re.search(rf"continue with: ptrun train --resume {2 * folder}/stochastic/[\w-]+\s*$", shown)


def test_no_bar_on_a_dumb_terminal() -> None:
    terminal = Terminal("train", STOCHASTIC, TERM="dumb")
    assert terminal.exit_code() == 0
    assert "epoch 2/2" in terminal.screen
    assert "\x1b" not in terminal.screen
    assert "━" not in terminal.screen

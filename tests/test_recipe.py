"""What a recipe may do and what it may not, through the real command line."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran
from recipe_text import write_recipe

import ptrun

Invoke = Callable[..., Ran]

MODEL = "def model(cfg: Config) -> nn.Module:\n"
DATA = "def data(cfg: Config) -> ptrun.Images:\n"
OPTIMIZER = "def optimizer(model: nn.Module, cfg: Config) -> torch.optim.Optimizer:\n"
LOSS = "def loss(output: Tensor, target: Tensor, cfg: Config) -> Tensor:\n"


def only_run(work: Path, recipe: str = "tiny") -> Path:
    (run,) = (work / "runs" / recipe).iterdir()
    return run


@pytest.mark.parametrize("place", ["import", "model", "optimizer", "loss"])
def test_a_recipe_that_exits_is_a_fault(invoke: Invoke, work: Path, place: str) -> None:
    quits = "raise SystemExit(0)"
    changes = {
        "import": ("import torch\n", f"import torch\n{quits}\n"),
        "model": (MODEL, f"{MODEL}    {quits}\n"),
        "optimizer": (OPTIMIZER, f"{OPTIMIZER}    {quits}\n"),
        "loss": (LOSS, f"{LOSS}    {quits}\n"),
    }
    write_recipe(work / "tiny.py", changes[place])
    ran = invoke("train", "./tiny.py")
    assert (ran.code, ran.out) == (2, "")
    assert "failed with SystemExit: 0" in ran.err


def test_what_a_recipe_prints_is_no_result(invoke: Invoke, work: Path) -> None:
    write_recipe(work / "tiny.py", (MODEL, f"{MODEL}    print('hello')\n"))
    ran = invoke("train", "./tiny.py", "--json", "--quiet")
    assert json.loads(ran.out)["status"] == "finished"
    assert ran.err == "hello\n"
    assert json.loads(invoke("eval", "last", "--json", "--quiet").out)["n"] == 359


def test_the_file_that_ran_is_the_file_that_is_kept(invoke: Invoke, work: Path) -> None:
    path = write_recipe(work / "tiny.py", (DATA, f"{DATA}    open(__file__, 'w').close()\n"))
    text = path.read_bytes()
    assert invoke("train", "./tiny.py", "--quiet").code == 0
    assert path.read_bytes() == b""  # changed while it ran
    assert (only_run(work) / "recipe.py").read_bytes() == text


def test_no_stale_bytecode(work: Path) -> None:
    """Two recipes of the same size and time, one after the other under one name."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    shown = []
    for name in ("aaa", "bbb"):
        path = write_recipe(
            work / "tiny.py", ("import torch\n", f"import sys\nimport torch\nprint('{name}', file=sys.stderr)\n")
        )
        os.utime(path, (1, 1))
        command = [sys.executable, "-m", "ptrun", "train", "./tiny.py", "--dry-run", "--quiet"]
        shown.append(subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100).stderr)
    assert shown == ["aaa\n", "bbb\n"]
    assert not list(work.rglob("__pycache__"))


def test_an_enum_as_a_field(invoke: Invoke, work: Path) -> None:
    enum = 'import enum\n\nclass Mode(enum.Enum):\n    FAST = "fast"\n    SLOW = "slow"\n\n'
    write_recipe(
        work / "tiny.py",
        ("class Config(", f"{enum}class Config("),
        ("    width: int", "    mode: Mode = Mode.FAST\n    width: int"),
        (MODEL, f"{MODEL}    assert cfg.mode is Mode.SLOW\n"),
    )
    assert invoke("train", "./tiny.py", "--mode", "slow", "--quiet").code == 0
    assert json.loads((only_run(work) / "config.json").read_text())["fields"]["mode"]["value"] == "slow"
    assert ptrun.load("tiny").config.mode.value == "slow"  # type: ignore[attr-defined]


NUMPY_SCHEDULE = """    import numpy as np
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: np.float64(0.5) * (1 + np.cos(np.pi * s / steps)))
"""


def test_a_schedule_that_computes_with_numpy(invoke: Invoke, work: Path) -> None:
    write_recipe(work / "tiny.py", ('    return ptrun.schedule("constant", optimizer, steps)\n', NUMPY_SCHEDULE))
    assert invoke("train", "./tiny.py", "--epochs", 2, "--quiet").code == 0
    assert invoke("eval", "last", "--quiet").code == 0
    assert invoke("train", "--resume", "last", "--epochs", 3, "--quiet").code == 0


CLOSURE = """    class Held(torch.optim.lr_scheduler.LambdaLR):
        def __init__(self):
            self.held = lambda: 0
            super().__init__(optimizer, lambda s: 1.0)
    return Held()
"""


def test_a_state_that_cannot_be_saved_is_refused_before_training(invoke: Invoke, work: Path) -> None:
    write_recipe(work / "tiny.py", ('    return ptrun.schedule("constant", optimizer, steps)\n', CLOSURE))
    ran = invoke("train", "./tiny.py")
    assert ran.code == 2
    assert ran.err.startswith("error: the state of this training cannot be kept in a checkpoint: ")
    assert not (work / "runs").exists()


def test_a_loss_that_is_not_finite_in_evaluation_is_null_in_json(invoke: Invoke, work: Path) -> None:
    write_recipe(
        work / "tiny.py",
        (
            LOSS,
            f"{LOSS}    if not torch.is_grad_enabled(): output = output * float('nan')\n",
        ),
    )
    ran = invoke("train", "./tiny.py", "--json", "--quiet")
    assert ran.code == 0
    assert json.loads(ran.out, parse_constant=pytest.fail)["test"]["loss"] is None
    report = json.loads(invoke("eval", "last", "--json", "--quiet").out, parse_constant=pytest.fail)
    assert report["loss"] is None
    assert math.isfinite(report["accuracy"])


def test_lazy_modules_and_extra_state(invoke: Invoke, work: Path) -> None:
    extra = """class Extra(torch.nn.Identity):
    def get_extra_state(self):
        return {"seen": 1}
    def set_extra_state(self, state):
        assert state == {"seen": 1}


def model(cfg):
    return torch.nn.Sequential(torch.nn.Flatten(), Extra(), torch.nn.LazyLinear(10))


def replaced(cfg):
"""
    write_recipe(work / "tiny.py", (MODEL, extra))
    assert invoke("train", "./tiny.py", "--quiet").code == 0
    assert invoke("train", "--resume", "last", "--epochs", 3, "--quiet").code == 0
    assert json.loads(invoke("eval", "last", "--json", "--quiet").out)["n"] == 359


def test_a_finished_run_stays_finished_when_it_is_resumed_for_nothing(invoke: Invoke, work: Path) -> None:
    write_recipe(
        work / "tiny.py",
        (
            LOSS,
            f"import os\n\n\n{LOSS}    if os.environ.get('FAIL'): raise RuntimeError('no')\n",
        ),
    )
    assert invoke("train", "./tiny.py", "--quiet").code == 0
    os.environ["FAIL"] = "1"
    try:
        assert invoke("train", "--resume", "last", "--quiet").code != 0
    finally:
        del os.environ["FAIL"]
    assert invoke("eval", "tiny", "--quiet").code == 0


def test_characters_that_stdout_does_not_have(ptrun: Callable[..., Ran]) -> None:
    ran = ptrun("show", "lenet", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (ran.code, ran.err) == (0, "")
    assert "int, ? 1" in ran.out

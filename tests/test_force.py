"""What a resumed run may change with --force, what it keeps and records, and where it finds things again."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from fingerprint import files, fingerprint, rows
from own_set_recipe import write_noise_recipe
from recipe_text import write_recipe

from ptrun.checkpoint import load_checkpoint, save_checkpoint
from ptrun.errors import DataError

STOCHASTIC = Path(__file__).parent / "recipes" / "stochastic.py"

Invoke = Callable[..., Ran]


@pytest.fixture
def cut(invoke: Invoke, work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a run that was stopped after step 5 of 6, in the second epoch; its previous checkpoint is of step 4."""
    monkeypatch.setenv("STRIKE", "SIGINT training 5")
    assert invoke("train", STOCHASTIC, "--name", "cut", "--log-interval", 1, "--checkpoint-every", 4).code == 130
    monkeypatch.delenv("STRIKE")
    return run_of(work, "cut")


@pytest.fixture
def strike(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Return `strike("SIGINT training 1", "train", …)`: a command that is struck by a signal."""

    def run(moment: str, *arguments: object) -> Ran:
        monkeypatch.setenv("STRIKE", moment)
        ran = invoke(*arguments)
        monkeypatch.delenv("STRIKE")
        return ran

    return run


def run_of(work: Path, name: str) -> Path:
    (run,) = work.glob(f"runs/*/*-{name}")
    return run


def saved(run: Path, which: str = "last") -> dict[str, Any]:
    return load_checkpoint(run / "checkpoints" / f"{which}.pt")


def rates(run: Path) -> dict[int, float]:
    return {row["step"]: row["learning_rate"] for row in rows(run) if row["kind"] == "step"}


def whole_run(invoke: Invoke, work: Path, *arguments: object) -> Path:
    assert invoke("train", STOCHASTIC, "--name", "whole", "--log-interval", 1, *arguments).code == 0
    return run_of(work, "whole")


# ---- --force


@pytest.mark.parametrize(("optimizer", "kind"), [("adamw", "AdamW"), ("adam", "Adam")])
def test_another_optimizer_starts_without_moments_and_trains_to_the_end(
    cut: Path, invoke: Invoke, optimizer: str, kind: str
) -> None:
    ran = invoke("train", "--resume", "cut", "--optimizer", optimizer, "--force", "--json", "--quiet")
    assert (ran.code, ran.err) == (0, f"warning: {kind} cannot use the moments of SGD: it starts without\n")
    result = json.loads(ran.out)
    assert (result["status"], result["reason"], result["epochs"], result["steps"]) == ("finished", "epochs", 2, 6)
    state = saved(cut)
    assert state["optimizer_kind"] == kind
    assert {entry["step"].item() for entry in state["optimizer"]["state"].values()} == {1}


@pytest.mark.parametrize(
    ("change", "samples", "steps"),
    [(("--seed", 7), 240, 3), (("--val-fraction", 0.5), 150, 2), (("--val-fraction", 0), 300, 3)],
)
def test_an_epoch_of_other_samples_begins_anew(
    cut: Path, invoke: Invoke, strike: Invoke, work: Path, change: tuple[object, ...], samples: int, steps: int
) -> None:
    resume = ("train", "--resume", "cut", "--log-interval", 1)
    assert strike("SIGINT evaluation 2", *resume, *change, "--force").code == 130  # all steps of the epoch are done
    state = saved(cut)
    assert state["position"] == {"epoch": 1, "seen": samples, "step": 5 + steps}
    assert (state["meter"]["n"], state["best"]) == (samples, None)
    ran = invoke(*resume, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["steps"] == 5 + steps
    assert saved(cut)["position"] == {"epoch": 2, "seen": 0, "step": 5 + steps}
    # The second epoch has the rates that the second epoch of a new run has: the schedule was not wound too far.
    fresh = rates(whole_run(invoke, work, *change))
    again = rates(cut)
    expected = {5 + k: fresh[steps + k] for k in range(1, steps + 1)}
    assert {k: again[k] for k in expected} == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "chosen_on"), [(("--seed", 7), "validation"), (("--val-fraction", 0), "test")], ids=["seed", "none held"]
)
def test_the_best_epoch_is_judged_anew_by_other_samples(
    cut: Path, invoke: Invoke, change: tuple[object, ...], chosen_on: str
) -> None:
    unbeatable = {"accuracy": 1.0, "loss": 0.0, "epoch": 1, "chosen_on": "validation"}
    save_checkpoint(cut / "checkpoints" / "last.pt", saved(cut) | {"best": unbeatable})
    result = json.loads(invoke("train", "--resume", "cut", *change, "--force", "--json").out)
    row = rows(cut)[-1]
    assert result["best"] == {
        "accuracy": row[f"{chosen_on}_accuracy"], "loss": row[f"{chosen_on}_loss"], "epoch": 2, "chosen_on": chosen_on
    }  # fmt: skip
    assert saved(cut, "best")["position"] == {"epoch": 2, "seen": 0, "step": 8}


def test_the_best_epoch_stays_where_its_judges_do(cut: Path, invoke: Invoke) -> None:
    unbeatable = {"accuracy": 1.0, "loss": 0.0, "epoch": 1, "chosen_on": "validation"}
    save_checkpoint(cut / "checkpoints" / "last.pt", saved(cut) | {"best": unbeatable})
    result = json.loads(invoke("train", "--resume", "cut", "--lr", 0.01, "--force", "--json").out)
    assert (result["best"], result["steps"]) == (unbeatable, 6)


def test_another_data_set_begins_the_epoch_anew(invoke: Invoke, work: Path) -> None:
    write_noise_recipe(work / "noise.py")
    train = ("--max-time", "0s", "--json", "--quiet")  # one step
    assert json.loads(invoke("train", "./noise.py", "--batch-size", 20, "--epochs", 2, *train).out)["steps"] == 1
    (run,) = work.glob("runs/noise/*")
    assert saved(run)["position"] == {"epoch": 0, "seen": 20, "step": 1}
    ran = invoke("train", "--resume", "last", "--data", "digits")
    assert (ran.code, "data was 'auto' and would be 'digits'" in ran.err) == (2, True)
    assert json.loads(invoke("train", "--resume", "last", "--data", "digits", "--force", *train).out)["steps"] == 2
    assert saved(run)["position"] == {"epoch": 0, "seen": 20, "step": 2}
    assert saved(run)["meter"]["n"] == 20
    assert saved(run)["data"]["name"] == "digits"
    result = json.loads(invoke("train", "--resume", "last", "--json", "--quiet").out)
    assert (result["data"], result["steps"]) == ("digits", 1 + 2 * 72)  # 1,438 images in batches of 20


@pytest.mark.parametrize("recipe", [(), (STOCHASTIC,)])
def test_force_is_for_a_resumed_run(invoke: Invoke, work: Path, recipe: tuple[object, ...]) -> None:
    ran = invoke("train", *recipe, "--force")
    assert ran == Ran(2, "", "error: --force lets a resumed run change its fields; there is no --resume here\n")
    assert list(work.iterdir()) == []


# ---- after a damaged checkpoint


def damage(run: Path) -> bytes:
    """Spoil `last.pt` and return what it holds now."""
    path = run / "checkpoints" / "last.pt"
    path.write_bytes(path.read_bytes()[:-1])
    return path.read_bytes()


def test_a_damaged_checkpoint_is_put_aside_and_never_becomes_the_previous_one(
    cut: Path, invoke: Invoke, strike: Invoke, work: Path
) -> None:
    broken = damage(cut)
    assert strike("SIGINT training 1", "train", "--resume", "cut", "--log-interval", 1).code == 130
    folder = cut / "checkpoints"
    assert (folder / "damaged.pt").read_bytes() == broken
    assert [saved(cut, which)["position"]["step"] for which in ("last", "previous")] == [5, 4]
    assert {path.name for path in folder.iterdir()} == {"last.pt", "previous.pt", "best.pt", "damaged.pt"}
    assert invoke("train", "--resume", "cut", "--log-interval", 1).code == 0
    assert fingerprint(cut) == fingerprint(whole_run(invoke, work))


DIE_IN_THE_SAVE = """
import os, signal, sys
from ptrun.main import run

replace = os.replace

def deadly(source, target, **options):
    if os.path.basename(target) == "last.pt":
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(source, target, **options)

os.replace = deadly
run(sys.argv[1:])
"""


def test_a_crash_in_the_save_after_a_damaged_checkpoint_loses_nothing(cut: Path, invoke: Invoke, work: Path) -> None:
    damage(cut)
    command = [sys.executable, "-c", DIE_IN_THE_SAVE, "train", "--resume", "cut"]
    assert subprocess.run(command, capture_output=True, timeout=100).returncode == -9
    assert (cut / "checkpoints" / "damaged.pt").exists()
    assert saved(cut, "previous")["position"]["step"] == 4
    with pytest.raises(DataError):
        saved(cut, "last")
    ran = invoke("train", "--resume", "cut", "--log-interval", 1)
    assert ran.code == 0, ran.err
    assert "going back to the one before it, at step 4" in ran.err
    assert fingerprint(cut) == fingerprint(whole_run(invoke, work))


# ---- what a resumed run records


def sources(run: Path) -> dict[str, tuple[Any, str]]:
    fields = json.loads((run / "config.json").read_text())["fields"]
    return {name: (entry["value"], entry["source"]) for name, entry in fields.items()}


def test_every_field_keeps_its_source(invoke: Invoke, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_recipe(work / "tiny.py")
    (work / "mine.toml").write_text("batch_size = 719\n")
    monkeypatch.setenv("PTRUN_SEED", "5")
    first = ("--preset", "slow", "--config", "mine.toml", "--nesterov", "--max-time", "0s")
    assert invoke("train", "./tiny.py", *first, "--quiet").code == 0
    (run,) = work.glob("runs/tiny/*")
    before = sources(run)
    assert before == {
        "data": ("digits", "the recipe"),
        "seed": (5, "PTRUN_SEED"),
        "epochs": (9, "preset slow"),
        "batch_size": (719, "mine.toml"),
        "val_fraction": (0.0, "default"),
        "lr": (0.01, "preset slow"),
        "width": (10, "default"),
        "kind": ("sgd", "default"),
        "nesterov": (True, "flag"),
        "clip": (None, "default"),
    }
    monkeypatch.delenv("PTRUN_SEED")
    (work / "mine.toml").unlink()
    assert invoke("train", "--resume", "last", "--max-time", "0s", "--quiet").code == 0
    assert sources(run) == before

    monkeypatch.setenv("PTRUN_LR", "0.5")
    (work / "more.toml").write_text("clip = 2.0\nkind = 'adam'\n")
    change = ("--config", "more.toml", "--epochs", 3, "--max-time", "0s", "--force", "--quiet")
    assert invoke("train", "--resume", "last", *change).code == 0
    changed = {
        "lr": (0.5, "PTRUN_LR"),
        "clip": (2.0, "more.toml"),
        "kind": ("adam", "more.toml"),
        "epochs": (3, "flag"),
    }
    assert sources(run) == before | changed
    monkeypatch.delenv("PTRUN_LR")
    assert invoke("train", "--resume", "last", "--quiet").code == 0  # nothing changes, so no --force
    assert sources(run) == before | changed


def test_commands_are_kept_as_they_were_typed(invoke: Invoke, work: Path) -> None:
    write_recipe(work / "my recipe.py")
    train = ("train", "./my recipe.py", "lr=0.5", "--output-dir", "my runs", "--max-time=0s", "--name", "it", "-q")
    assert invoke(*train).code == 0
    (run,) = work.glob("my runs/*/*-it")
    typed = "ptrun train './my recipe.py' lr=0.5 --output-dir 'my runs' --max-time=0s --name it -q"
    assert (run / "command.txt").read_text() == typed + "\n"
    assert invoke("train", "--epochs", 1, "--resume", run.relative_to(work), "--quiet").code == 0
    (note,) = (json.loads(line) for line in (run / "resumes.jsonl").read_text().splitlines())
    assert note["command"] == f"ptrun train --epochs 1 --resume '{run.relative_to(work)}' --quiet"
    assert (note["step"], note["changed"]) == (1, {"epochs": [2, 1]})
    assert (run / "command.txt").read_text() == typed + "\n"


# ---- where a run finds things again


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Return another folder than the one that the test began in."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def incomplete_mnist(folder: Path) -> None:
    """Leave one file of four: whoever looks here for MNIST refuses the folder by its name."""
    (folder / "MNIST" / "raw").mkdir(parents=True)
    (folder / "MNIST" / "raw" / "train-images-idx3-ubyte").touch()


@pytest.mark.parametrize("command", ["eval", "resume"])
def test_the_recorded_data_folder_is_searched_from_anywhere(
    invoke: Invoke, work: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    write_recipe(work / "tiny.py")
    assert invoke("train", "./tiny.py", "--data-dir", "my data", "--max-time", "0s", "--quiet").code == 0
    (run,) = work.glob("runs/tiny/*")
    for folder in (work / "my data", elsewhere / "other"):
        incomplete_mnist(folder)
    monkeypatch.chdir(elsewhere)
    line = ("eval", run) if command == "eval" else ("train", "--resume", run, "--force")
    ran = invoke(*line, "--data", "mnist")
    assert ran.code == 3
    assert ran.err.startswith(f"error: MNIST is incomplete in {work}/my data/MNIST/raw: ")
    ran = invoke(*line, "--data", "mnist", "--data-dir", "other")
    assert ran.code == 3
    assert ran.err.startswith("error: MNIST is incomplete in other/MNIST/raw: ")


def test_a_file_of_the_folder_one_stands_in(
    cut: Path, invoke: Invoke, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cut / "checkpoints")
    ran = invoke("train", "--resume", "last.pt", "--log-interval", 1)
    assert ran.code == 0, ran.err
    assert {path.name for path in Path().iterdir()} == {"last.pt", "previous.pt", "best.pt"}
    monkeypatch.chdir(work)
    assert fingerprint(cut) == fingerprint(whole_run(invoke, work))


# ---- cut at unusual moments


def test_resuming_best_gives_up_the_later_epochs_at_once(
    cut: Path, invoke: Invoke, spawn: Callable[..., "subprocess.Popen[str]"], work: Path
) -> None:
    assert [row["step"] for row in rows(cut)] == [1, 2, 3, 3, 4, 5]
    killed = spawn("train", "--resume", "best", env=os.environ | {"STRIKE": "SIGKILL training 1"})
    assert killed.wait(60) == -9
    assert [row["step"] for row in rows(cut)] == [1, 2, 3, 3]
    assert saved(cut)["position"] == {"epoch": 1, "seen": 0, "step": 3}
    assert invoke("train", "--resume", "cut", "--log-interval", 1).code == 0
    assert fingerprint(cut) == fingerprint(whole_run(invoke, work))


@pytest.mark.parametrize(("signal", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_in_the_last_evaluation_after_max_time(
    invoke: Invoke, strike: Invoke, work: Path, signal: str, code: int
) -> None:
    train = ("train", STOCHASTIC, "--name", "cut", "--max-time", "0s", "--log-interval", 1)
    ran = strike(f"{signal} evaluation 2", *train)  # the shape check was the first
    assert ran.code == code
    assert ran.err.startswith(f"stopped by {signal}; continue with: ptrun train --resume runs/")
    run = run_of(work, "cut")
    result = json.loads((run / "result.json").read_text())
    assert (result["status"], result["reason"], result["test"]) == ("interrupted", signal, None)
    assert saved(run)["position"] == {"epoch": 0, "seen": 100, "step": 1}
    assert invoke("train", "--resume", "cut", "--log-interval", 1).code == 0
    assert json.loads((run / "result.json").read_text())["status"] == "finished"
    assert fingerprint(run) == fingerprint(whole_run(invoke, work))


def test_a_run_that_was_moved_is_resumed_where_it_is_now(
    cut: Path, invoke: Invoke, work: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = shutil.move(cut, elsewhere / "20260101-000000-moved")
    before = files(work)
    monkeypatch.chdir(elsewhere)
    ran = invoke("train", "--resume", "20260101-000000-moved", "--log-interval", 1)
    assert ran.code == 0, ran.err
    assert files(work) == before
    monkeypatch.chdir(work)
    assert fingerprint(Path(moved)) == fingerprint(whole_run(invoke, work))

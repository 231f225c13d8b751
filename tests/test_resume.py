"""A run that was cut and resumed ends bit for bit as one that never was, wherever and however often it was cut."""

import json
import math
import pickle
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
import torch
from conftest import Ran
from fingerprint import files, fingerprint, rows

from ptrun.checkpoint import load_checkpoint, save_checkpoint
from ptrun.rundir import RunDir

STOCHASTIC = Path(__file__).parent / "recipes" / "stochastic.py"
CODES = {"SIGINT": 130, "SIGTERM": 143}

Invoke = Callable[..., Ran]
Train = Callable[..., Path]


@pytest.fixture
def train(invoke: Invoke, work: Path, monkeypatch: pytest.MonkeyPatch) -> Train:
    """Return `train(name, *arguments, strikes=())`: a run that is resumed after each strike, up to its end."""

    def run(name: str, *arguments: object, strikes: tuple[str, ...] = ()) -> Path:
        command: tuple[object, ...] = (*(arguments or (STOCHASTIC,)), "--name", name)
        for strike in strikes:
            monkeypatch.setenv("STRIKE", strike)
            ran = invoke("train", *command, "--log-interval", 1)
            assert ran.code == CODES[strike.partition(" ")[0]], ran.err
            command = ("--resume", name)
        monkeypatch.delenv("STRIKE", raising=False)
        ran = invoke("train", *command, "--log-interval", 1)
        assert ran.code == 0, ran.err
        return run_of(work, name)

    return run


@pytest.fixture
def cut(invoke: Invoke, work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a run that was stopped after step 5 of 6, in the second epoch, with step 4 as its previous checkpoint."""
    monkeypatch.setenv("STRIKE", "SIGINT training 5")
    assert invoke("train", STOCHASTIC, "--name", "cut", "--log-interval", 1, "--checkpoint-every", 4).code == 130
    monkeypatch.delenv("STRIKE")
    run = run_of(work, "cut")
    assert [step_of(run, which) for which in ("last", "previous", "best")] == [5, 4, 3]
    return run


def run_of(work: Path, name: str) -> Path:
    (run,) = work.glob(f"runs/*/*-{name}")
    return run


def step_of(run: Path, which: str) -> int:
    return int(torch.load(run / "checkpoints" / f"{which}.pt")["position"]["step"])


def learning_rates(run: Path) -> dict[int, float]:
    return {row["step"]: row["learning_rate"] for row in rows(run) if row["kind"] == "step"}


def test_the_same_command_gives_the_same_run(train: Train) -> None:
    assert fingerprint(train("first")) == fingerprint(train("second"))


def test_another_seed_gives_another_run(train: Train) -> None:
    first, second = fingerprint(train("first")), fingerprint(train("second", STOCHASTIC, "--seed", 1))
    for part in ("metrics", "last model", "last generators", "best model"):
        assert first[part] != second[part]


# Each epoch has three steps, then evaluates three batches of the test set and one of the validation set.
CUTS = {
    "first step": ("SIGINT training 1",),
    "middle of an epoch": ("SIGTERM training 2",),
    "last step of an epoch": ("SIGINT training 3",),
    "evaluation": ("SIGTERM evaluation 3",),
    "between test and validation": ("SIGINT evaluation 4",),
    "before the first step of an epoch": ("SIGTERM evaluation 5",),
    "very last step": ("SIGINT training 6",),
    "twice in one epoch": ("SIGINT training 1", "SIGTERM training 1"),
    "twice in one evaluation": ("SIGTERM evaluation 2", "SIGINT evaluation 3"),
    "everywhere": (
        "SIGINT training 1", "SIGINT training 1", "SIGTERM training 1", "SIGINT evaluation 2", "SIGTERM evaluation 5",
        "SIGINT training 1", "SIGTERM training 2", "SIGINT evaluation 4",
    ),
}  # fmt: skip


@pytest.mark.parametrize("strikes", CUTS.values(), ids=CUTS.keys())
def test_cut_by_a_signal(train: Train, strikes: tuple[str, ...]) -> None:
    assert fingerprint(train("cut", strikes=strikes)) == fingerprint(train("whole"))


@pytest.mark.parametrize("schedule", ["onecycle", "cosine", "step", "constant"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_every_optimizer_with_every_schedule(train: Train, optimizer: str, schedule: str) -> None:
    arguments = (STOCHASTIC, "--optimizer", optimizer, "--schedule", schedule)
    cut = train("cut", *arguments, strikes=("SIGINT training 1", "SIGINT evaluation 3", "SIGINT training 2"))
    assert fingerprint(cut) == fingerprint(train("whole", *arguments))


@pytest.mark.parametrize(
    ("recipe", "optimizer", "schedule", "warmup"),
    [
        ("lenet", "sgd", "onecycle", 0.3),
        ("lenet", "adam", "cosine", 0.3),
        ("lenet", "adamw", "step", 0.3),
        ("lenet", "sgd", "constant", 0.3),
        ("quickstart", "adamw", "onecycle", 0.3),
        ("quickstart", "sgd", "cosine", 0.0),
        ("quickstart", "adam", "step", 0.0),
        ("quickstart", "adamw", "constant", 0.0),
    ],
)
def test_shipped_recipes(
    train: Train, invoke: Invoke, work: Path, recipe: str, optimizer: str, schedule: str, warmup: float
) -> None:
    arguments = (recipe, "--data", "digits", "--epochs", 2, "--batch-size", 719, "--val-fraction", 0.1)
    arguments += ("--optimizer", optimizer, "--schedule", schedule, "--warmup", warmup)
    whole = train("whole", *arguments)
    command = (*arguments, "--name", "cut")
    for reason in ("max-time", "max-time", "max-time"):  # after step 1, after step 2, and before step 3
        ran = invoke("train", *command, "--log-interval", 1, "--max-time", "0s", "--json")
        assert json.loads(ran.out)["reason"] == reason
        command = ("--resume", "cut")
    assert json.loads(ran.out)["epochs"] == 1
    assert invoke("train", *command, "--log-interval", 1).code == 0
    assert fingerprint(run_of(work, "cut")) == fingerprint(whole)


def test_kill_9_several_times(spawn: Callable[..., "Popen[str]"], train: Train, invoke: Invoke, work: Path) -> None:
    options = ("--checkpoint-every", 7, "--log-interval", 1)
    command = (STOCHASTIC, "--epochs", 12, "--name", "killed")
    for saves in (1, 2, 3):
        process = spawn("train", *command, *options, env=paused(0.02))
        kill_after(process, work, saves)
        command = ("--resume", "killed")
    killed = run_of(work, "killed")
    reached = step_of(killed, "last")
    assert 0 < reached < 36
    assert len((killed / "resumes.jsonl").read_text().splitlines()) == 2
    assert invoke("train", *command, *options).code == 0
    assert fingerprint(killed) == fingerprint(train("whole", STOCHASTIC, "--epochs", 12))


def paused(seconds: float) -> dict[str, str]:
    import os

    return {**os.environ, "PAUSE": str(seconds)}


def kill_after(process: "Popen[str]", work: Path, saves: int) -> None:
    """Send SIGKILL as soon as `last.pt` has been written anew so many times."""
    deadline = time.monotonic() + 60
    seen = None
    while saves >= 0 and time.monotonic() < deadline and process.poll() is None:
        found = [path.stat().st_ino for path in work.glob("runs/*/*-killed/checkpoints/last.pt")]
        if found and found[0] != seen:
            seen, saves = found[0], saves - 1
        time.sleep(0.002)
    process.kill()
    assert process.wait() == -9


def test_a_run_without_validation_split(train: Train) -> None:
    arguments = (STOCHASTIC, "--val-fraction", 0)
    cut = train("cut", *arguments, strikes=("SIGINT training 2", "SIGINT evaluation 3", "SIGINT training 1"))
    assert fingerprint(cut) == fingerprint(train("whole", *arguments))


@pytest.mark.parametrize("word", ["last", "cut", "directory", "file", "prefix"])
def test_every_word_for_the_newest_state(cut: Path, train: Train, invoke: Invoke, word: str) -> None:
    words = {"directory": cut, "file": cut / "checkpoints" / "last.pt", "prefix": cut.name[:17]}
    assert invoke("train", "--resume", words.get(word, word), "--log-interval", 1).code == 0
    assert fingerprint(cut) == fingerprint(train("whole"))


def test_best_goes_back_to_the_best_epoch(cut: Path, train: Train, invoke: Invoke) -> None:
    assert invoke("train", "--resume", "best", "--log-interval", 1).code == 0
    assert json.loads((cut / "resumes.jsonl").read_text())["step"] == 3
    assert fingerprint(cut) == fingerprint(train("whole"))


def test_the_runs_own_copy_of_the_recipe_goes_on(invoke: Invoke, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Path("mine.py")
    shutil.copy(STOCHASTIC, mine)
    assert invoke("train", "./mine.py", "--name", "whole", "--log-interval", 1).code == 0
    monkeypatch.setenv("STRIKE", "SIGTERM training 2")
    assert invoke("train", "./mine.py", "--name", "cut", "--log-interval", 1).code == 143
    monkeypatch.delenv("STRIKE")
    mine.write_text(mine.read_text().replace("nn.Dropout(0.3)", "nn.Dropout(0.9)"))
    assert invoke("train", "./mine.py", "--name", "edited", "--log-interval", 1).code == 0
    assert invoke("train", "--resume", "cut", "--log-interval", 1).code == 0
    whole = fingerprint(run_of(work, "whole"))
    assert fingerprint(run_of(work, "edited"))["last model"] != whole["last model"]
    assert fingerprint(run_of(work, "cut")) == whole


# ---- more epochs


def onecycle(step: int, steps: int, peak: float) -> float:
    """Return the rate after `step` steps, for a warm-up of 0.3."""

    def between(start: float, end: float, share: float) -> float:
        return end + (start - end) * (1 + math.cos(math.pi * share)) / 2

    top, last = 0.3 * steps - 1, steps - 1
    if step <= top:
        return between(peak / 25, peak, step / top)
    return between(peak, peak / 25 / 1e4, (step - top) / (last - top))


def test_more_epochs_extend_a_run_along_the_longer_schedule(train: Train, invoke: Invoke) -> None:
    run = train("extended")
    rates = learning_rates(run)
    assert rates == pytest.approx({k: onecycle(k - 1, 6, 0.05) for k in range(1, 7)})  # the rate that step k used
    ran = invoke("train", "--resume", "last", "--epochs", 4, "--log-interval", 1)
    assert (ran.code, "Warning" in ran.err) == (0, False)
    rates = learning_rates(run)
    assert list(rates) == list(range(1, 13))
    assert {k: rates[k] for k in range(7, 13)} == pytest.approx({k: onecycle(k - 1, 12, 0.05) for k in range(7, 13)})
    config = json.loads((run / "config.json").read_text())
    assert config["fields"]["epochs"] == {"value": 4, "source": "flag"}
    assert json.loads((run / "resumes.jsonl").read_text())["changed"] == {"epochs": [2, 4]}


@pytest.mark.parametrize("schedule", ["onecycle", "cosine", "step", "constant"])
def test_the_schedule_of_an_extended_run_is_that_of_a_run_of_the_new_length(
    train: Train, invoke: Invoke, schedule: str
) -> None:
    run = train("extended", STOCHASTIC, "--schedule", schedule)
    assert invoke("train", "--resume", "last", "--epochs", 4, "--log-interval", 1).code == 0
    fresh = learning_rates(train("fresh", STOCHASTIC, "--schedule", schedule, "--epochs", 4))
    rates = learning_rates(run)
    assert {k: rates[k] for k in range(7, 13)} == pytest.approx({k: fresh[k] for k in range(7, 13)}, rel=1e-12)


def test_an_extended_run_is_resumed_exactly_too(train: Train, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    cut, whole = train("cut"), train("whole")
    monkeypatch.setenv("STRIKE", "SIGINT training 2")
    assert invoke("train", "--resume", "cut", "--epochs", 4, "--log-interval", 1).code == 130
    monkeypatch.delenv("STRIKE")
    for name, more in (("cut", ()), ("whole", ("--epochs", 4))):
        assert invoke("train", "--resume", name, *more, "--log-interval", 1).code == 0
    assert fingerprint(cut) == fingerprint(whole)


def test_fewer_epochs_than_trained_are_refused(train: Train, invoke: Invoke) -> None:
    before = files(train("finished"))
    ran = invoke("train", "--resume", "last", "--epochs", 1)
    assert ran.code == 2
    assert "2 epochs are begun already; --epochs 1 is less" in ran.err
    assert files(run_of(Path.cwd(), "finished")) == before


def test_fewer_epochs_than_begun_are_refused(cut: Path, invoke: Invoke) -> None:
    before = files(cut)
    ran = invoke("train", "--resume", "last", "--epochs", 1)
    assert ran.code == 2
    assert "2 epochs are begun already; --epochs 1 is less" in ran.err
    assert files(cut) == before


def test_a_finished_run_says_so(train: Train, invoke: Invoke) -> None:
    run = train("finished")
    before = fingerprint(run)
    result = json.loads((run / "result.json").read_text())
    ran = invoke("train", "--resume", "last", "--json")
    assert ran.code == 0
    assert "has its 2 epochs already; --epochs N extends it" in ran.err
    assert json.loads(ran.out)["test"] == result["test"]
    assert fingerprint(run) == before


# ---- what may change


def test_a_field_that_makes_it_another_experiment_needs_force(
    cut: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(cut)
    ran = invoke("train", "--resume", "last", "--lr", 0.01, "--batch-size", 50)
    assert ran.code == 2
    assert "batch_size was 100 and would be 50, lr was 0.05 and would be 0.01" in ran.err
    assert "--force" in ran.err
    monkeypatch.setenv("PTRUN_SEED", "7")
    ran = invoke("train", "--resume", "last")
    assert (ran.code, "seed was 0 and would be 7" in ran.err) == (2, True)
    assert files(cut) == before


def test_force_changes_the_learning_rate(
    train: Train, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, work: Path
) -> None:
    monkeypatch.setenv("STRIKE", "SIGINT training 5")
    assert invoke("train", STOCHASTIC, "--schedule", "constant", "--name", "changed", "--log-interval", 1).code == 130
    monkeypatch.delenv("STRIKE")
    ran = invoke("train", "--resume", "changed", "--lr", 0.01, "--force", "--log-interval", 1)
    assert ran.code == 0, ran.err
    run = run_of(work, "changed")
    rates = learning_rates(run)
    assert (rates[5], rates[6]) == (0.05, 0.01)
    assert json.loads((run / "resumes.jsonl").read_text())["changed"] == {"lr": [0.05, 0.01]}
    same = fingerprint(train("same", STOCHASTIC, "--schedule", "constant"))
    assert fingerprint(run)["last model"] != same["last model"]


def test_force_changes_the_batch_size_without_losing_a_sample(cut: Path, invoke: Invoke) -> None:
    ran = invoke(
        "train", "--resume", "last", "--batch-size", 30, "--epochs", 3, "--force", "--log-interval", 1, "--json"
    )
    assert ran.code == 0, ran.err
    # 40 of 240 samples were left in the second epoch: 2 steps of at most 30; then an epoch of 8.
    assert json.loads(ran.out)["steps"] == 5 + 2 + 8
    last = torch.load(cut / "checkpoints" / "last.pt")
    assert last["position"] == {"epoch": 3, "seen": 0, "step": 15}


def test_force_begins_the_epoch_anew_where_its_samples_are_others(cut: Path, invoke: Invoke) -> None:
    ran = invoke("train", "--resume", "last", "--seed", 7, "--force", "--log-interval", 1, "--json")
    assert json.loads(ran.out)["steps"] == 5 + 3
    assert step_of(cut, "last") == 8


def test_force_changes_the_optimizer_which_then_starts_without_moments(cut: Path, invoke: Invoke) -> None:
    ran = invoke("train", "--resume", "last", "--optimizer", "adam", "--force", "--log-interval", 1)
    assert ran.code == 0, ran.err
    assert "warning: Adam cannot use the moments of SGD: it starts without" in ran.err
    steps = {
        int(entry["step"]) for entry in load_checkpoint(cut / "checkpoints" / "last.pt")["optimizer"]["state"].values()
    }
    assert steps == {1}


def test_a_field_of_the_model_never_changes(cut: Path, invoke: Invoke) -> None:
    before = files(cut)
    ran = invoke("train", "--resume", "last", "--width", 32, "--force")
    assert ran.code == 2
    assert "width was 16 and would be 32: the model depends on it" in ran.err
    assert files(cut) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lenet", "--resume", "last"), "is a run of stochastic, not of lenet"),
        (("--resume", "last", "--name", "other"), "--name names a new run"),
        (("--resume", "nothing"), "'nothing' is no file, run directory"),
        (("--resume", "last", "--fast-dev-run"), "exclude each other"),
    ],
)
def test_what_does_not_fit_a_resume_is_refused(
    cut: Path, invoke: Invoke, arguments: tuple[str, ...], message: str
) -> None:
    before = files(cut)
    ran = invoke("train", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert files(cut) == before


# ---- checkpoints that are damaged or do not belong


class Malice:
    def __reduce__(self) -> tuple[Any, ...]:
        return open, ("owned", "w")


def flip(path: Path, place: float) -> None:
    content = bytearray(path.read_bytes())
    content[int(place * (len(content) - 1))] ^= 0xFF
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "truncated by a byte": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "truncated to half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "another kind of file": lambda path: path.write_bytes(bytes(range(256)) * 100),
    "first byte": lambda path: flip(path, 0.0),
    "a byte in the middle": lambda path: flip(path, 0.5),
    "a byte of the index": lambda path: flip(path, 0.98),
    "a malicious pickle": lambda path: path.write_bytes(pickle.dumps(Malice())),
    "a malicious pickle with the right checksum": lambda path: save_checkpoint(path, {"model": Malice()}),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    cut: Path, train: Train, invoke: Invoke, damage: Callable[[Path], object]
) -> None:
    damage(cut / "checkpoints" / "last.pt")
    ran = invoke("train", "--resume", "last", "--log-interval", 1)
    assert ran.code == 0, ran.err
    assert "warning: checkpoint" in ran.err
    assert "last.pt" in ran.err
    assert "going back to the one before it, at step 4 (epoch 1)" in ran.err
    assert not Path("owned").exists()
    assert fingerprint(cut) == fingerprint(train("whole"))


def test_two_damaged_checkpoints_end_the_attempt(cut: Path, invoke: Invoke) -> None:
    for which in ("last", "previous"):
        flip(cut / "checkpoints" / f"{which}.pt", 0.5)
    before = files(cut)
    ran = invoke("train", "--resume", "last")
    assert ran.code == 3
    assert "last.pt is damaged" in ran.err  # what was asked for, not what was tried instead
    assert files(cut) == before


def test_a_damaged_best_is_not_replaced_by_another(cut: Path, invoke: Invoke) -> None:
    flip(cut / "checkpoints" / "best.pt", 0.5)
    ran = invoke("train", "--resume", "best")
    assert (ran.code, "best.pt is damaged" in ran.err) == (3, True)


LENET_FOR_STOCHASTIC = (
    "7 missing (2.weight, 2.bias, 3.running_mean, …)",
    "8 unknown (0.weight, 0.bias, 7.weight, …)",
    "1 of another shape (3.weight [16, 6, 5, 5] for [16])",
)


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        ((STOCHASTIC, "--width", 32), ("7 of another shape (2.weight [32, 196] for [16, 196]",)),
        (("lenet", "--data", "digits", "--epochs", 1), LENET_FOR_STOCHASTIC),
    ],
    ids=["wider", "lenet"],
)
def test_a_checkpoint_of_another_model_is_refused(
    cut: Path, invoke: Invoke, work: Path, other: tuple[object, ...], counts: tuple[str, ...]
) -> None:
    assert invoke("train", *other, "--name", "other").code == 0
    shutil.copy(run_of(work, "other") / "checkpoints" / "last.pt", cut / "checkpoints" / "last.pt")
    before = files(cut)
    ran = invoke("train", "--resume", "cut")
    assert ran.code == 3
    assert all(count in ran.err for count in counts), ran.err
    assert "nothing was loaded" in ran.err
    assert files(cut) == before


def test_a_checkpoint_outside_a_run_cannot_be_continued(cut: Path, invoke: Invoke) -> None:
    shutil.copy(cut / "checkpoints" / "last.pt", "alone.pt")
    ran = invoke("train", "--resume", "alone.pt")
    assert (ran.code, "there is no run to continue" in ran.err) == (2, True)


def test_a_run_under_way_is_refused_before_its_checkpoint_is_read(cut: Path, invoke: Invoke) -> None:
    for which in ("last", "previous"):
        flip(cut / "checkpoints" / f"{which}.pt", 0.5)
    lock = RunDir(cut).lock()
    ran = invoke("train", "--resume", "cut")
    lock.release()
    assert (ran.code, "is being trained by another process" in ran.err) == (1, True)


def test_two_processes_never_train_in_one_run(
    cut: Path, spawn: Callable[..., "Popen[str]"], train: Train, invoke: Invoke
) -> None:
    first = spawn("train", "--resume", "cut", "--log-interval", 1, env=paused(0.3))
    while not (cut / "resumes.jsonl").exists() and first.poll() is None:
        time.sleep(0.01)
    second = invoke("train", "--resume", "cut")
    assert first.poll() is None
    assert second.code == 1
    assert "is being trained by another process" in second.err
    assert first.wait(60) == 0
    assert fingerprint(cut) == fingerprint(train("whole"))

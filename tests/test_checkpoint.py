"""Checkpoint files: replaced in one step, kept whole by a crash at any point or a full disk, and checked when read."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Ran
from fingerprint import fingerprint

from ptrun.checkpoint import load_checkpoint, save_checkpoint
from ptrun.errors import DataError, PtrunError
from ptrun.generators import generator_state

STOCHASTIC = Path(__file__).parent / "recipes" / "stochastic.py"

Invoke = Callable[..., Ran]


def state(step: int) -> dict[str, Any]:
    torch.manual_seed(step)
    return {
        "model": {"weight": torch.randn(3, 4), "count": torch.tensor(step)},
        "position": {"step": step},
        "generators": generator_state(),
        "best": None,
        "name": "ü",
    }


def test_what_is_saved_is_loaded(work: Path) -> None:
    saved = state(1)
    save_checkpoint(work / "last.pt", saved)
    loaded = load_checkpoint(work / "last.pt")
    assert loaded.pop("format") == 1
    assert list(loaded) == list(saved)
    assert torch.equal(loaded["model"]["weight"], saved["model"]["weight"])
    assert loaded["model"]["count"].dtype == torch.int64
    assert loaded["generators"]["python"] == saved["generators"]["python"]
    assert loaded["best"] is None
    assert [path.name for path in work.iterdir()] == ["last.pt"]


def test_torch_alone_reads_it(work: Path) -> None:
    save_checkpoint(work / "last.pt", state(1))
    assert torch.load(work / "last.pt", weights_only=True)["position"] == {"step": 1}


def test_the_one_before_is_kept(work: Path) -> None:
    last, previous = work / "last.pt", work / "previous.pt"
    for step in (1, 2, 3):
        save_checkpoint(last, state(step), previous)
    assert load_checkpoint(last)["position"] == {"step": 3}
    assert load_checkpoint(previous)["position"] == {"step": 2}
    assert {path.name for path in work.iterdir()} == {"last.pt", "previous.pt"}


def test_no_flipped_bit_goes_unseen(work: Path) -> None:
    path = work / "last.pt"
    save_checkpoint(path, {"weight": torch.arange(10.0)})
    whole = path.read_bytes()
    for place in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="is damaged"):
            load_checkpoint(path)


def test_no_cut_goes_unseen(work: Path) -> None:
    path = work / "last.pt"
    save_checkpoint(path, {"weight": torch.arange(10.0)})
    whole = path.read_bytes()
    for length in range(0, len(whole), 3):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=f"is damaged or not ptrun's: {length} bytes"):
            load_checkpoint(path)


def test_other_files_are_refused(work: Path) -> None:
    with pytest.raises(DataError, match=r"checkpoint none\.pt does not exist"):
        load_checkpoint(Path("none.pt"))
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        load_checkpoint(work)
    torch.save({"weight": torch.zeros(2)}, "foreign.pt")
    with pytest.raises(DataError, match=r"foreign\.pt is damaged or not ptrun's"):
        load_checkpoint(Path("foreign.pt"))
    save_checkpoint(Path("future.pt"), {"format": 2})
    with pytest.raises(DataError, match=r"future\.pt was not written by this version of ptrun \(format 1\)"):
        load_checkpoint(Path("future.pt"))


class Malice:
    def __reduce__(self) -> tuple[Any, ...]:
        return open, ("owned", "w")


def test_a_checkpoint_runs_no_code(work: Path) -> None:
    save_checkpoint(work / "last.pt", {"model": Malice()})
    with pytest.raises(DataError, match="cannot be read: Weights only load failed"):
        load_checkpoint(work / "last.pt")
    assert not Path("owned").exists()


# ---- a crash at any point

CRASHES = """
import io, os, signal, sys
from pathlib import Path
import torch
from ptrun.checkpoint import save_checkpoint

counter = 0

def deadly(call, fatal):
    def counted(*arguments, **options):
        global counter
        counter += 1
        if counter == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **options)
    return counted

def save_and_die(folder, fatal):
    "Die just before the `fatal`th call that a save makes to the file system."
    for name in ("open", "fsync", "link", "unlink", "replace", "rename", "close"):
        setattr(os, name, deadly(getattr(os, name), fatal))
    io.open = deadly(io.open, fatal)
    save_checkpoint(folder / "last.pt", {"weight": torch.full((1000,), 3.0)}, folder / "previous.pt")
    os._exit(0)

root, fatal, alive = Path(sys.argv[1]), 0, False
while not alive:
    fatal += 1
    folder = root / str(fatal)
    folder.mkdir()
    for step in (1.0, 2.0):
        save_checkpoint(folder / "last.pt", {"weight": torch.full((1000,), step)}, folder / "previous.pt")
    child = os.fork()
    if child == 0:
        save_and_die(folder, fatal)
    status = os.waitpid(child, 0)[1]
    alive = status == 0
    assert alive or os.WTERMSIG(status) == signal.SIGKILL
"""


def test_a_crash_between_any_two_steps_of_a_save_leaves_a_whole_checkpoint(work: Path) -> None:
    subprocess.run([sys.executable, "-c", CRASHES, str(work)], check=True, timeout=100)
    found = []
    for folder in sorted(work.iterdir(), key=lambda path: int(path.name)):
        there = [path for path in (folder / "last.pt", folder / "previous.pt") if path.exists()]
        values = [load_checkpoint(path)["weight"].unique().tolist() for path in there]
        found.append([value for (value,) in values])
    # Until the temporary file is whole, 2 and 1; then 2 is the previous one too; then 3 is the last one.
    assert [stage for stage, _ in groupby(found)] == [[2.0, 1.0], [2.0, 2.0], [3.0, 2.0]]
    assert len(found) >= 6


# ---- a full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True)
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, leaving: int) -> Path:
    """Write a file that leaves so many bytes free."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(max(0, free - leaving)))
    return ballast


def test_a_full_disk_loses_nothing(small_disk: Path) -> None:
    last, previous = small_disk / "last.pt", small_disk / "previous.pt"
    for step in (1, 2):
        save_checkpoint(last, state(step), previous)
    fill(small_disk, leaving=8192)
    with pytest.raises(PtrunError, match="could not be saved: No space left on device; the one before it is intact"):
        save_checkpoint(last, state(3) | {"more": torch.zeros(10_000)}, previous)
    assert load_checkpoint(last)["position"] == {"step": 2}
    assert load_checkpoint(previous)["position"] == {"step": 1}
    assert {path.name for path in small_disk.iterdir()} == {"last.pt", "previous.pt", "ballast"}


def test_a_file_that_may_not_grow_loses_nothing(work: Path) -> None:
    last = work / "last.pt"
    save_checkpoint(last, state(1))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
    try:
        with pytest.raises(PtrunError, match="could not be saved: File too large; the one before it is intact"):
            save_checkpoint(last, state(2) | {"more": torch.zeros(10_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert load_checkpoint(last)["position"] == {"step": 1}
    assert [path.name for path in work.iterdir()] == ["last.pt"]


def test_training_on_a_full_disk_ends_in_one_sentence_and_resumes(
    invoke: Invoke, small_disk: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--output-dir", small_disk, "--log-interval", 1)
    monkeypatch.setenv("STRIKE", "SIGINT training 4")
    assert invoke("train", STOCHASTIC, "--name", "full", *options).code == 130
    monkeypatch.delenv("STRIKE")
    (run,) = small_disk.glob("*/*-full")
    ballast = fill(small_disk, leaving=12_288)
    ran = invoke("train", "--resume", "full", *options, "--quiet")
    assert ran.code == 1
    assert ran.err.count("\n") == 1
    assert "No space left on device" in ran.err
    assert load_checkpoint(run / "checkpoints" / "last.pt")["position"]["step"] == 4
    ballast.unlink()
    assert invoke("train", "--resume", "full", *options).code == 0
    assert invoke("train", STOCHASTIC, "--name", "whole", "--log-interval", 1).code == 0
    (whole,) = work.glob("runs/*/*-whole")
    assert fingerprint(run) == fingerprint(whole)


@pytest.mark.parametrize("place", ["a file", "in a file", "not writable"])
def test_an_output_directory_that_cannot_be_written_is_refused_before_training(
    invoke: Invoke, work: Path, place: str
) -> None:
    (work / "file").write_text("")
    places = {"a file": work / "file", "in a file": work / "file" / "runs", "not writable": not_writable(work)}
    ran = invoke("train", STOCHASTIC, "--output-dir", places[place])
    assert ran.code == 2
    assert f"--output-dir {places[place]} cannot be written" in ran.err
    assert "epoch 1" not in ran.err


def not_writable(work: Path) -> Path:
    """Return a folder in which nothing can be made; root can write everywhere but in a file system of the kernel's."""
    if os.geteuid() == 0:
        return Path("/proc/ptrun")
    (work / "closed").mkdir(mode=0o500)
    return work / "closed"


# ---- a loss that is no number


def diverging(work: Path, *, at: str) -> Path:
    """Write a recipe whose step 5 of 6 goes wrong: its loss, or only its gradient."""
    recipe = work / "diverging.py"
    wrong = {"loss": "losses * torch.nan", "gradient": "losses + torch.sqrt(output.sum() * 0)"}[at]
    recipe.write_text(
        STOCHASTIC.read_text()
        + f"""

def loss(output: Tensor, target: Tensor, cfg: Config) -> Tensor:
    losses = nn.functional.cross_entropy(output, target, reduction="none")
    return {wrong} if calls["training"] >= 5 and output.requires_grad else losses
"""
    )
    return recipe


@pytest.mark.parametrize("interval", [1, 50])
def test_a_loss_that_is_no_number_ends_the_run_and_keeps_the_last_good_state(
    invoke: Invoke, work: Path, interval: int
) -> None:
    recipe = diverging(work, at="loss")
    options = ("--schedule", "constant", "--log-interval", interval, "--checkpoint-every", 2, "--quiet")
    ran = invoke("train", recipe, "--name", "nan", *options)
    assert ran.code == 1
    assert ran.err.count("\n") == 1
    step = 5 if interval == 1 else 6  # the next look at the loss
    assert f"the loss is nan at step {step} (learning rate 0.05, gradient norm nan)" in ran.err
    (run,) = work.glob("runs/*/*-nan")
    for which, expected in (("last", 4), ("best", 3)):
        saved = load_checkpoint(run / "checkpoints" / f"{which}.pt")
        assert saved["position"]["step"] == expected
        assert all(value.isfinite().all() for value in saved["model"].values())


def test_weights_that_are_no_numbers_are_never_saved(invoke: Invoke, work: Path) -> None:
    recipe = diverging(work, at="gradient")
    ran = invoke("train", recipe, "--name", "nan", "--checkpoint-every", 1, "--quiet")
    assert ran.code == 1
    assert "some weights are no longer finite at step 5" in ran.err
    assert "gradient norm nan" in ran.err
    (run,) = work.glob("runs/*/*-nan")
    saved = load_checkpoint(run / "checkpoints" / "last.pt")
    assert saved["position"]["step"] == 4
    assert all(value.isfinite().all() for value in saved["model"].values())


def test_a_diverging_learning_rate(invoke: Invoke, work: Path) -> None:
    ran = invoke(
        "train", "quickstart", "--data", "digits", "--optimizer", "sgd", "--lr", "1e9", "--schedule", "constant",
        "--warmup", 0, "--quiet",
    )  # fmt: skip
    assert ran.code == 1
    assert "learning rate 1e+09" in ran.err
    assert "Try a lower --lr" in ran.err
    assert not list(work.glob("runs/*/*/checkpoints/best.pt"))


def test_the_best_epoch_is_the_first_of_the_most_accurate_with_the_lowest_loss(invoke: Invoke, work: Path) -> None:
    arguments = ("--schedule", "constant", "--lr", 0.02, "--epochs", 12, "--json", "--quiet")
    result = json.loads(invoke("train", STOCHASTIC, *arguments).out)
    (run,) = work.glob("runs/*/*")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    epochs = [row for row in lines if row["kind"] == "epoch"]
    keys = np.array([(row["validation_accuracy"], -row["validation_loss"]) for row in epochs])
    winner = max(range(12), key=lambda i: (*keys[i], -i))
    assert winner + 1 not in (1, 12)
    assert result["best"] == {
        "accuracy": epochs[winner]["validation_accuracy"],
        "loss": epochs[winner]["validation_loss"],
        "epoch": winner + 1,
        "chosen_on": "validation",
    }
    best = load_checkpoint(run / "checkpoints" / "best.pt")
    assert best["position"] == {"epoch": winner + 1, "seen": 0, "step": 3 * (winner + 1)}
    assert best["best"] == result["best"]


def test_an_epoch_with_a_loss_that_is_no_number_is_never_the_best(invoke: Invoke, work: Path) -> None:
    recipe = work / "blind.py"
    recipe.write_text(
        STOCHASTIC.read_text()
        + """

def loss(output: Tensor, target: Tensor, cfg: Config) -> Tensor:
    losses = nn.functional.cross_entropy(output, target, reduction="none")
    return losses if output.requires_grad or calls["training"] > 3 else losses * torch.nan
"""
    )
    result = json.loads(invoke("train", recipe, "--lr", 1e-9, "--json", "--quiet").out)
    assert result["best"]["epoch"] == 2
    (run,) = work.glob("runs/*/*")
    assert load_checkpoint(run / "checkpoints" / "best.pt")["position"]["epoch"] == 2

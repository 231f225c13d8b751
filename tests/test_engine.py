"""The training loop against a bare one written out here, and evaluation against numpy."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Ran
from torch import Tensor, nn
from torch.nn import functional as F

from ptrun.data.images import Images, ImageSet, Opened, open_images
from ptrun.engine import EVAL_BATCH, evaluate, fit
from ptrun.job import Job, build
from ptrun.outline import read_outline
from ptrun.recipe import Recipe

STOCHASTIC = Path(__file__).parent / "recipes" / "stochastic.py"
CPU = torch.device("cpu")

Invoke = Callable[..., Ran]


def small_set(classes: int, test: int) -> Opened:
    draw = np.random.RandomState(0)
    images, labels = draw.randint(0, 256, (test, 6, 6)).astype(np.uint8), np.arange(test) % classes
    names = tuple(str(k) for k in range(classes))
    spec = Images(ImageSet("small", names, images[:50], labels[:50], images, labels), size=6)
    return open_images(spec, override=None, data_dir=None, device=CPU, seed=0, val_fraction=0.0)


def plain_loss(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits, labels, reduction="none")


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("n", [EVAL_BATCH - 1, EVAL_BATCH, 2 * EVAL_BATCH + 1])
def test_scores_equal_those_of_numpy(classes: int, n: int) -> None:
    torch.manual_seed(0)
    split = small_set(classes, n).test
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, classes))
    scores = evaluate(model, split, plain_loss)
    images, labels = (torch.cat(parts) for parts in zip(*split.batches(n), strict=True))
    logits, actual = model(images).detach().double().numpy(), labels.numpy()
    ranks = np.argsort(-logits, axis=1)
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    confusion = np.zeros((classes, classes), dtype=int)
    np.add.at(confusion, (actual, ranks[:, 0]), 1)
    assert scores is not None
    assert scores.n == n
    assert scores.correct == (ranks[:, 0] == actual).sum()
    assert scores.top3 == (ranks[:, :3] == actual[:, None]).sum()
    assert scores.confusion.tolist() == confusion.tolist()
    assert scores.loss == pytest.approx(-np.log(shares[np.arange(n), actual]).mean(), rel=1e-6)
    assert scores.accuracy == scores.correct / n
    assert scores.interval[0] < scores.accuracy < scores.interval[1]


def test_evaluation_leaves_everything_as_it_was_but_the_mode() -> None:
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(36), nn.Dropout(), nn.Linear(36, 3)).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    generator = torch.get_rng_state()
    evaluate(model, small_set(3, 300).test, lambda x, y: plain_loss(x, y) + torch.rand(len(y)))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), generator)
    assert not model.training


def test_an_evaluation_that_is_stopped_has_no_scores() -> None:
    answers = iter([False, False, True])
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 3))
    assert evaluate(model, small_set(3, 1000).test, plain_loss, lambda: next(answers)) is None


def make_job(**fields: Any) -> Job:
    recipe = Recipe(read_outline(STOCHASTIC))
    cfg = recipe.outline.config(**fields)
    data = open_images(
        recipe.data(cfg), override=None, data_dir=None, device=CPU, seed=cfg.seed, val_fraction=cfg.val_fraction
    )
    return build(recipe, cfg, data, CPU)


def next_epoch(job: Job) -> None:
    job.position.epoch, job.position.seen = job.position.epoch + 1, 0


def test_training_equals_a_bare_loop() -> None:
    job = make_job(optimizer="adam", batch_size=70)
    assert fit(job, on_step=lambda: None, on_epoch=lambda: next_epoch(job)) == "epochs"

    bare = make_job(optimizer="adam", batch_size=70)
    losses, right = [], 0
    for epoch in range(2):
        bare.model.train()
        for images, labels in bare.data.train.batches(70, epoch=epoch):
            logits = bare.model(images)
            loss = F.cross_entropy(logits, labels)
            bare.optimizer.zero_grad()
            loss.backward()
            bare.optimizer.step()
            bare.scheduler.step()
            losses += F.cross_entropy(logits, labels, reduction="none").tolist()
            right += int((logits.argmax(1) == labels).sum())
    assert all(torch.equal(a, b) for a, b in zip(job.model.parameters(), bare.model.parameters(), strict=True))
    assert (job.position.step, job.meter.n, job.meter.correct) == (8, 480, right)
    assert job.meter.loss == pytest.approx(sum(losses) / 480, rel=1e-12)


def test_a_reason_to_stop_ends_training_after_its_step() -> None:
    job = make_job()
    assert fit(job, lambda: "enough" if job.position.step == 2 else None, lambda: next_epoch(job)) == "enough"
    assert vars(job.position) == {"epoch": 0, "seen": 200, "step": 2}
    assert 0 < job.training_clock.seconds == pytest.approx(job.epoch_clock.seconds, abs=0.01)


def test_max_time_stops_saves_evaluates_and_can_be_resumed(
    invoke: Invoke, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAUSE", "0.05")
    started = time.monotonic()
    ran = invoke("train", STOCHASTIC, "--epochs", 1000, "--max-time", "0.6s", "--json", "--quiet")
    assert 0.6 < time.monotonic() - started < 10
    result = json.loads(ran.out)
    assert (ran.code, result["status"], result["reason"]) == (0, "finished", "max-time")
    assert 0 < result["steps"] < 20
    assert result["test"]["n"] == 600
    (run,) = work.glob("runs/*/*")
    assert torch.load(run / "checkpoints" / "last.pt")["position"]["step"] == result["steps"]
    monkeypatch.delenv("PAUSE")
    epochs = result["epochs"] + 1
    again = json.loads(invoke("train", "--resume", "last", "--epochs", epochs, "--json", "--quiet").out)
    assert (again["reason"], again["steps"]) == ("epochs", 3 * epochs)


def test_the_result_is_that_of_the_last_weights(invoke: Invoke) -> None:
    result = json.loads(invoke("train", "quickstart", "--data", "digits", "--epochs", 2, "--json", "--quiet").out)
    report = json.loads(invoke("eval", "last", "--json", "--quiet").out)
    assert {key: report[key] for key in ("loss", "accuracy", "n")} == {
        key: result["test"][key] for key in ("loss", "accuracy", "n")
    }


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which temporary files are made."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_fast_dev_run_does_everything_and_keeps_nothing(invoke: Invoke, work: Path, scratch: Path) -> None:
    ran = invoke("train", STOCHASTIC, "--fast-dev-run", "--epochs", 50, "--batch-size", 40, "--json", "--quiet")
    result = json.loads(ran.out)
    assert (ran.code, result["run"]) == (0, None)
    assert (result["epochs"], result["steps"], result["test"]["n"]) == (1, 2, 80)
    assert result["best"]["chosen_on"] == "validation"
    assert list(work.iterdir()) == list(scratch.iterdir()) == []


def test_fast_dev_run_keeps_nothing_also_when_it_fails(invoke: Invoke, work: Path, scratch: Path) -> None:
    recipe = work / "failing.py"
    recipe.write_text(
        STOCHASTIC.read_text() + "\n\ndef loss(output, target, cfg):\n    raise ValueError('on purpose')\n"
    )
    ran = invoke("train", recipe, "--fast-dev-run", "--quiet")
    assert (ran.code, "on purpose" in ran.err) == (2, True)
    assert [path.name for path in work.iterdir()] == ["failing.py"]
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("folder", ["runs", "one/two", "{work}/one/two"])
def test_fast_dev_run_removes_the_folders_that_it_made(invoke: Invoke, work: Path, folder: str) -> None:
    folder = folder.format(work=work)
    assert invoke("train", STOCHASTIC, "--fast-dev-run", "--output-dir", folder, "--quiet").code == 0
    assert list(work.iterdir()) == []


def test_fast_dev_run_writes_where_runs_will_be_and_leaves_them_alone(invoke: Invoke, work: Path) -> None:
    kept = work / "my runs" / "kept"
    kept.mkdir(parents=True)
    recipe = work / "curious.py"
    look = "print([path.name for path in Path('my runs').glob('.*/*/*/recipe.py')])"
    text = STOCHASTIC.read_text().replace("import time\n", "import time\nfrom pathlib import Path\n")
    recipe.write_text(text.replace("        calls[phase] += 1\n", f"        calls[phase] += 1\n        {look}\n"))
    ran = invoke("train", recipe, "--fast-dev-run", "--output-dir", "my runs", "--json", "--quiet")
    assert ran.code == 0, ran.err
    looks = [line for line in ran.err.splitlines() if line.startswith("[")]
    assert looks[:2] == ["[]", "['recipe.py']"]  # nothing at the shape check; a run, hidden, from the first step on
    assert list((work / "my runs").iterdir()) == [kept]


@pytest.mark.parametrize("place", ["a file", "in a file", "to be made", "there already"])
def test_fast_dev_run_refuses_a_folder_in_which_it_cannot_write(invoke: Invoke, work: Path, place: str) -> None:
    (work / "file").touch()
    closed = Path("/proc") if os.geteuid() == 0 else work / "closed"  # root can write everywhere but there
    closed.exists() or closed.mkdir(mode=0o500)
    before = list(work.iterdir())
    places = {"a file": "file", "in a file": "file/runs", "to be made": closed / "runs", "there already": closed}
    ran = invoke("train", STOCHASTIC, "--fast-dev-run", "--output-dir", places[place], "--quiet")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: --output-dir {places[place]} cannot be written: ")
    assert ran.err.count("\n") == 1
    assert list(work.iterdir()) == before

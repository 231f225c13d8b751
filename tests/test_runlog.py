"""What a run logs: metrics.jsonl, and the same numbers as TensorBoard reads them back, once for each step."""

import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pytest
import torch
from conftest import Ran
from fingerprint import rows
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from ptrun.rundir import RunDir
from ptrun.runlog import EPOCH_TAGS, STEP_TAGS, RunLog, read_rows

STOCHASTIC = Path(__file__).parent / "recipes" / "stochastic.py"
TIMED = {"train/images_per_s", "train/epoch_s"}
LONG = (STOCHASTIC, "--batch-size", 20)  # twelve steps an epoch

Invoke = Callable[..., Ran]
Scalars = dict[str, list[tuple[int, float]]]


def read_events(run: Path) -> EventAccumulator:
    return EventAccumulator(str(run), size_guidance={"scalars": 0, "tensors": 0}).Reload()


def scalars(run: Path) -> Scalars:
    """Return every (step, value) that TensorBoard shows after its purging, by tag."""
    events = read_events(run)
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def untimed(run: Path) -> Scalars:
    return {tag: values for tag, values in scalars(run).items() if tag not in TIMED}


def run_of(work: Path, name: str) -> Path:
    (run,) = work.glob(f"runs/*/*-{name}")
    return run


def next_second() -> None:
    """Wait for it: TensorBoard orders the files of a run by the second in their names."""
    time.sleep(1 - time.time() % 1)


@pytest.fixture
def run(invoke: Invoke, work: Path) -> Path:
    assert invoke("train", STOCHASTIC, "--name", "one", "--log-interval", 2).code == 0
    return run_of(work, "one")


def test_rows_of_a_run(run: Path) -> None:
    steps = [row for row in rows(run) if row["kind"] == "step"]
    epochs = [row for row in rows(run) if row["kind"] == "epoch"]
    assert [(row["step"], row["epoch"]) for row in steps] == [(2, 200 / 240), (4, 1 + 100 / 240), (6, 2.0)]
    assert [(row["step"], row["epoch"]) for row in epochs] == [(3, 1), (6, 2)]
    assert all(set(row) == {"kind", "epoch", "step", *STEP_TAGS} for row in steps)
    assert all(set(row) == {"kind", "epoch", "step", *EPOCH_TAGS} for row in epochs)


def test_tensorboard_reads_back_every_row(run: Path) -> None:
    read = scalars(run)
    logged = rows(run)
    for kind, tags in (("step", STEP_TAGS), ("epoch", EPOCH_TAGS)):
        for name, tag in tags.items():
            expected = [(row["step"], torch.tensor(row[name]).item()) for row in logged if row["kind"] == kind]
            assert read[tag] == expected
    assert set(read) == {*STEP_TAGS.values(), *EPOCH_TAGS.values(), "hparam/test_accuracy", "hparam/test_loss"}


def test_tensorboard_shows_config_and_hyperparameters(run: Path) -> None:
    events = read_events(run)
    (text,) = events.Tensors("config/text_summary")
    assert "| lr | 0.05 | default |" in text.tensor_proto.string_val[0].decode()
    content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    hparams = HParamsPluginData.FromString(content).session_start_info.hparams
    assert (hparams["lr"].number_value, hparams["schedule"].string_value) == (0.05, "onecycle")
    result = json.loads((run / "result.json").read_text())
    accuracy = torch.tensor(result["test"]["accuracy"]).item()
    assert scalars(run)["hparam/test_accuracy"] == [(6, accuracy)]


def test_tensorboard_sees_one_run(run: Path, work: Path) -> None:
    found = EventMultiplexer().AddRunsFromDirectory(str(work / "runs")).Reload().Runs()
    assert list(found) == [f"stochastic/{run.name}"]


def test_a_finished_run_that_is_resumed_or_extended_is_still_one_run(run: Path, invoke: Invoke, work: Path) -> None:
    before = scalars(run)
    next_second()
    assert invoke("train", "--resume", "one", "--log-interval", 2).code == 0
    assert scalars(run) == before
    next_second()
    assert invoke("train", "--resume", "one", "--epochs", 3, "--log-interval", 2).code == 0
    read = scalars(run)
    assert [step for step, _ in read["test/loss"]] == [3, 6, 9]
    assert [step for step, _ in read["train/running_loss"]] == [2, 4, 6, 8]
    assert [step for step, _ in read["hparam/test_loss"]] == [9]
    assert len(EventMultiplexer().AddRunsFromDirectory(str(work / "runs")).Reload().Runs()) == 1


def test_a_killed_run_shows_every_step_once(spawn: Callable[..., "Popen[str]"], invoke: Invoke, work: Path) -> None:
    assert invoke("train", *LONG, "--name", "whole", "--log-interval", 1).code == 0
    killed = spawn(
        "train", *LONG, "--name", "killed", "--log-interval", 1, "--checkpoint-every", 4,
        env={**os.environ, "STRIKE": "SIGKILL training 18"},
    )  # fmt: skip
    assert killed.wait(60) == -9
    assert rows(run_of(work, "killed"))[-1]["step"] == 17  # one step after the checkpoint
    next_second()
    assert invoke("train", "--resume", "killed", "--log-interval", 1).code == 0
    read = untimed(run_of(work, "killed"))
    assert read == untimed(run_of(work, "whole"))
    assert [step for step, _ in read["train/gradient_norm"]] == list(range(1, 25))


def test_events_after_the_checkpoint_are_purged(invoke: Invoke, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert invoke("train", *LONG, "--name", "whole", "--log-interval", 5).code == 0
    monkeypatch.setenv("STRIKE", "SIGINT training 6")
    cut = ("train", *LONG, "--name", "cut", "--log-interval", 5, "--checkpoint-every", 4)
    assert invoke(*cut).code == 130
    monkeypatch.delenv("STRIKE")
    run = run_of(work, "cut")
    assert [step for step, _ in scalars(run)["train/running_loss"]] == [5]
    next_second()
    (run / "checkpoints" / "last.pt").unlink()  # so that it goes back to step 4, before anything was logged
    assert invoke("train", "--resume", "cut", "--log-interval", 5).code == 0
    assert untimed(run) == untimed(run_of(work, "whole"))


def test_a_value_that_is_not_finite_is_null_in_json_and_nan_in_tensorboard(work: Path) -> None:
    run = RunDir(work)
    log = RunLog(run)
    log.write({"kind": "step", "epoch": 0.5, "step": 1, "loss": math.nan, "learning_rate": 0.1})
    log.close()
    assert rows(work) == [{"kind": "step", "epoch": 0.5, "step": 1, "loss": None, "learning_rate": 0.1}]
    ((step, value),) = scalars(work)["train/running_loss"]
    assert (step, math.isnan(value)) == (1, True)


def test_a_torn_last_line_is_dropped(work: Path) -> None:
    first, second = ({"kind": "step", "epoch": step / 4, "step": step, "loss": 1.0} for step in (1, 2))
    (work / "metrics.jsonl").write_text(json.dumps(first) + "\n" + json.dumps(second)[:-5])
    assert read_rows(work / "metrics.jsonl") == [first]
    log = RunLog(RunDir(work), epoch=0, step=1)
    log.write(second)
    log.close()
    assert rows(work) == [first, second]


def test_a_run_without_metrics_has_no_rows(work: Path) -> None:
    assert read_rows(work / "metrics.jsonl") == []


@pytest.mark.parametrize(
    "damage",
    [b"[]", b"{}", b"\x80\xff", b'{"kind": "step"}', b'{"kind": "x", "epoch": 1, "step": 1}', b'{"kind": []}',
     b'{"kind": "step", "epoch": "1", "step": 1}', b'{"kind": "step", "epoch": 1, "step": 1, "loss": "low"}'],
)  # fmt: skip
def test_what_is_no_row_is_dropped(work: Path, damage: bytes) -> None:
    first, second = ({"kind": "step", "epoch": step / 4, "step": step, "loss": 1.0} for step in (1, 2))
    (work / "metrics.jsonl").write_bytes(
        b"%s\n%s\n%s\n" % (json.dumps(first).encode(), damage, json.dumps(second).encode())
    )
    RunLog(RunDir(work), epoch=1, step=2).close()
    assert rows(work) == [first, second]

"""The same code on a GPU; skipped where there is none."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from conftest import Ran

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA GPU"),
]


def test_auto_is_the_gpu(invoke: Callable[..., Ran], work: Path) -> None:
    result = json.loads(invoke("train", "lenet", "--data", "digits", "--json", "--quiet").out)
    assert result["test"]["accuracy"] > 0.9
    environment = json.loads((work / result["run"] / "environment.json").read_text(encoding="utf-8"))
    assert environment["device"] == "cuda"
    assert environment["gpu"]


def test_a_run_continues_on_the_cpu(invoke: Callable[..., Ran]) -> None:
    command = ("train", "quickstart", "--data", "digits", "--quiet")
    assert invoke(*command, "--epochs", 1, "--device", "cuda").code == 0
    ran = invoke("train", "--resume", "last", "--epochs", 2, "--device", "cpu", "--json")
    assert "this run used device cuda and now has cpu" in ran.err
    assert json.loads(ran.out)["epochs"] == 2


def test_eval_agrees_with_the_cpu(invoke: Callable[..., Ran]) -> None:
    assert invoke("train", "lenet", "--data", "digits", "--device", "cuda", "--quiet").code == 0
    reports = [json.loads(invoke("eval", "lenet", "--device", d, "--json").out) for d in ("cuda", "cpu")]
    assert reports[0]["loss"] == pytest.approx(reports[1]["loss"], rel=1e-3)
    assert reports[0]["n"] == reports[1]["n"] == 359


def test_a_gpu_that_is_not_there(invoke: Callable[..., Ran]) -> None:
    count = torch.cuda.device_count()
    ran = invoke("train", "lenet", "--data", "digits", "--device", f"cuda:{count}")
    assert (ran.code, ran.err) == (
        2, f"error: --device cuda:{count}: this machine has {count} CUDA GPUs; use --device cpu\n"
    )  # fmt: skip

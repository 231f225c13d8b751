"""A small recipe as text, so that a test can break it in one place."""

from pathlib import Path
from typing import Any

from ptrun.machine import Machine

TINY = '''\
"""One linear layer on digits.

A second paragraph.
"""

from typing import Literal

import torch
from torch import Tensor, nn

import ptrun
from ptrun import Field

ALIASES = ("line",)


class Config(ptrun.Config):
    epochs: int = Field(2, ge=1, description="passes over the training set")
    lr: float = Field(0.1, gt=0, lt=10, description="learning rate")
    width: int = Field(10, ge=1, le=100, description="outputs")
    kind: Literal["sgd", "adam"] = Field("sgd", description="optimizer")
    nesterov: bool = Field(False, description="look ahead")
    clip: float | None = Field(None, gt=0, description="largest gradient norm")


PRESETS = {"slow": {"lr": 0.01, "epochs": 9}, "fast": {"lr": 1.0}}


def model(cfg: Config) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, cfg.width))


def data(cfg: Config) -> ptrun.Images:
    return ptrun.Images("digits", size=28)


def optimizer(model: nn.Module, cfg: Config) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=cfg.lr)


def schedule(optimizer: torch.optim.Optimizer, steps: int, cfg: Config) -> torch.optim.lr_scheduler.LRScheduler:
    return ptrun.schedule("constant", optimizer, steps)


def loss(output: Tensor, target: Tensor, cfg: Config) -> Tensor:
    return nn.functional.cross_entropy(output, target, reduction="none")
'''


def write_recipe(path: Path, *changes: tuple[str, str]) -> Path:
    """Write TINY with each `(old, new)` changed once, and return its path."""
    text = TINY
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        text = text.replace(old, new)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def config_of(recipe: str, created: str) -> dict[str, Any]:
    """Return the config.json of a run, complete, with one field."""
    return {
        "recipe": recipe,
        "created": created,
        "fields": {"lr": {"value": 0.1, "source": "x"}},
        "model_fields": [],
        "machine": Machine().as_json(),
    }

"""A network that draws from every global generator in each forward pass, so that an inexact resume cannot go unseen.

The variable STRIKE sends this process a signal from within a forward pass: `SIGTERM training 4` at the fourth one of
training in this process, `SIGINT evaluation 2` at the second of evaluation. The shape check before training counts as
the first of evaluation. Every forward pass takes at least PAUSE seconds, and the one that strikes HANG seconds.
"""

import os
import random
import signal
import time
from collections import Counter
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

import ptrun
from ptrun import Field


class Config(ptrun.Config):
    """Two epochs of three steps, on images made up here."""

    epochs: int = 2
    batch_size: int = 100
    val_fraction: float = Field(0.2, ge=0, lt=1)
    optimizer: Literal["sgd", "adam", "adamw"] = "sgd"
    lr: float = Field(0.05, gt=0)
    schedule: Literal["onecycle", "cosine", "step", "constant"] = "onecycle"
    width: int = Field(16, ge=1)


calls: Counter[str] = Counter()


class Noisy(nn.Module):
    """Adds noise from torch, numpy and Python, in training and in evaluation."""

    def forward(self, x: Tensor) -> Tensor:
        phase = "training" if self.training else "evaluation"
        calls[phase] += 1
        name, _, moment = os.environ.get("STRIKE", "").partition(" ")
        if moment == f"{phase} {calls[phase]}":
            os.kill(os.getpid(), signal.Signals[name])
            time.sleep(float(os.environ.get("HANG", "0")))
        time.sleep(float(os.environ.get("PAUSE", "0")))
        return x + 0.1 * (torch.rand_like(x) + np.random.rand() + random.random())


def model(cfg: Config) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), Noisy(), nn.Linear(14 * 14, cfg.width),
        nn.BatchNorm1d(cfg.width), nn.ReLU(), nn.Dropout(0.3), nn.Linear(cfg.width, 3),
    )  # fmt: skip


def data(cfg: Config) -> ptrun.Images:  # noqa: ARG001
    """Return stripes: 240 images to train, 60 to validate and 600, which are three batches, to test on."""
    draw = np.random.RandomState(0)
    labels = np.arange(900) % 3
    images = draw.randint(0, 100, (900, 12, 12))
    images[labels != 1, ::2] += 80
    images[labels != 0, :, ::2] += 75
    images = images.astype(np.uint8)
    classes = ("across", "down", "both")
    return ptrun.Images(
        ptrun.ImageSet("stripes", classes, images[:300], labels[:300], images[300:], labels[300:]), size=14, shift=1
    )


def optimizer(model: nn.Module, cfg: Config) -> torch.optim.Optimizer:
    if cfg.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[cfg.optimizer](model.parameters(), lr=cfg.lr)


def schedule(optimizer: torch.optim.Optimizer, steps: int, cfg: Config) -> torch.optim.lr_scheduler.LRScheduler:
    return ptrun.schedule(cfg.schedule, optimizer, steps, warmup=0.3)

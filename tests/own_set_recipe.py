"""A recipe as text, with a data set of its own: noise in chosen classes."""

from pathlib import Path

RECIPE = '''\
"""A linear layer on noise."""

import numpy as np
import torch
from torch import nn

import ptrun

CLASSES = {classes!r}


class Config(ptrun.Config):
    epochs: int = 1


def model(cfg: Config) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear({channels} * 28 * 28, len(CLASSES)))


def data(cfg: Config) -> ptrun.Images:
    draw = np.random.default_rng(0)
    images = draw.integers(0, 256, (90, {channels}, {height}, 28), dtype=np.uint8)
    labels = draw.integers(0, len(CLASSES), 90)
    parts = images[:60], labels[:60], images[60:], labels[60:]
    return ptrun.Images(ptrun.ImageSet("noise", CLASSES, *parts, mean=0.25, std=0.5), size=28)


def optimizer(model: nn.Module, cfg: Config) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01)
'''


def write_noise_recipe(path: Path, classes: str = "0123456789", channels: int = 1, height: int = 28) -> Path:
    """Write the recipe, with one class for each letter of `classes`, and return its path."""
    path.write_text(RECIPE.format(classes=tuple(classes), channels=channels, height=height), encoding="utf-8")
    return path

"""The PyTorch quickstart on FashionMNIST: a multilayer perceptron that tells ten kinds of clothes apart.

https://pytorch.org/tutorials/beginner/basics/quickstart_tutorial.html, which reaches 64.6 % in its five epochs.

    ptrun train quickstart                        90 % in 10 epochs: 26 s on two CPU cores
    ptrun train quickstart --preset tutorial      the tutorial to the letter: 64.6 %
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import ptrun
from ptrun import Field

ALIASES = ("fashion",)


class Config(ptrun.Config):
    """Every knob, besides `data`, `seed` and `val_fraction`, which all recipes have."""

    epochs: int = Field(10, ge=1, description="passes over the 60,000 training images")
    batch_size: int = Field(128, ge=1, description="images per step")
    optimizer: Literal["sgd", "adam", "adamw"] = Field("adamw", description="adamw decays weights apart from the step")
    lr: float = Field(2e-3, gt=0, description="peak learning rate; use about 0.1 with sgd")
    momentum: float = Field(0.9, ge=0, lt=1, description="of sgd")
    weight_decay: float = Field(0.1, ge=0, description="pulls the weights towards 0")
    schedule: Literal["onecycle", "cosine", "step", "constant"] = Field("onecycle", description="course of the rate")
    warmup: float = Field(0.3, ge=0, le=0.9, description="share of training in which the rate rises")
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="share of the target given to all classes alike")
    normalize: bool = Field(True, description="subtract the training set's mean, divide by its deviation")


PRESETS = {
    "tutorial": {
        "epochs": 5, "batch_size": 64, "optimizer": "sgd", "lr": 1e-3, "momentum": 0.0, "weight_decay": 0.0,
        "schedule": "constant", "warmup": 0.0, "label_smoothing": 0.0, "normalize": False,
    },
}  # fmt: skip


def model(cfg: Config) -> nn.Module:  #            [B, 1, 28, 28]
    return nn.Sequential(
        nn.Flatten(),  #                           [B, 784]
        nn.Linear(784, 512), nn.ReLU(),  #         [B, 512]
        nn.Linear(512, 512), nn.ReLU(),  #         [B, 512]
        nn.Linear(512, 10),  #                     [B, 10]   669,706 parameters in all
    )  # fmt: skip


def data(cfg: Config) -> ptrun.Images:
    return ptrun.Images("fashion", size=28, normalize=cfg.normalize)


def optimizer(model: nn.Module, cfg: Config) -> torch.optim.Optimizer:
    common = {"lr": cfg.lr, "weight_decay": cfg.weight_decay, "fused": True}  # fused: one call for all parameters
    if cfg.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), momentum=cfg.momentum, **common)
    if cfg.optimizer == "adam":
        return torch.optim.Adam(model.parameters(), **common)
    return torch.optim.AdamW(model.parameters(), **common)


def schedule(optimizer: torch.optim.Optimizer, steps: int, cfg: Config) -> torch.optim.lr_scheduler.LRScheduler:
    return ptrun.schedule(cfg.schedule, optimizer, steps, cfg.warmup)


def loss(output: Tensor, target: Tensor, cfg: Config) -> Tensor:
    return F.cross_entropy(output, target, label_smoothing=cfg.label_smoothing, reduction="none")  # [B]

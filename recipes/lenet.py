"""LeNet-5 on MNIST: a small convolutional network that reads handwritten digits.

LeCun, Bottou, Bengio and Haffner, "Gradient-based learning applied to document recognition", Proc. IEEE 86 (1998),
http://yann.lecun.com/exdb/publis/pdf/lecun-98.pdf. The paper reports 99.05 % on the 10,000 test digits.

    ptrun train lenet                     99.4 % in 8 epochs: 53 s on two CPU cores
    ptrun train lenet --preset paper      the paper's tanh and average pooling
    ptrun train lenet --data fashion      the same network on FashionMNIST
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import ptrun
from ptrun import Field


class Config(ptrun.Config):
    """Every knob, besides `data`, `seed` and `val_fraction`, which all recipes have."""

    epochs: int = Field(8, ge=1, description="passes over the 60,000 training images")
    batch_size: int = Field(64, ge=1, description="images per step")
    optimizer: Literal["sgd", "adam", "adamw"] = Field("adamw", description="sgd has Nesterov momentum 0.9")
    lr: float = Field(3e-3, gt=0, description="peak learning rate; with sgd about 0.05")
    weight_decay: float = Field(5e-4, ge=0, description="pulls the weights towards 0")
    schedule: Literal["onecycle", "cosine", "step", "constant"] = Field("onecycle", description="course of the rate")
    warmup: float = Field(0.3, ge=0, le=0.9, description="share of training in which the rate rises")
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="share of the target given to all classes alike")
    shift: int = Field(1, ge=0, le=8, description="random translation in training, at most so many pixels")
    activation: Literal["relu", "tanh"] = Field("relu", description="the paper has a scaled tanh")
    pool: Literal["max", "avg"] = Field("max", description="the paper averages (and scales) 2x2 neighbours")


PRESETS = {
    "paper": {"activation": "tanh", "pool": "avg", "shift": 0, "epochs": 20},  # the paper trains for 20 passes
}


def block(channels_in: int, channels_out: int, cfg: Config) -> list[nn.Module]:
    """Convolve 5x5, halve the sides, squash: the paper's order, and for max and ReLU cheaper than the usual one."""
    pool = nn.MaxPool2d(2) if cfg.pool == "max" else nn.AvgPool2d(2)
    return [nn.Conv2d(channels_in, channels_out, kernel_size=5), pool, activation(cfg)]


def activation(cfg: Config) -> nn.Module:
    return nn.ReLU() if cfg.activation == "relu" else nn.Tanh()


def model(cfg: Config) -> nn.Module:  #                        [B,  1, 32, 32]
    return nn.Sequential(
        *block(1, 6, cfg),  #                                  [B,  6, 14, 14]
        *block(6, 16, cfg),  #                                 [B, 16,  5,  5]
        nn.Flatten(),  #                                       [B, 400]
        nn.Linear(400, 120), activation(cfg),  #               [B, 120]
        nn.Linear(120, 84), activation(cfg),  #                [B, 84]
        nn.Linear(84, 10),  #                                  [B, 10]   61,706 parameters in all
    )  # fmt: skip


def data(cfg: Config) -> ptrun.Images:
    return ptrun.Images("mnist", size=32, shift=cfg.shift)  # 28 pixels and 2 of border, as in the paper


def optimizer(model: nn.Module, cfg: Config) -> torch.optim.Optimizer:
    common = {"lr": cfg.lr, "weight_decay": cfg.weight_decay, "fused": True}  # fused: one call for all parameters
    if cfg.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), momentum=0.9, nesterov=True, **common)
    if cfg.optimizer == "adam":
        return torch.optim.Adam(model.parameters(), **common)
    return torch.optim.AdamW(model.parameters(), **common)


def schedule(optimizer: torch.optim.Optimizer, steps: int, cfg: Config) -> torch.optim.lr_scheduler.LRScheduler:
    return ptrun.schedule(cfg.schedule, optimizer, steps, cfg.warmup)


def loss(output: Tensor, target: Tensor, cfg: Config) -> Tensor:
    return F.cross_entropy(output, target, label_smoothing=cfg.label_smoothing, reduction="none")  # [B]

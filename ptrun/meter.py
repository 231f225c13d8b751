"""Loss and accuracy as exact sums over samples, and the interval that belongs to an accuracy."""

import math
from typing import Any

import torch
from torch import Tensor


class Meter:
    """Running sums of loss, right answers and samples; they stay on the device until someone asks."""

    def __init__(self, device: torch.device) -> None:
        precise = torch.float32 if device.type == "mps" else torch.float64  # MPS has no float64
        self._loss = torch.zeros((), dtype=precise, device=device)
        self._correct = torch.zeros((), dtype=torch.int64, device=device)
        self.n = 0

    def add(self, losses: Tensor, logits: Tensor, labels: Tensor) -> None:
        """Add a batch: losses [B], logits [B, K], labels [B]."""
        self._loss += losses.detach().sum(dtype=self._loss.dtype)
        self._correct += (logits.detach().argmax(1) == labels).sum()
        self.n += len(labels)

    @property
    def loss(self) -> float:
        """Mean loss per sample; NaN before the first one."""
        return self._loss.item() / self.n if self.n else math.nan

    @property
    def correct(self) -> int:
        """How many answers were right."""
        return int(self._correct.item())

    @property
    def accuracy(self) -> float:
        """Share of right answers in [0, 1]; NaN before the first one."""
        return self.correct / self.n if self.n else math.nan

    def state_dict(self) -> dict[str, Any]:
        """Return the sums, for a checkpoint in the middle of an epoch."""
        return {"loss": self._loss.item(), "correct": self.correct, "n": self.n}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put the sums back."""
        self._loss.fill_(state["loss"])
        self._correct.fill_(state["correct"])
        self.n = state["n"]


def wilson_interval(correct: int, n: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """Return the 95 % score interval of a share (Wilson, 1927), which stays within [0, 1] also near the ends."""
    if n == 0:
        return 0.0, 1.0
    share, weight = correct / n, z * z / n
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / n + weight / (4 * n))
    return max(0.0, centre - half), min(1.0, centre + half)

"""Random choices as functions of (seed, epoch, index), never of a global generator: this makes a resume exact."""

import hashlib
import json

import torch
from torch import Tensor

from ptrun.errors import UsageError


def generator(*key: int | str) -> torch.Generator:
    """Return a CPU generator for this key: equal keys draw equal numbers, in any process and in any order of calls."""
    text = json.dumps([part if isinstance(part, str) else int(part) for part in key])
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1  # manual_seed is signed
    return torch.Generator().manual_seed(seed)


def order(seed: int, epoch: int, n: int) -> Tensor:
    """Return the order of `n` samples in this epoch: a permutation, int64 [n]."""
    return torch.randperm(n, generator=generator(seed, "order", epoch))


def stratified_split(labels: Tensor, fraction: float, seed: int) -> tuple[Tensor, Tensor]:
    """Split samples into (rest, held), both sorted int64 indices into `labels` [N], on its device.

    Each class gives round(fraction * its count) samples to `held`, at least one if it has two or more. Raises
    UsageError if `fraction` is not between 0 and 1, or if a class would keep no sample to train on.
    """
    if not 0 < fraction < 1:
        raise UsageError(f"the fraction of samples to hold out must be between 0 and 1, not {fraction}")
    held = torch.zeros(len(labels), dtype=torch.bool, device=labels.device)
    for label, count in enumerate(labels.bincount().tolist()):
        members = (labels == label).nonzero().squeeze(1)
        if count == 0:
            continue
        take = max(round(fraction * count), min(count - 1, 1))
        if take == count:
            raise UsageError(
                f"holding out {fraction} of the samples leaves no training sample of class {label} (it has {count}); "
                "choose a smaller fraction"
            )
        chosen = torch.randperm(count, generator=generator(seed, "split", label))[:take]
        held[members[chosen.to(labels.device)]] = True
    return (~held).nonzero().squeeze(1), held.nonzero().squeeze(1)

"""The state of every global random generator, so that a resumed run draws what the uninterrupted one would have."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


def seed_all(seed: int) -> None:
    """Seed Python's, numpy's and torch's generators on every device."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def generator_state() -> dict[str, Any]:
    """Return the states as tensors and plain values, which load with `weights_only=True`."""
    _, words, position, has_gauss, gauss = np.random.get_state(legacy=True)
    return {
        "python": random.getstate(),
        "numpy": [torch.from_numpy(np.asarray(words).astype(np.int64)), position, has_gauss, gauss],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "mps": torch.mps.get_rng_state() if torch.backends.mps.is_available() else None,
    }


def restore_generators(state: dict[str, Any]) -> None:
    """Put back what `generator_state` returned."""
    version, words, gauss_next = state["python"]
    random.setstate((version, tuple(words), gauss_next))
    words, position, has_gauss, gauss = state["numpy"]
    np.random.set_state(("MT19937", words.numpy().astype(np.uint32), position, has_gauss, gauss))
    torch.set_rng_state(state["torch"].cpu())
    if torch.cuda.is_available() and len(state["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state["cuda"])
    if torch.backends.mps.is_available() and state["mps"] is not None:
        torch.mps.set_rng_state(state["mps"])


@contextmanager
def generators_kept() -> Iterator[None]:
    """Give the generators back as they were: an evaluation, whole or cut short, changes nothing that training draws."""
    state = generator_state()
    try:
        yield
    finally:
        restore_generators(state)

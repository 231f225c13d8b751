"""The state of the global random generators."""

import random
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from ptrun.checkpoint import load_checkpoint, save_checkpoint
from ptrun.generators import generator_state, generators_kept, restore_generators, seed_all


def draw() -> tuple[object, ...]:
    """Draw from each, also the normal deviates of which the generators keep a second one."""
    return random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn(), torch.rand(3).tolist()


def test_equal_seeds_draw_equal_numbers() -> None:
    seed_all(5)
    first = draw()
    seed_all(5)
    assert draw() == first
    seed_all(6)
    second = draw()
    assert all(a != b for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("seed", [0, 2**32 - 1])
def test_every_seed_that_a_config_allows_is_taken(seed: int) -> None:
    seed_all(seed)
    draw()


def test_a_restored_state_draws_the_same_numbers_also_from_a_file(work: Path) -> None:
    seed_all(5)
    draw()
    save_checkpoint(work / "state.pt", {"generators": generator_state()})
    expected = [draw() for _ in range(3)]
    seed_all(99)
    restore_generators(load_checkpoint(work / "state.pt")["generators"])
    assert [draw() for _ in range(3)] == expected


def test_what_is_drawn_within_is_forgotten_also_after_an_error() -> None:
    seed_all(5)
    expected = draw()
    seed_all(5)
    with generators_kept():
        draw()
    with suppress(KeyError), generators_kept():
        draw()
        raise KeyError
    assert draw() == expected

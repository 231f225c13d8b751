import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ptrun.data.sampling import generator, order, stratified_split
from ptrun.errors import UsageError

SEEDS = st.integers(0, 2**63 - 1)


def draw(*key: int | str) -> list[int]:
    return torch.randint(0, 2**31, (4,), generator=generator(*key)).tolist()


def test_a_generator_depends_on_its_whole_key_only() -> None:
    torch.manual_seed(1)
    first = draw(0, "shift", 3)
    torch.manual_seed(2)
    assert draw(0, "shift", 3) == first
    others = [(0, "shift", 4), (1, "shift", 3), (0, "order", 3), (0, "shift", "3"), (0, "shift"), (0, "shi", "ft", 3)]
    assert len({tuple(draw(*key)) for key in others} | {tuple(first)}) == len(others) + 1


def test_the_global_generator_is_left_alone() -> None:
    before = torch.get_rng_state()
    order(0, 0, 10)
    stratified_split(torch.arange(10) % 2, 0.2, 0)
    assert torch.equal(before, torch.get_rng_state())


def test_orders_are_the_same_in_another_process() -> None:
    expected = order(7, 3, 6).tolist()
    code = "from ptrun.data.sampling import order; print(order(7, 3, 6).tolist())"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout.strip() == str(expected)


@settings(deadline=None)
@given(SEEDS, st.integers(0, 1000), st.integers(0, 200))
def test_an_order_is_a_permutation(seed: int, epoch: int, n: int) -> None:
    ranking = order(seed, epoch, n)
    assert ranking.dtype == torch.int64
    assert ranking.sort().values.tolist() == list(range(n))
    assert torch.equal(ranking, order(seed, epoch, n))


def test_epochs_and_seeds_differ() -> None:
    assert len({tuple(order(seed, epoch, 50).tolist()) for seed in range(5) for epoch in range(5)}) == 25


@settings(deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=80), st.floats(0.01, 0.5), SEEDS)
def test_a_stratified_split_is_exact_and_disjoint(labels: list[int], fraction: float, seed: int) -> None:
    classes = torch.tensor(labels)
    counts = classes.bincount().tolist()
    expected = [max(round(fraction * count), 1) if count > 1 else 0 for count in counts]
    rest, held = stratified_split(classes, fraction, seed)
    assert classes[held].bincount(minlength=len(counts)).tolist() == expected
    assert sorted(rest.tolist() + held.tolist()) == list(range(len(labels)))
    assert rest.tolist() == sorted(rest.tolist())
    assert held.tolist() == sorted(held.tolist())
    assert torch.equal(held, stratified_split(classes, fraction, seed)[1])


def test_a_split_depends_on_its_seed() -> None:
    labels = torch.arange(100) % 10
    assert not torch.equal(stratified_split(labels, 0.2, 0)[1], stratified_split(labels, 0.2, 1)[1])


@pytest.mark.parametrize("fraction", [-0.1, 0.0, 1.0, 1.5, float("nan")])
def test_a_fraction_outside_0_to_1_is_refused(fraction: float) -> None:
    with pytest.raises(UsageError, match="must be between 0 and 1, not"):
        stratified_split(torch.tensor([0, 0, 1, 1]), fraction, 0)


def test_a_fraction_that_leaves_nothing_to_train_on_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"holding out 0.9 .* no training sample of class 1 \(it has 4\); choose a small"
    ):
        stratified_split(torch.tensor([0] * 20 + [1] * 4), 0.9, 0)

"""Loss and accuracy as exact sums, and the interval that belongs to an accuracy."""

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ptrun.meter import Meter, wilson_interval

CPU = torch.device("cpu")


@given(sizes=st.lists(st.integers(1, 300), min_size=1, max_size=8), seed=st.integers(0, 2**32 - 1))
def test_sums_equal_those_of_numpy_in_float64(sizes: list[int], seed: int) -> None:
    draw = np.random.RandomState(seed)
    losses = draw.randint(0, 2**24, sum(sizes)) / 2**20  # float32 and float64 hold these, and their sums, exactly
    logits = draw.randn(sum(sizes), 5).astype(np.float32)
    labels = draw.randint(0, 5, sum(sizes))
    meter, start = Meter(CPU), 0
    for size in sizes:
        batch = slice(start, start + size)
        meter.add(
            torch.tensor(losses[batch], dtype=torch.float32), torch.tensor(logits[batch]), torch.tensor(labels[batch])
        )
        start += size
    right = int((logits.argmax(1) == labels).sum())
    assert (meter.n, meter.correct) == (sum(sizes), right)
    assert meter.loss == losses.sum() / sum(sizes)
    assert meter.accuracy == right / sum(sizes)


def test_a_sum_is_not_rounded_to_float32() -> None:
    meter = Meter(CPU)
    for value in (2.0**24, 1.0, 1.0, 1.0):  # float32 would stay at 2**24
        meter.add(torch.tensor([value]), torch.zeros(1, 2), torch.tensor([0]))
    assert meter.loss * 4 == 2**24 + 3


def test_a_short_last_batch_weighs_as_many_samples_as_it_has() -> None:
    meter = Meter(CPU)
    meter.add(torch.ones(3), torch.eye(3), torch.arange(3))
    meter.add(torch.tensor([5.0]), torch.eye(3)[:1], torch.tensor([2]))
    assert (meter.loss, meter.accuracy) == (2.0, 0.75)


def test_an_empty_meter_knows_nothing() -> None:
    meter = Meter(CPU)
    assert (meter.n, meter.correct) == (0, 0)
    assert math.isnan(meter.loss)
    assert math.isnan(meter.accuracy)


def test_a_saved_meter_goes_on_where_it_was() -> None:
    torch.manual_seed(0)
    batches = [(torch.rand(7), torch.randn(7, 4), torch.randint(4, (7,))) for _ in range(6)]
    whole, first, second = Meter(CPU), Meter(CPU), Meter(CPU)
    for batch in batches:
        whole.add(*batch)
    for batch in batches[:3]:
        first.add(*batch)
    second.load_state_dict(first.state_dict())
    for batch in batches[3:]:
        second.add(*batch)
    assert second.state_dict() == whole.state_dict()


def test_it_holds_no_graph() -> None:
    meter = Meter(CPU)
    weight = torch.ones(2, requires_grad=True)
    meter.add(weight * 3, torch.stack([weight, 2 * weight]), torch.tensor([0, 1]))
    assert not meter._loss.requires_grad
    assert meter.loss == 3.0


@pytest.mark.parametrize(
    ("correct", "n", "low", "high"),
    [  # Newcombe, Statistics in Medicine 17 (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_interval_as_published(correct: int, n: int, low: float, high: float) -> None:
    assert wilson_interval(correct, n) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(("correct", "n"), [(9945, 10_000), (6460, 10_000), (1, 2), (0, 1), (1, 1), (10_000, 10_000)])
def test_wilson_interval_solves_its_equation(correct: int, n: int) -> None:
    """Its ends are the shares p for which |correct/n - p| = z sqrt(p (1 - p) / n)."""
    getcontext().prec = 40
    z, share, total = Decimal("1.959963984540054"), Decimal(correct) / n, Decimal(n)
    a, b, c = 1 + z * z / total, -(2 * share + z * z / total), share * share
    root = (b * b - 4 * a * c).sqrt()
    expected = tuple(float((-b + sign * root) / (2 * a)) for sign in (-1, 1))
    assert wilson_interval(correct, n) == pytest.approx(expected, abs=1e-12)


def test_wilson_interval_of_a_good_lenet() -> None:
    low, high = wilson_interval(9945, 10_000)
    assert (round(100 * low, 2), round(100 * high, 2)) == (99.28, 99.58)


@given(st.integers(1, 10**7).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_interval_holds_the_share(counts: tuple[int, int]) -> None:
    correct, n = counts
    low, high = wilson_interval(correct, n)
    assert 0 <= low <= correct / n + 1e-12
    assert correct / n - 1e-12 <= high <= 1


def test_wilson_interval_of_nothing_is_everything() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)

"""Learning-rate schedules: their values at each step, in closed form."""

import math
import warnings

import pytest
import torch
from torch.optim import SGD
from torch.optim.lr_scheduler import LRScheduler

from ptrun.schedules import schedule

KINDS = ["onecycle", "cosine", "step", "constant"]


def make(kind: str, steps: int, warmup: float, lr: float = 1.0) -> tuple[SGD, LRScheduler]:
    optimizer = SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    return optimizer, schedule(kind, optimizer, steps, warmup)


def rates(kind: str, steps: int, warmup: float, lr: float = 1.0) -> list[float]:
    """Return the rate that each step uses; a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer, scheduler = make(kind, steps, warmup, lr)
        used = []
        for _ in range(steps):
            used.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
    return used


def cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


def test_onecycle() -> None:
    up = [cosine(1 / 25, 1, k / 29) for k in range(30)]
    down = [cosine(1, 1 / 25 / 1e4, k / 70) for k in range(1, 71)]
    assert rates("onecycle", 100, 0.3) == pytest.approx(up + down, rel=1e-9)


def test_onecycle_at_start_peak_and_end() -> None:
    used = rates("onecycle", 100, 0.3, lr=0.1)
    assert (used[0], used[29]) == pytest.approx((0.004, 0.1), rel=1e-12)
    assert max(used) == used[29]
    assert used[-1] == pytest.approx(4e-7, rel=1e-9)


def test_cosine() -> None:
    used = rates("cosine", 100, 0.0)
    assert used == pytest.approx([cosine(1, 0, k / 100) for k in range(100)], rel=1e-9)
    assert (used[0], used[50]) == pytest.approx((1, 0.5))


def test_cosine_with_warmup() -> None:
    used = rates("cosine", 100, 0.2)
    up = [1 / 25 + k / 20 * (1 - 1 / 25) for k in range(20)]
    assert used == pytest.approx(up + [cosine(1, 0, k / 80) for k in range(80)], rel=1e-9)
    assert used[20] == max(used) == 1


@pytest.mark.parametrize("warmup", [0.0, 0.2])
def test_step(warmup: float) -> None:
    used = rates("step", 100, warmup, lr=0.1)
    rise = round(100 * warmup)
    assert used[rise:] == pytest.approx([0.1] * (50 - rise) + [0.01] * 25 + [0.001] * 25, rel=1e-12)
    assert used[:rise] == pytest.approx([0.1 * (1 / 25 + k / 20 * 24 / 25) for k in range(rise)], rel=1e-9)


@pytest.mark.parametrize("warmup", [0.5, 0.6, 0.9])
def test_step_has_fallen_by_the_end_of_a_long_warmup(warmup: float) -> None:
    used = rates("step", 100, warmup)
    rise = round(100 * warmup)
    assert used[rise:] == pytest.approx([0.1 if k < 75 else 0.01 for k in range(rise, 100)])


def test_constant() -> None:
    assert rates("constant", 10, 0.0, lr=0.3) == [0.3] * 10
    assert rates("constant", 10, 0.2, lr=0.3) == pytest.approx([0.012, 0.156] + [0.3] * 8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [1, 2, 3, 10])
@pytest.mark.parametrize("warmup", [0, 0.0, 0.1, 1 / 3, 0.5, 0.9])
def test_short_trainings_have_a_rate_for_each_step(kind: str, steps: int, warmup: float) -> None:
    used = rates(kind, steps, warmup)
    assert len(used) == steps
    assert all(0 < rate <= 1 for rate in used)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("warmup", [0.0, 0.3])
@pytest.mark.parametrize("cut", [1, 3, 10, 19])
def test_a_saved_schedule_goes_on_where_it_was(kind: str, warmup: float, cut: int) -> None:
    whole = rates(kind, 20, warmup)
    optimizer, scheduler = make(kind, 20, warmup)
    for _ in range(cut):
        optimizer.step()
        scheduler.step()
    other, resumed = make(kind, 20, warmup)
    resumed.load_state_dict(scheduler.state_dict())
    other.load_state_dict(optimizer.state_dict())
    rest = []
    for _ in range(cut, 20):
        rest.append(other.param_groups[0]["lr"])
        other.step()
        resumed.step()
    assert rest == whole[cut:]


def test_every_parameter_group_keeps_its_own_rate() -> None:
    first, second = (torch.zeros(1, requires_grad=True) for _ in range(2))
    for kind in KINDS:
        optimizer = SGD([{"params": [first], "lr": 0.1}, {"params": [second], "lr": 0.4}])
        scheduler = schedule(kind, optimizer, 10, 0.3)
        for _ in range(9):
            optimizer.step()
            scheduler.step()
            low, high = (group["lr"] for group in optimizer.param_groups)
            assert high == pytest.approx(4 * low)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown schedule 'linear'; known: onecycle, cosine, step, constant"):
        make("linear", 10, 0.0)

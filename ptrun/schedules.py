"""Learning-rate schedules by name, each a function of the step over the whole of training."""

from torch.optim import Optimizer
from torch.optim.lr_scheduler import (
    ConstantLR,
    CosineAnnealingLR,
    LinearLR,
    LRScheduler,
    MultiStepLR,
    OneCycleLR,
    SequentialLR,
)


def schedule(kind: str, optimizer: Optimizer, steps: int, warmup: float = 0.0) -> LRScheduler:
    """Return a scheduler that is stepped after every optimizer step, `steps` times in all.

    `warmup` is the share of training in which the rate rises to the optimizer's own `lr`:

    - `onecycle`: cosine up from lr/25, then cosine down to nearly 0 (Smith and Topin, 2018)
    - `cosine`: linear up, then cosine down to 0 (Loshchilov and Hutter, 2016)
    - `step`: linear up, then a tenth after half of training and a hundredth after three quarters
    - `constant`: linear up, then unchanged
    """
    if kind == "onecycle":
        rates = [group["lr"] for group in optimizer.param_groups]
        share = 0.0 if warmup * steps == 1 else float(warmup)  # OneCycleLR divides by the rise less one step
        return OneCycleLR(optimizer, rates, total_steps=steps, pct_start=share, cycle_momentum=False)
    rise = round(warmup * steps)
    if kind == "cosine":
        main: LRScheduler = CosineAnnealingLR(optimizer, T_max=max(steps - rise, 1))
    elif kind == "step":
        main = MultiStepLR(optimizer, milestones=[steps // 2 - rise, steps * 3 // 4 - rise])
    elif kind == "constant":
        main = ConstantLR(optimizer, factor=1.0)
    else:
        raise ValueError(f"unknown schedule '{kind}'; known: onecycle, cosine, step, constant")
    if rise == 0:
        return main
    return SequentialLR(optimizer, [LinearLR(optimizer, 1 / 25, total_iters=rise), main], milestones=[rise])

"""`ptrun train --dry-run`: build everything, check shapes, count parameters and FLOPs, train and write nothing."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from ptrun.plan import Plan
from ptrun.prepare import prepare


def dry_run(plan: Plan) -> dict[str, Any]:
    """Return what the training would do, in plain values."""
    job, plan = prepare(plan)
    images, _ = next(job.data.train.batches(1))
    data = job.data
    counts = {"train": len(data.train), "validation": len(data.validation or ()), "test": len(data.test)}
    return {
        "recipe": job.recipe.name,
        "layers": describe_layers(job.model, images),
        "parameters": sum(p.numel() for p in job.model.parameters()),
        "flops_per_image": count_flops(job.model, images),
        "data": data.name,
        "data_origin": data.origin,
        "images": {split: count for split, count in counts.items() if count},
        "epochs": job.cfg.epochs,
        "batch_size": job.cfg.batch_size,
        "steps_per_epoch": job.steps_per_epoch,
        "device": str(job.device),
        "fields": plan.resolved.as_json(),
    }


@torch.no_grad()
def describe_layers(model: nn.Module, images: Tensor) -> list[dict[str, Any]]:
    """Return name, kind, output shape (B for the batch) and parameters of each leaf module, in order of execution."""
    layers: list[dict[str, Any]] = []

    def hook(name: str, module: nn.Module) -> Any:
        def note(_: nn.Module, __: Any, output: Any) -> None:
            shape = ["B", *output.shape[1:]] if isinstance(output, Tensor) else type(output).__name__
            count = sum(p.numel() for p in module.parameters())
            layers.append({"name": name, "kind": type(module).__name__, "output": shape, "parameters": count})

        return note

    leaves = [(name, module) for name, module in model.named_modules() if not list(module.children())]
    handles = [module.register_forward_hook(hook(name, module)) for name, module in leaves]
    model.eval()(images)
    for handle in handles:
        handle.remove()
    return layers


@torch.no_grad()
def count_flops(model: nn.Module, images: Tensor) -> int:
    """Return the FLOPs of matrix products and convolutions for one image, forward; a multiply-add counts as two."""
    with FlopCounterMode(display=False) as counter:
        model.eval()(images[:1])
    return int(counter.get_total_flops())

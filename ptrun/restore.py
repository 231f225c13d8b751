"""Read a checkpoint back and see that it fits, before anything is changed."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ptrun.checkpoint import load_checkpoint
from ptrun.errors import DataError
from ptrun.words import Target

log = logging.getLogger("ptrun")


def read_state(target: Target) -> tuple[dict[str, Any], Path]:
    """Return the state that `target` names, and its file; a damaged `last` gives way to the one before, out loud."""
    try:
        return load_checkpoint(target.path), target.path
    except DataError as error:
        if target.run is None or target.which != "last":
            raise
        previous = target.run.checkpoint("previous")
        if not previous.exists():
            if not target.path.exists():
                raise DataError(
                    f"run {target.run.path} has no checkpoint yet: it is in its first epoch, or was stopped there"
                ) from None
            raise
        try:
            state = load_checkpoint(previous)
        except DataError:
            raise error from None  # of `last`, which was asked for
        position = state["position"]
        log.warning(
            "%s; going back to the one before it, at step %d (epoch %d)", error, position["step"], position["epoch"]
        )
        return state, previous


def check_weights(model: nn.Module, weights: Mapping[str, Tensor], origin: str) -> None:
    """Raise DataError, with counts and first names, unless `weights` has every name and shape of `model`."""
    own = model.state_dict()
    faults = {
        "missing": [name for name in own if name not in weights],
        "unknown": [name for name in weights if name not in own],
        "of another shape": [
            f"{name} {list(weights[name].shape)} for {list(own[name].shape)}"
            for name in own
            if isinstance(own[name], Tensor) and name in weights and weights[name].shape != own[name].shape
        ],
    }
    found = [
        f"{len(names)} {kind} ({', '.join(names[:3])}{', …' * (len(names) > 3)})"
        for kind, names in faults.items()
        if names
    ]
    if found:
        raise DataError(f"the weights in {origin} are of another model: {'; '.join(found)}; nothing was loaded")

"""Which device a name means on this machine."""

import torch

from ptrun.errors import UsageError


def find_device(name: str) -> torch.device:
    """Return the device; `auto` is CUDA, else MPS, else the CPU. Raise UsageError if it is not there."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(f"--device {name}: this machine has {torch.cuda.device_count()} CUDA GPUs; use --device cpu")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UsageError("--device mps: this machine has no Apple GPU; use --device cpu")
    return device

"""What a run needs to be explained later: versions, hardware, the state of the repository."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

PACKAGES = ("ptrun", "torch", "torchvision", "numpy", "pydantic", "typer", "tensorboard", "scikit-learn")


def describe(device: torch.device) -> dict[str, Any]:
    """Return versions, hardware and git commit, as written to environment.json."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": str(device),
        "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "cuda": torch.version.cuda if device.type == "cuda" else None,
        "git_commit": _git("rev-parse", "HEAD"),
    }


def uncommitted_changes() -> str:
    """Return the patch of what differs from the last commit; empty outside a repository."""
    return _git("diff", "HEAD", strip=False) or ""


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _git(*arguments: str, strip: bool = True) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    text = done.stdout.decode(errors="replace")
    return text.strip() if strip else text

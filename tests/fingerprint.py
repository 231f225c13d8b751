"""What must be equal for two runs to be the same training: checkpoints and metrics, down to the bit, but no timings."""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch

TIMINGS = {"images_per_s", "epoch_s"}


def fingerprint(run: Path) -> dict[str, str]:
    """Return a hash for each part of `last.pt` and `best.pt`, and one for metrics.jsonl."""
    parts = {"metrics": _hash([{k: v for k, v in row.items() if k not in TIMINGS} for row in rows(run)])}
    for which in ("last", "best"):
        state = torch.load(run / "checkpoints" / f"{which}.pt", weights_only=True)
        parts |= {f"{which} {key}": _hash(value) for key, value in state.items() if key != "seconds"}
    return parts


def rows(run: Path) -> list[dict[str, Any]]:
    """Return the lines of metrics.jsonl; a torn one is an error."""
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def files(folder: Path) -> dict[str, str]:
    """Return the hash of every file below `folder`, to see that nothing was touched."""
    return {str(path.relative_to(folder)): _digest(path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


def _hash(value: Any) -> str:
    return _digest(repr(_plain(value)).encode())


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return str(value.dtype), list(value.shape), _digest(value.contiguous().view(-1).view(torch.uint8).numpy())
    if isinstance(value, dict):
        return [(key, _plain(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _digest(content: Any) -> str:
    return hashlib.sha256(content).hexdigest()

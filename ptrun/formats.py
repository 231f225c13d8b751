"""How values are written: 99.45 %, 58.2 s, JSON."""

import json
import math
from typing import Any


def percent(share: float) -> str:
    """Return a share in [0, 1] as "99.45 %"."""
    return f"{share * 100:.2f} %"


def duration(seconds: float) -> str:
    """Return "58.2 s", "3 min 07 s" or "1 h 02 min"."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def as_json(document: Any, indent: int | None = None) -> str:
    """Return a document as JSON; numbers that are not finite, which JSON does not have, become null."""
    return json.dumps(_finite(document), indent=indent, ensure_ascii=False, allow_nan=False, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

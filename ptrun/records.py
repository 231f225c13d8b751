"""Read JSON objects back: what a crash has torn, or something else has damaged, is as if it were not there."""

import json
from pathlib import Path
from typing import Any


def read_object(path: Path) -> dict[str, Any] | None:
    """Return the JSON object that a file holds; None if it holds none or cannot be read."""
    try:
        return _parse(path.read_bytes())
    except OSError:
        return None


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the JSON objects of a file that has one a line; lines that hold none are left out."""
    lines = path.read_bytes().splitlines() if path.is_file() else []
    return [document for line in lines if (document := _parse(line)) is not None]


def _parse(text: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None

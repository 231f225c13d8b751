"""Replace a file in one step: a reader, a crash or a full disk meets the old one or the new one, never half of one."""

import os
from pathlib import Path
from typing import Any

from ptrun.formats import as_json


def replace_file(path: Path, content: bytes | memoryview, keep_as: Path | None = None) -> None:
    """Write `content` to `path`; what was there goes to `keep_as` if that is given. Raise OSError as the disk does.

    Order: a temporary file beside it, flushed to the disk, then the renames, then the directory flushed.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if keep_as is not None and path.exists():
            _keep(path, keep_as)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    _flush_directory(path.parent)


def _keep(path: Path, keep_as: Path) -> None:
    """Give the file a second name, so that `path` is there at every moment."""
    spare = keep_as.with_name(f".{keep_as.name}.tmp")
    spare.unlink(missing_ok=True)
    try:
        os.link(path, spare)
    except OSError:  # a file system without links
        path.replace(keep_as)
    else:
        spare.replace(keep_as)


def replace_json(path: Path, document: Any) -> None:
    """Write `document` to `path` as indented JSON."""
    replace_file(path, (as_json(document, indent=2) + "\n").encode())


def _flush_directory(path: Path) -> None:
    if os.name == "nt":  # Windows cannot open a directory, and needs no flush of it
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

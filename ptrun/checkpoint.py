"""Checkpoint files: written so that a crash, a full disk or a power cut leaves a whole one, and checked when read.

The file is `torch.save`'s zip archive with the SHA-256 of all its other bytes as the archive's comment (the CRC-32 of
each record would not protect the index, which says what the records are). It is verified before anything is
unpickled, with `weights_only=True`; `torch.load` reads the file as any other.
"""

import io
import pickle
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from ptrun.atomic import replace_file
from ptrun.errors import DataError, PtrunError

FORMAT = 1
DIGEST = 32  # bytes of a SHA-256


def save_checkpoint(path: Path, state: dict[str, Any], previous: Path | None = None) -> None:
    """Write `state` to `path`, keeping what was there as `previous`; raise PtrunError if the disk refuses."""
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, **state}, buffer)
    buffer.seek(-2, io.SEEK_END)  # an archive ends in the length of its comment, so far 0
    buffer.write(DIGEST.to_bytes(2, "little"))
    buffer.write(sha256(buffer.getbuffer()).digest())
    try:
        replace_file(path, buffer.getbuffer(), keep_as=previous)
    except OSError as error:
        raise PtrunError(
            f"checkpoint {path} could not be saved: {error.strerror}; the one before it is intact. "
            "Free some space, then continue with --resume"
        ) from error


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Return the checked content of `path`, on the CPU; raise DataError if it is missing, damaged or not ours."""
    try:
        content = memoryview(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"checkpoint {path} does not exist") from None
    except OSError as error:
        raise DataError(f"checkpoint {path} cannot be read: {error.strerror}") from None
    if sha256(content[:-DIGEST]).digest() != content[-DIGEST:]:
        raise DataError(f"checkpoint {path} is damaged or not ptrun's: {len(content)} bytes of another checksum")
    try:
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError) as error:
        raise DataError(f"checkpoint {path} cannot be read: {str(error).partition(chr(10))[0]}") from error
    if not (isinstance(state, dict) and state.get("format") == FORMAT):
        raise DataError(f"checkpoint {path} was not written by this version of ptrun (format {FORMAT})")
    return state

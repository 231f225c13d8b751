"""Checkpoint files: written so that a crash, a full disk or a power cut leaves a whole one, and checked when read.

The file is `torch.save`'s zip archive with the SHA-256 of all its other bytes as the archive's comment (the CRC-32 of
each record would not protect the index, which says what the records are). It is verified before anything is
unpickled, with `weights_only=True`; `torch.load` reads the file as any other.
"""

import io
import pickle
import re
from collections import OrderedDict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ptrun.atomic import replace_file
from ptrun.errors import DataError, PtrunError, UsageError

FORMAT = 1
DIGEST = 32  # bytes of a SHA-256


def save_checkpoint(path: Path, state: dict[str, Any], previous: Path | None = None) -> None:
    """Write `state` to `path`, keeping what was there as `previous`; raise PtrunError if that is not possible."""
    content = encode(state)
    try:
        replace_file(path, content, keep_as=previous)
    except OSError as error:
        kept = "the one before it is intact" if path.exists() else "there is none before it"
        raise PtrunError(
            f"checkpoint {path} could not be saved: {error.strerror}; {kept}. Free some space, then go on with --resume"
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
        state = decode(content)
    except (RuntimeError, pickle.UnpicklingError) as error:
        raise DataError(f"checkpoint {path} cannot be read: {first_line(error)}") from error
    if not (isinstance(state, dict) and state.get("format") == FORMAT):
        raise DataError(f"checkpoint {path} was not written by this version of ptrun (format {FORMAT})")
    return state


def check_savable(state: dict[str, Any]) -> None:
    """Raise UsageError if `state` holds what could be neither saved nor loaded back, before hours were spent on it."""
    try:
        decode(encode(state))
    except (PtrunError, pickle.UnpicklingError) as error:
        raise UsageError(f"the state of this training cannot be kept in a checkpoint: {first_line(error)}") from error


def encode(state: dict[str, Any]) -> memoryview:
    """Return `state` as the bytes of a checkpoint file; raise PtrunError if something in it cannot be pickled."""
    buffer = io.BytesIO()
    try:
        torch.save({"format": FORMAT, **_without_numpy(state)}, buffer)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise PtrunError(f"the training state cannot be saved: {first_line(error)}") from error
    buffer.seek(-2, io.SEEK_END)  # an archive ends in the length of its comment, so far 0
    buffer.write(DIGEST.to_bytes(2, "little"))
    buffer.write(sha256(buffer.getbuffer()).digest())
    return buffer.getbuffer()


def decode(content: memoryview) -> Any:
    """Return what `encode` was given."""
    return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)


def first_line(error: BaseException) -> str:
    """Return the first line of a message, without the colours that torch puts in."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error)).partition("\n")[0]


def _without_numpy(value: Any) -> Any:
    """Turn numpy's scalars, which schedules compute, into Python's; `weights_only` refuses the former."""
    if isinstance(value, np.generic):
        return value.item()
    if type(value) in (dict, OrderedDict):
        return type(value)((key, _without_numpy(item)) for key, item in value.items())
    if type(value) in (list, tuple):
        return type(value)(map(_without_numpy, value))
    return value

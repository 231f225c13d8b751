"""Checkpoint files: written so that a crash, a full disk or a power cut leaves a whole one, and checked when read.

The file is `torch.save`'s zip archive, whose CRC-32 for each record is verified before anything is unpickled, and it
is unpickled with `weights_only=True`.
"""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch

from ptrun.atomic import replace_file
from ptrun.errors import DataError, PtrunError

FORMAT = 1


def save_checkpoint(path: Path, state: dict[str, Any], previous: Path | None = None) -> None:
    """Write `state` to `path`, keeping what was there as `previous`; raise PtrunError if the disk refuses."""
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, **state}, buffer)
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
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        if damaged is not None:
            raise DataError(f"checkpoint {path} is damaged: the checksum of {damaged} does not match")
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise DataError(f"checkpoint {path} does not exist") from None
    except zipfile.BadZipFile:
        raise DataError(
            f"checkpoint {path} is damaged or not a checkpoint: {path.stat().st_size} bytes, no archive"
        ) from None
    except (OSError, RuntimeError, EOFError, KeyError, ValueError, pickle.UnpicklingError) as error:
        raise DataError(f"checkpoint {path} cannot be read: {str(error).partition(chr(10))[0]}") from error
    if not (isinstance(state, dict) and state.get("format") == FORMAT):
        raise DataError(f"checkpoint {path} was not written by this version of ptrun (format {FORMAT})")
    return state

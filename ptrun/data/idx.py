"""Read IDX files, the format of MNIST: a short header (big-endian), then the bytes of the array."""

import gzip
import hashlib
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from ptrun.errors import DataError

_UNSIGNED_BYTE = 0x08  # the format's code for this type of element
_CHUNK = 1 << 20  # bytes read at a time; gzip makes a copy of each


def damaged(path: Path, expected: str, found: str) -> DataError:
    """Return the error for a file whose content is not what it must be."""
    return DataError(f"{path} is damaged: expected {expected}, found {found}; replace the file or delete its folder")


def read_idx(path: Path, shape: tuple[int, ...], sha256: str | None = None) -> npt.NDArray[np.uint8]:
    """Return the array of an IDX file, plain or gzipped: uint8, writable, of exactly this `shape`.

    `sha256` is checked against `payload_sha256` when given. No more memory than for `shape` is taken, whatever the
    file says. Raises DataError, with the expected and the found, for a file that differs in any way or is unreadable.
    """
    try:
        with _open_payload(path) as stream:
            _check_header(path, stream.read(len(_header(shape))), shape)
            array = _read_body(path, stream, shape)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise damaged(path, "complete gzip data", f"'{error}'") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    found = sha256 and payload_sha256(array)
    if found != sha256:
        raise damaged(path, f"SHA-256 {sha256} of its uncompressed bytes", f"{found}")
    return array


def payload_sha256(array: npt.NDArray[np.uint8]) -> str:
    """Return the SHA-256 of this array's IDX file, uncompressed: header and elements."""
    digest = hashlib.sha256(_header(array.shape))
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


@contextmanager
def _open_payload(path: Path) -> Iterator[BinaryIO]:
    """Open a file by its first bytes, not its name: browsers and servers strip or keep ".gz" as they like."""
    with path.open("rb") as file:
        if file.peek(2)[:2] != b"\x1f\x8b":
            yield file
            return
        with gzip.GzipFile(fileobj=file) as unzipped:
            yield cast(BinaryIO, unzipped)


def _header(shape: tuple[int, ...]) -> bytes:
    return struct.pack(f">HBB{len(shape)}I", 0, _UNSIGNED_BYTE, len(shape), *shape)


def _check_header(path: Path, header: bytes, shape: tuple[int, ...]) -> None:
    expected = _header(shape)
    if len(header) < len(expected):
        raise damaged(path, f"a header of {len(expected)} bytes", f"{len(header)} bytes")
    if header[:4] != expected[:4]:
        kind = f"unsigned bytes in {len(shape)} dimensions (magic {expected[:4].hex(' ')})"
        raise damaged(path, f"an IDX file of {kind}", f"magic {header[:4].hex(' ')}")
    if header != expected:
        dimensions = struct.unpack(f">{len(shape)}I", header[4:])
        raise damaged(path, f"dimensions {_times(shape)}", _times(dimensions))


def _read_body(path: Path, stream: BinaryIO, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    array = np.empty(shape, dtype=np.uint8)
    memory = array.reshape(-1).data
    done = 0
    while done < len(memory):
        chunk = stream.read(min(_CHUNK, len(memory) - done))
        if not chunk:
            raise damaged(path, f"{array.size} bytes after the header", f"only {done}")
        memory[done : done + len(chunk)] = chunk
        done += len(chunk)
    if stream.read(1):  # at the end of gzip data this also checks its own sum
        raise damaged(path, f"{array.size} bytes after the header", "more")
    return array


def _times(shape: tuple[int, ...]) -> str:
    return "x".join(str(side) for side in shape)

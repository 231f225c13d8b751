import gzip
import hashlib
import struct
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ptrun.data.idx import payload_sha256, read_idx
from ptrun.errors import DataError

from .idx_bytes import idx_bytes

ARRAYS = arrays(np.uint8, array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))
PACKERS = st.sampled_from([bytes, gzip.compress])


def read_bytes(content: bytes, shape: tuple[int, ...]) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(content)
        return read_idx(path, shape)


@settings(deadline=None)
@given(ARRAYS, PACKERS)
def test_round_trip(array: np.ndarray, pack: type[bytes]) -> None:
    read = read_bytes(pack(idx_bytes(array)), array.shape)
    assert read.dtype == np.uint8
    assert read.flags.writeable
    np.testing.assert_array_equal(read, array)


@settings(deadline=None)
@given(ARRAYS, PACKERS, st.data())
def test_every_truncation_is_a_data_error(array: np.ndarray, pack: type[bytes], data: st.DataObject) -> None:
    content = pack(idx_bytes(array))
    length = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(DataError):
        read_bytes(content[:length], array.shape)


@settings(deadline=None)
@given(ARRAYS, PACKERS, st.data())
def test_a_changed_byte_is_a_data_error_or_harmless(array: np.ndarray, pack: type[bytes], data: st.DataObject) -> None:
    content = bytearray(pack(idx_bytes(array)))
    header = 4 + 4 * array.ndim if pack is bytes else len(content)  # gzip guards the elements as well
    content[data.draw(st.integers(0, header - 1))] = data.draw(st.integers(0, 255))
    try:
        read = read_bytes(bytes(content), array.shape)
    except DataError:
        return
    np.testing.assert_array_equal(read, array)


@settings(deadline=None)
@given(st.binary(max_size=64), st.sampled_from([(0,), (3,), (2, 2), (1, 2, 3)]))
def test_noise_is_a_data_error(content: bytes, shape: tuple[int, ...]) -> None:
    try:
        read = read_bytes(content, shape)
    except DataError:
        return
    assert content == idx_bytes(read)


GOOD = idx_bytes(np.arange(6, dtype=np.uint8).reshape(2, 3))

BROKEN = {
    "empty": (b"", "a header of 12 bytes", "0 bytes"),
    "short header": (GOOD[:7], "a header of 12 bytes", "7 bytes"),
    "web page": (b"<html>not found</html>", "magic 00 00 08 02", "magic 3c 68 74 6d"),
    "int32": (b"\0\0\x0c" + GOOD[3:], "unsigned bytes in 2 dimensions (magic 00 00 08 02)", "magic 00 00 0c 02"),
    "labels": (b"\0\0\x08\1" + GOOD[4:], "magic 00 00 08 02", "magic 00 00 08 01"),
    "other size": (GOOD[:4] + struct.pack(">II", 3, 2) + GOOD[12:], "dimensions 2x3", "3x2"),
    "truncated": (GOOD[:-2], "6 bytes after the header", "only 4"),
    "trailing": (GOOD + b"!", "6 bytes after the header", "more"),
    "half gzip": (gzip.compress(GOOD)[:-9], "complete gzip data", "ended before"),
    "gzip sum": (gzip.compress(GOOD)[:-8] + bytes(8), "complete gzip data", "CRC check failed"),
    "no gzip": (b"\x1f\x8b but no more", "complete gzip data", "Unknown compression method"),
}


@pytest.mark.parametrize(("content", "expected", "found"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_named_with_the_expected_and_the_found(
    content: bytes, expected: str, found: str, tmp_path: Path
) -> None:
    path = tmp_path / "some-file"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_idx(path, (2, 3))
    message = str(error.value)
    assert str(path) in message
    assert expected in message.split("found")[0]
    assert found in message.split(", found ")[1]
    assert "\n" not in message


def test_the_sum_is_that_of_the_uncompressed_file(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.uint8).reshape(2, 3)
    sha256 = hashlib.sha256(GOOD).hexdigest()
    assert payload_sha256(array) == sha256
    for name, content in (("raw", GOOD), ("zipped", gzip.compress(GOOD))):
        (tmp_path / name).write_bytes(content)
        np.testing.assert_array_equal(read_idx(tmp_path / name, (2, 3), sha256), array)
    (tmp_path / "raw").write_bytes(GOOD[:-1] + b"\xff")
    with pytest.raises(DataError, match=f"expected SHA-256 {sha256} .*, found [0-9a-f]{{64}};"):
        read_idx(tmp_path / "raw", (2, 3), sha256)


@pytest.mark.parametrize("name", ["absent", "folder"])
def test_an_unreadable_file_is_a_data_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match=f"{name} cannot be read: "):
        read_idx(tmp_path / name, (2, 3))


@pytest.mark.parametrize("honest_header", [True, False])
def test_neither_a_bomb_nor_a_huge_header_takes_memory(honest_header: bool, tmp_path: Path) -> None:
    shape = (2, 3) if honest_header else (2**31, 2**31)
    bomb = b"\0\0\x08\2" + struct.pack(">II", *shape) + bytes(50_000_000)
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(bomb, compresslevel=1))
    del bomb
    tracemalloc.start()
    with pytest.raises(DataError, match="is damaged"):
        read_idx(path, (2, 3))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000

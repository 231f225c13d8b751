"""A made-up known set of a few bytes, and a machine on which no other data can be found."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from ptrun.data.catalog import CATALOG, Known, Part
from ptrun.data.idx import payload_sha256

from .idx_bytes import Writer, idx_bytes


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's data folder; the working directory is empty too."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    monkeypatch.chdir(work)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr("ptrun.data.locate.user_data_dir", lambda _: str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    """Training images [12, 5, 4] and test images [6, 5, 4] in three classes, by file name."""
    pixels = np.arange(18 * 20, dtype=np.int64) * 37 % 256
    images = pixels.astype(np.uint8).reshape(18, 5, 4)
    labels = (np.arange(18) % 3).astype(np.uint8)
    return {
        "train-images-idx3-ubyte": images[:12],
        "train-labels-idx1-ubyte": labels[:12],
        "t10k-images-idx3-ubyte": images[12:],
        "t10k-labels-idx1-ubyte": labels[12:],
    }


@pytest.fixture
def tiny(arrays: dict[str, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Known:
    """The catalogue's entry for `arrays`, in torchvision's layout of MNIST."""
    parts = tuple(Part(file, array.shape, payload_sha256(array)) for file, array in arrays.items())
    entry = Known(
        "tiny",
        "Tiny",
        ("a", "b", "c"),
        0.5,
        0.25,
        "MNIST/raw",
        str(tmp_path / "debian"),
        parts,
        ("http://127.0.0.1:9/",),
    )
    monkeypatch.setitem(CATALOG, "tiny", entry)
    return entry


@pytest.fixture
def write(arrays: dict[str, np.ndarray]) -> Writer:
    """write(folder, suffix="", leave_out=()) puts the files of the tiny set into a folder."""

    def write(folder: Path, suffix: str = "", leave_out: tuple[str, ...] = ()) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for file, array in arrays.items():
            if file not in leave_out:
                content = idx_bytes(array)
                (folder / (file + suffix)).write_bytes(gzip.compress(content) if suffix else content)
        return folder

    return write

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ptrun.data.catalog import CATALOG, Known, known
from ptrun.data.load import load, load_auto
from ptrun.data.locate import find, places
from ptrun.errors import DataError

from .idx_bytes import Writer


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptrun.data.download.reachable", lambda _: False)


def test_the_first_place_in_the_order_is_taken(tiny: Known, write: Writer, tmp_path: Path, home: Path) -> None:
    mine = tmp_path / "mine"
    assert find(tiny, mine) is None
    folders = [Path(str(tiny.debian)), home / "MNIST/raw", Path("data/MNIST/raw"), mine / "MNIST/raw"]
    assert places(tiny, mine) == folders[::-1]
    for folder in folders:  # the last in the order first: each new one takes precedence
        write(folder)
        assert find(tiny, mine) == tuple(folder / part.file for part in tiny.parts)
    assert find(tiny, None) == tuple(Path("data/MNIST/raw") / part.file for part in tiny.parts)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_files_are_read_zipped_or_not(
    suffix: str, write: Writer, arrays: dict[str, np.ndarray], tmp_path: Path
) -> None:
    folder = write(tmp_path / "MNIST/raw", suffix)
    images = load("tiny", tmp_path)
    for value, expected in zip(
        (images.train_images, images.train_labels, images.test_images, images.test_labels), arrays.values(), strict=True
    ):
        np.testing.assert_array_equal(value, expected)
    assert (images.name, images.classes, images.normalisation) == ("tiny", ("a", "b", "c"), (0.5, 0.25))
    assert images.origin == str(folder)


def test_debian_folder_with_zipped_files(tiny: Known, write: Writer) -> None:
    folder = write(Path(str(tiny.debian)), ".gz")
    assert load("tiny", None).origin == str(folder)


@pytest.mark.parametrize("missing", range(4))
def test_a_missing_file_is_named_and_not_passed_over(
    missing: int, tiny: Known, write: Writer, tmp_path: Path, home: Path
) -> None:
    write(home / "MNIST/raw")
    file = tiny.parts[missing].file
    folder = write(tmp_path / "MNIST/raw", leave_out=(file,))
    with pytest.raises(DataError) as error:
        find(tiny, tmp_path)
    assert f"Tiny is incomplete in {folder}: {file}[.gz] is missing" in str(error.value)


@pytest.mark.parametrize("loader", [load, load_auto])
def test_a_damaged_file_is_an_error_even_where_a_good_one_follows(
    loader: type[object], tiny: Known, write: Writer, tmp_path: Path, home: Path
) -> None:
    write(home / "MNIST/raw")
    path = write(tmp_path / "MNIST/raw") / tiny.parts[2].file
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=f"{path} is damaged: expected 120 bytes after the header, found only 119"):
        loader("tiny", tmp_path)  # type: ignore[call-arg]


def test_labels_beyond_the_classes_are_damage(
    tiny: Known, write: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CATALOG, "tiny", replace(tiny, classes=("a", "b")))
    write(tmp_path / "MNIST/raw")
    with pytest.raises(DataError, match=r"train-labels-idx1-ubyte is damaged: expected labels 0 to 1, found label 2"):
        load("tiny", tmp_path)


@pytest.mark.usefixtures("offline")
def test_nowhere_and_no_network_says_where_and_what_to_do(tiny: Known, tmp_path: Path, home: Path) -> None:
    with pytest.raises(DataError) as error:
        load("tiny", tmp_path)
    message = str(error.value)
    for expected in ("Tiny", str(home / "MNIST/raw"), str(tiny.debian), "the network does not answer", "--data digits"):
        assert expected in message
    assert f"into {tmp_path / 'MNIST/raw'}" in message
    assert "\n" not in message


@pytest.mark.usefixtures("offline", "tiny")
def test_auto_falls_back_to_digits_out_loud(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "ptrun"):
        images = load_auto("tiny", None)
    assert images.name == "digits"
    assert [(record.levelname, record.name) for record in caplog.records] == [("WARNING", "ptrun")]
    assert "Tiny is in none of" in caplog.text
    assert "the network does not answer; using scikit-learn's digits instead" in caplog.text


@pytest.mark.usefixtures("tiny")
def test_auto_takes_what_is_there(write: Writer, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "MNIST/raw")
    assert load_auto("tiny", tmp_path).name == "tiny"
    assert caplog.records == []


def test_digits_need_no_place() -> None:
    assert places(known("digits"), Path("x")) == []

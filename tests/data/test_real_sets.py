"""The real sets, where they are on this machine: PTRUN_TEST_DATA, or ../shared/data beside the repository; Debian's."""

import os
from pathlib import Path

import numpy as np
import pytest

from ptrun.data.catalog import known
from ptrun.data.imageset import ImageSet
from ptrun.data.load import load
from ptrun.data.locate import find_in

DATA = Path(os.environ.get("PTRUN_TEST_DATA") or Path(__file__).parents[3] / "shared" / "data")
DEBIAN = Path(str(known("fashion").debian))

pytestmark = pytest.mark.slow


def check(images: ImageSet) -> None:
    assert images.train_images.shape == (60000, 28, 28)
    assert images.test_images.shape == (10000, 28, 28)
    assert np.bincount(images.test_labels).tolist() == images_of_test(images.name)
    pixels = images.train_images.astype(np.float32) / 255
    assert images.mean == round(float(pixels.mean(dtype=np.float64)), 4)
    assert images.std == round(float(pixels.std(dtype=np.float64)), 4)


def images_of_test(name: str) -> list[int]:
    return [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009] if name == "mnist" else [1000] * 10


@pytest.mark.skipif(not (DATA / "MNIST/raw").is_dir(), reason=f"no MNIST in {DATA} (set PTRUN_TEST_DATA)")
def test_mnist() -> None:
    images = load("mnist", DATA)
    check(images)
    assert images.train_labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert images.origin == str(DATA / "MNIST/raw")


@pytest.mark.skipif(not DEBIAN.is_dir(), reason="no Debian package dataset-fashion-mnist")
def test_fashion() -> None:
    assert find_in(known("fashion"), DEBIAN)
    images = load("fashion", None)
    check(images)
    assert images.train_labels[:10].tolist() == [9, 0, 0, 3, 0, 2, 7, 2, 5, 5]
    assert images.origin == str(DEBIAN)

import numpy as np
import pytest

from ptrun.data.catalog import known
from ptrun.data.imageset import ImageSet
from ptrun.data.load import load


@pytest.fixture(scope="module")
def digits() -> ImageSet:
    return load("digits", None)


def test_sizes(digits: ImageSet) -> None:
    assert digits.train_images.shape == (1438, 28, 28)
    assert digits.test_images.shape == (359, 28, 28)
    assert digits.train_images.dtype == np.uint8
    assert len(digits.train_labels) + len(digits.test_labels) == 1797
    assert digits.origin == "scikit-learn"
    assert digits.classes == tuple("0123456789")


def test_each_class_gives_one_fifth_for_testing(digits: ImageSet) -> None:
    train, test = np.bincount(digits.train_labels), np.bincount(digits.test_labels)
    assert (train + test).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert test.tolist() == [round(0.2 * count) for count in train + test]


def test_the_catalogue_has_their_mean_and_std(digits: ImageSet) -> None:
    pixels = digits.train_images / 255
    assert known("digits").mean == round(float(pixels.mean()), 4)
    assert known("digits").std == round(float(pixels.std()), 4)


def test_digits_lie_as_in_mnist(digits: ImageSet) -> None:
    images = np.concatenate([digits.train_images, digits.test_images])
    assert images.max() == 255
    margin = images.copy()
    margin[:, 4:24, 4:24] = 0
    assert not margin.any()
    assert images[:, 4:24, 4:24].any(axis=(1, 2)).all()


def test_each_original_is_there_once_with_its_label(digits: ImageSet) -> None:
    """Enlarging keeps the average brightness of a digit, so that brightness and label tell the originals apart."""
    from sklearn.datasets import load_digits

    raw = load_digits()
    images = np.concatenate([digits.train_images, digits.test_images])[:, 4:24, 4:24]
    labels = np.concatenate([digits.train_labels, digits.test_labels])
    for label in range(10):
        ours = np.sort(images[labels == label].mean(axis=(1, 2)))
        theirs = np.sort(raw.images[raw.target == label].mean(axis=(1, 2)) * 255 / 16)
        np.testing.assert_allclose(ours, theirs, atol=4)

from typing import Any

import numpy as np
import pytest

from ptrun.data.imageset import ImageSet
from ptrun.data.load import ImageSet as Public
from ptrun.errors import UsageError


def given(**changes: Any) -> ImageSet:
    fields: dict[str, Any] = {
        "name": "mine",
        "classes": ("cat", "dog"),
        "train_images": np.arange(4 * 6, dtype=np.uint8).reshape(4, 2, 3),
        "train_labels": np.array([0, 1, 0, 1]),
        "test_images": np.zeros((2, 2, 3), np.uint8),
        "test_labels": np.array([1, 0], np.uint8),
    }
    return ImageSet(**fields | changes)


def test_it_is_found_where_recipes_look_for_it() -> None:
    assert Public is ImageSet


def test_images_may_have_channels() -> None:
    images = given(train_images=np.ones((4, 3, 2, 2), np.uint8), test_images=np.ones((2, 3, 2, 2), np.uint8))
    assert images.origin == "given by the recipe"


def test_mean_and_std_are_computed_exactly_when_not_given() -> None:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (4, 700, 600), dtype=np.uint8)  # more than one chunk
    images = given(train_images=pixels, test_images=pixels[:2])
    np.testing.assert_allclose(images.normalisation, (np.mean(pixels / 255), np.std(pixels / 255)), rtol=1e-12)


def test_mean_and_std_are_taken_when_given() -> None:
    assert given(mean=0.1, std=0.2).normalisation == (0.1, 0.2)


def test_equal_pixels_cannot_be_normalised() -> None:
    with pytest.raises(UsageError, match="data set 'mine': all training pixels have the same value; give mean and std"):
        given(train_images=np.full((4, 2, 3), 77, np.uint8)).normalisation  # noqa: B018


REFUSED = {
    "one class": ({"classes": ("cat",)}, "has 1 class names; at least 2 are needed"),
    "same class": ({"classes": ("cat", "cat")}, "gives the same name to two classes: cat, cat"),
    "list": ({"train_images": [[1]]}, "train_images must be a numpy array, not list"),
    "labels list": ({"test_labels": [1]}, "test_labels must be a numpy array, not list"),
    "float": ({"test_images": np.zeros((2, 2, 3))}, "test_images must be uint8 (0 to 255), not float64"),
    "flat": ({"train_images": np.zeros((4, 6), np.uint8)}, "[N, H, W] or [N, C, H, W], not [4, 6]"),
    "empty": ({"test_images": np.zeros((0, 2, 3), np.uint8)}, "test_images is empty: [0, 2, 3]"),
    "no pixels": ({"train_images": np.zeros((4, 0, 3), np.uint8)}, "train_images is empty: [4, 0, 3]"),
    "float labels": ({"train_labels": np.zeros(4)}, "train_labels must be integers, not float64"),
    "few labels": ({"train_labels": np.zeros(3, int)}, "train_labels must be [4], one per image, not [3]"),
    "column": ({"train_labels": np.zeros((4, 1), int)}, "must be [4], one per image, not [4, 1]"),
    "high label": ({"test_labels": np.array([0, 2])}, "must be 0 to 1 for its classes, not 0 to 2"),
    "negative label": ({"test_labels": np.array([-1, 1])}, "must be 0 to 1 for its classes, not -1 to 1"),
    "other shape": (
        {"test_images": np.zeros((2, 3, 3), np.uint8)},
        "training images of (2, 3) but test images of (3, 3)",
    ),
    "mean alone": ({"mean": 0.5}, "give both mean and std, or neither"),
    "std 0": ({"mean": 0.5, "std": 0.0}, "must be finite and std > 0"),
    "nan": ({"mean": float("nan"), "std": 1.0}, "must be finite and std > 0"),
}


@pytest.mark.parametrize(("changes", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError) as error:
        given(**changes)
    assert "data set 'mine'" in str(error.value)
    assert reason in str(error.value)

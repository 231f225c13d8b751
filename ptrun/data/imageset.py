"""ImageSet: a labelled set of images in memory, from a catalogue or from a user's own recipe."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ptrun.errors import UsageError

Pixels = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.integer[Any]]

_CHUNK = 1 << 20  # pixels counted at a time: bincount makes an int64 copy of what it is given


class Normalisation(NamedTuple):
    """Mean and standard deviation of the pixels in [0, 1]: a pixel x becomes (x - mean) / std."""

    mean: float
    std: float


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Training and test images with their labels.

    Images are uint8 [N, H, W] or [N, C, H, W], labels are integers [N] that number `classes` from 0. `mean` and `std`
    (of the training pixels in [0, 1]) are computed when they are not given: read them from `normalisation`.
    `origin` says where the set was found. Raises UsageError when something does not fit together.
    """

    name: str
    classes: tuple[str, ...]
    train_images: Pixels = field(repr=False)
    train_labels: Labels = field(repr=False)
    test_images: Pixels = field(repr=False)
    test_labels: Labels = field(repr=False)
    mean: float | None = None
    std: float | None = None
    origin: str = "given by the recipe"

    def __post_init__(self) -> None:
        if len(self.classes) < 2:
            raise UsageError(f"data set '{self.name}' has {len(self.classes)} class names; at least 2 are needed")
        if len(set(self.classes)) < len(self.classes):
            raise UsageError(f"data set '{self.name}' gives the same name to two classes: {', '.join(self.classes)}")
        self._check_part("train", self.train_images, self.train_labels)
        self._check_part("test", self.test_images, self.test_labels)
        train, test = self.train_images.shape[1:], self.test_images.shape[1:]
        if train != test:
            raise UsageError(f"data set '{self.name}' has training images of {train} but test images of {test}")
        self._check_normalisation()

    @cached_property
    def normalisation(self) -> Normalisation:
        """Mean and std as given, else of the training images. Raise UsageError when all pixels are equal."""
        if self.mean is not None and self.std is not None:
            return Normalisation(self.mean, self.std)
        return self._measure()

    def _check_part(self, part: str, images: npt.NDArray[Any], labels: npt.NDArray[Any]) -> None:
        images_of = f"data set '{self.name}': {part}_images"
        labels_of = f"data set '{self.name}': {part}_labels"
        for what, value in ((images_of, images), (labels_of, labels)):
            if not isinstance(value, np.ndarray):
                raise UsageError(f"{what} must be a numpy array, not {type(value).__name__}")
        if images.dtype != np.uint8:
            raise UsageError(f"{images_of} must be uint8 (0 to 255), not {images.dtype}")
        if images.ndim not in (3, 4):
            raise UsageError(f"{images_of} must be [N, H, W] or [N, C, H, W], not {list(images.shape)}")
        if images.size == 0:
            raise UsageError(f"{images_of} is empty: {list(images.shape)}")
        if labels.dtype.kind not in "iu":
            raise UsageError(f"{labels_of} must be integers, not {labels.dtype}")
        if labels.shape != images.shape[:1]:
            raise UsageError(f"{labels_of} must be [{len(images)}], one per image, not {list(labels.shape)}")
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= len(self.classes):
            raise UsageError(f"{labels_of} must be 0 to {len(self.classes) - 1} for its classes, not {low} to {high}")

    def _check_normalisation(self) -> None:
        if (self.mean is None) != (self.std is None):
            raise UsageError(f"data set '{self.name}': give both mean and std, or neither")
        if self.mean is None or self.std is None:
            return
        if not (math.isfinite(self.mean) and math.isfinite(self.std) and self.std > 0):
            raise UsageError(f"data set '{self.name}': mean {self.mean} and std {self.std} must be finite and std > 0")

    def _measure(self) -> Normalisation:
        """Exact moments from the 256 pixel counts, so that no float copy of the set is made."""
        counts = np.zeros(256, dtype=np.int64)
        pixels = self.train_images.reshape(-1)
        for start in range(0, pixels.size, _CHUNK):
            counts += np.bincount(pixels[start : start + _CHUNK], minlength=256)
        values = np.arange(256) / 255
        mean = float(counts @ values / pixels.size)
        std = math.sqrt(float(counts @ (values - mean) ** 2 / pixels.size))
        if np.count_nonzero(counts) == 1:
            raise UsageError(f"data set '{self.name}': all training pixels have the same value; give mean and std")
        return Normalisation(mean, std)

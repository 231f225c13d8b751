"""The embedded data set: scikit-learn's 1,797 handwritten digits, which need no network, brought to MNIST's form."""

import numpy as np
import numpy.typing as npt

from ptrun.data.catalog import Known
from ptrun.data.imageset import ImageSet

TEST_FRACTION = 0.2
SPLIT_SEED = 0  # the test set is the same for every run, whatever the run's seed

_SIDE, _DIGIT = 28, 20  # MNIST puts its digits of 20x20 pixels into images of 28x28


def load_digits(entry: Known) -> ImageSet:
    """Return the digits as uint8 images [N, 28, 28], one fifth of each class for testing."""
    import torch
    from sklearn.datasets import load_digits as embedded  # type: ignore[import-untyped, unused-ignore]  # takes 1.3 s

    from ptrun.data.sampling import stratified_split

    raw = embedded()
    images = np.stack([_as_mnist(image) for image in raw.images])
    labels = raw.target.astype(np.uint8)
    train, test = (index.numpy() for index in stratified_split(torch.from_numpy(labels), TEST_FRACTION, SPLIT_SEED))
    return ImageSet(
        name=entry.name,
        classes=entry.classes,
        train_images=images[train],
        train_labels=labels[train],
        test_images=images[test],
        test_labels=labels[test],
        mean=entry.mean,
        std=entry.std,
        origin="scikit-learn",
    )


def _as_mnist(image: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    """Bring 8x8 values of 0 to 16 to uint8 [28, 28]: enlarged bilinearly, with MNIST's margin."""
    from PIL import Image

    small = Image.fromarray(np.round(image * (255 / 16)).astype(np.uint8))
    digit = np.asarray(small.resize((_DIGIT, _DIGIT), Image.Resampling.BILINEAR))
    return np.pad(digit, (_SIDE - _DIGIT) // 2)

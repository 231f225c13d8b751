import warnings
from typing import Any

import numpy as np
import pytest
import torch

from ptrun.data import images as module
from ptrun.data.images import Images, Opened, Split, open_images
from ptrun.data.imageset import ImageSet
from ptrun.errors import UsageError

PIXELS = np.arange(24 * 6, dtype=np.uint8).reshape(24, 2, 3)


def mine(pixels: np.ndarray = PIXELS, **changes: Any) -> ImageSet:
    labels = np.arange(len(pixels)) % 2
    return ImageSet("mine", ("cat", "dog"), pixels, labels, pixels[:5], labels[:5].astype(np.uint8), **changes)


def opened(spec: Images, **changes: Any) -> Opened:
    wanted: dict[str, Any] = {"override": None, "data_dir": None, "device": "cpu", "seed": 0, "val_fraction": 0.25}
    return open_images(spec, **wanted | changes)


def test_splits_share_one_storage_which_is_numpys_own() -> None:
    images = mine()
    data = opened(Images(images, size=4, shift=1))
    assert data.validation is not None
    assert data.train.images.data_ptr() == data.validation.images.data_ptr() == images.train_images.ctypes.data
    assert data.test.images.data_ptr() == images.test_images.ctypes.data
    assert data.train.images.dtype == torch.uint8
    assert data.train.images.shape == (24, 1, 2, 3)
    assert data.train.labels.dtype == torch.int64


def test_the_validation_split_is_stratified_and_disjoint() -> None:
    data = opened(Images(mine(), size=4))
    assert data.validation is not None
    assert (len(data.train), len(data.validation), len(data.test)) == (18, 6, 5)
    assert data.validation.labels[data.validation.index].bincount().tolist() == [3, 3]
    assert sorted(data.train.index.tolist() + data.validation.index.tolist()) == list(range(24))


def test_only_training_is_shuffled_and_shifted() -> None:
    data = opened(Images(mine(), size=4, shift=1), seed=7)
    assert data.validation is not None
    assert (data.train.shuffle_seed, data.train.shift) == (7, 1)
    for part in (data.validation, data.test):
        assert part.shuffle_seed is None
        first, again = (torch.cat([images for images, _ in part.batches(4, epoch=epoch)]) for epoch in (0, 1))
        assert torch.equal(first, again)


def test_without_a_fraction_there_is_no_validation() -> None:
    data = opened(Images(mine(), size=4), val_fraction=0)
    assert data.validation is None
    assert len(data.train) == 24


def test_what_a_run_records() -> None:
    data = opened(Images(mine(mean=0.25, std=0.5, origin="here"), size=4))
    assert (data.name, data.classes, data.mean, data.std, data.origin) == ("mine", ("cat", "dog"), 0.25, 0.5, "here")
    assert isinstance(data.train, Split)
    assert data.train.classes == ("cat", "dog")


def test_normalised_training_pixels_have_mean_0_and_std_1() -> None:
    data = opened(Images(mine(), size=3), val_fraction=0)
    pixels = torch.cat([images for images, _ in data.train.batches(5, epoch=0)])[:, :, 0:2]
    assert pixels.mean().abs() < 1e-5
    assert abs(pixels.std(correction=0) - 1) < 1e-5


def test_without_normalising_pixels_are_0_to_1() -> None:
    data = opened(Images(mine(), size=3, normalize=False), mean_std=(0.1, 0.2))
    assert (data.mean, data.std) == (0.0, 1.0)
    images, _ = next(data.test.batches(5))
    torch.testing.assert_close(images[:, 0, :2], torch.from_numpy(PIXELS[:5] / 255).float())
    assert not images[:, 0, 2].any()


def test_another_sets_normalisation_may_be_given() -> None:
    data = opened(Images(mine(), size=3), mean_std=(0.1, 0.2))
    assert (data.mean, data.std) == (0.1, 0.2)
    images, _ = next(data.test.batches(5))
    torch.testing.assert_close(images[:, 0, :2], torch.from_numpy((PIXELS[:5] / 255 - 0.1) / 0.2).float())


@pytest.mark.parametrize("step", [1, -1])
def test_read_only_and_reversed_arrays_are_taken_without_a_warning(step: int) -> None:
    pixels = np.frombuffer(PIXELS.tobytes(), np.uint8).reshape(PIXELS.shape)[::step]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = opened(Images(mine(pixels), size=4))
    assert np.array_equal(data.train.images[:, 0].numpy(), pixels)
    assert data.train.images.data_ptr() != pixels.ctypes.data  # memory that may not be written to is not torch's


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Which loader was asked for which name."""
    calls: list[tuple[str, str]] = []
    for function in ("load", "load_auto"):
        monkeypatch.setattr(module, function, lambda name, _, by=function: calls.append((by, name)) or mine())
    return calls


def test_a_name_given_by_the_user_is_never_replaced(loaded: list[tuple[str, str]]) -> None:
    opened(Images("mnist", size=4), override="fashion")
    opened(Images(mine(), size=4), override="digits")
    assert loaded == [("load", "fashion"), ("load", "digits")]


@pytest.mark.parametrize("override", [None, "auto"])
def test_otherwise_the_recipes_own_set_may_be_replaced(override: str | None, loaded: list[tuple[str, str]]) -> None:
    opened(Images("mnist", size=4), override=override)
    opened(Images(mine(), size=4), override=override)
    assert loaded == [("load_auto", "mnist")]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"dataset": "mnits", "size": 4}, "unknown data set 'mnits'"),
        ({"dataset": "mnist", "size": 0}, "size must be at least 1 pixel, not 0"),
        ({"dataset": "mnist", "size": 4, "shift": -1}, "shift must be 0 to 3 pixels for size 4, not -1"),
        ({"dataset": "mnist", "size": 4, "shift": 4}, "shift must be 0 to 3 pixels for size 4, not 4"),
    ],
)
def test_what_does_not_fit_is_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError) as error:
        Images(**fields)
    assert reason in str(error.value)


def test_images_larger_than_the_square_are_refused() -> None:
    with pytest.raises(UsageError, match="images are 2x2, but those of 'mine' are 2x3; size must be at least 3"):
        opened(Images(mine(), size=2))


def test_an_unknown_override_is_refused() -> None:
    with pytest.raises(UsageError, match="did you mean 'mnist'"):
        opened(Images(mine(), size=4), override="mnits")

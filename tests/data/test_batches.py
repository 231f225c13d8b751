"""Batches against a slow reference that places one sample at a time."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from ptrun.data.imageset import Normalisation
from ptrun.data.sampling import generator, order
from ptrun.data.split import Split

SEED, EPOCH = 5, 2


def split(n: int = 11, channels: int = 1, height: int = 5, width: int = 4, size: int = 8, shift: int = 2) -> Split:
    pixels = torch.randint(1, 256, (n + 3, channels, height, width), generator=generator("pixels"), dtype=torch.uint8)
    return Split(
        images=pixels,
        labels=torch.arange(n + 3) % 4,
        index=torch.arange(n) + 2,  # a part of the storage, not its beginning
        classes=("a", "b", "c", "d"),
        size=size,
        normalisation=Normalisation(0.25, 0.5),
        shuffle_seed=SEED,
        shift=shift,
    )


def placed(image: np.ndarray, size: int, dy: int, dx: int) -> np.ndarray:
    """One image [C, H, W] in the middle of zeros [C, size, size], moved; what passes the edge is lost."""
    channels, height, width = image.shape
    out = np.zeros((channels, size, size), np.uint8)
    # The middle of odd margins is the middle of the square with room to shift: rounded down.
    for y in range(height):
        for x in range(width):
            row, column = y + (size - height) // 2 + dy, x + (size - width) // 2 + dx
            if 0 <= row < size and 0 <= column < size:
                out[:, row, column] = image[:, y, x]
    return out


def reference(part: Split, epoch: int) -> tuple[np.ndarray, list[int]]:
    """All samples of an epoch: uint8 [N, C, size, size] and their labels."""
    n, ranking, shifts = len(part), list(range(len(part))), np.zeros((2, len(part)), int)
    if part.shuffle_seed is not None:
        ranking = order(part.shuffle_seed, epoch, n).tolist()
        draw = generator(part.shuffle_seed, "shift", epoch)
        shifts = torch.randint(-part.shift, part.shift + 1, (2, n), generator=draw).numpy()
    rows = [int(part.index[sample]) for sample in ranking]
    pixels = [
        placed(part.images[row].numpy(), part.size, *shifts[:, sample].tolist())
        for row, sample in zip(rows, ranking, strict=True)
    ]
    return np.stack(pixels), [int(part.labels[row]) for row in rows]


def whole(part: Split, batch_size: int, epoch: int = EPOCH) -> tuple[Tensor, Tensor]:
    images, labels = zip(*part.batches(batch_size, epoch=epoch), strict=True)
    return torch.cat(images), torch.cat(labels)


def pixels_of(images: Tensor) -> np.ndarray:
    """Undo the normalisation of `split`."""
    return ((images * 0.5 + 0.25) * 255).round().to(torch.uint8).numpy()


@pytest.mark.parametrize("batch_size", [1, 4, 11, 64])
@pytest.mark.parametrize("shift", [0, 1, 2, 7])
@pytest.mark.parametrize(
    ("channels", "height", "width", "size"), [(1, 5, 4, 8), (3, 5, 4, 8), (1, 8, 8, 8), (2, 3, 6, 9)]
)
def test_training_batches(batch_size: int, shift: int, channels: int, height: int, width: int, size: int) -> None:
    part = split(channels=channels, height=height, width=width, size=size, shift=shift)
    images, labels = whole(part, batch_size)
    expected, expected_labels = reference(part, EPOCH)
    np.testing.assert_array_equal(pixels_of(images), expected)
    assert labels.tolist() == expected_labels
    assert (images.dtype, labels.dtype) == (torch.float32, torch.int64)


def test_evaluation_is_in_order_and_unshifted() -> None:
    part = replace(split(), shuffle_seed=None)
    images, labels = whole(part, 4)
    expected, _ = reference(part, 0)
    np.testing.assert_array_equal(pixels_of(images), expected)
    assert labels.tolist() == part.labels[part.index].tolist()
    assert torch.equal(images, whole(part, 4, epoch=9)[0])


def test_normalisation_and_padding_against_the_plain_formula() -> None:
    part = replace(split(), normalisation=Normalisation(0.1307, 0.3081))
    images, _ = whole(part, 4)
    expected = (torch.from_numpy(reference(part, EPOCH)[0]).double() / 255 - 0.1307) / 0.3081
    torch.testing.assert_close(images.double(), expected, atol=1e-6, rtol=0)


def test_the_last_batch_is_short() -> None:
    assert [len(labels) for _, labels in split().batches(4, epoch=0)] == [4, 4, 3]
    assert [len(images) for images, _ in split().batches(64, epoch=0)] == [11]
    assert len(split()) == 11


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("batch_size", [3, 4, 11])
def test_from_any_batch_on_the_rest_is_bit_identical(batch_size: int, training: bool) -> None:
    part = split() if training else replace(split(), shuffle_seed=None)
    every = list(part.batches(batch_size, epoch=EPOCH))
    for seen in range(len(every) + 1):
        rest = list(part.batches(batch_size, epoch=EPOCH, start=seen * batch_size))
        assert len(rest) == len(every) - seen
        for (images, labels), (images_then, labels_then) in zip(rest, every[seen:], strict=True):
            assert torch.equal(images, images_then)
            assert torch.equal(labels, labels_then)


def test_a_sample_is_the_same_bits_in_any_batch_size() -> None:
    part = replace(split(n=40, size=13), normalisation=Normalisation(0.1307, 0.3081))
    images, _ = whole(part, 1)
    for batch_size in (2, 7, 32, 40):
        assert torch.equal(whole(part, batch_size)[0], images)


def test_batches_that_were_handed_out_stay_as_they_are() -> None:
    for shift in (0, 1):
        batches = split(shift=shift).batches(4, epoch=0)
        first, _ = next(batches)
        before = first.clone()
        next(batches)
        assert torch.equal(first, before)


def test_two_iterators_do_not_disturb_each_other() -> None:
    part = split()
    expected = list(part.batches(4, epoch=0))
    pairs = list(zip(part.batches(4, epoch=0), part.batches(4, epoch=1), strict=True))
    for (images, _), ((one, _), _) in zip(expected, pairs, strict=True):
        assert torch.equal(images, one)


def test_epochs_differ_in_order_and_shift() -> None:
    part = split(n=30)
    assert whole(part, 30, 0)[1].tolist() != whole(part, 30, 1)[1].tolist()
    still = replace(part, index=part.index[:1])  # one sample: only the shift is left to differ
    assert len({whole(still, 1, epoch)[0].numpy().tobytes() for epoch in range(20)}) > 5


def test_shifts_are_uniform_and_independent() -> None:
    part = replace(split(n=1, height=1, width=1, size=3, shift=1), index=torch.full((9000,), 2))
    images, _ = whole(part, 1000)
    share = (images > images.min()).float().mean(dim=0)[0]
    assert torch.all((share - 1 / 9).abs() < 0.015)


def test_the_storage_is_never_changed() -> None:
    part = split()
    before = part.images.clone()
    for images, labels in part.batches(4, epoch=0):
        images.zero_()
        labels.zero_()
    assert torch.equal(part.images, before)
    assert part.labels.sum() > 0

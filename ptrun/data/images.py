"""Images: what a recipe says about its data, and how that is opened on a device."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ptrun.data import catalog
from ptrun.data.imageset import ImageSet, Labels, Normalisation, Pixels
from ptrun.data.load import load, load_auto
from ptrun.data.sampling import stratified_split
from ptrun.data.split import Split
from ptrun.errors import UsageError


@dataclass(frozen=True)
class Images:
    """A recipe's data: a set by name or given, and how the network sees it.

    `size` is the side of the square that the network sees, in pixels: images are padded with zeros around to it.
    `normalize` brings the training pixels to mean 0 and standard deviation 1, otherwise they are 0 to 1. `shift` is
    the largest random translation in training, in pixels, drawn for each sample, epoch and direction.
    """

    dataset: str | ImageSet
    size: int
    normalize: bool = True
    shift: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.dataset, str):
            catalog.known(self.dataset)
        if self.size < 1:
            raise UsageError(f"size must be at least 1 pixel, not {self.size}")
        if not 0 <= self.shift < self.size:
            raise UsageError(f"shift must be 0 to {self.size - 1} pixels for size {self.size}, not {self.shift}")


@dataclass(frozen=True, eq=False)
class Opened:
    """A data set on the device: its splits, and what a run records about it.

    `mean` and `std` are the values that were used for normalising (0 and 1 where that is off). `origin` says where the
    set was found.
    """

    train: Split
    validation: Split | None
    test: Split
    name: str
    classes: tuple[str, ...]
    mean: float
    std: float
    origin: str


def open_images(
    spec: Images,
    *,
    override: str | None,
    data_dir: Path | None,
    device: torch.device | str,
    seed: int,
    val_fraction: float,
    mean_std: tuple[float, float] | None = None,
) -> Opened:
    """Load a recipe's data onto `device`, once, as uint8.

    `override` is the name of the data set that the user asked for, which is never replaced by another; None or "auto"
    is the recipe's own. `val_fraction` of the training samples, chosen by `seed`, become the validation split (0: there
    is none). `mean_std` is given to evaluate on another set than the one trained on. Raises UsageError for what does
    not fit and DataError for missing or damaged files.
    """
    source = _source(spec, override, data_dir)
    _check_size(spec, source)
    normalisation = _normalisation(spec, source, mean_std)

    def whole(images: Pixels, labels: Labels) -> Split:
        pixels, classes_of = _to_device(images, labels, device)
        every = torch.arange(len(classes_of), device=classes_of.device)
        return Split(pixels, classes_of, every, source.classes, spec.size, normalisation)

    train = whole(source.train_images, source.train_labels)
    train, validation = _hold_out(train, val_fraction, seed) if val_fraction else (train, None)
    return Opened(
        train=replace(train, shuffle_seed=seed, shift=spec.shift),
        validation=validation,
        test=whole(source.test_images, source.test_labels),
        name=source.name,
        classes=source.classes,
        mean=normalisation.mean,
        std=normalisation.std,
        origin=source.origin,
    )


def _source(spec: Images, override: str | None, data_dir: Path | None) -> ImageSet:
    if override is not None and catalog.check_name(override) != catalog.AUTO:
        return load(override, data_dir)
    if isinstance(spec.dataset, ImageSet):
        return spec.dataset
    return load_auto(spec.dataset, data_dir)


def _hold_out(train: Split, fraction: float, seed: int) -> tuple[Split, Split]:
    rest, held = stratified_split(train.labels, fraction, seed)
    return replace(train, index=rest), replace(train, index=held)


def _check_size(spec: Images, source: ImageSet) -> None:
    height, width = source.train_images.shape[-2:]
    if spec.size < max(height, width):
        raise UsageError(
            f"the recipe's images are {spec.size}x{spec.size}, but those of '{source.name}' are {height}x{width}; "
            f"size must be at least {max(height, width)}"
        )


def _normalisation(spec: Images, source: ImageSet, mean_std: tuple[float, float] | None) -> Normalisation:
    if not spec.normalize:
        return Normalisation(0.0, 1.0)
    return source.normalisation if mean_std is None else Normalisation(*mean_std)


def _to_device(images: Pixels, labels: Labels, device: torch.device | str) -> tuple[Tensor, Tensor]:
    """Return uint8 [N, C, H, W] and int64 [N]; on a CPU the images stay in numpy's memory."""
    # require() copies only what torch cannot share: read-only memory and negative strides.
    pixels = torch.from_numpy(np.require(images, requirements=["C", "W"]))
    if pixels.ndim == 3:
        pixels = pixels.unsqueeze(1)
    return pixels.to(device), torch.from_numpy(labels.astype(np.int64)).to(device)

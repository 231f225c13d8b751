"""Load a known data set: find it or download it, and check every file before use."""

import logging
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ptrun.data.catalog import CATALOG, Known, known
from ptrun.data.digits import load_digits
from ptrun.data.download import Unavailable, download
from ptrun.data.idx import damaged, read_idx
from ptrun.data.imageset import ImageSet
from ptrun.data.locate import find

log = logging.getLogger("ptrun")

FALLBACK = "digits"


def load(name: str, data_dir: Path | None) -> ImageSet:
    """Return the known set `name`, downloaded if it is nowhere on this machine.

    `data_dir` is searched first and takes the download. Raises UsageError for an unknown name and DataError for a set
    that is missing, incomplete or damaged.
    """
    entry = known(name)
    if not entry.parts:
        return load_digits(entry)
    return _read(entry, find(entry, data_dir) or download(entry, data_dir))


def load_auto(preferred: str, data_dir: Path | None) -> ImageSet:
    """Return the set `preferred`, or the embedded digits where it is nowhere and cannot be downloaded.

    The fallback is announced by one warning. A set that is there but damaged raises DataError as in `load`.
    """
    try:
        return load(preferred, data_dir)
    except Unavailable as error:
        log.warning("%s; using %s instead", error.reason, CATALOG[FALLBACK].title)
        return load(FALLBACK, data_dir)


def _read(entry: Known, paths: tuple[Path, ...]) -> ImageSet:
    arrays = [read_idx(path, part.shape, part.sha256) for path, part in zip(paths, entry.parts, strict=True)]
    train_images, train_labels, test_images, test_labels = arrays
    _check_labels(paths[1], train_labels, len(entry.classes))
    _check_labels(paths[3], test_labels, len(entry.classes))
    return ImageSet(
        name=entry.name,
        classes=entry.classes,
        train_images=train_images,
        train_labels=train_labels,
        test_images=test_images,
        test_labels=test_labels,
        mean=entry.mean,
        std=entry.std,
        origin=str(paths[0].parent),
    )


def _check_labels(path: Path, labels: npt.NDArray[np.uint8], classes: int) -> None:
    highest = int(labels.max())
    if highest >= classes:
        raise damaged(path, f"labels 0 to {classes - 1}", f"label {highest}")

"""Find the files of a known data set on this machine."""

from pathlib import Path

from platformdirs import user_data_dir

from ptrun.data.catalog import Known
from ptrun.errors import DataError


def user_dir() -> Path:
    """Return the folder where this user's data sets are kept when no other is named."""
    return Path(user_data_dir("ptrun"))


def places(entry: Known, data_dir: Path | None) -> list[Path]:
    """Return the folders that may hold the files of `entry`, in the order in which they are searched."""
    if entry.folder is None:
        return []
    above = [data_dir] if data_dir is not None else []
    folders = [root / entry.folder for root in (*above, Path("data"), user_dir())]
    return [*folders, Path(entry.debian)] if entry.debian else folders


def find(entry: Known, data_dir: Path | None) -> tuple[Path, ...] | None:
    """Return the files of `entry`, in the order of its parts, from the first place that holds any; None if none does.

    Raises DataError for a place where some of the files are missing, and for one that cannot be read.
    """
    for folder in places(entry, data_dir):
        files = find_in(entry, folder)
        if files is not None:
            return files
    return None


def find_in(entry: Known, folder: Path) -> tuple[Path, ...] | None:
    """Return the files of `entry` in this folder, each with or without ".gz". Otherwise as `find`."""
    try:
        files = {part.file: _file(folder / part.file) for part in entry.parts}
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror or error}") from error
    found = tuple(path for path in files.values() if path is not None)
    if not found:
        return None
    missing = [f"{name}[.gz]" for name, path in files.items() if path is None]
    if missing:
        raise DataError(
            f"{entry.title} is incomplete in {folder}: {', '.join(missing)} is missing; "
            "add what is missing, or delete the folder to have the set looked for elsewhere and downloaded"
        )
    return found


def _file(path: Path) -> Path | None:
    zipped = path.with_name(path.name + ".gz")
    return next((candidate for candidate in (path, zipped) if candidate.is_file()), None)

"""Download a known data set through torchvision, once however many processes ask for it, all of it or nothing."""

import io
import logging
import math
import shutil
import socket
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from http.client import HTTPResponse
from pathlib import Path

from filelock import FileLock, Timeout

from ptrun.data.catalog import Known
from ptrun.data.idx import read_idx
from ptrun.data.locate import find_in, places, user_dir
from ptrun.data.reachable import reachable
from ptrun.errors import DataError

log = logging.getLogger("ptrun")

SILENCE = 30.0  # seconds without a byte after which a connection is given up
SLOWEST = 100_000.0  # uncompressed bytes a second, below which a download that does not fall silent is given up
PATIENCE = 900.0  # seconds to wait for another process that is downloading the same set


class Unavailable(DataError):
    """A data set is nowhere on this machine and cannot be downloaded."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, remedy)
        self.reason, self.remedy = reason, remedy

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}"


def download(entry: Known, data_dir: Path | None) -> tuple[Path, ...]:
    """Download `entry` into `data_dir`, or the user's data folder, and return its files in the order of its parts.

    Raises Unavailable when that is not possible, within 5 s when the network does not answer, and DataError when what
    arrived is damaged.
    """
    root = user_dir() if data_dir is None else data_dir
    if not reachable(entry.mirrors):
        raise _unavailable(entry, data_dir, "the network does not answer")
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _alone(entry, root):
            return _files(entry, root) or _fetch(entry, root)
    except DataError:
        raise
    except Timeout as error:
        raise _unavailable(entry, data_dir, f"another process has held {error.lock_file} for too long") from error
    except Exception as error:  # torchvision raises whatever it meets; an interrupt is no Exception
        reason = " ".join(str(error).split()) or type(error).__name__
        raise _unavailable(entry, data_dir, f"the download failed: {reason}") from error


def _files(entry: Known, root: Path) -> tuple[Path, ...] | None:
    return find_in(entry, root / str(entry.folder))


def _fetch(entry: Known, root: Path) -> tuple[Path, ...]:
    """Download into a folder of another name, so that what an interrupt leaves behind is never taken for a set."""
    partial = root / f".{entry.name}.partial"
    size = sum(math.prod(part.shape) for part in entry.parts)
    shutil.rmtree(partial, ignore_errors=True)
    log.info("downloading %s into %s", entry.title, root)
    try:
        with _quiet(), _giving_up(SILENCE + size / SLOWEST):
            _torchvision(entry, partial)
        for part in entry.parts:
            read_idx(partial / str(entry.folder) / part.file, part.shape, part.sha256)
        _put_in_place(entry, partial, root)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    files = _files(entry, root)
    if files is None:
        raise DataError(f"{root / str(entry.folder)} was emptied by something else just after the download; run again")
    return files


def _torchvision(entry: Known, root: Path) -> None:
    import torchvision  # type: ignore[import-untyped, unused-ignore]  # costs more than a second

    name = Path(str(entry.folder)).parts[0]  # torchvision names the folder after the class
    getattr(torchvision.datasets, name)(root, download=True)


def _put_in_place(entry: Known, partial: Path, root: Path) -> None:
    """Move the extracted files to their place, all at once unless something else lies there already."""
    source, target = partial / str(entry.folder), root / str(entry.folder)
    for archive in source.glob("*.gz"):
        archive.unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):
        target.rmdir()
    if not target.exists():
        source.replace(target)
        return
    for file in source.iterdir():
        file.replace(target / file.name)


@contextmanager
def _alone(entry: Known, root: Path) -> Iterator[None]:
    """Hold the lock of this set in this folder; processes that come later wait and then find the files."""
    lock = FileLock(root / f".{entry.name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        log.info("waiting for another process that is downloading %s", entry.title)
        lock.acquire(timeout=PATIENCE)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torchvision's output from stdout, which is for results, and its bar from a stderr that is a log file."""
    stream = sys.stderr if sys.stderr.isatty() else io.StringIO()
    with redirect_stdout(stream), redirect_stderr(stream):
        yield


@contextmanager
def _giving_up(seconds: float) -> Iterator[None]:
    """Let connections time out, and all of them together end within `seconds`: torchvision sets no limit of its own."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(SILENCE)
    urllib.request.install_opener(urllib.request.build_opener(_Hurried(time.monotonic() + seconds)))
    try:
        yield
    finally:
        urllib.request.install_opener(urllib.request.build_opener())
        socket.setdefaulttimeout(before)


class _Hurried(urllib.request.BaseHandler):
    """Lets no answer be read after `end`, however steadily its bytes trickle."""

    def __init__(self, end: float) -> None:
        self._end = end

    def http_response(self, _: urllib.request.Request, response: HTTPResponse) -> HTTPResponse:
        """Return the response, whose `read` now looks at the clock whenever something has come."""

        def read(amount: int | None = None) -> bytes:
            if time.monotonic() > self._end:
                raise TimeoutError("it is too slow")
            return response.read1(-1 if amount is None else amount)

        response.read = read  # type: ignore[assignment, method-assign]
        return response

    https_response = http_response


def _unavailable(entry: Known, data_dir: Path | None, why: str) -> Unavailable:
    looked = places(entry, data_dir)
    return Unavailable(
        f"{entry.title} is in none of {', '.join(str(place) for place in looked)} and {why}",
        f"put its files ({', '.join(part.file for part in entry.parts)}; with or without .gz) into {looked[0]}, "
        "or use --data digits",
    )

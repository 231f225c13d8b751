import gzip
import hashlib
import json
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from ptrun.data import download as module
from ptrun.data.catalog import CATALOG, Known
from ptrun.data.download import Unavailable, download
from ptrun.data.load import load
from ptrun.data.locate import find
from ptrun.data.reachable import reachable
from ptrun.errors import DataError

from .idx_bytes import Writer
from .mirror import Mirror, serve

ROOT = Path(__file__).parents[2]


@pytest.fixture
def mirror(arrays: dict[str, np.ndarray]) -> Iterator[Mirror]:
    with serve(arrays) as mirror:
        yield mirror


@pytest.fixture
def online(tiny: Known, mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> Known:
    """The tiny set as torchvision's MNIST, to be had from the mirror."""
    from torchvision.datasets import MNIST

    md5 = [(path[1:], hashlib.md5(content).hexdigest()) for path, content in mirror.files.items()]
    monkeypatch.setattr(MNIST, "mirrors", [mirror.url])
    monkeypatch.setattr(MNIST, "resources", md5)
    entry = replace(tiny, mirrors=(mirror.url,))
    monkeypatch.setitem(CATALOG, "tiny", entry)
    return entry


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_download_puts_the_set_in_place_and_keeps_quiet(
    online: Known, home: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    before = socket.getdefaulttimeout()
    with caplog.at_level(logging.INFO, "ptrun"):
        images = load("tiny", None)
    assert images.origin == str(home / "MNIST/raw")
    assert visible(home / "MNIST/raw") == sorted(part.file for part in online.parts)
    assert visible(home) == ["MNIST"]
    assert caplog.messages == [f"downloading Tiny into {home}"]
    assert capfd.readouterr() == ("", "")
    assert socket.getdefaulttimeout() == before


def test_download_goes_into_the_data_dir_beside_what_is_there(online: Known, tmp_path: Path) -> None:
    other = tmp_path / "mine/MNIST/raw/notes.txt"
    other.parent.mkdir(parents=True)
    other.write_text("keep")
    files = download(online, tmp_path / "mine")
    assert files == tuple(other.parent / part.file for part in online.parts)
    assert other.read_text() == "keep"


@pytest.mark.parametrize("reason", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_download_leaves_no_set(
    reason: type[BaseException], online: Known, write: Writer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks_off(_: Known, root: Path) -> None:
        write(root / "MNIST/raw", leave_out=(online.parts[3].file,))
        raise reason

    monkeypatch.setattr(module, "_torchvision", breaks_off)
    with pytest.raises(KeyboardInterrupt if reason is KeyboardInterrupt else Unavailable):
        download(online, None)
    assert visible(home) == []
    assert find(online, None) is None


def test_what_a_killed_download_left_is_not_used(online: Known, mirror: Mirror, write: Writer, home: Path) -> None:
    write(home / ".tiny.partial/MNIST/raw")
    assert find(online, None) is None
    load("tiny", None)
    assert mirror.asked.keys() == mirror.files.keys()
    assert visible(home) == ["MNIST"]


def test_a_wrong_file_from_the_mirror_is_not_put_in_place(online: Known, mirror: Mirror, home: Path) -> None:
    mirror.files["/t10k-labels-idx1-ubyte.gz"] = gzip.compress(b"something else")
    with pytest.raises(Unavailable, match="the download failed: Error downloading t10k-labels-idx1-ubyte"):
        download(online, None)
    assert visible(home) == []


def test_files_that_torchvision_accepts_are_still_checked(online: Known, home: Path) -> None:
    parts = (*online.parts[:3], replace(online.parts[3], sha256="0" * 64))
    with pytest.raises(DataError, match="t10k-labels-idx1-ubyte is damaged: expected SHA-256 0000") as error:
        download(replace(online, parts=parts), None)
    assert not isinstance(error.value, Unavailable)
    assert visible(home) == []


def test_a_folder_that_cannot_be_made_is_unavailable(online: Known, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="the download failed: "):
        download(online, tmp_path / "file")


def test_a_lock_held_for_too_long_is_unavailable(online: Known, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from filelock import FileLock

    monkeypatch.setattr(module, "PATIENCE", 0.05)
    home.mkdir()
    with FileLock(home / ".tiny.lock"), pytest.raises(Unavailable, match="for too long"):
        download(online, None)


def test_a_mirror_that_trickles_is_given_up(
    online: Known, mirror: Mirror, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SILENCE", 0.5)
    monkeypatch.setattr(module, "SLOWEST", 1e9)
    mirror.pause = 0.1
    begun = time.monotonic()
    with pytest.raises(Unavailable, match="the download failed: it is too slow"):
        download(online, None)
    assert 0.5 < time.monotonic() - begun < 3
    assert visible(home) == []
    mirror.pause = 0
    download(online, None)
    assert visible(home) == ["MNIST"]


TWO_AT_ONCE = """
import gzip, json, sys, urllib.request
from pathlib import Path
from ptrun.data import download as module
from ptrun.data.catalog import Known, Part

def fetch(entry, root):  # torchvision itself takes seconds to import
    folder = root / entry.folder
    folder.mkdir(parents=True)
    for part in entry.parts:
        with urllib.request.urlopen(entry.mirrors[0] + part.file + ".gz") as answer:
            (folder / part.file).write_bytes(gzip.decompress(answer.read()))

module._torchvision = fetch
fields = json.loads(sys.argv[1])
parts = tuple(Part(part["file"], tuple(part["shape"]), part["sha256"]) for part in fields.pop("parts"))
sys.stdin.readline()
print(*module.download(Known(**fields, parts=parts), Path(sys.argv[2])))
"""


def test_of_two_processes_one_downloads_and_the_other_waits(online: Known, mirror: Mirror, tmp_path: Path) -> None:
    command = [sys.executable, "-c", TWO_AT_ONCE, json.dumps(asdict(online)), str(tmp_path)]
    pipe = subprocess.PIPE
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    processes = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env={**os.environ, "PYTHONPATH": path})
        for _ in range(2)
    ]
    outputs = [process.communicate("go\n", timeout=60)[0] for process in processes]
    expected = " ".join(str(tmp_path / "MNIST/raw" / part.file) for part in online.parts)
    assert [output.strip() for output in outputs] == [expected, expected]
    assert {path: count for path, count in mirror.asked.items() if path != "/"} == dict.fromkeys(mirror.files, 1)


def test_any_http_answer_counts(mirror: Mirror) -> None:
    assert reachable([mirror.url])  # 501: this server knows no HEAD
    assert reachable(["http://127.0.0.1:1/", mirror.url])


def test_no_answer_means_unavailable_without_importing_torchvision(tiny: Known) -> None:
    code = (
        "import sys; from ptrun.data.reachable import reachable; import ptrun.data.download; "
        "sys.exit('torchvision' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
    with pytest.raises(Unavailable, match="the network does not answer"):
        download(tiny, None)

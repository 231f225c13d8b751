import subprocess
import sys
from pathlib import Path

import pytest

from ptrun.data.catalog import CATALOG, check_name, known
from ptrun.errors import UsageError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("mnist", "mnist"),
        ("MNIST", "mnist"),
        ("fashionmnist", "fashion"),
        ("Fashion-MNIST", "fashion"),
        ("digits", "digits"),
    ],
)
def test_names_and_aliases(typed: str, name: str) -> None:
    assert known(typed).name == name
    assert check_name(typed) == name


def test_auto_is_a_name_but_not_an_entry() -> None:
    assert check_name("auto") == "auto"
    with pytest.raises(UsageError):
        known("auto")


def test_an_unknown_name_is_told_the_known_ones_and_the_nearest() -> None:
    with pytest.raises(UsageError) as error:
        known("mnits")
    assert str(error.value) == "unknown data set 'mnits' (known: auto, digits, fashion, mnist); did you mean 'mnist'?"


def test_entries_are_complete() -> None:
    assert sorted(CATALOG) == ["digits", "fashion", "mnist"]
    for name, entry in CATALOG.items():
        assert entry.name == name
        assert len(entry.classes) == len(set(entry.classes)) == 10
        assert 0 < entry.mean < 1
        assert 0 < entry.std < 1
        if entry.parts:
            assert [part.shape for part in entry.parts] == [(60000, 28, 28), (60000,), (10000, 28, 28), (10000,)]
            assert len({part.sha256 for part in entry.parts}) == 4
            assert all(len(part.sha256) == 64 for part in entry.parts)


def test_agrees_with_torchvision() -> None:
    from torchvision.datasets import MNIST, FashionMNIST

    assert known("fashion").classes == tuple(FashionMNIST.classes)
    for entry, theirs in ((known("mnist"), MNIST), (known("fashion"), FashionMNIST)):
        assert entry.folder == f"{theirs.__name__}/raw"
        assert sorted(entry.mirrors) == sorted(theirs.mirrors)
        assert {f"{part.file}.gz" for part in entry.parts} == {file for file, _ in theirs.resources}


def test_names_are_checked_without_heavy_imports() -> None:
    heavy = "{'torch', 'torchvision', 'numpy', 'sklearn'}"
    code = f"import sys, ptrun.data.catalog; sys.exit(str({heavy} & set(sys.modules) or ''))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stderr.strip() == ""

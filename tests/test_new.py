"""`ptrun new`: a recipe of one's own."""

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran

from ptrun.registry import SHIPPED


@pytest.mark.parametrize(("options", "source"), [((), "lenet"), (("--from", "quickstart"), "quickstart")])
def test_copies_a_recipe(invoke: Callable[..., Ran], work: Path, options: tuple[str, ...], source: str) -> None:
    ran = invoke("new", "mine.py", *options)
    assert ran == Ran(0, "wrote mine.py; train it with: ptrun train ./mine.py\n", "")
    assert (work / "mine.py").read_bytes() == (SHIPPED / f"{source}.py").read_bytes()


def test_what_it_says_to_type_works(invoke: Callable[..., Ran]) -> None:
    said = invoke("new", "sub/deep/mine.py", "--from", "fashion").out
    command = said.partition("ptrun ")[2].split()
    assert command == ["train", "./sub/deep/mine.py"]
    ran = invoke(*command, "--data", "digits", "--fast-dev-run", "--quiet")
    assert ran.code == 0, ran.err


def test_absolute_path(invoke: Callable[..., Ran], work: Path) -> None:
    assert invoke("new", work / "mine.py") == Ran(0, f"wrote {work / 'mine.py'}\n", "")


def test_copies_from_a_file(invoke: Callable[..., Ran], work: Path) -> None:
    (work / "one.py").write_text("# a draft: é\n", encoding="utf-8")
    assert invoke("new", "two.py", "--from", "./one.py").code == 0
    assert (work / "two.py").read_text(encoding="utf-8") == "# a draft: é\n"


def test_becomes_a_recipe_that_is_known_by_name(invoke: Callable[..., Ran]) -> None:
    invoke("new", "recipes/mine.py")
    assert invoke("show", "mine").code == 0


def test_never_writes_over_a_file(invoke: Callable[..., Ran], work: Path) -> None:
    (work / "mine.py").write_text("precious")
    ran = invoke("new", "mine.py")
    assert ran == Ran(2, "", "error: mine.py exists already; choose another name or remove it\n")
    assert (work / "mine.py").read_text() == "precious"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["mine"], "a recipe is a Python file: ptrun new mine.py --from lenet"),
        (["mine", "--from", "fashion"], "a recipe is a Python file: ptrun new mine.py --from fashion"),
        (["mine.py", "--from", "lenett"], "unknown recipe 'lenett'"),
        (["mine.py", "--from", "no.py"], "recipe file no.py does not exist"),
        ([], "Missing argument 'FILE'"),
    ],
)
def test_refused(invoke: Callable[..., Ran], work: Path, arguments: list[str], reason: str) -> None:
    ran = invoke("new", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {reason}")
    assert ran.err.count("\n") == 1
    assert list(work.iterdir()) == []


def test_copies_a_file_byte_for_byte(invoke: Callable[..., Ran], work: Path) -> None:
    content = b"# \xff is not UTF-8\r\nx = 1\r\n"
    (work / "one.py").write_bytes(content)
    assert invoke("new", "two.py", "--from", "./one.py").code == 0
    assert (work / "two.py").read_bytes() == content


def test_a_source_that_cannot_be_read(invoke: Callable[..., Ran], work: Path) -> None:
    source = unreadable(work)
    before = list(work.iterdir())
    ran = invoke("new", "sub/mine.py", "--from", source)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: recipe {source} cannot be read: ")
    assert ran.err.count("\n") == 1
    assert list(work.iterdir()) == before


def unreadable(work: Path) -> Path:
    """Return a file that cannot be read; root can read all but some of the kernel's."""
    if os.geteuid() == 0:
        return Path("/proc/self/mem")
    path = work / "closed.py"
    path.touch(mode=0o200)
    return path


def test_folder_is_a_file(invoke: Callable[..., Ran], work: Path) -> None:
    (work / "taken").touch()
    assert invoke("new", "taken/mine.py") == Ran(
        2, "", "error: taken exists already; choose another name or remove it\n"
    )


def test_cannot_be_written(invoke: Callable[..., Ran]) -> None:
    name = "long" * 100 + ".py"
    assert invoke("new", name) == Ran(2, "", f"error: {name} cannot be written: File name too long\n")


def test_a_full_disk_leaves_no_file(ptrun: Callable[..., Ran], work: Path) -> None:
    def small_files_only() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    ran = ptrun("new", "mine.py", preexec_fn=small_files_only)
    assert ran == Ran(2, "", "error: mine.py cannot be written: File too large\n")
    assert list(work.iterdir()) == []

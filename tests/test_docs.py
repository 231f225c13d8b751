"""Every command that README and docs show is run, in the order of the page, on the embedded digits."""

import dataclasses
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, Ran

from ptrun.data.catalog import CATALOG

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def shown_commands(page: Path) -> list[str]:
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def is_ptrun(command: str) -> bool:
    return shlex.split(command, comments=True)[0] == "ptrun"


@pytest.fixture
def _no_data_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let FashionMNIST be missing even where Debian's package is, so that both recipes train on digits."""
    monkeypatch.setitem(CATALOG, "fashion", dataclasses.replace(CATALOG["fashion"], debian=None))


@pytest.mark.usefixtures("_no_data_sets")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_on_the_page_work(page: Path, invoke: Callable[..., Ran]) -> None:
    for command in filter(is_ptrun, shown_commands(page)):
        ran = invoke(*shlex.split(command, comments=True)[1:])
        assert ran.code == 0, f"{command}\n{ran.err}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_other_commands_on_the_page_are_known(page: Path) -> None:
    others = [command for command in shown_commands(page) if not is_ptrun(command)]
    assert {shlex.split(command, comments=True)[0] for command in others} <= {"make", "git", "cd", "tensorboard", "pip"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_on_the_page_is_valid(page: Path) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        compile(block, str(page), "exec")

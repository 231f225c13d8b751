"""What pip installs: the wheel and the sdist, used from an empty folder in an environment that has no checkout."""

import json
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import ROOT

import ptrun

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("wheel")]

RELEASE = f"ptrun-{ptrun.__version__}"
RECIPES = {path.name for path in (ROOT / "recipes").glob("*.py")}


@dataclass(frozen=True)
class Environment:
    """A fresh virtual environment."""

    path: Path

    def run(self, program: str, *arguments: object, cwd: Path | None = None) -> str:
        """Run one of its programs, which must succeed, and return what it printed."""
        command = [str(self.path / "bin" / program), *map(str, arguments)]
        done = subprocess.run(command, cwd=cwd or self.path, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @property
    def site_packages(self) -> Path:
        (found,) = self.path.glob("lib/python*/site-packages")
        return found


def environment(path: Path) -> Environment:
    subprocess.run([sys.executable, "-m", "venv", path], check=True)
    return Environment(path)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel that pip builds of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    environment(folder / "venv").run("pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return an environment with the wheel in it; torch and the rest are lent by this one, to save gigabytes.

    A path in a .pth file is searched last, and .pth files in it are not read: this checkout cannot be found there.
    """
    fresh = environment(tmp_path_factory.mktemp("installed") / "venv")
    (fresh.site_packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    fresh.run("pip", "install", "--quiet", "--no-deps", "--no-index", "--force-reinstall", wheel)
    return fresh


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    assert {name.partition("/")[0] for name in names} == {"ptrun", f"{RELEASE}.dist-info"}
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "ptrun").rglob("*.py")}
    expected = modules | {"ptrun/py.typed"} | {f"ptrun/recipes/{name}" for name in RECIPES}
    assert {name for name in names if name.startswith("ptrun/")} == expected
    assert f"{RELEASE}.dist-info/licenses/LICENSE" in names
    assert re.search(r"^License-Expression: MIT$", metadata, re.M)
    assert re.search(r"^Requires-Python: >=3.11$", metadata, re.M)


def test_sdist_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    builder = environment(tmp_path / "venv")
    builder.run("pip", "install", "--quiet", "build")
    builder.run("python", "-m", "build", "--outdir", tmp_path / "dist", ROOT)  # an sdist, then a wheel from it
    with tarfile.open(tmp_path / "dist" / f"{RELEASE}.tar.gz") as archive:
        names = {name.removeprefix(f"{RELEASE}/") for name in archive.getnames()}
    assert {f"recipes/{name}" for name in RECIPES} | {"LICENSE", "README.md", "tests/conftest.py"} <= names
    assert not [name for name in names if name.startswith(("runs", "data/", ".venv"))]
    assert contents(tmp_path / "dist" / wheel.name) == contents(wheel)


def test_only_the_package_is_installed(installed: Environment, work: Path) -> None:
    assert {path.name for path in installed.site_packages.glob("*") if "ptrun" in path.name} == {
        "ptrun",
        f"{RELEASE}.dist-info",
    }
    where = installed.run("python", "-c", "import ptrun; print(ptrun.__file__)", cwd=work)
    assert Path(where.strip()) == installed.site_packages / "ptrun" / "__init__.py"
    assert not (installed.site_packages / "recipes").exists()


def test_installed_recipes_are_known_anywhere(installed: Environment, work: Path) -> None:
    listed = json.loads(installed.run("ptrun", "recipes", "--json", cwd=work))
    assert {entry["name"] for entry in listed} == {"lenet", "quickstart"}
    assert {Path(entry["file"]).parent for entry in listed} == {installed.site_packages / "ptrun" / "recipes"}


def test_installed_command_trains(installed: Environment, work: Path) -> None:
    options = ("--data", "digits", "--epochs", "1", "--batch-size", "64", "--json", "--quiet")
    result = json.loads(installed.run("ptrun", "train", "lenet", *options, cwd=work))
    assert (result["recipe"], result["steps"], result["test"]["n"]) == ("lenet", 23, 359)
    assert (work / result["run"] / "checkpoints" / "last.pt").is_file()

    installed.run("ptrun", "new", "mine.py", "--from", "lenet", cwd=work)
    assert (work / "mine.py").read_bytes() == (ROOT / "recipes" / "lenet.py").read_bytes()
    result = json.loads(installed.run("ptrun", "train", "./mine.py", *options, cwd=work))
    assert (result["recipe"], result["status"]) == ("mine", "finished")


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}

"""A run directory, `runs/<recipe>/<YYYYmmdd-HHMMSS>-<suffix>/`: everything that happened in one training."""

import json
import logging
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ptrun.atomic import replace_json
from ptrun.errors import PtrunError, UsageError
from ptrun.records import read_lines, read_object

log = logging.getLogger("ptrun")

RUN_NAME = re.compile(r"\d{8}-\d{6}-.+")
LONGEST_NAME = 255 - len("20261201-093000-")  # bytes: file systems allow 255


@dataclass(frozen=True)
class RunDir:
    """One run directory; reading methods return None or an empty value where a file is missing."""

    path: Path

    @property
    def name(self) -> str:
        """`20261201-093000-a1b2`."""
        return self.path.name

    @property
    def suffix(self) -> str:
        """The part of the name after the time: given with --name, or random."""
        return self.name[16:]

    @property
    def recipe_file(self) -> Path:
        """The copy of the recipe that ran."""
        return self.path / "recipe.py"

    @property
    def metrics_file(self) -> Path:
        """One JSON object a line: logged steps and finished epochs."""
        return self.path / "metrics.jsonl"

    def checkpoint(self, which: str) -> Path:
        """Return the path of the checkpoint `last`, `previous` or `best`."""
        return self.path / "checkpoints" / f"{which}.pt"

    def config(self) -> dict[str, Any]:
        """Return config.json, with everything that `train` writes there."""
        document = read_object(self.path / "config.json")
        if document is None or not _is_complete(document):
            raise UsageError(f"{self.path} is not a run: its config.json is missing or damaged")
        return document

    def values(self) -> dict[str, Any]:
        """Return the recipe's fields as they were used."""
        return {name: entry["value"] for name, entry in self.config()["fields"].items()}

    def result(self) -> dict[str, Any] | None:
        """Return result.json, which is there once training has ended."""
        return read_object(self.path / "result.json")

    @property
    def finished(self) -> bool:
        """Whether training ended by itself, after its last epoch or at --max-time."""
        result = self.result()
        return result is not None and result.get("status") == "finished"

    def active_at(self) -> str:
        """Return the ISO time at which this run was last started or resumed."""
        times = [note["time"] for note in read_lines(self.path / "resumes.jsonl") if isinstance(note.get("time"), str)]
        return str(times[-1] if times else self.config()["created"])

    def lock(self) -> FileLock:
        """Return the held lock of this run; raise PtrunError if another process is training in it."""
        lock = FileLock(self.path / ".lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise PtrunError(f"run {self.path} is being trained by another process; wait for it or stop it") from None
        return lock

    def write_json(self, name: str, document: Any) -> None:
        """Write one of the run's JSON files."""
        replace_json(self.path / name, document)

    def append_line(self, name: str, document: Any) -> None:
        """Append one JSON object as a line."""
        with (self.path / name).open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")  # a crash has left a torn line, which must not swallow this one
            file.write(json.dumps(document).encode() + b"\n")


def now() -> str:
    """Return the time in ISO form, in UTC and to the microsecond, so that text order is the order in time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def check_run_name(name: str | None) -> None:
    """Raise UsageError unless the name of a run can end in `name`."""
    if name is None:
        return
    if not re.fullmatch(r"[\w][\w.-]{0,63}", name):
        raise UsageError(f"--name {name!r} must be up to 64 letters, digits, '_', '.' or '-'")
    if len(os.fsencode(name)) > LONGEST_NAME:
        raise UsageError(f"--name {name!r} must be up to {LONGEST_NAME} bytes; it has {len(os.fsencode(name))}")


def create_run(output_dir: Path, recipe: str, name: str | None) -> RunDir:
    """Make a new, empty run directory; raise UsageError if that is not possible."""
    check_run_name(name)
    folder = output_dir / recipe
    with explain_unwritable(output_dir):
        folder.mkdir(parents=True, exist_ok=True)
        while True:
            path = folder / f"{datetime.now():%Y%m%d-%H%M%S}-{name or secrets.token_hex(2)}"
            try:
                path.mkdir()
            except FileExistsError:
                if name is None:
                    continue  # the same second and the same random suffix
                raise UsageError(f"run {path} exists already; choose another --name or wait a second") from None
            (path / "checkpoints").mkdir()
            return RunDir(path)


@contextmanager
def explain_unwritable(output_dir: Path) -> Iterator[None]:
    """Turn an OSError into a UsageError that names --output-dir."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"--output-dir {output_dir} cannot be written: {os.strerror(error.errno or 0)}") from None


def all_runs(output_dir: Path) -> list[RunDir]:
    """Return the runs below `output_dir`, the one last active first."""
    return sorted(_scan(output_dir), key=lambda run: run.active_at(), reverse=True)


def _scan(output_dir: Path) -> Iterator[RunDir]:
    for file in output_dir.glob("*/*/config.json"):
        run = RunDir(file.parent)
        if not RUN_NAME.fullmatch(run.name):
            continue
        try:
            run.config()
        except UsageError as error:
            log.warning("%s; it is left out", error)
        else:
            yield run


def _is_complete(config: dict[str, Any]) -> bool:
    match config:
        case {
            "recipe": str(),
            "created": str(),
            "fields": dict(fields),
            "model_fields": list(names),
            "machine": machine,
        }:
            settings = all(map(_is_setting, fields.values())) and all(isinstance(name, str) for name in names)
            return settings and _is_machine(machine)
    return False


def _is_setting(entry: Any) -> bool:
    return isinstance(entry, dict) and "value" in entry and isinstance(entry.get("source"), str)


def _is_machine(flags: Any) -> bool:
    match flags:
        case {"device": str(), "data_dir": str() | None, "checkpoint_every": str() | None, "log_interval": int(n)}:
            return n > 0 and len(flags) == 4
    return False

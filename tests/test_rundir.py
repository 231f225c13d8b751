"""Run directories: made exclusively, locked, and read even when something in them is broken."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Ran
from recipe_text import config_of, write_recipe

from ptrun.errors import PtrunError, UsageError
from ptrun.machine import Machine
from ptrun.rundir import RunDir, all_runs, create_run, now


def make(name: str, created: str, recipe: str = "lenet") -> RunDir:
    path = Path("runs") / recipe / name
    path.mkdir(parents=True)
    run = RunDir(path)
    run.write_json("config.json", config_of(recipe, created))
    return run


def changed(**parts: object) -> str:
    return json.dumps(config_of("lenet", now()) | parts)


def test_a_new_run_has_a_name_made_of_time_and_suffix() -> None:
    run = create_run(Path("runs"), "lenet", "first")
    assert re.fullmatch(r"\d{8}-\d{6}-first", run.name)
    assert (run.suffix, run.path.parent) == ("first", Path("runs/lenet"))
    assert [path.name for path in run.path.iterdir()] == ["checkpoints"]
    assert re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{4}", create_run(Path("runs"), "lenet", None).name)


def test_runs_made_at_once_never_share_a_directory() -> None:
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: create_run(Path("runs"), "lenet", None), range(40)))
    assert len({run.path for run in runs}) == 40


def test_the_same_name_in_the_same_second_is_refused() -> None:
    wait = 1 - time.time() % 1
    time.sleep(wait if wait < 0.3 else 0)  # else the second could end between the two
    create_run(Path("runs"), "lenet", "same")
    with pytest.raises(UsageError, match="exists already; choose another --name or wait a second"):
        create_run(Path("runs"), "lenet", "same")


@pytest.mark.parametrize("name", ["", "a/b", "..", "-x", "a b", "x" * 65, "\n", "\udcff"])
def test_a_name_that_is_no_part_of_a_path_is_refused(invoke: Callable[..., Ran], name: str) -> None:
    ran = invoke("train", "lenet", f"--name={name}")
    assert (ran.code, "must be up to 64 letters" in ran.err) == (2, True)
    assert not Path("runs").exists()


def test_a_locked_run_is_refused_to_other_processes_until_it_is_released() -> None:
    run = make("20260101-000000-a", now())
    code = f"from pathlib import Path; from ptrun.rundir import RunDir; RunDir(Path({str(run.path)!r})).lock()"
    lock = run.lock()
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert other.returncode == 1
    assert "PtrunError: run runs/lenet/20260101-000000-a is being trained by another process" in other.stderr
    lock.release()
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_a_lock_ends_with_its_process() -> None:
    run = make("20260101-000000-a", now())
    code = (
        "import os, signal; from pathlib import Path; from ptrun.rundir import RunDir;"
        f"lock = RunDir(Path({str(run.path)!r})).lock(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9
    run.lock().release()


def test_a_second_lock_in_this_process_is_refused() -> None:
    run = make("20260101-000000-a", now())
    lock = run.lock()
    with pytest.raises(PtrunError, match="is being trained by another process"):
        run.lock()
    lock.release()


def test_what_a_run_says_of_itself() -> None:
    run = make("20260101-000000-a", "2026-01-01T00:00:00+00:00")
    assert (run.values(), run.result(), run.finished) == ({"lr": 0.1}, None, False)
    run.write_json("result.json", {"status": "interrupted"})
    assert (run.result(), run.finished) == ({"status": "interrupted"}, False)
    run.write_json("result.json", {"status": "finished"})
    assert run.finished
    assert run.checkpoint("best") == run.path / "checkpoints" / "best.pt"


def test_a_name_of_too_many_bytes_is_refused(invoke: Callable[..., Ran]) -> None:
    assert create_run(Path("runs"), "lenet", "𝒳" * 59 + "abc").path.is_dir()  # 239 bytes
    ran = invoke("train", "lenet", "--name", "𝒳" * 60)
    assert ran == Ran(2, "", f"error: --name '{'𝒳' * 60}' must be up to 239 bytes; it has 240\n")


@pytest.mark.parametrize(
    "content",
    [
        None, "", "{", "[]", "\x00\xff", "[" * 100_000, '{"recipe": "old"}',
        changed(recipe=3), changed(created=None), changed(fields=[]), changed(fields={"lr": 0.1}),
        changed(fields={"lr": {"value": 1, "source": 2}}), changed(fields={"lr": {"source": "flag"}}),
        changed(model_fields="lr"), changed(model_fields=[3]), changed(machine=None), changed(machine={}),
        changed(machine=Machine().as_json() | {"device": 3}), changed(machine=Machine().as_json() | {"data_dir": 3}),
        changed(machine=Machine().as_json() | {"log_interval": 0}), changed(machine=Machine().as_json() | {"gpu": 1}),
        changed(machine=Machine().as_json() | {"checkpoint_every": 5}),
    ],
)  # fmt: skip
def test_a_run_without_a_readable_config_is_no_run(content: str | None) -> None:
    run = make("20260101-000000-a", now())
    if content is None:
        (run.path / "config.json").unlink()
    else:
        (run.path / "config.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(UsageError, match=r"is not a run: its config\.json is missing or damaged"):
        run.config()
    assert all_runs(Path("runs")) == []


def test_a_damaged_run_is_left_out_by_name(caplog: pytest.LogCaptureFixture) -> None:
    whole = make("20260101-000000-a", now())
    damaged = make("20260102-000000-b", now())
    damaged.write_json("config.json", {"recipe": "old"})
    assert all_runs(Path("runs")) == [whole]
    reason = "is not a run: its config.json is missing or damaged; it is left out"
    assert caplog.messages == [f"{damaged.path} {reason}"]


@pytest.mark.parametrize("damage", [b"\x80\xff\x00\n", b"{}\n", b"[]\n", b'{"time": 3}\n', b"[" * 100_000])
def test_damaged_notes_of_resumes_and_results_are_overlooked(damage: bytes) -> None:
    run = make("20260101-000000-a", "2026-01-01T00:00:00+00:00")
    (run.path / "resumes.jsonl").write_bytes(damage)
    (run.path / "result.json").write_bytes(damage)
    assert (run.active_at(), run.finished) == ("2026-01-01T00:00:00+00:00", False)
    (run.path / "resumes.jsonl").write_bytes(b'{"time": "2026-01-02T00:00:00+00:00"}\n' + damage)
    assert run.active_at() == "2026-01-02T00:00:00+00:00"


def test_runs_are_listed_by_their_last_activity_and_other_folders_are_not() -> None:
    first = make("20260101-000000-a", "2026-01-01T00:00:00.000000+00:00")
    second = make("20260102-000000-b", "2026-01-02T00:00:00.000000+00:00", recipe="quickstart")
    make("notes", now())
    (Path("runs") / "lenet" / "20260103-000000-empty").mkdir()
    assert all_runs(Path("runs")) == [second, first]
    first.append_line("resumes.jsonl", {"time": "2026-01-03T00:00:00.000000+00:00"})
    assert all_runs(Path("runs")) == [first, second]
    assert all_runs(Path("nowhere")) == []


def test_a_torn_line_of_resumes_is_overlooked() -> None:
    run = make("20260101-000000-a", "2026-01-01T00:00:00+00:00")
    with (run.path / "resumes.jsonl").open("w") as file:
        file.write('{"time": "2026-01-02T')
    assert run.active_at() == "2026-01-01T00:00:00+00:00"


def test_a_line_after_a_torn_one_is_not_swallowed() -> None:
    run = make("20260101-000000-a", "2026-01-01T00:00:00+00:00")
    run.append_line("resumes.jsonl", {"time": "2026-01-02T00:00:00+00:00"})
    with (run.path / "resumes.jsonl").open("a") as file:
        file.write('{"time": "2026-01-03T')
    run.append_line("resumes.jsonl", {"time": "2026-01-04T00:00:00+00:00"})
    assert (run.path / "resumes.jsonl").read_text().splitlines() == [
        '{"time": "2026-01-02T00:00:00+00:00"}',
        '{"time": "2026-01-03T',
        '{"time": "2026-01-04T00:00:00+00:00"}',
    ]
    assert run.active_at() == "2026-01-04T00:00:00+00:00"


def test_the_order_of_runs_does_not_depend_on_time_zones(
    invoke: Callable[..., Ran], work: Path, zone: Callable[[str], None]
) -> None:
    write_recipe(work / "tiny.py")
    created = []
    for name, hours in (("first", "east-12"), ("second", "west+11")):  # a day earlier by the clock on the wall
        zone(hours)
        assert invoke("train", "./tiny.py", "--max-time", "0s", "--name", name, "--quiet").code == 0
        (run,) = work.glob(f"runs/tiny/*-{name}")
        created.append(RunDir(run).config()["created"])
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", text) for text in created)
    assert created == sorted(created)
    assert [run.suffix for run in all_runs(Path("runs"))] == ["second", "first"]
    assert [run.suffix for run in sorted(all_runs(Path("runs")), key=lambda run: run.name)] == ["second", "first"]


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return `zone("west+5")`, which moves this process there."""

    def move(hours: str) -> None:
        monkeypatch.setenv("TZ", hours)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


def test_json_is_replaced_in_one_step_and_lines_are_appended() -> None:
    run = make("20260101-000000-a", now())
    run.write_json("result.json", {"name": "ü", "value": 1})
    before = (run.path / "result.json").stat().st_ino
    run.write_json("result.json", {"value": 2})
    assert json.loads((run.path / "result.json").read_text()) == {"value": 2}
    assert (run.path / "result.json").stat().st_ino != before
    run.append_line("resumes.jsonl", {"a": 1})
    run.append_line("resumes.jsonl", {"a": 2})
    assert (run.path / "resumes.jsonl").read_text() == '{"a": 1}\n{"a": 2}\n'
    assert {path.name for path in run.path.iterdir()} == {"config.json", "result.json", "resumes.jsonl"}

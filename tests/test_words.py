"""Checkpoint words: what each form names, and what is said where it names nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran
from recipe_text import config_of, write_recipe

from ptrun.errors import UsageError
from ptrun.rundir import RunDir
from ptrun.words import Target, find_checkpoint

RUNS = Path("runs")
FIRST, SECOND, THIRD = "20260102-030405-first", "20260102-060708-second", "20260103-000000-third"


def make_run(recipe: str, name: str, *, finished: bool = True) -> RunDir:
    """Make a run directory as training leaves it, as far as words look into it."""
    run = RunDir(RUNS / recipe / name)
    (run.path / "checkpoints").mkdir(parents=True)
    run.write_json("config.json", config_of(recipe, f"{name[:4]}-{name[4:6]}-{name[6:8]}T{name[9:15]}"))
    if finished:
        run.write_json("result.json", {"status": "finished"})
    return run


@pytest.fixture
def runs() -> dict[str, RunDir]:
    """Two runs of lenet, the newer one unfinished, and a newer one of quickstart."""
    return {
        FIRST: make_run("lenet", FIRST),
        SECOND: make_run("lenet", SECOND, finished=False),
        THIRD: make_run("quickstart", THIRD),
    }


@pytest.mark.parametrize(
    ("word", "name", "which"),
    [
        ("lenet", FIRST, "last"),  # its newest finished one
        ("quickstart", THIRD, "last"),
        ("fashion", THIRD, "last"),
        ("last", THIRD, "last"),
        ("best", THIRD, "best"),
        (SECOND, SECOND, "last"),
        ("20260102-06", SECOND, "last"),
        ("20260103", THIRD, "last"),
        ("second", SECOND, "last"),
        (f"lenet/{SECOND}", SECOND, "last"),
        (f"runs/lenet/{FIRST}", FIRST, "last"),
        (f"./runs/lenet/{FIRST}/", FIRST, "last"),
    ],
)
def test_names_a_run(runs: dict[str, RunDir], word: str, name: str, which: str) -> None:
    target = find_checkpoint(word, RUNS)
    assert target == Target(runs[name], which)
    assert target.path == runs[name].path / "checkpoints" / f"{which}.pt"


def test_absolute_directory(runs: dict[str, RunDir], work: Path) -> None:
    target = find_checkpoint(str(work / runs[FIRST].path), Path("elsewhere"))
    assert target.path == work / runs[FIRST].path / "checkpoints" / "last.pt"


@pytest.mark.parametrize("which", ["last", "best", "previous"])
def test_file_of_a_run(runs: dict[str, RunDir], work: Path, which: str) -> None:
    file = runs[SECOND].checkpoint(which)
    file.touch()
    target = find_checkpoint(str(file), RUNS)
    assert target == Target(RunDir(work / runs[SECOND].path), which, file)
    assert target.path == file


def test_file_that_stands_alone(work: Path) -> None:
    (work / "checkpoints").mkdir()
    for file in (Path("weights.pt"), Path("checkpoints/last.pt")):
        file.touch()
        assert find_checkpoint(str(file), RUNS) == Target(None, file.stem, file)


def test_last_is_the_run_that_was_active_last(runs: dict[str, RunDir]) -> None:
    runs[FIRST].append_line("resumes.jsonl", {"time": "2026-02-01T00:00:00"})
    assert find_checkpoint("last", RUNS).run == runs[FIRST]
    runs[SECOND].append_line("resumes.jsonl", {"time": "2026-02-02T00:00:00"})
    runs[SECOND].append_line("resumes.jsonl", {"time": "2026-01-31T00:00:00"})
    assert find_checkpoint("last", RUNS).run == runs[FIRST]


def test_recipe_given_by_its_path(work: Path) -> None:
    run = make_run("mine", FIRST)
    assert find_checkpoint("mine", RUNS).run == run  # trained as ./mine.py, which is gone
    write_recipe(work / "mine.py")
    for word in ("mine", "mine.py", "./mine.py"):
        assert find_checkpoint(word, RUNS).run == run


def test_names_are_unique_within_a_recipe_only() -> None:
    runs = [make_run(recipe, FIRST) for recipe in ("lenet", "quickstart")]
    assert find_checkpoint(f"quickstart/{FIRST}", RUNS).run == runs[1]
    with pytest.raises(UsageError, match=r"^'first' fits 2 runs: "):
        find_checkpoint("first", RUNS)


def test_a_whole_name_is_not_a_prefix() -> None:
    short, long = make_run("lenet", FIRST), make_run("lenet", f"{FIRST}-again")
    assert find_checkpoint(FIRST, RUNS).run == short
    assert find_checkpoint("first-again", RUNS).run == long


def test_what_is_no_run_is_not_seen(runs: dict[str, RunDir]) -> None:
    damaged = make_run("lenet", "20270101-000000-damaged")
    (damaged.path / "config.json").write_text("{")
    make_run("lenet", "notes")
    make_run("lenet", "20270101-000000-gone").path.joinpath("config.json").unlink()
    assert find_checkpoint("last", RUNS).run == runs[THIRD]


def explained(word: str) -> str:
    with pytest.raises(UsageError) as caught:
        find_checkpoint(word, RUNS)
    return str(caught.value)


def test_nothing_there() -> None:
    for word in ("last", "best"):
        assert explained(word) == f"'{word}' names the newest run, but there is no run in runs; ptrun train makes one"
    assert explained("lenet") == "there is no run of lenet in runs; ptrun train lenet makes one"
    assert explained("fashion") == "there is no run of quickstart in runs; ptrun train quickstart makes one"
    assert explained("xyzzy") == "'xyzzy' is no file, run directory, recipe, run in runs, 'last' or 'best'"


@pytest.mark.usefixtures("runs")
def test_nothing_that_fits() -> None:
    assert explained("lasst").endswith("'last' or 'best'; did you mean 'last'?")
    assert explained("secnd").endswith("; did you mean 'second'?")
    assert explained("lenett").endswith("; did you mean 'lenet'?")
    assert explained("2026") == f"'2026' fits 3 runs: {THIRD}, {SECOND}, {FIRST}; write more of the name"
    assert explained("20260102") == f"'20260102' fits 2 runs: {SECOND}, {FIRST}; write more of the name"


def test_only_unfinished_runs() -> None:
    make_run("lenet", FIRST, finished=False)
    make_run("lenet", SECOND, finished=False)
    assert explained("lenet") == f"no run of lenet in runs is finished; continue with --resume {SECOND}"


@pytest.mark.usefixtures("runs")
def test_commands_take_the_same_words(invoke: Callable[..., Ran]) -> None:
    for word in ("2026", "xyzzy"):
        reason = f"error: {explained(word)}\n"
        assert invoke("eval", word) == Ran(2, "", reason)
        assert invoke("train", "--resume", word) == Ran(2, "", reason)
    assert invoke("eval", "last", "--output-dir", "elsewhere").err.startswith(
        "error: 'last' names the newest run, but "
    )


def test_a_checkpoint_that_was_never_written(invoke: Callable[..., Ran], runs: dict[str, RunDir]) -> None:
    ran = invoke("eval", "best")
    assert ran == Ran(3, "", f"error: checkpoint {runs[THIRD].checkpoint('best')} does not exist\n")


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("command", [("eval",), ("train", "--resume")])
@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("", "the word for a checkpoint is empty; write a recipe, last, best, a run, a directory or a file"),
        ("x" * 300, f"'{'x' * 300}' is no file, run directory, recipe, run in runs, 'last' or 'best'"),
        ("x" * 300 + ".py", f"'{'x' * 300}.py' is no file, run directory, recipe, run in runs, 'last' or 'best'"),
        ("a\udcff", "the word 'a\\udcff' is not UTF-8; choose another name or rename it"),
    ],
)
def test_a_word_that_names_nothing_possible(
    invoke: Callable[..., Ran], command: tuple[str, ...], word: str, reason: str
) -> None:
    assert invoke(*command, word) == Ran(2, "", f"error: {reason}\n")


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("line", ["eval last", "train lenet", "train --resume last"])
def test_an_output_directory_that_is_not_utf8(invoke: Callable[..., Ran], line: str) -> None:
    ran = invoke(*line.split(), "--output-dir", "a\udcff")
    assert ran == Ran(2, "", "error: --output-dir 'a\\udcff' is not UTF-8; choose another name or rename it\n")


def test_a_damaged_run_does_not_hide_the_others(
    invoke: Callable[..., Ran], runs: dict[str, RunDir], caplog: pytest.LogCaptureFixture
) -> None:
    runs[THIRD].write_json("config.json", {"recipe": "old"})
    damaged = f"{runs[THIRD].path} is not a run: its config.json is missing or damaged"
    assert find_checkpoint("last", RUNS).run == runs[SECOND]
    assert invoke("train", "--resume", str(runs[THIRD].path)) == Ran(2, "", f"error: {damaged}\n")
    caplog.clear()
    assert invoke("eval", "last").code == 3  # nothing was trained in the other
    assert caplog.messages == [f"{damaged}; it is left out"]  # once

"""Checkpoint words: what `lenet`, `last`, `best`, a run's name, a run directory or a file means, in every command."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ptrun.errors import UsageError, check_utf8, did_you_mean
from ptrun.registry import find_recipe, recipe_paths
from ptrun.rundir import RunDir, all_runs


@dataclass(frozen=True)
class Target:
    """A checkpoint: the run it belongs to, or a file that stands alone (`run` is None)."""

    run: RunDir | None
    which: str = "last"
    file: Path | None = None

    @property
    def path(self) -> Path:
        """The checkpoint file."""
        if self.file is not None:
            return self.file
        assert self.run is not None
        return self.run.checkpoint(self.which)


def find_checkpoint(word: str, output_dir: Path) -> Target:
    """Return what `word` names; raise UsageError, with what there is instead, if it names nothing."""
    if not word:
        raise UsageError("the word for a checkpoint is empty; write a recipe, last, best, a run, a directory or a file")
    check_utf8("the word", word)
    check_utf8("--output-dir", str(output_dir))
    with suppress(OSError):  # not even a path, if it is too long for one
        path = Path(word)
        if path.is_file() and path.suffix != ".py":
            return _from_file(path)
        if path.is_dir() and (path / "config.json").is_file():
            return Target(RunDir(path))
    runs = all_runs(output_dir)
    if word in ("last", "best"):
        if not runs:
            raise UsageError(
                f"'{word}' names the newest run, but there is no run in {output_dir}; ptrun train makes one"
            )
        return Target(runs[0], word)
    recipe = _recipe_name(word, runs)
    if recipe is not None:
        return Target(_newest_finished(recipe, runs, output_dir))
    return Target(_by_name(word, runs, output_dir))


def _from_file(path: Path) -> Target:
    folder = path.resolve().parent
    inside = folder.name == "checkpoints" and (folder.parent / "config.json").is_file()
    return Target(RunDir(folder.parent) if inside else None, path.stem, path)


def _recipe_name(word: str, runs: list[RunDir]) -> str | None:
    try:
        return find_recipe(word).stem
    except UsageError:  # a recipe that was trained by its path is known by its runs
        return word if any(run.path.parent.name == word for run in runs) else None


def _newest_finished(recipe: str, runs: list[RunDir], output_dir: Path) -> RunDir:
    own = [run for run in runs if run.path.parent.name == recipe]
    finished = next((run for run in own if run.finished), None)
    if finished is None and own:
        raise UsageError(f"no run of {recipe} in {output_dir} is finished; continue with --resume {own[0].name}")
    if finished is None:
        raise UsageError(f"there is no run of {recipe} in {output_dir}; ptrun train {recipe} makes one")
    return finished


def _by_name(word: str, runs: list[RunDir], output_dir: Path) -> RunDir:
    exact = [run for run in runs if word in (run.name, run.suffix, f"{run.path.parent.name}/{run.name}")]
    matches = exact or [run for run in runs if run.name.startswith(word)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(run.name for run in matches[:5])
        raise UsageError(f"'{word}' fits {len(matches)} runs: {names}; write more of the name")
    options = ["last", "best", *recipe_paths(), *(run.name for run in runs), *(run.suffix for run in runs)]
    hint = did_you_mean(word, options)
    raise UsageError(f"'{word}' is no file, run directory, recipe, run in {output_dir}, 'last' or 'best'{hint}")

"""The numbers of a run, written twice: `metrics.jsonl` for programs, TensorBoard events for people."""

import json
import math
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from ptrun.atomic import replace_file
from ptrun.records import read_lines
from ptrun.rundir import RunDir

STEP_TAGS = {
    "loss": "train/running_loss",
    "learning_rate": "train/learning_rate",
    "gradient_norm": "train/gradient_norm",
}
EPOCH_TAGS = {
    "train_loss": "train/loss",
    "train_accuracy": "train/accuracy",
    "validation_loss": "validation/loss",
    "validation_accuracy": "validation/accuracy",
    "test_loss": "test/loss",
    "test_accuracy": "test/accuracy",
    "images_per_s": "train/images_per_s",
    "epoch_s": "train/epoch_s",
}


class RunLog:
    """Appends rows to a run; a resumed run first takes back what came after its checkpoint."""

    def __init__(self, run: RunDir, epoch: int = 0, step: int = 0) -> None:
        kept = _keep_until(run.metrics_file, epoch, step)
        self._file = run.metrics_file.open("a", encoding="utf-8")
        # Events of the checkpoint's own step may or may not have reached the old file: purge them and write them again.
        self._writer = SummaryWriter(str(run.path), purge_step=step or None, flush_secs=10)
        for row in kept:
            if row["step"] == step:
                self._scalars(row)

    def write(self, row: dict[str, Any]) -> None:
        """Write one row: {"kind": "step" or "epoch", "epoch": …, "step": …, and numbers}."""
        finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
        self._file.write(json.dumps(finite) + "\n")
        self._file.flush()
        self._scalars(row)
        if row["kind"] == "epoch":
            self._writer.flush()

    def text(self, tag: str, markdown: str) -> None:
        """Show `markdown` in TensorBoard's text tab."""
        self._writer.add_text(tag, markdown)

    def hparams(self, fields: dict[str, Any], metrics: dict[str, float], step: int) -> None:
        """Enter this run, and no second one, into TensorBoard's table of hyperparameters."""
        plain = {k: v if isinstance(v, bool | int | float | str) else str(v) for k, v in fields.items()}
        self._writer.add_hparams(plain, metrics, run_name=".", global_step=step)

    def flush(self) -> None:
        """See that all events are in their file: a checkpoint relies on those before it."""
        self._writer.flush()

    def close(self) -> None:
        """Flush and close both."""
        self._writer.close()
        self._file.close()

    def _scalars(self, row: dict[str, Any]) -> None:
        tags = EPOCH_TAGS if row["kind"] == "epoch" else STEP_TAGS
        for name, tag in tags.items():
            if name in row:
                self._writer.add_scalar(tag, row[name] if row[name] is not None else math.nan, row["step"])


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of metrics.jsonl; a line torn by a crash, or damaged, is none."""
    return [row for row in read_lines(path) if _is_row(row)]


def _is_row(document: dict[str, Any]) -> bool:
    match document:
        case {"kind": "step" | "epoch", "epoch": int() | float(), "step": int(), **numbers}:
            return all(value is None or isinstance(value, int | float) for value in numbers.values())
    return False


def _keep_until(path: Path, epoch: int, step: int) -> list[dict[str, Any]]:
    limits = {"epoch": epoch, "step": step}
    kept = [row for row in read_rows(path) if row[row["kind"]] <= limits[row["kind"]]]
    if path.is_file():
        replace_file(path, "".join(json.dumps(row) + "\n" for row in kept).encode())
    return kept

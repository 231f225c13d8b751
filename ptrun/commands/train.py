"""`ptrun train`: the one place where all parts of a training meet."""

import logging
import shutil
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ptrun import environment
from ptrun.checkpoint import load_checkpoint
from ptrun.config import Resolved
from ptrun.displays import Display
from ptrun.engine import Scores
from ptrun.errors import PtrunError
from ptrun.interrupt import Interrupt
from ptrun.job import Job
from ptrun.plan import Plan
from ptrun.prepare import prepare, restore
from ptrun.rundir import RunDir, create_run, explain_unwritable, now
from ptrun.runlog import RunLog
from ptrun.session import Session

log = logging.getLogger("ptrun")


def train(plan: Plan, display: Callable[[Job], Display], *, fast: bool = False) -> dict[str, Any]:
    """Train as planned and return the result, as kept in result.json. `fast` takes two batches of each set."""
    job, plan = prepare(plan, fast=fast)
    resumed = plan.resumption
    run = resumed.run if resumed else create_run(plan.machine.output_dir, plan.outline.name, plan.machine.name)
    lock = run.lock()  # before the checkpoint is read: who has the lock may write another
    try:
        if resumed:
            restore(job, resumed)
            if job.position.epoch >= job.cfg.epochs:
                log.warning("run %s has its %d epochs already; --epochs N extends it", run.name, job.cfg.epochs)
        record(run, job, plan)
        return _train_in(run, job, plan, display)
    except OSError as error:
        raise PtrunError(f"run {run.path} cannot be written: {error.strerror}; what is there is intact") from error
    finally:
        if not (run.path / "config.json").exists():  # not even begun: nothing could name it
            shutil.rmtree(run.path, ignore_errors=True)
        lock.release()


def fast_dev_run(plan: Plan, display: Callable[[Job], Display]) -> dict[str, Any]:
    """Train one epoch of two batches, evaluate two, save, read back, and leave nothing behind."""
    output_dir = plan.machine.output_dir
    made = [folder for folder in (output_dir, *output_dir.parents) if not folder.exists()]
    try:
        with explain_unwritable(output_dir):
            output_dir.mkdir(parents=True, exist_ok=True)
            scratch = tempfile.TemporaryDirectory(prefix=".fast-dev-run-", dir=output_dir)
        with scratch as folder:
            result = train(replace(plan, machine=replace(plan.machine, output_dir=Path(folder))), display, fast=True)
            load_checkpoint(RunDir(Path(result["run"])).checkpoint("last"))
    finally:
        with suppress(OSError):  # not there, or no longer empty
            for above in made:
                above.rmdir()
    return result | {"run": None}


def record(run: RunDir, job: Job, plan: Plan) -> None:
    """Write down what is about to run; a resumed run notes the change instead."""
    if plan.resumption is None:
        created = now()
        (run.path / "command.txt").write_text(plan.command + "\n", encoding="utf-8")
        run.recipe_file.write_bytes(plan.outline.source)
        run.write_json("environment.json", environment.describe(job.device))
        (run.path / "uncommitted.patch").write_text(environment.uncommitted_changes(), encoding="utf-8")
    else:
        created = run.config()["created"]
        changed = dict(plan.resumption.changed)
        note = {"time": now(), "command": plan.command, "step": job.position.step, "changed": changed}
        run.append_line("resumes.jsonl", note)
    if job.position.epoch < job.cfg.epochs:  # else it stays finished, whatever happens now
        (run.path / "result.json").unlink(missing_ok=True)
    run.write_json(
        "config.json",
        {
            "recipe": plan.outline.name,
            "created": created,
            "fields": plan.resolved.as_json(),
            "model_fields": sorted(job.model_fields),
            "data_origin": job.data.origin,
            "machine": plan.machine.as_json(),
        },
    )


def _train_in(run: RunDir, job: Job, plan: Plan, display: Callable[[Job], Display]) -> dict[str, Any]:
    runlog = RunLog(run, job.position.epoch, job.position.step)
    try:
        if plan.resumption is None:
            runlog.text("config", _markdown(plan.resolved))
        with closing(display(job)) as shown, Interrupt() as interrupt:
            session = Session(job, run, runlog, shown, plan.machine, interrupt)
            reason = session.train()
            scores = session.final_scores(reason)
        if scores is None and interrupt.signal is not None:  # it may have come during the last evaluation
            reason = interrupt.signal.name
        result = summarize(run, job, reason, scores)
        run.write_json("result.json", result)
        if scores is not None:
            metrics = {"hparam/test_accuracy": scores.accuracy, "hparam/test_loss": scores.loss}
            runlog.hparams(job.cfg.model_dump(mode="json"), metrics, job.position.step)
        return result
    finally:
        runlog.close()


def summarize(run: RunDir, job: Job, reason: str, scores: Scores | None) -> dict[str, Any]:
    """Return the result of a run in plain values; without scores it was interrupted."""
    seconds = job.training_clock.seconds
    return {
        "status": "interrupted" if scores is None else "finished",
        "reason": reason,
        "recipe": job.recipe.name,
        "data": job.data.name,
        "epochs": job.position.epoch,
        "steps": job.position.step,
        "test": scores and {
            "loss": scores.loss,
            "accuracy": scores.accuracy,
            "interval_95": list(scores.interval),
            "n": scores.n,
        },
        "best": job.best and asdict(job.best),
        "seconds": round(seconds, 3),
        "images_per_s": round(job.samples_trained / seconds, 1) if seconds else None,
        "run": str(run.path),
    }  # fmt: skip


def _markdown(resolved: Resolved) -> str:
    rows = [f"| {name} | {entry['value']} | {entry['source']} |" for name, entry in resolved.as_json().items()]
    return "\n".join(["| field | value | from |", "|---|---|---|", *rows])

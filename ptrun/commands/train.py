"""`ptrun train`: the one place where all parts of a training meet."""

import logging
import shlex
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ptrun import environment
from ptrun.checkpoint import load_checkpoint
from ptrun.config import Resolved
from ptrun.data.catalog import AUTO
from ptrun.data.images import Opened, Split, open_images
from ptrun.device import find_device
from ptrun.engine import Scores, evaluate
from ptrun.errors import UsageError
from ptrun.interrupt import Interrupt
from ptrun.job import Job, build
from ptrun.plan import Plan
from ptrun.recipe import Recipe
from ptrun.restore import load_weights, read_state
from ptrun.rundir import RunDir, create_run, now
from ptrun.runlog import RunLog
from ptrun.session import Display, Session

log = logging.getLogger("ptrun")

DEV_BATCHES = 2  # of each set, for --fast-dev-run


def train(plan: Plan, display: Callable[[Job], Display], *, fast: bool = False) -> dict[str, Any]:
    """Train as planned and return the result, as kept in result.json. `fast` takes two batches of each set."""
    job, plan = prepare(plan, fast=fast)
    run = plan.resumed_run or create_run(plan.machine.output_dir, plan.outline.name, plan.machine.name)
    lock = run.lock()  # before the checkpoint is read: who has the lock may write another
    try:
        if plan.resume is not None:
            restore(job, plan)
            if job.position.epoch >= job.cfg.epochs:
                log.warning("run %s has its %d epochs already; --epochs N extends it", run.name, job.cfg.epochs)
        record(run, job, plan)
        return _train_in(run, job, plan, display)
    finally:
        lock.release()


def fast_dev_run(plan: Plan, display: Callable[[Job], Display]) -> dict[str, Any]:
    """Train one epoch of two batches, evaluate two, save, read back, and leave nothing behind."""
    with tempfile.TemporaryDirectory(prefix="ptrun-") as folder:
        result = train(replace(plan, machine=replace(plan.machine, output_dir=Path(folder))), display, fast=True)
        load_checkpoint(RunDir(Path(result["run"])).checkpoint("last"))
    return result | {"run": None}


def prepare(plan: Plan, *, fast: bool = False) -> tuple[Job, Plan]:
    """Load the recipe and the data and build the job; the returned plan names the data set that was found."""
    device = find_device(plan.machine.device)
    recipe = Recipe(plan.outline)
    cfg = recipe.config(plan.resolved.config)
    spec = recipe.data(cfg)
    data = open_images(
        spec,
        override=None if cfg.data == AUTO else cfg.data,
        data_dir=plan.machine.data_dir,
        device=device,
        seed=cfg.seed,
        val_fraction=cfg.val_fraction,
    )
    if fast:
        data = _shortened(data, DEV_BATCHES * cfg.batch_size)
        cfg = cfg.model_copy(update={"epochs": 1})
    sources = dict(plan.resolved.sources)
    if cfg.data == AUTO and isinstance(spec.dataset, str):  # a resumed run must not find another one
        cfg = cfg.model_copy(update={"data": data.name})
        sources["data"] = "the recipe" if data.name == spec.dataset else f"fallback, {spec.dataset} was not found"
    return build(recipe, cfg, data, device), replace(plan, resolved=Resolved(cfg, sources))


def restore(job: Job, plan: Plan) -> None:
    """Put the job where the checkpoint of the plan left off; raise if it does not fit."""
    assert plan.resume is not None
    state = read_state(plan.resume)
    load_weights(job.model, state["model"], str(plan.resume.path))
    begun = state["position"]["epoch"] + (state["position"]["seen"] > 0)
    if begun > job.cfg.epochs:
        raise UsageError(f"{begun} epochs are begun already; --epochs {job.cfg.epochs} is less")
    if state["threads"] != torch.get_num_threads():
        log.warning(
            "this run used %d threads and now has %d: the result may differ in the last bits",
            state["threads"], torch.get_num_threads(),
        )  # fmt: skip
    job.load_state_dict(state)


def record(run: RunDir, job: Job, plan: Plan) -> None:
    """Write down what is about to run; a resumed run notes the change instead."""
    command = shlex.join(["ptrun", *sys.argv[1:]])
    if plan.resumed_run is None:
        (run.path / "command.txt").write_text(command + "\n", encoding="utf-8")
        run.recipe_file.write_bytes(plan.outline.path.read_bytes())
        run.write_json("environment.json", environment.describe(job.device))
        (run.path / "uncommitted.patch").write_text(environment.uncommitted_changes(), encoding="utf-8")
        created = now()
    else:
        created = run.config()["created"]
        note = {"time": now(), "command": command, "step": job.position.step, "changed": plan.changed}
        run.append_line("resumes.jsonl", note)
    (run.path / "result.json").unlink(missing_ok=True)
    machine = {name: str(value) for name, value in vars(plan.machine).items()}
    run.write_json(
        "config.json",
        {
            "recipe": plan.outline.name,
            "created": created,
            "fields": plan.resolved.as_json(),
            "model_fields": sorted(job.model_fields),
            "data_origin": job.data.origin,
            "machine": machine,
        },
    )


def _train_in(run: RunDir, job: Job, plan: Plan, display: Callable[[Job], Display]) -> dict[str, Any]:
    runlog = RunLog(run, job.position.epoch, job.position.step)
    try:
        if plan.resumed_run is None:
            runlog.text("config", _markdown(plan.resolved))
        with closing(display(job)) as shown, Interrupt() as interrupt:
            session = Session(job, run, runlog, shown, plan.machine, interrupt)
            reason = session.train()
        interrupted = reason in ("SIGINT", "SIGTERM")
        # A run that stopped between two evaluations is scored where it stands; an interrupted one must end soon.
        stale = session.test is None or job.position.seen > 0
        scores = None if interrupted else evaluate(job.model, job.data.test, job.loss) if stale else session.test
        result = summarize(run, job, reason, scores)
        run.write_json("result.json", result)
        if scores is not None:
            fields = job.cfg.model_dump(mode="json")
            metrics = {"hparam/test_accuracy": scores.accuracy, "hparam/test_loss": scores.loss}
            runlog.hparams(fields, metrics, job.position.step)
        return result
    finally:
        runlog.close()


def summarize(run: RunDir, job: Job, reason: str, scores: Scores | None) -> dict[str, Any]:
    """Return the result of a run in plain values."""
    trained = job.position.epoch * len(job.data.train) + job.position.seen
    seconds = job.training.seconds
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
        "best": job.best and vars(job.best),
        "seconds": round(seconds, 3),
        "images_per_s": round(trained / seconds, 1) if seconds else None,
        "run": str(run.path),
    }  # fmt: skip


def _shortened(data: Opened, samples: int) -> Opened:
    def head(split: Split) -> Split:
        return replace(split, index=split.index[:samples])

    validation = data.validation and head(data.validation)
    return replace(data, train=head(data.train), validation=validation, test=head(data.test))


def _markdown(resolved: Resolved) -> str:
    rows = [f"| {name} | {entry['value']} | {entry['source']} |" for name, entry in resolved.as_json().items()]
    return "\n".join(["| field | value | from |", "|---|---|---|", *rows])

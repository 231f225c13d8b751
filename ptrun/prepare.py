"""From a plan to a job: load the recipe and the data, build everything, and put a resumed job where it left off."""

import logging
from dataclasses import replace

import torch

from ptrun.checkpoint import save_checkpoint
from ptrun.config import Config, Resolved
from ptrun.data.catalog import AUTO
from ptrun.data.images import Opened, open_images
from ptrun.data.split import Split
from ptrun.device import find_device
from ptrun.errors import PtrunError, UsageError
from ptrun.job import Job, build
from ptrun.plan import Plan, Resumption
from ptrun.recipe import Recipe
from ptrun.restore import check_weights, read_state

log = logging.getLogger("ptrun")

DEV_BATCHES = 2  # of each set, for --fast-dev-run


def prepare(plan: Plan, *, fast: bool = False) -> tuple[Job, Plan]:
    """Return the job and the plan, which now names the data set that was found. `fast` leaves two batches of each set.

    Raises UsageError for a recipe whose parts do not fit together, DataError for missing or damaged data.
    """
    device = find_device(plan.machine.device)
    recipe = Recipe(plan.outline)
    cfg = plan.resolved.config
    spec = recipe.data(cfg)
    data = open_images(
        spec,
        override=cfg.data,
        data_dir=plan.machine.data_dir,
        device=device,
        seed=cfg.seed,
        val_fraction=cfg.val_fraction,
    )
    sources = dict(plan.resolved.sources)
    if cfg.data == AUTO and isinstance(spec.dataset, str):  # a resumed run must not find another one
        cfg = cfg.model_copy(update={"data": data.name})
        sources["data"] = "the recipe" if data.name == spec.dataset else f"fallback, {spec.dataset} was not found"
    if fast:
        cfg, data = _shortened(cfg, data)
    return build(recipe, cfg, data, device), replace(plan, resolved=Resolved(cfg, sources))


def restore(job: Job, resumption: Resumption) -> None:
    """Put the job where the checkpoint left off; the caller holds the run's lock. Raise if it does not fit."""
    if resumption.run.values() != resumption.before:
        raise PtrunError(f"run {resumption.run.path} was changed by another process just now; resume it again")
    state, path = read_state(resumption.target)
    check_weights(job.model, state["model"], str(path))
    begun = state["position"]["epoch"] + (state["position"]["seen"] > 0)
    if begun > job.cfg.epochs:
        raise UsageError(f"{begun} epochs are begun already; --epochs {job.cfg.epochs} is less")
    here = {"threads": torch.get_num_threads(), "device": str(job.device)}
    for name, now in here.items():
        if state[name] != now:
            log.warning("this run used %s %s and now has %s: the last bits may differ", name, state[name], now)
    job.load_state_dict(state)
    if resumption.target.which != "last":  # what came after is given up, before metrics.jsonl is cut
        save_checkpoint(resumption.run.checkpoint("last"), state)
        resumption.run.checkpoint("previous").unlink(missing_ok=True)
    elif path != resumption.target.path and resumption.target.path.exists():
        # Out of the way: the next save would keep the damaged file as the previous one.
        resumption.target.path.replace(resumption.target.path.with_name("damaged.pt"))


def _shortened(cfg: Config, data: Opened) -> tuple[Config, Opened]:
    samples = DEV_BATCHES * cfg.batch_size

    def head(split: Split) -> Split:
        return replace(split, index=split.index[:samples])

    validation = data.validation and head(data.validation)
    short = replace(data, train=head(data.train), validation=validation, test=head(data.test))
    return cfg.model_copy(update={"epochs": 1}), short

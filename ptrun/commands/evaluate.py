"""`ptrun eval`: what a trained model is worth on a whole test set."""

import logging
from pathlib import Path
from typing import Any

from ptrun.data.catalog import AUTO
from ptrun.data.images import open_images
from ptrun.device import find_device
from ptrun.engine import evaluate
from ptrun.errors import UsageError
from ptrun.report import document, write_report
from ptrun.rundir import RunDir
from ptrun.trained import Trained, load_target
from ptrun.words import Target

log = logging.getLogger("ptrun")


def evaluate_target(
    target: Target, *, data: str, data_dir: Path | None, device: str, recipe: str | None
) -> dict[str, Any]:
    """Return the report of a checkpoint on a whole test set, and write it into its run's `report/`.

    `data` "auto" is the set it was trained on, looked for where the run found it unless `data_dir` is given.
    """
    trained = load_target(target, recipe, find_device(device))
    spec = trained.recipe.data(trained.config)
    opened = open_images(
        spec,
        override=trained.config.data if data == AUTO else data,
        data_dir=data_dir or _recorded_data_dir(target.run),
        device=find_device(device),
        seed=trained.config.seed,
        val_fraction=0.0,
        mean_std=(trained.data["mean"], trained.data["std"]) if spec.normalize else None,
    )
    if opened.classes != trained.classes:
        raise UsageError(
            f"{target.path} was trained on {trained.data['name']} ({_few(trained.classes)}); {opened.name} has other "
            f"classes ({_few(opened.classes)}), so its labels mean nothing to this model"
        )
    scores = evaluate(trained.model, opened.test, lambda x, y: trained.recipe.loss(x, y, trained.config))
    assert scores is not None
    report = {
        "recipe": trained.recipe.name,
        "checkpoint": str(trained.file),
        "epoch": trained.epoch,
        "chosen_on": _chosen_on(trained, target, opened.name),
        "data": opened.name,
        "data_origin": opened.origin,
        **document(scores, opened.classes),
    }
    return report | {"report": _write(trained, opened.name, report)}


def _chosen_on(trained: Trained, target: Target, data: str) -> str | None:
    """Return the split that chose this checkpoint, if it is one of the set evaluated."""
    if trained.best is None or target.which != "best" or data != trained.data["name"]:
        return None
    return str(trained.best["chosen_on"])


def _recorded_data_dir(run: RunDir | None) -> Path | None:
    recorded = run.config()["machine"]["data_dir"] if run else None
    return Path(recorded) if recorded else None


def _write(trained: Trained, data: str, report: dict[str, Any]) -> str | None:
    if trained.run is None:
        return None
    own = data == trained.data["name"]
    try:
        return str(write_report(trained.run, "report" if own else f"report/{data}", report))
    except OSError as error:
        log.warning("the report was not written into %s: %s", trained.run.path, error.strerror)
        return None


def _few(classes: tuple[str, ...]) -> str:
    return ", ".join(classes[:3]) + ", …" * (len(classes) > 3)

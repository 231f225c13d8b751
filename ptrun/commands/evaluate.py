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
from ptrun.trained import Trained, load

log = logging.getLogger("ptrun")


def evaluate_word(
    word: str, *, output_dir: Path, data: str, data_dir: Path | None, device: str, recipe: str | None
) -> dict[str, Any]:
    """Return the report of the checkpoint that `word` names, and write it into its run's `report/`."""
    trained = load(word, output_dir=output_dir, recipe=recipe, device=find_device(device))
    split_of = data if data != AUTO else trained.config.data
    opened = open_images(
        trained.images,
        override=None if split_of == AUTO else split_of,
        data_dir=data_dir,
        device=find_device(device),
        seed=trained.config.seed,
        val_fraction=0.0,
        mean_std=(trained.data["mean"], trained.data["std"]) if trained.images.normalize else None,
    )
    if opened.classes != trained.classes:
        raise UsageError(
            f"{word} was trained on {trained.data['name']} ({_few(trained.classes)}); {opened.name} has other classes "
            f"({_few(opened.classes)}), so its labels mean nothing to this model"
        )
    scores = evaluate(trained.model, opened.test, lambda x, y: trained.recipe.loss(x, y, trained.config))
    assert scores is not None
    report = {
        "recipe": trained.recipe.name,
        "checkpoint": str(trained.target.path),
        "epoch": trained.position["epoch"],
        "data": opened.name,
        "data_origin": opened.origin,
        **document(scores, opened.classes),
    }
    return report | {"report": _write(trained, opened.name, report)}


def _write(trained: Trained, data: str, report: dict[str, Any]) -> str | None:
    run = trained.target.run
    if run is None:
        return None
    own = data == trained.data["name"]
    try:
        return str(write_report(run, "report" if own else f"report/{data}", report))
    except OSError as error:
        log.warning("the report was not written into %s: %s", run.path, error.strerror)
        return None


def _few(classes: tuple[str, ...]) -> str:
    return ", ".join(classes[:3]) + ", …" * (len(classes) > 3)

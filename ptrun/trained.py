"""A trained model with all that is needed to use it: `ptrun.load("lenet")`."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

from ptrun.config import Config
from ptrun.errors import UsageError
from ptrun.outline import Outline, read_outline
from ptrun.recipe import Recipe
from ptrun.registry import find_outline
from ptrun.restore import check_weights, read_state
from ptrun.rundir import RunDir
from ptrun.words import Target, find_checkpoint


@dataclass(frozen=True)
class Trained:
    """A model in eval mode, its preprocessing, class names and config.

    `trained.model(trained.preprocess(image)).softmax(1)` gives probabilities [B, K] in the order of `classes`.
    """

    recipe: Recipe
    config: Config
    model: nn.Module
    classes: tuple[str, ...]
    data: dict[
        str, Any
    ]  # of the training set: name, classes, mean, std, shape [C, H, W], and the size it was padded to
    run: RunDir | None
    file: Path  # the checkpoint
    epoch: int
    best: dict[str, Any] | None  # the best epoch up to this one, and the set that judged it

    def preprocess(self, image: Image.Image | Tensor | np.ndarray[Any, Any]) -> Tensor:
        """Return float32 [B, C, size, size], padded and normalised as in training.

        Takes a PIL image of any size and mode, or uint8 [H, W], [C, H, W] or [B, C, H, W] of the training set's size.
        """
        channels, height, width = self.data["shape"]
        if isinstance(image, Image.Image):
            fitted = image.convert("L" if channels == 1 else "RGB").resize((width, height), Image.Resampling.BILINEAR)
            image = np.asarray(fitted).reshape(height, width, channels).transpose(2, 0, 1)
        pixels = image if isinstance(image, Tensor) else torch.from_numpy(np.array(image))
        if pixels.dtype != torch.uint8 or pixels.ndim not in (2, 3, 4):
            raise ValueError(f"expected a PIL image or uint8 [(B,) C, H, W], not {pixels.dtype} {list(pixels.shape)}")
        pixels = pixels.reshape(-1, *pixels.shape[-3:]) if pixels.ndim > 2 else pixels[None, None]
        if list(pixels.shape[1:]) != [channels, height, width]:
            raise ValueError(f"expected images of {[channels, height, width]}, not {list(pixels.shape[1:])}")
        across, down = self.data["size"] - width, self.data["size"] - height
        padded = F.pad(pixels, (across // 2, across - across // 2, down // 2, down - down // 2))
        device = next(self.model.parameters()).device
        mean, scale = 255 * self.data["mean"], 1 / (255 * self.data["std"])  # bit for bit as in `Split.batches`
        return torch.sub(padded.to(device), mean).mul_(scale)


def load(
    word: str,
    *,
    output_dir: str | Path | None = None,
    recipe: str | None = None,
    device: str | torch.device = "cpu",
) -> Trained:
    """Return the model that a checkpoint word names (`lenet`, `last`, `best`, a run, a directory, a file).

    Runs are looked for in `output_dir`, else in `PTRUN_OUTPUT_DIR`, else in `runs`. `recipe` is needed only for a file
    outside a run directory whose recipe is not among those known by name. Raises UsageError if the word names nothing,
    DataError if the checkpoint is missing, damaged or of another model.
    """
    folder = Path(output_dir or os.environ.get("PTRUN_OUTPUT_DIR", "runs"))
    return load_target(find_checkpoint(word, folder), recipe, torch.device(device))


def load_target(target: Target, recipe: str | None, device: torch.device) -> Trained:
    """Return the model of a checkpoint that was found; otherwise as `load`."""
    state, file = read_state(target)
    loaded = Recipe(_outline(target, state, recipe))
    config = _config(loaded.outline, state["fields"])
    model, _ = loaded.model(config)
    channels, size = state["data"]["shape"][0], state["data"]["size"]
    with torch.no_grad():
        model.eval()(torch.zeros(1, channels, size, size))  # gives lazy modules their shapes
    check_weights(model, state["model"], str(file))
    model.load_state_dict(state["model"])
    return Trained(
        recipe=loaded,
        config=config,
        model=model.to(device).eval(),
        classes=tuple(state["data"]["classes"]),
        data=state["data"],
        run=target.run,
        file=file,
        epoch=state["position"]["epoch"],
        best=state["best"],
    )


def _outline(target: Target, state: dict[str, Any], recipe: str | None) -> Outline:
    if recipe is not None:
        return find_outline(recipe)
    if target.run is not None:
        return read_outline(target.run.recipe_file, state["recipe"])
    return find_outline(state["recipe"])


def _config(outline: Outline, fields: dict[str, Any]) -> Config:
    known: Sequence[str] = [name for name in fields if name in outline.config.model_fields]
    if len(known) < len(fields):
        lost = ", ".join(sorted(set(fields) - set(known)))
        raise UsageError(f"recipe {outline.path} no longer has the fields {lost} that this checkpoint was trained with")
    return outline.config(**fields)

"""One training in progress: everything that a step reads or changes, and therefore everything a checkpoint holds."""

import logging
import math
import warnings
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from ptrun.checkpoint import check_savable
from ptrun.clock import Stopwatch
from ptrun.config import Config
from ptrun.data.images import Opened
from ptrun.errors import UsageError
from ptrun.generators import generator_state, restore_generators, seed_all
from ptrun.meter import Meter
from ptrun.recipe import Recipe, Unscheduled, explain

log = logging.getLogger("ptrun")

SAMPLE_FIELDS = ("data", "seed", "val_fraction")  # what decides which samples an epoch has, and in which order


@dataclass
class Position:
    """Where training stands; with the seed it decides which sample comes next."""

    epoch: int = 0  # epochs finished
    seen: int = 0  # samples of the current epoch trained on
    step: int = 0  # optimizer steps since the very start


@dataclass
class Best:
    """The best epoch so far and the set that judged it."""

    accuracy: float
    loss: float
    epoch: int
    chosen_on: str  # "validation" or "test"


@dataclass
class Job:
    """A recipe, built and ready to train."""

    recipe: Recipe
    cfg: Config
    device: torch.device
    data: Opened
    model: nn.Module
    model_fields: set[str]  # the fields it was built from, which a resumed run cannot change
    optimizer: Optimizer
    scheduler: LRScheduler | Unscheduled
    meter: Meter  # of the current epoch
    position: Position = field(default_factory=Position)
    best: Best | None = None
    learning_rate: float = 0.0  # of the last step, first parameter group
    training_clock: Stopwatch = field(default_factory=Stopwatch)  # all epochs, without evaluation
    epoch_clock: Stopwatch = field(default_factory=Stopwatch)

    @property
    def steps_per_epoch(self) -> int:
        """Batches an epoch; the last one may be short."""
        return count_steps(self.data, self.cfg)

    @property
    def samples_trained(self) -> int:
        """Samples trained on in all epochs so far."""
        return self.position.epoch * len(self.data.train) + self.position.seen

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the recipe's loss of each sample, [B]."""
        return self.recipe.loss(logits, labels, self.cfg)

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state in plain values and tensors."""
        return {
            "recipe": self.recipe.name,
            "fields": self.cfg.model_dump(mode="json"),
            "data": describe_data(self.data),
            "threads": torch.get_num_threads(),
            "device": str(self.device),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "optimizer_kind": type(self.optimizer).__name__,
            "scheduler": self.scheduler.state_dict(),
            "position": asdict(self.position),
            "meter": self.meter.state_dict(),
            "best": asdict(self.best) if self.best else None,
            "generators": generator_state(),
            "seconds": {"training": self.training_clock.seconds, "epoch": self.epoch_clock.seconds},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state`, whose model must be this one.

        With the same fields, everything is put back bit for bit. With other fields (more epochs, or with --force
        another learning rate or batch size), the optimizer keeps its moments but takes the new fields, and the
        schedule goes to the place that a run of the new length would have reached.
        """
        fields = self.cfg.model_dump(mode="json")
        self.model.load_state_dict(state["model"])
        self.position = Position(**state["position"])
        self.training_clock = Stopwatch(state["seconds"]["training"])
        if all(state["fields"][name] == fields[name] for name in SAMPLE_FIELDS):
            self.meter.load_state_dict(state["meter"])
            self.best = Best(**state["best"]) if state["best"] else None
            self.epoch_clock = Stopwatch(state["seconds"]["epoch"])
        else:
            self.position.seen = 0  # the epoch begins anew: its samples, and what judges them, are others
        if state["fields"] == fields:
            self.scheduler.load_state_dict(state["scheduler"])
            self.optimizer.load_state_dict(state["optimizer"])
        else:
            self._adopt_moments(state)
            self._wind_schedule()
        restore_generators(state["generators"])

    def _adopt_moments(self, state: dict[str, Any]) -> None:
        if state["optimizer_kind"] != type(self.optimizer).__name__:
            log.warning(
                "%s cannot use the moments of %s: it starts without",
                type(self.optimizer).__name__,
                state["optimizer_kind"],
            )
            return
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state["optimizer"]["state"], "param_groups": groups})

    def _wind_schedule(self) -> None:
        within = self.position.seen // self.cfg.batch_size
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # "step() before optimizer.step()": it was, in another process
            for _ in range(self.position.epoch * self.steps_per_epoch + within):
                self.scheduler.step()


def describe_data(data: Opened) -> dict[str, Any]:
    """Return what is needed to prepare an image as in training, in plain values."""
    return {
        "name": data.name,
        "classes": list(data.classes),
        "mean": data.mean,
        "std": data.std,
        "shape": list(data.test.images.shape[1:]),  # [C, H, W] before padding
        "size": data.test.size,
    }


def count_steps(data: Opened, cfg: Config) -> int:
    """Return the number of batches an epoch; the last one may be short."""
    return math.ceil(len(data.train) / cfg.batch_size)


def build(recipe: Recipe, cfg: Config, data: Opened, device: torch.device) -> Job:
    """Return a job at its very start; raise UsageError if the recipe's parts do not fit together."""
    seed_all(cfg.seed)
    model, model_fields = recipe.model(cfg)
    model.to(device)
    check_output(recipe, model, data, cfg)
    optimizer = recipe.optimizer(model, cfg)
    scheduler = recipe.schedule(optimizer, cfg.epochs * count_steps(data, cfg), cfg)
    job = Job(recipe, cfg, device, data, model, model_fields, optimizer, scheduler, Meter(device))
    check_savable(job.state_dict())
    return job


def check_output(recipe: Recipe, model: nn.Module, data: Opened, cfg: Config) -> None:
    """Pass two images through the model and the loss, without touching any state; raise UsageError for wrong shapes."""
    images, labels = next(data.test.batches(min(2, len(data.test))))
    try:
        with torch.no_grad():
            output = model.eval()(images)
    except (Exception, SystemExit) as error:
        doing = f"the model on a batch of shape {list(images.shape)}"
        raise UsageError(explain(error, recipe.outline, doing)) from error
    expected = (len(images), len(data.classes))
    if not isinstance(output, torch.Tensor) or output.shape != expected:
        got = list(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
        raise UsageError(
            f"recipe {recipe.outline.path}: the model must give logits {list(expected)} for the {expected[1]} classes "
            f"of {data.name}, but it gives {got}"
        )
    recipe.loss(output, labels, cfg)

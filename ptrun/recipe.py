"""A recipe with its functions, called through one place so that a fault in one of them is explained."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from ptrun.config import Config
from ptrun.data.images import Images
from ptrun.errors import PtrunError, UsageError
from ptrun.outline import Outline, line_in

T = TypeVar("T")


class Unscheduled:
    """The scheduler of a recipe without `schedule`: the learning rate stays what the optimizer was given."""

    def step(self) -> None:
        """Do nothing."""

    def state_dict(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take nothing."""


class Recipe:
    """The functions of a recipe module; what they return is checked."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.name = outline.name
        self._module = outline.module
        with self._explained("importing it"):
            exec(compile(outline.rest, str(outline.path.absolute()), "exec"), self._module.__dict__)

    def model(self, cfg: Config) -> tuple[nn.Module, set[str]]:
        """Return a new network, [B, C, H, W] -> logits [B, K], and the names of the fields it was built from."""
        reads = _Reads(cfg)
        return self._call(nn.Module, "model", reads), reads.names

    def data(self, cfg: Config) -> Images:
        """Return what to train and test on."""
        return self._call(Images, "data", cfg)

    def optimizer(self, model: nn.Module, cfg: Config) -> Optimizer:
        """Return a new optimizer of the model's parameters."""
        return self._call(Optimizer, "optimizer", model, cfg)

    def schedule(self, optimizer: Optimizer, steps: int, cfg: Config) -> LRScheduler | Unscheduled:
        """Return a new scheduler, stepped once after each of `steps` optimizer steps."""
        if not hasattr(self._module, "schedule"):
            return Unscheduled()
        return self._call(LRScheduler, "schedule", optimizer, steps, cfg)

    def loss(self, output: Tensor, target: Tensor, cfg: Config) -> Tensor:
        """Return one loss for each sample, [B]; cross-entropy where the recipe defines none."""
        if not hasattr(self._module, "loss"):
            return F.cross_entropy(output, target, reduction="none")
        losses = self._call(Tensor, "loss", output, target, cfg)
        if losses.shape != target.shape:
            raise UsageError(
                f"recipe {self.outline.path}: loss must return one value for each sample, {list(target.shape)}, "
                f'not {list(losses.shape)}; give your loss function reduction="none"'
            )
        return losses

    def _call(self, kind: type[T], function: str, *arguments: Any) -> T:
        with self._explained(function):
            value = getattr(self._module, function)(*arguments)
        if not isinstance(value, kind):
            raise UsageError(
                f"recipe {self.outline.path}: {function} must return {kind.__name__}, not {type(value).__name__}"
            )
        return value

    @contextmanager
    def _explained(self, function: str) -> Iterator[None]:
        try:
            yield
        except PtrunError:
            raise
        except (Exception, SystemExit) as error:
            raise UsageError(explain(error, self.outline, function)) from error


def explain(error: BaseException, outline: Outline, doing: str) -> str:
    """Return one sentence for an exception out of a recipe's code: file, line, what it was doing, and the error."""
    first = str(error).strip().partition("\n")[0]
    return f"recipe {outline.path}{line_in(outline.path, error)}: {doing} failed with {type(error).__name__}: {first}"


class _Reads:
    """Stands for a config and remembers which fields were read."""

    def __init__(self, cfg: Config) -> None:
        self._cfg = cfg
        self.names: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        fields = type(self._cfg).model_fields
        self.names |= {name} if name in fields else set(fields)  # a method, like model_dump, may read any of them
        return getattr(self._cfg, name)

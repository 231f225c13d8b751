"""The training loop, and its half, evaluation."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptrun.data.split import Split
from ptrun.errors import PtrunError
from ptrun.generators import generators_kept
from ptrun.job import Job
from ptrun.meter import Meter, wilson_interval
from ptrun.recipe import explain

EVAL_BATCH = 256  # the fastest on two CPU cores for the shipped recipes; another may change the last bits of the loss

Hook = Callable[[], str | None]  # returns a reason to stop, or None
Loss = Callable[[Tensor, Tensor], Tensor]  # (logits [B, K], labels [B]) -> [B]


def fit(job: Job, on_step: Hook, on_epoch: Hook) -> str:
    """Train until the last epoch is done or a hook gives a reason to stop; return the reason ("epochs")."""
    while job.position.epoch < job.cfg.epochs:
        reason = train_epoch(job, on_step) or on_epoch()
        if reason:
            return reason
    return "epochs"


def train_epoch(job: Job, on_step: Hook) -> str | None:
    """Train on what is left of the current epoch; the gradients of a step stay until the next one."""
    job.model.train()
    position = job.position
    job.training_clock.start()
    job.epoch_clock.start()
    reason = None
    for images, labels in job.data.train.batches(job.cfg.batch_size, epoch=position.epoch, start=position.seen):
        try:
            logits, losses = train_step(job, images, labels)
        except (Exception, SystemExit) as error:
            raise _explained(error, job) from error
        job.meter.add(losses, logits, labels)
        position.seen += len(labels)
        position.step += 1
        reason = on_step()
        if reason:
            break
    job.training_clock.stop()
    job.epoch_clock.stop()
    return reason


def train_step(job: Job, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Take one optimizer step and return logits [B, K] and losses [B]."""
    job.optimizer.zero_grad()
    logits = job.model(images)
    losses = job.loss(logits, labels)
    losses.mean().backward()  # type: ignore[no-untyped-call]
    job.learning_rate = job.optimizer.param_groups[0]["lr"]
    job.optimizer.step()
    job.scheduler.step()
    return logits, losses


def _explained(error: BaseException, job: Job) -> PtrunError:
    if isinstance(error, PtrunError):
        return error
    return PtrunError(explain(error, job.recipe.outline, f"step {job.position.step + 1}"))


@dataclass(frozen=True)
class Scores:
    """What evaluation found: sums over every sample of a set."""

    loss: float
    correct: int
    top3: int
    n: int
    confusion: Tensor  # [K, K], rows: actual class, columns: predicted class

    @property
    def accuracy(self) -> float:
        """Share of right answers in [0, 1]."""
        return self.correct / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the accuracy."""
        return wilson_interval(self.correct, self.n)


@torch.no_grad()
@generators_kept()
def evaluate(model: nn.Module, split: Split, loss: Loss, stop: Callable[[], bool] = lambda: False) -> Scores | None:
    """Return the scores of `model` on all of `split`, or None if `stop` was true between two batches."""
    model.eval()
    device, classes = split.labels.device, len(split.classes)
    meter = Meter(device)
    top3 = torch.zeros((), dtype=torch.int64, device=device)
    confusion = torch.zeros(classes * classes, dtype=torch.int64, device=device)
    for images, labels in split.batches(EVAL_BATCH):
        if stop():
            return None
        logits = model(images)
        meter.add(loss(logits, labels), logits, labels)
        top3 += (logits.topk(min(3, classes), dim=1).indices == labels[:, None]).sum()
        confusion += torch.bincount(labels * classes + logits.argmax(1), minlength=classes * classes)
    if meter.n != len(split):
        raise AssertionError(f"evaluated {meter.n} samples of a set of {len(split)}")
    return Scores(meter.loss, meter.correct, int(top3.item()), meter.n, confusion.view(classes, classes).cpu())

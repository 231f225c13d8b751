"""A training run under way: what happens after each step and each epoch, apart from the mathematics."""

import math
import time
from dataclasses import dataclass, field
from typing import Any

from torch.nn.utils import get_total_norm

from ptrun.checkpoint import save_checkpoint
from ptrun.clock import Stopwatch
from ptrun.displays import Display
from ptrun.engine import Scores, evaluate, fit
from ptrun.errors import PtrunError
from ptrun.interrupt import EXIT_CODES, Interrupt
from ptrun.job import Best, Job
from ptrun.machine import Machine
from ptrun.meter import Meter
from ptrun.rundir import RunDir
from ptrun.runlog import RunLog


@dataclass
class Session:
    """Joins a job with its run directory, log, display and limits."""

    job: Job
    run: RunDir
    log: RunLog
    display: Display
    machine: Machine
    interrupt: Interrupt
    started: float = field(default_factory=time.monotonic)
    last_test: Scores | None = None  # of the last epoch that was evaluated
    _saved: float = field(default_factory=time.monotonic)

    def train(self) -> str:
        """Train to the end; return "epochs", "max-time", "SIGINT" or "SIGTERM". The state is saved in each case."""
        reason = fit(self.job, self._after_step, self._after_epoch)
        if self.job.position.seen:  # stopped inside an epoch; the end of one saves by itself
            self.save("last")
        return reason

    def final_scores(self, reason: str) -> Scores | None:
        """Return the test scores of the weights as they are now; None where a signal was the reason, or comes now."""
        if reason in EXIT_CODES:
            return None
        if self.last_test is not None and self.job.position.seen == 0:
            return self.last_test
        return evaluate(self.job.model, self.job.data.test, self.job.loss, self._interrupted)

    def save(self, which: str) -> None:
        """Write a checkpoint, `last` or `best`; refuse weights that have gone to infinity."""
        self._check_finite()
        self._check_weights()
        self.log.flush()
        previous = self.run.checkpoint("previous") if which == "last" else None
        save_checkpoint(self.run.checkpoint(which), self.job.state_dict(), previous)
        self._saved = time.monotonic()

    def _after_step(self) -> str | None:
        if self.job.position.step % self.machine.log_interval == 0:
            self._log_step()
        self.display.step(self.job)
        if self._checkpoint_due():
            self.save("last")
        return self._reason_to_stop()

    def _after_epoch(self) -> str | None:
        job, position = self.job, self.job.position
        self._check_finite()
        self._check_weights()
        test = evaluate(job.model, job.data.test, job.loss, self._interrupted)
        held = job.data.validation
        validation = evaluate(job.model, held, job.loss, self._interrupted) if held else None
        if test is None or (held and validation is None):
            return self._reason_to_stop()
        self.last_test = test
        row = self._epoch_row(test, validation)
        improved = self._judge(validation or test, "validation" if validation else "test")
        job.meter = Meter(job.device)
        job.epoch_clock = Stopwatch()
        position.epoch, position.seen = position.epoch + 1, 0
        self.log.write(row)
        if improved:
            self.save("best")  # before `last`: a crash in between then repeats the epoch, and nothing is lost
        self.save("last")
        self.display.epoch(job, row)
        return self._reason_to_stop() if position.epoch < job.cfg.epochs else None

    def _epoch_row(self, test: Scores, validation: Scores | None) -> dict[str, Any]:
        job = self.job
        row: dict[str, Any] = {"kind": "epoch", "epoch": job.position.epoch + 1, "step": job.position.step}
        row |= {"train_loss": job.meter.loss, "train_accuracy": job.meter.accuracy}
        if validation:
            row |= {"validation_loss": validation.loss, "validation_accuracy": validation.accuracy}
        row |= {"test_loss": test.loss, "test_accuracy": test.accuracy}
        seconds = job.epoch_clock.seconds
        return row | {"images_per_s": round(job.meter.n / seconds, 1), "epoch_s": round(seconds, 3)}

    def _judge(self, scores: Scores, chosen_on: str) -> bool:
        best, job = self.job.best, self.job
        if not math.isfinite(scores.loss):
            return False
        if best and (scores.accuracy, -scores.loss) <= (best.accuracy, -best.loss):
            return False
        job.best = Best(scores.accuracy, scores.loss, job.position.epoch + 1, chosen_on)
        return True

    def _log_step(self) -> None:
        job, position = self.job, self.job.position
        self._check_finite()
        norm = gradient_norm(job)
        row = {"kind": "step", "epoch": position.epoch + position.seen / len(job.data.train), "step": position.step}
        self.log.write(row | {"loss": job.meter.loss, "learning_rate": float(job.learning_rate), "gradient_norm": norm})

    def _check_finite(self) -> None:
        meter = self.job.meter
        if meter.n and not math.isfinite(meter.loss):
            raise self._diverged(f"the loss is {meter.loss}")

    def _check_weights(self) -> None:  # a finite loss may have had a gradient that is not
        if not all(p.isfinite().all() for p in self.job.model.parameters()):
            raise self._diverged("some weights are no longer finite")

    def _diverged(self, what: str) -> PtrunError:
        job = self.job
        return PtrunError(
            f"{what} at step {job.position.step} (learning rate {job.learning_rate:.3g}, "
            f"gradient norm {gradient_norm(job):.3g}); training stopped, {self._kept()}. Try a lower --lr"
        )

    def _kept(self) -> str:
        there = self.run.checkpoint("last").exists()
        return "the checkpoint before it is intact" if there else "before the first checkpoint"

    def _checkpoint_due(self) -> bool:
        cadence = self.machine.checkpoint_every
        if cadence is None:
            return False
        if cadence.steps is not None:
            return self.job.position.step % cadence.steps == 0
        return cadence.seconds is not None and time.monotonic() - self._saved >= cadence.seconds

    def _interrupted(self) -> bool:
        return self.interrupt.signal is not None

    def _reason_to_stop(self) -> str | None:
        if self.interrupt.signal is not None:
            return self.interrupt.signal.name
        limit = self.machine.max_seconds
        return "max-time" if limit is not None and time.monotonic() - self.started >= limit else None


def gradient_norm(job: Job) -> float:
    """Return the 2-norm of all gradients of the step just done."""
    gradients = [p.grad for p in job.model.parameters() if p.grad is not None]
    return float(get_total_norm(gradients)) if gradients else 0.0

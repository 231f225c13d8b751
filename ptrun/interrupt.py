"""Ctrl-C and SIGTERM during training: the first asks for a stop at the next step, the second ends at once."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

EXIT_CODES = {"SIGINT": 130, "SIGTERM": 143}  # 128 and the number of the signal, as shells have it
SIGNALS = tuple(signal.Signals[name] for name in EXIT_CODES)


class Interrupt:
    """Within `with Interrupt() as interrupt`, `interrupt.signal` is the signal that came, or None."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._receive) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _: FrameType | None) -> None:
        self.signal = signal.Signals(number)
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Let a signal end the process: a C extension that meets an exception while it is loaded aborts."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""The two streams: results go to stdout, everything else to stderr."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TextIO, cast

from rich.console import Console

WIDE = 1000  # columns where there is no terminal: nothing is wrapped or cut in files and pipes


def console_for(stream: TextIO, *, wide: bool = False) -> Console:
    """Return a console on `stream`; rich itself honours NO_COLOR and TERM=dumb. If `wide`, no line is fitted to it."""
    width = None if stream.isatty() and not wide else WIDE
    # What recipes and files say is printed as it is: [b] and :b: are no markup.
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=width is not None)


def is_live_terminal(stream: IO[str]) -> bool:
    """Whether a bar can be redrawn on `stream`."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")


class Expendable:
    """A stream that nothing depends on: once it cannot be written (disk full, reader gone), the rest goes nowhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write `text` if that is possible."""
        with self._given_up_on_error():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush if that is possible."""
        with self._given_up_on_error():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _given_up_on_error(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            with suppress(OSError), Path(os.devnull).open("w") as nowhere:
                os.dup2(nowhere.fileno(), self._stream.fileno())  # what is left in its buffer too


class MessageHandler(logging.Handler):
    """Prints ptrun's log messages as single lines on stderr, above a progress bar if there is one."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message."""
        style = "yellow" if record.levelno >= logging.WARNING else "dim"
        label = "warning: " if record.levelno >= logging.WARNING else ""
        self._console.print(label + record.getMessage(), style=style)


def open_stderr(*, quiet: bool) -> Console:
    """Return the console on stderr and send ptrun's log messages to it; `quiet` leaves only warnings."""
    console = console_for(cast(TextIO, Expendable(sys.stderr)))
    logger = logging.getLogger("ptrun")
    logger.handlers = [MessageHandler(console)]
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
    return console

"""The entry point: the one place where errors become sentences and exit codes."""

import os
import signal
import sys
import traceback
from contextlib import suppress
from types import FrameType

from ptrun.cli import app
from ptrun.errors import PtrunError

OFF = {"", "0", "false", "no", "off"}


def main() -> None:
    """Run the command line of this process and exit with its code."""
    _prepare_streams()
    signal.signal(signal.SIGTERM, _end)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; errors are printed as one sentence on stderr."""
    # Looked for here, for errors before options are read.
    debug = "--debug" in arguments or os.environ.get("PTRUN_DEBUG", "").lower() not in OFF
    try:
        code = app(arguments, prog_name="ptrun", standalone_mode=False, obj=arguments)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except PtrunError as error:
        return _explain(str(error), error.exit_code, debug)
    except KeyboardInterrupt:
        return _explain("interrupted", 130, debug)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has left; nothing to say to it
        return 1  # as Typer and rich, which mostly see it first
    except OSError as error:
        if not (debug or error.strerror):
            raise
        return _explain(f"{error.filename or 'writing'}: {error.strerror}", 1, debug)
    except Exception as error:
        if not hasattr(error, "format_message"):  # Typer gives its usage errors no public name
            raise
        return _explain(error.format_message().rstrip("."), 2, debug)


def _prepare_streams() -> None:
    """Let closed streams (`ptrun … >&-`) go nowhere, and characters that the terminal does not have become "?"."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        getattr(sys, name).reconfigure(errors="replace")


def _end(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)  # and not at once: temporary folders and locks are given back


def _explain(message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    with suppress(OSError):  # a full disk behind stderr does not change the exit code
        print(f"error: {message}", file=sys.stderr)
    return code

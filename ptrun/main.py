"""The entry point: the one place where errors become sentences and exit codes."""

import os
import sys
import traceback

from ptrun.cli import app
from ptrun.errors import PtrunError

OFF = {"", "0", "false", "no", "off"}


def main() -> None:
    """Run the command line of this process and exit with its code."""
    _replace_closed_streams()
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


def _replace_closed_streams() -> None:
    """Let what is written to a closed stdout or stderr (`ptrun … >&-`) go nowhere, and not into the next open file."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))


def _explain(message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"error: {message}", file=sys.stderr)
    return code

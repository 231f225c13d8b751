"""What can go wrong, by exit code. Every message says what was asked, why not, and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class PtrunError(Exception):
    """A failure that ptrun explains in one sentence. Exit code 1: the run failed."""

    exit_code = 1


class UsageError(PtrunError):
    """The command asks for something that does not exist or does not fit. Exit code 2."""

    exit_code = 2


class DataError(PtrunError):
    """Data or weights are missing or damaged. Exit code 3."""

    exit_code = 3


def check_utf8(what: str, text: str) -> None:
    """Raise UsageError for a name whose bytes are not UTF-8: it can be neither printed nor written down."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{what} {text!r} is not UTF-8; choose another name or rename it") from None


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """Return "; did you mean 'X'?" for the closest option, or an empty string."""
    close = get_close_matches(word, list(options), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""

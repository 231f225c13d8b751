"""Durations as people type them (90, 90s, 10m, 1h30m), and a stopwatch that survives a resume."""

import re
import time

from ptrun.errors import UsageError

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}


def parse_duration(text: str, option: str) -> float:
    """Return seconds; a bare number is seconds. Raise UsageError for anything else."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if not text or not re.fullmatch(r"(\d+h)?(\d+m)?(\d+(\.\d+)?s)?", text):
        raise UsageError(f"{option} {text!r} is not a duration; write 90s, 10m or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, _, unit in re.findall(r"(\d+(\.\d+)?)([hms])", text))


class Stopwatch:
    """Counts seconds while it runs; `seconds` includes the stretch under way."""

    def __init__(self, before: float = 0.0) -> None:
        self._before = before
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds counted so far."""
        return self._before + (time.perf_counter() - self._since if self._since is not None else 0.0)

    def start(self) -> None:
        """Count on."""
        self._since = time.perf_counter()

    def stop(self) -> None:
        """Stop counting; what was counted stays."""
        self._before, self._since = self.seconds, None

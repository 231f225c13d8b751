"""Durations as people type them, and a stopwatch that survives a resume."""

import time

import pytest

from ptrun.clock import Stopwatch, parse_duration
from ptrun.errors import UsageError
from ptrun.formats import duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("0", 0),
        ("1.5", 1.5),
        ("90s", 90),
        ("0.25s", 0.25),
        ("10m", 600),
        ("1h30m", 5400),
        ("1h2m3.5s", 3723.5),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text, "--max-time") == seconds


@pytest.mark.parametrize(
    "text", ["", "h", "-5", "1e3", "nan", "inf", "10 m", "5m1h", "1.5h", "10min", "1h30", "s", "1m2m"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--max-time '.*' is not a duration; write 90s, 10m or 1h30m$"):
        parse_duration(text, "--max-time")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (58.24, "58.2 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (187, "3 min 07 s"),
        (3599.4, "59 min 59 s"),
        (3599.7, "1 h 00 min"),
        (3720, "1 h 02 min"),
        (90_000, "25 h 00 min"),
    ],
)
def test_how_durations_are_shown(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_stopwatch_counts_only_while_it_runs() -> None:
    watch = Stopwatch()
    time.sleep(0.02)
    assert watch.seconds == 0
    watch.start()
    time.sleep(0.02)
    running = watch.seconds
    watch.stop()
    stopped = watch.seconds
    time.sleep(0.02)
    assert 0.02 <= running <= stopped == watch.seconds


def test_a_stopwatch_goes_on_from_what_was_counted_before() -> None:
    watch = Stopwatch(100.0)
    assert watch.seconds == 100
    for _ in range(2):
        watch.start()
        time.sleep(0.02)
        watch.stop()
    assert 100.04 <= watch.seconds < 101

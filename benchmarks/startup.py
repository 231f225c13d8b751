"""Start-up: `ptrun --help` beside its bare imports, and the time to the first training step beside `import torch`."""

import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from measure import PTRUN, Data, output, parse
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader


def seconds(*command: str) -> float:
    """Return how long a command takes."""
    start = time.perf_counter()
    output(list(command))
    return time.perf_counter() - start


def first_step(data: Data) -> float:
    """Return the seconds from the start of the process to the first step, by the time stamp of its event."""
    with tempfile.TemporaryDirectory() as runs:
        options = ["--device", "cpu", "--output-dir", runs, "--log-interval", "1", "--max-time", "0.1s"]
        start = time.time()
        output([PTRUN, "train", "lenet", *data.flags, *options])
        files = [str(path) for path in Path(runs).rglob("events.*")]
        return min(e.wall_time for file in files for e in EventFileLoader(file).Load() if e.step == 1) - start


def main() -> None:
    """Measure and print."""
    data, contest = parse(__doc__, rounds=7)
    contest.run(
        {
            "ptrun --help": partial(seconds, PTRUN, "--help"),
            "import typer, rich.table": partial(seconds, sys.executable, "-c", "import typer, rich.table"),
            "first training step": partial(first_step, data),
            "import torch": partial(seconds, sys.executable, "-c", "import torch"),
        }
    )
    contest.print(f"Start-up, lenet on {data.name}", "seconds", ".3f")
    contest.ratio("ptrun --help", "import typer, rich.table", most=2)
    contest.difference("first training step", "import torch", ".3f", most=1)


if __name__ == "__main__":
    main()

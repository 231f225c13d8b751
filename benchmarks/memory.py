"""Memory of `ptrun train lenet`: the data set is held once, as bytes, and nothing grows over the epochs. Linux only."""

import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from measure import PTRUN, Data, parse

MEGABYTE = 1e6
SET = 70_000 * 28 * 28 / MEGABYTE  # MNIST's images, training and test, as bytes
FLOATS = 60_000 * 32 * 32 * 4 / MEGABYTE  # what the padded training images would take as floats
EPOCHS = 6

# The same libraries that a training loads, and the set beside them.
IMPORTS = """
import numpy, pydantic, rich.table, torch, typer
from torch.utils.tensorboard import SummaryWriter
images = numpy.ones((70_000, 28, 28), dtype=numpy.uint8)
"""


def peak(command: list[str]) -> float:
    """Return the largest resident memory of a command, in MB."""
    # Not by wait4, whose figure for a child starts with the size of this process.
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    largest = 0.0
    while process.poll() is None:
        largest = max(largest, memory(process.pid, "VmHWM"))
        time.sleep(0.05)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return largest


def memory(pid: int, name: str) -> float:
    """Return VmHWM (the largest so far) or VmRSS (resident now) of a process, in MB; 0 once it has ended."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    kilobytes = re.findall(rf"{name}:\s+(\d+) kB", status)
    return int(kilobytes[0]) * 1024 / MEGABYTE if kilobytes else 0.0


def training(data: Data, runs: str, *options: str) -> list[str]:
    """Return the command that trains LeNet-5."""
    return [PTRUN, "train", "lenet", *data.flags, "--device", "cpu", "--output-dir", runs, *options]


def peak_of_training(data: Data) -> float:
    """Return the largest resident memory of one epoch with its evaluation, checkpoints and logs, in MB."""
    with tempfile.TemporaryDirectory() as runs:
        return peak(training(data, runs, "--epochs", "1"))


def resident_by_epoch(data: Data) -> list[float]:
    """Return the resident memory at the end of each epoch but the last, where the run winds up, in MB."""
    with tempfile.TemporaryDirectory() as runs:
        command = training(data, runs, "--epochs", str(EPOCHS))
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            return [memory(process.pid, "VmRSS") for line in process.stderr if line.startswith("epoch ")][:-1]


def main() -> None:
    """Measure and print."""
    data, contest = parse(__doc__, rounds=3)
    if data.name != "mnist":
        return print("memory is measured on MNIST only")
    contest.run(
        {
            "ptrun train lenet": partial(peak_of_training, data),
            "its libraries and the set": partial(peak, [sys.executable, "-c", IMPORTS]),
            "import torch": partial(peak, [sys.executable, "-c", "import torch"]),
        }
    )
    contest.print(f"Peak memory on {data.name}", "MB")
    # Activations, gradients and buffers: a float copy of the set would not fit.
    contest.difference("ptrun train lenet", "its libraries and the set", ",.0f", most=FLOATS / 2)
    print(f"the set is {SET:.0f} MB as bytes; its padded training images would be {FLOATS:.0f} MB as floats")

    epochs = resident_by_epoch(data)
    print(f"\nResident memory after each epoch, MB: {', '.join(f'{value:.1f}' for value in epochs)}")
    print(f"growth from epoch 2 to epoch {len(epochs)}: {epochs[-1] - epochs[1]:+.1f} MB")
    return None


if __name__ == "__main__":
    main()

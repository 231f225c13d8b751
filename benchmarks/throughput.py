"""Training throughput of `ptrun train lenet`, as it is used, beside a bare loop and the usual DataLoader loop."""

import json
import sys
import tempfile
from functools import partial
from importlib.util import find_spec

from measure import HERE, PTRUN, Data, output, parse

SECONDS = 8  # that each contender trains


def ptrun(data: Data, batch_size: int, *options: str) -> float:
    """Train with logs, metrics and checkpoints on, saving every two seconds; return images a second."""
    with tempfile.TemporaryDirectory() as runs:
        fields = ["--batch-size", str(batch_size), "--epochs", "1000", "--max-time", f"{SECONDS}s", *options]
        machine = ["--device", "cpu", "--output-dir", runs, "--checkpoint-every", "2s", "--json"]
        return float(json.loads(output([PTRUN, "train", "lenet", *data.flags, *fields, *machine]))["images_per_s"])


def loop(script: str, data: Data, *numbers: int) -> float:
    """Run one of the loops beside this file; return images a second."""
    command = [sys.executable, str(HERE / script), data.name, str(data.folder), *map(str, numbers)]
    return float(output(command).split()[-1])


def contenders(data: Data, batch_size: int) -> dict[str, partial[float]]:
    """Return what runs in turn."""
    lightning = {"Lightning": partial(loop, "lightning_loop.py", data, batch_size, SECONDS)}
    return {
        "ptrun --shift 0": partial(ptrun, data, batch_size, "--shift", "0"),
        "bare loop": partial(loop, "bare_loop.py", data, batch_size, SECONDS),
        "ptrun": partial(ptrun, data, batch_size),
        "DataLoader loop": partial(loop, "dataloader_loop.py", data, batch_size, SECONDS, 0),
        "DataLoader loop, 2 workers": partial(loop, "dataloader_loop.py", data, batch_size, SECONDS, 2),
    } | (lightning if find_spec("pytorch_lightning") else {})


def main() -> None:
    """Measure and print."""
    data, contest = parse(__doc__, rounds=3)
    if not find_spec("pytorch_lightning"):
        print("Lightning is not compared: pytorch_lightning is not installed")
    for batch_size, least in ((64, 3), (256, 4)):
        contest.run(contenders(data, batch_size))
        contest.print(f"Training LeNet-5 on {data.name}, batch {batch_size}", "images/s")
        contest.ratio("ptrun --shift 0", "bare loop", least=0.97)  # like for like
        contest.ratio("ptrun", "bare loop")  # with shifted images, which the bare loop has not
        contest.ratio("ptrun", "DataLoader loop", least=least)
        contest.ratio("ptrun", "DataLoader loop, 2 workers")


if __name__ == "__main__":
    main()

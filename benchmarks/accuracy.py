"""What the shipped recipes reach over five seeds, with the 95 % interval of the mean (Student's t)."""

import json
import math
import statistics
import tempfile

from measure import PTRUN, Data, output, parse, print_heading, print_line

T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}  # by sample size

CLAIMS = {  # name: (command, percent that the mean must reach)
    "lenet": (["lenet"], 99.3),
    "quickstart": (["quickstart"], 90.0),
    "quickstart --epochs 5": (["quickstart", "--epochs", "5"], 89.0),
}


def train(data: Data, recipe: str, options: list[str], seed: int) -> dict[str, float]:
    """Return test accuracy in percent and seconds of training of one run."""
    with tempfile.TemporaryDirectory() as runs:
        machine = ["--data-dir", str(data.folder), "--output-dir", runs, "--json"]
        result = json.loads(output([PTRUN, "train", recipe, *options, "--seed", str(seed), *machine]))
    if result["data"] == "digits":
        raise SystemExit(f"{recipe} ran on digits: its own data set is not here; name its folder with --data-dir")
    return {"accuracy": 100 * result["test"]["accuracy"], "seconds": result["seconds"]}


def main() -> None:
    """Measure and print."""
    data, contest = parse(__doc__, rounds=5)
    seeds = contest.rounds
    print_heading(f"Test accuracy of the last checkpoint, seeds 0 to {seeds - 1}", "% and seconds of training")
    for name, (command, claim) in CLAIMS.items():
        results = [train(data, command[0], command[1:], seed) for seed in range(seeds)]
        reached = [result["accuracy"] for result in results]
        mean, spread = statistics.mean(reached), statistics.stdev(reached)
        half = T_95[seeds] * spread / math.sqrt(seeds)
        verdict = "kept" if mean >= claim else "MISSED"
        print_line(name, reached, ".2f", f"   mean {mean:.3f} ± {half:.3f}   at least {claim}: {verdict}")
        print_line("", [result["seconds"] for result in results], ".1f", "   s")


if __name__ == "__main__":
    main()

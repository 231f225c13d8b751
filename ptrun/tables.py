"""How results look on stdout."""

import shlex
import sys
from typing import Any

from rich.table import Table

from ptrun.console import console_for
from ptrun.formats import duration, percent


def print_train_result(result: dict[str, Any]) -> None:
    """Print the table at the end of a training."""
    pairs = [(f"{result['recipe']} on {result['data']}", f"{result['epochs']} epochs, {result['steps']:,} steps")]
    if result["test"]:
        pairs.append(
            (
                "test accuracy",
                with_interval(result["test"]["accuracy"], result["test"]["interval_95"], result["test"]["n"]),
            )
        )
        pairs.append(("test loss", f"{result['test']['loss']:.4f}"))
    best = result["best"]
    if best:
        pairs.append(
            ("best", f"{percent(best['accuracy'])} after epoch {best['epoch']}, chosen on the {best['chosen_on']} set")
        )
    speed = f", {result['images_per_s']:,.0f} images/s" if result["images_per_s"] else ""
    pairs.append(("training", f"{duration(result['seconds'])}{speed}"))
    if result["run"] is None:
        pairs.append(("run", "kept nothing (--fast-dev-run)"))
    else:
        pairs.append(("run", result["run"]))
        pairs.append(("see it", f"tensorboard --logdir {shlex.quote(result['run'])}"))
    print_pairs(pairs)


def print_report(report: dict[str, Any]) -> None:
    """Print what `eval` found: totals, each class, and the confusion matrix."""
    accuracy = with_interval(report["accuracy"], report["accuracy_interval_95"], report["n"])
    pairs = [
        (f"{report['recipe']} on {report['data']}", f"{report['checkpoint']}, epoch {report['epoch']}"),
        ("accuracy", accuracy + (f", chosen on the {report['chosen_on']} set" if report["chosen_on"] else "")),
        ("top-3 accuracy", percent(report["top3_accuracy"])),
        ("loss", f"{report['loss']:.4f}"),
    ]
    print_pairs(pairs)
    console = console_for(sys.stdout, wide=True)  # a number is never cut or wrapped
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("class", "precision", "recall", "F1", "support"):
        table.add_column(heading, justify="left" if heading == "class" else "right")
    for row in report["per_class"]:
        shares = (percent(row[key]) for key in ("precision", "recall", "f1"))
        table.add_row(row["class"], *shares, f"{row['support']:,}")
    console.print("\n", table, "\n", "rows: actual class, columns: predicted class", sep="")
    console.print(_confusion(report["classes"], report["confusion"]))
    if report["report"]:
        print_pairs([("report", report["report"])])


def print_dry_run(plan: dict[str, Any]) -> None:
    """Print what a training would do."""
    console = console_for(sys.stdout, wide=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("layer", "output", "parameters"):
        table.add_column(heading, justify="right" if heading == "parameters" else "left")
    for layer in plan["layers"]:
        table.add_row(f"{layer['name']} {layer['kind']}", str(layer["output"]), f"{layer['parameters']:,}")
    console.print(table)
    print_pairs(
        [
            ("parameters", f"{plan['parameters']:,}"),
            ("FLOPs", f"{plan['flops_per_image']:,} an image, forward"),
            ("data", f"{plan['data']} ({plan['data_origin']}), {_sizes(plan['images'])}"),
            (
                "training",
                f"{plan['epochs']} epochs of {plan['steps_per_epoch']:,} steps of {plan['batch_size']} images",
            ),
            ("device", plan["device"]),
        ]
    )
    console.print("Nothing was trained; no run was made.")


def print_recipes(recipes: list[dict[str, Any]]) -> None:
    """Print each recipe with its first line."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("recipe", "also", "what it is", "file"):
        table.add_column(heading)
    for recipe in recipes:
        table.add_row(recipe["name"], ", ".join(recipe["aliases"]), recipe["summary"], recipe["file"])
    console_for(sys.stdout).print(table)


def print_settings(shown: dict[str, Any]) -> None:
    """Print a recipe's documentation and its fields with values and sources."""
    console = console_for(sys.stdout)
    console.print(shown["doc"])
    console.print()
    _print_fields(shown["fields"])
    for name, fields in shown["presets"].items():
        changes = " ".join(f"{key}={value}" for key, value in fields.items())
        console.print(f"\n--preset {name}: {changes}")


def how_to_continue(result: dict[str, Any]) -> str:
    """Return what stopped a run, and the command that goes on with it."""
    stopped = f"stopped by {result['reason']}"
    if result["run"] is None:
        return stopped
    return f"{stopped}; continue with: {shlex.join(['ptrun', 'train', '--resume', result['run']])}"


def print_pairs(pairs: list[tuple[str, str]]) -> None:
    """Print names and values, one pair a line; values are never cut or wrapped, so that paths can be copied."""
    console = console_for(sys.stdout)
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        console.print(f"{name:<{width}}", style="bold", end="  ")
        console.print(value, soft_wrap=True)


def with_interval(accuracy: float, interval: list[float], n: int) -> str:
    """Return "99.45 % (95 % interval 99.28 to 99.58 %, n = 10,000)"."""
    low, high = interval
    return f"{accuracy * 100:.2f} % (95 % interval {low * 100:.2f} to {high * 100:.2f} %, n = {n:,})"


def _print_fields(fields: dict[str, dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("field", "value", "from", "allowed", "what it is"):
        table.add_column(heading, overflow="fold")
    for name, field in fields.items():
        table.add_row(name, str(field["value"]), field["source"], field["bounds"], field["description"])
    console_for(sys.stdout).print(table)


def _confusion(classes: list[str], counts: list[list[int]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for name in classes:
        table.add_column(name[:8], justify="right")
    for name, row in zip(classes, counts, strict=True):
        table.add_row(name, *(str(count) if count else "·" for count in row))
    return table


def _sizes(images: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {split}" for split, count in images.items())

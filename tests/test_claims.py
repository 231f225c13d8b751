"""What the recipes claim, on the real data sets."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran, real_data
from fingerprint import rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

Invoke = Callable[..., Ran]

# What https://pytorch.org/tutorials/beginner/basics/quickstart_tutorial.html prints after each of its epochs (percent
# and mean loss), and three standard deviations of the same numbers over seeds: measured with six seeds here, and the
# same for the tutorial's own loop, with its fixed order of samples or a shuffled one. After the first epochs accuracy
# depends much on the initial weights, so there the loss is the sharper comparison.
TUTORIAL = [
    # accuracy, 3 sd, loss, 3 sd
    (53.9, 9.1, 2.1686, 0.017),
    (60.2, 5.6, 1.9204, 0.040),
    (61.4, 1.6, 1.5471, 0.050),
    (62.7, 1.6, 1.2609, 0.042),
    (64.6, 1.0, 1.0874, 0.038),
]


def train(invoke: Invoke, *arguments: object) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the result of a training and its epochs."""
    ran = invoke("train", *arguments, "--json", "--quiet")
    assert ran.code == 0, ran.err
    result = json.loads(ran.out)
    return result, [row for row in rows(Path(result["run"])) if row["kind"] == "epoch"]


def test_the_tutorial_preset_follows_the_published_curve(invoke: Invoke) -> None:
    data = ("--data", "fashion", "--data-dir", real_data("fashion"))
    result, epochs = train(invoke, "quickstart", "--preset", "tutorial", *data)
    assert (result["steps"], result["test"]["n"]) == (5 * 938, 10_000)
    for row, (accuracy, accuracy_margin, loss, loss_margin) in zip(epochs, TUTORIAL, strict=True):
        assert 100 * row["test_accuracy"] == pytest.approx(accuracy, abs=accuracy_margin)
        assert row["test_loss"] == pytest.approx(loss, abs=loss_margin)
    assert result["test"]["accuracy"] == epochs[-1]["test_accuracy"]


@pytest.mark.parametrize(("recipe", "data", "claim"), [("lenet", "mnist", 0.992), ("quickstart", "fashion", 0.895)])
def test_the_defaults_reach_what_their_recipe_claims(invoke: Invoke, recipe: str, data: str, claim: float) -> None:
    result, epochs = train(invoke, recipe, "--data", data, "--data-dir", real_data(data))
    assert result["test"]["n"] == 10_000
    assert result["test"]["accuracy"] >= claim
    assert len(epochs) <= 10

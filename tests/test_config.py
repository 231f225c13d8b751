"""Settings: bounds, sources and which of them wins, and faults that are all named at once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from pydantic import ValidationError
from recipe_text import write_recipe

import ptrun
from ptrun.config import Layer, bounds, resolve
from ptrun.errors import UsageError
from ptrun.outline import read_outline


@pytest.fixture
def tiny(work: Path) -> Path:
    return write_recipe(work / "tiny.py")


def shown(ran: Ran, field: str) -> tuple[Any, str]:
    """Return a field's value and source as `ptrun show --json` reports them."""
    assert ran.code == 0, ran.err
    entry = json.loads(ran.out)["fields"][field]
    return entry["value"], entry["source"]


def test_strongest_source_wins(
    invoke: Callable[..., Ran], work: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line: list[object] = ["show", tiny, "--json"]
    assert shown(invoke(*line), "lr") == (0.1, "default")

    line += ["--preset", "slow"]
    assert shown(invoke(*line), "lr") == (0.01, "preset slow")

    (work / "mine.toml").write_text("lr = 0.3\n")
    line += ["--config", "mine.toml"]
    assert shown(invoke(*line), "lr") == (0.3, "mine.toml")
    assert shown(invoke(*line), "epochs") == (9, "preset slow")

    monkeypatch.setenv("PTRUN_LR", "0.4")
    assert shown(invoke(*line), "lr") == (0.4, "PTRUN_LR")

    line += ["--lr", "0.5"]
    assert shown(invoke(*line), "lr") == (0.5, "flag")


def test_every_field_has_a_variable(invoke: Callable[..., Ran], tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTRUN_BATCH_SIZE", "17")
    monkeypatch.setenv("PTRUN_NESTEROV", "true")
    monkeypatch.setenv("PTRUN_BATCH", "18")  # no field's name: not ours to judge
    ran = invoke("show", tiny, "--json")
    assert shown(ran, "batch_size") == (17, "PTRUN_BATCH_SIZE")
    assert shown(ran, "nesterov") == (True, "PTRUN_NESTEROV")


def test_config_of_a_run_is_a_config_file(invoke: Callable[..., Ran], tiny: Path) -> None:
    trained = invoke("train", tiny, "--lr", "0.7", "--epochs", "1", "--preset", "slow", "--json", "--quiet")
    config = Path(json.loads(trained.out)["run"]) / "config.json"
    ran = invoke("show", tiny, "--json", "--config", config, "--epochs", "3")
    assert shown(ran, "lr") == (0.7, str(config))
    assert shown(ran, "epochs") == (3, "flag")
    assert shown(ran, "data") == ("digits", str(config))


def test_train_records_what_show_reports(
    invoke: Callable[..., Ran], work: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTRUN_SEED", "5")
    (work / "mine.toml").write_text("batch_size = 512\nnesterov = true\nkind = 'adam'\n")
    line = [tiny, "--preset", "fast", "--config", "mine.toml", "--data", "digits", "epochs=1", "--json"]
    expected = json.loads(invoke("show", *line).out)["fields"]
    run = Path(json.loads(invoke("train", *line, "--quiet").out)["run"])
    recorded = json.loads((run / "config.json").read_text())["fields"]
    assert recorded == {name: {key: entry[key] for key in ("value", "source")} for name, entry in expected.items()}
    assert recorded["lr"] == {"value": 1.0, "source": "preset fast"}
    assert recorded["seed"] == {"value": 5, "source": "PTRUN_SEED"}


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("none.toml", None, "No such file or directory"),
        ("bad.toml", b"lr =", "is neither TOML nor JSON"),
        ("bad.json", b"{", "is neither TOML nor JSON"),
        ("binary.toml", b"\xff\xfe", "is neither TOML nor JSON"),
        ("list.json", b"[1, 2]", "must hold fields and values, like `lr = 0.1`"),
        ("number.json", b"3", "must hold fields and values, like `lr = 0.1`"),
        ("null.json", b"null", "must hold fields and values, like `lr = 0.1`"),
        ("pairs.json", b"[[1, 2]]", "must hold fields and values, like `lr = 0.1`"),
        ("deep.json", b'{"lr":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "is neither TOML nor JSON"),
        ("deep.toml", b"lr = " + b"[" * 5_000 + b"]" * 5_000, "is neither TOML nor JSON"),
        ("half.json", b'{"fields": {"lr": 0.1}}', "must hold fields and values, like `lr = 0.1`"),
        ("odd.json", b'{"fields": 3}', "must hold fields and values, like `lr = 0.1`"),
        ("section.toml", b"[optim]\nlr = 0.1", "tiny: no field 'optim' (section.toml)"),
        ("typo.toml", b"lrr = 0.1", "tiny: no field 'lrr' (typo.toml); did you mean 'lr'?"),
        ("type.toml", b"lr = 'fast'", "tiny: lr = 'fast' (type.toml): input should be a valid number"),
        ("list.toml", b"epochs = [1]", "tiny: epochs = [1] (list.toml): input should be a valid integer"),
    ],
)
def test_bad_file(
    invoke: Callable[..., Ran], work: Path, tiny: Path, name: str, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (work / name).write_bytes(content)
    ran = invoke("train", tiny, "--config", name)
    assert ran.code == 2
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert name in ran.err
    assert reason in ran.err
    assert not (work / "runs").exists()


@pytest.mark.parametrize("value", ["nan", "NaN", "inf", "-inf", "-1", "0", "10", "1e999", "fast", ""])
def test_number_out_of_bounds(invoke: Callable[..., Ran], work: Path, tiny: Path, value: str) -> None:
    ran = invoke("train", tiny, f"--lr={value}")
    assert ran.code == 2
    assert ran.err.startswith(f"error: tiny: lr = '{value}' (flag): input should be ")
    assert ran.err.count("\n") == 1
    assert not (work / "runs").exists()


@pytest.mark.parametrize("recipe", ["lenet", "quickstart"])
@pytest.mark.parametrize(
    ("tokens", "reason"),
    [
        ("--lr nan", "input should be a finite number"),
        ("--weight-decay inf", "input should be a finite number"),
        ("--lr 0", "input should be greater than 0"),
        ("--weight-decay -0.1", "input should be greater than or equal to 0"),
        ("--epochs 0", "input should be greater than or equal to 1"),
        ("--epochs 2.5", "input should be a valid integer"),
        ("--batch-size 0", "input should be greater than or equal to 1"),
        ("--seed -1", "input should be greater than or equal to 0"),
        ("--seed 4294967296", "input should be less than 4294967296"),
        ("--val-fraction 1", "input should be less than 1"),
        ("--warmup 0.95", "input should be less than or equal to 0.9"),
        ("--label-smoothing 1", "input should be less than 1"),
        ("--optimizer sgdd", "input should be 'sgd', 'adam' or 'adamw'"),
        ("--schedule linear", "input should be 'onecycle', 'cosine', 'step' or 'constant'"),
    ],
)
def test_bounds_of_the_shipped_recipes(invoke: Callable[..., Ran], recipe: str, tokens: str, reason: str) -> None:
    flag, value = tokens.split()
    ran = invoke("train", recipe, flag, value)
    field = flag.removeprefix("--").replace("-", "_")
    assert ran.code == 2
    assert ran.err.startswith(f"error: {recipe}: {field} = '{value}' (flag): {reason}")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("layers", "faults"),
    [
        (
            [Layer("flag", {"lr": "-1"}), Layer("PTRUN_SEED", {"seed": "x"})],
            ["lr = '-1' (flag): input should be greater than 0", "seed = 'x' (PTRUN_SEED): input should be a valid"],
        ),
        (
            [Layer("a.toml", {"lrr": 1, "width": 0, "kind": "best", "xyzzy": 2})],
            [
                "no field 'lrr' (a.toml); did you mean 'lr'?",
                "no field 'xyzzy' (a.toml) (ptrun show tiny lists its fields)",
                "width = 0 (a.toml): input should be greater than or equal to 1",
                "kind = 'best' (a.toml): input should be 'sgd' or 'adam'",
            ],
        ),
    ],
)
def test_all_faults_are_named_at_once(tiny: Path, layers: list[Layer], faults: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        resolve("tiny", read_outline(tiny).config, layers)
    message = str(caught.value)
    assert message.startswith("tiny: ")
    assert [fault for fault in faults if fault not in message] == []
    assert message.count("(") == sum(fault.count("(") for fault in faults)  # and nothing else is


def test_a_weaker_source_may_be_wrong_where_a_stronger_one_speaks(tiny: Path) -> None:
    layers = [Layer("flag", {"lr": "0.5"}), Layer("PTRUN_LR", {"lr": "-1"})]
    resolved = resolve("tiny", read_outline(tiny).config, layers)
    assert resolved.as_json()["lr"] == {"value": 0.5, "source": "flag"}


def test_a_rule_over_several_fields_is_told_as_it_is(invoke: Callable[..., Ran], work: Path) -> None:
    rule = """    @model_validator(mode="after")
    def both(self) -> "Config":
        if self.nesterov and self.kind == "adam":
            raise ValueError("nesterov is for sgd")
        return self


PRESETS"""
    path = write_recipe(
        work / "tiny.py",
        ("import torch\n", "import torch\nfrom pydantic import model_validator\n"),
        ("\nPRESETS", rule),
    )
    assert invoke("show", path, "--nesterov").code == 0
    ran = invoke("train", path, "--nesterov", "--kind", "adam")
    assert (ran.code, ran.err) == (2, "error: tiny: value error, nesterov is for sgd\n")


def test_config_is_frozen_and_strict() -> None:
    config = ptrun.Config()
    with pytest.raises(ValidationError, match="frozen"):
        config.seed = 1
    with pytest.raises(ValidationError, match="extra"):
        ptrun.Config(sed=1)  # type: ignore[call-arg]


def test_bounds_as_text(tiny: Path) -> None:
    fields = read_outline(tiny).config.model_fields
    assert {name: bounds(info) for name, info in fields.items()} == {
        "data": "str",
        "seed": "int, ≥ 0, < 4294967296",
        "epochs": "int, ≥ 1",
        "batch_size": "int, ≥ 1",
        "val_fraction": "float, ≥ 0, < 1",
        "lr": "float, > 0, < 10",
        "width": "int, ≥ 1, ≤ 100",
        "kind": "sgd | adam",
        "nesterov": "bool",
        "clip": "float | none, > 0",
    }


def test_a_byte_order_mark_is_overlooked(invoke: Callable[..., Ran], work: Path, tiny: Path) -> None:
    for name, content in (("mark.toml", b"lr = 0.3"), ("mark.json", b'{"lr": 0.3}')):
        (work / name).write_bytes(b"\xef\xbb\xbf" + content)
        assert shown(invoke("show", tiny, "--json", "--config", name), "lr") == (0.3, name)

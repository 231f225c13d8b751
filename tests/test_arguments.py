"""What is typed: fields of a recipe in every spelling, the recipe among them, and durations."""

import json
from collections import Counter
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from hypothesis import example, given
from hypothesis import strategies as st
from recipe_text import write_recipe

from ptrun.arguments import FieldArguments, split_arguments
from ptrun.clock import parse_duration
from ptrun.errors import UsageError
from ptrun.machine import Cadence, Machine, make_machine, parse_cadence
from ptrun.outline import read_outline

VALUED, FLAGS = {"--device", "--config"}, {"--json", "-q"}
WORDS = st.sampled_from(["tiny", "0.1", "-1", "", "--", "=", "a=b", *VALUED, "--device=cpu", *FLAGS, "--lr", "--lr=1"])


def fields(ran: Ran) -> dict[str, Any]:
    """Return the values of `ptrun show … --json` that came from a flag."""
    assert ran.code == 0, ran.err
    entries = json.loads(ran.out)["fields"]
    return {name: entry["value"] for name, entry in entries.items() if entry["source"] == "flag"}


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ("--lr 0.05", {"lr": 0.05}),
        ("--lr=0.05", {"lr": 0.05}),
        ("lr=0.05", {"lr": 0.05}),
        ("--lr 5e-2", {"lr": 0.05}),
        ("--batch-size 32", {"batch_size": 32}),
        ("--batch_size 32", {"batch_size": 32}),
        ("--batch-size=32", {"batch_size": 32}),
        ("batch_size=32", {"batch_size": 32}),
        ("batch-size=32", {"batch_size": 32}),
        ("--nesterov", {"nesterov": True}),
        ("--no-nesterov", {"nesterov": False}),
        ("--no_nesterov", {"nesterov": False}),
        ("--nesterov false", {"nesterov": False}),
        ("--nesterov Yes", {"nesterov": True}),
        ("--nesterov=off", {"nesterov": False}),
        ("nesterov=1", {"nesterov": True}),
        ("--kind adam", {"kind": "adam"}),
        ("--clip 2", {"clip": 2.0}),
        ("--clip 2 --data digits lr=1 --no-nesterov", {"clip": 2.0, "data": "digits", "lr": 1.0, "nesterov": False}),
        ("--lr 0.05 --lr 0.05", {"lr": 0.05}),
        ("--lr 0.05 lr=0.05", {"lr": 0.05}),
    ],
)
def test_spellings(invoke: Callable[..., Ran], work: Path, tokens: str, expected: dict[str, Any]) -> None:
    write_recipe(work / "tiny.py")
    assert fields(invoke("show", "./tiny.py", "--json", *tokens.split())) == expected


def test_none_is_a_value_of_an_optional_field(invoke: Callable[..., Ran], work: Path) -> None:
    write_recipe(work / "tiny.py", ('Field(None, gt=0, description="largest', 'Field(3.0, gt=0, description="largest'))
    assert fields(invoke("show", "./tiny.py", "--json", "--clip", "none")) == {"clip": None}


def test_recipe_stands_anywhere(invoke: Callable[..., Ran]) -> None:
    groups = [["quickstart"], ["--lr", "0.05"], ["--no-normalize"], ["--json"], ["momentum=0.5"]]
    for order in permutations(groups):
        ran = invoke("show", *(token for group in order for token in group))
        assert fields(ran) == {"lr": 0.05, "normalize": False, "momentum": 0.5}, order
        assert json.loads(ran.out)["recipe"] == "quickstart"


@pytest.mark.parametrize(
    "line",
    [
        "--seed 1 --lr 0.05 --normalize quickstart",
        "--data fashion --normalize quickstart",  # `fashion` is a recipe's alias too
        "--normalize quickstart --data fashion",
        "--normalize false quickstart",
        "--batch-size=8 quickstart",
    ],
)
def test_recipe_after_flags_that_may_take_a_value(invoke: Callable[..., Ran], line: str) -> None:
    ran = invoke("show", *line.split(), "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["recipe"] == "quickstart"


def test_a_value_is_not_taken_for_the_recipe(invoke: Callable[..., Ran]) -> None:
    ran = invoke("train", "--data", "fashion", "--lr", "0.1")
    assert ran.code == 2
    assert ran.err == "error: which recipe? Like `ptrun train lenet`; `ptrun recipes` lists them\n"


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ("--lrr 1", "tiny has no option '--lrr'; did you mean '--lr'?"),
        ("--batchsize=1", "tiny has no option '--batchsize'; did you mean '--batch-size'?"),
        ("epoch=1", "tiny has no option 'epoch'; did you mean '--epochs'?"),
        ("--no-nestrov", "tiny has no option '--no-nestrov'; did you mean '--nesterov'?"),
        ("--no-lr", "tiny has no option '--no-lr'; did you mean '--lr'?"),
        ("--jso", "tiny has no option '--jso'; did you mean '--json'?"),
        ("--xyzzy 1", "tiny has no option '--xyzzy'; ptrun train RECIPE --help lists all of them"),
        ("-z", "tiny has no option '-z'; ptrun train RECIPE --help lists all of them"),
        ("--lr", "--lr needs a value, like --lr 0.1"),
        ("--lr --nesterov", "--lr needs a value, like --lr 0.1"),
        ("--epochs 3 --kind", "--kind needs a value, like --kind sgd"),
        ("--lr 1 --lr 2", "lr is given twice: 1 and 2; leave one out"),
        ("--lr=1 lr=2", "lr is given twice: 1 and 2; leave one out"),
        ("--batch-size 1 --batch_size 2", "batch_size is given twice: 1 and 2; leave one out"),
        ("--nesterov --no-nesterov", "nesterov is given twice: true and false; leave one out"),
        ("--nesterov maybe", "unexpected argument 'maybe'; a field is set with --maybe VALUE or maybe=VALUE"),
        ("3", "unexpected argument '3'; a field is set with --3 VALUE or 3=VALUE"),
    ],
)
def test_refused(invoke: Callable[..., Ran], work: Path, tokens: str, message: str) -> None:
    write_recipe(work / "tiny.py")
    ran = invoke("show", "./tiny.py", *tokens.split())
    assert (ran.code, ran.out, ran.err) == (2, "", f"error: {message}\n")


@pytest.mark.parametrize("name", ["name", "device", "quiet", "max_time", "resume", "help"])
def test_a_field_called_like_an_option_is_refused(invoke: Callable[..., Ran], work: Path, name: str) -> None:
    write_recipe(work / "tiny.py", ("    width: int", f"    {name}: int = 3\n    width: int"))
    for line in (("train", "./tiny.py"), ("train", "./tiny.py", f"{name}=4"), ("train", "./tiny.py", "--dry-run")):
        ran = invoke(*line)
        assert ran == Ran(2, "", f"error: tiny: the command has options called {name}; rename these fields\n")
    assert [path.name for path in work.iterdir()] == ["tiny.py"]


def test_minus_one_is_a_value(invoke: Callable[..., Ran], work: Path) -> None:
    path = write_recipe(work / "tiny.py", ("width: int = Field(10, ge=1, le", "width: int = Field(10, ge=-1, le"))
    assert fields(invoke("show", path, "--json", "--width", "-1")) == {"width": -1}
    assert fields(invoke("show", "--json", "--width", "-1", path)) == {"width": -1}
    assert "epochs = '-1' (flag)" in invoke("train", path, "--epochs", "-1").err


def test_machine_option_without_its_value_does_not_take_the_recipe(invoke: Callable[..., Ran]) -> None:
    ran = invoke("train", "lenet", "--name")
    assert (ran.code, ran.err) == (2, "error: Option '--name' requires an argument\n")


@given(st.lists(WORDS | st.text(max_size=5), max_size=8))
@example(["--lr", "0.1", "--nesterov", "tiny"])
@example(["--device"])
def test_split_keeps_every_token_once(args: list[str]) -> None:
    split = split_arguments(args, VALUED, FLAGS, lambda _, word: word == "tiny")
    recipe = [] if split.recipe is None else [split.recipe]
    kept, dropped = Counter(split.own + split.fields + recipe), Counter(["--"])
    assert kept == Counter(args) or kept + dropped == Counter(args)  # the end of options is no token of anyone
    assert split.options == ["--config", "--device", "--json", "-q"]
    assert all(token in FLAGS | VALUED or token in args for token in split.own)


@given(st.lists(WORDS, max_size=8))
def test_split_keeps_the_order_of_fields(args: list[str]) -> None:
    split = split_arguments(args, VALUED, FLAGS, lambda _, word: word == "tiny")
    rest = iter(args)
    assert all(token in rest for token in split.fields)


@given(st.lists(WORDS | st.text(max_size=5), max_size=8))
def test_parse_returns_fields_or_explains(tiny: type[Any], args: list[str]) -> None:
    try:
        values = FieldArguments(args).parse("tiny", tiny)
    except UsageError:
        return
    assert set(values) <= set(tiny.model_fields)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> type[Any]:
    return read_outline(write_recipe(tmp_path_factory.mktemp("recipe") / "tiny.py")).config


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("0", 0), ("1.5", 1.5), ("90s", 90), ("0.5s", 0.5), ("10m", 600), ("2h", 7200), ("1h30m", 5400)],
)
def test_duration(text: str, seconds: float) -> None:
    assert parse_duration(text, "--max-time") == seconds


@given(st.integers(0, 99), st.integers(0, 999), st.integers(0, 99999))
def test_duration_is_the_sum_of_its_parts(hours: int, minutes: int, seconds: int) -> None:
    assert parse_duration(f"{hours}h{minutes}m{seconds}s", "--max-time") == hours * 3600 + minutes * 60 + seconds


@given(st.text(max_size=8) | st.from_regex(r"[0-9.hms -]{1,6}", fullmatch=True))
def test_duration_is_seconds_or_explained(text: str) -> None:
    try:
        seconds = parse_duration(text, "--max-time")
    except UsageError:
        return
    assert 0 <= seconds < 3600 * 10**8
    assert text[0].isdecimal()


@pytest.mark.parametrize("text", ["", "m", "-5", "5 m", "1m1h", "1.5h", "1e3", "inf", "nan", "10 minutes", "5d"])
def test_duration_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_duration(text, "--max-time")
    assert str(caught.value) == f"--max-time {text!r} is not a duration; write 90s, 10m or 1h30m"


@pytest.mark.parametrize(
    ("text", "cadence"), [("500", Cadence(steps=500)), ("30s", Cadence(seconds=30)), ("2m", Cadence(seconds=120))]
)
def test_cadence(text: str, cadence: Cadence) -> None:
    assert parse_cadence(text) == cadence


@pytest.mark.parametrize("text", ["0", "0s", "0m", "00", "-1", "soon", "", "²"])
def test_cadence_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--checkpoint-every "):
        parse_cadence(text)


@pytest.mark.parametrize("seconds", [0.00001, 0.1, 30.0, 1_080_000.0, 1e12, 123456.789])
def test_a_recorded_cadence_is_read_back_exactly(seconds: float) -> None:
    assert parse_cadence(str(Cadence(seconds=seconds))) == Cadence(seconds=seconds)
    assert parse_cadence(str(Cadence(steps=10**12))) == Cadence(steps=10**12)


@pytest.mark.parametrize("text", ["9" * 5000, "9" * 5000 + "s", "9" * 400 + "h", "1000000000001"])
def test_a_cadence_beyond_all_use_is_refused(invoke: Callable[..., Ran], text: str) -> None:
    reason = "--checkpoint-every is above 1,000,000,000,000, and no training lasts that long; leave it out"
    assert invoke("train", "lenet", "--checkpoint-every", text) == Ran(2, "", f"error: {reason}\n")


def test_what_is_recorded_does_not_matter_where_a_flag_is_given() -> None:
    recorded = {"device": "abacus", "checkpoint_every": "1.08e+06s", "log_interval": 7, "data_dir": None}
    flags = {"device": "cpu", "checkpoint_every": Cadence(steps=5), "log_interval": None}
    assert make_machine(flags, recorded) == Machine(device="cpu", checkpoint_every=Cadence(steps=5), log_interval=7)


@pytest.mark.parametrize("line", ["-- lenet", "--lr 0.05 -- lenet", "lenet --lr 0.05 --", "--json -- lenet lr=0.05"])
def test_two_dashes_end_the_options(invoke: Callable[..., Ran], line: str) -> None:
    ran = invoke("show", "--json", *line.split())
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["recipe"] == "lenet"
    assert fields(ran) == ({"lr": 0.05} if "0.05" in line else {})


def test_a_path_with_an_equals_sign_is_a_recipe(invoke: Callable[..., Ran], work: Path) -> None:
    for path in ("./a=b.py", str(work / "a=b.py"), "./c=d/tiny.py"):
        write_recipe(work / path)
        assert fields(invoke("show", path, "lr=0.05", "--json")) == {"lr": 0.05}

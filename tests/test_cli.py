"""A user's mistake is one sentence with the remedy and exit code 2; a traceback is for --debug."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran
from recipe_text import write_recipe

import ptrun
from ptrun.data.catalog import AUTO, CATALOG

INTERVAL = "Invalid value for '--log-interval' (env var: 'PTRUN_LOG_INTERVAL')"
UNKNOWN, SETS = "unknown data set", f"(known: {', '.join(sorted([AUTO, *CATALOG]))})"
EXCLUDE = "--fast-dev-run, --dry-run and --resume exclude each other; choose one"


def assert_explained(ran: Ran, message: str) -> None:
    """Assert that nothing was printed but one sentence that begins with `message`."""
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {message}")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("trian lenet", "No such command 'trian'. Did you mean 'train'?"),
        ("xyzzy", "No such command 'xyzzy'"),
        ("--versio", "No such option: --versio (Possible options: --version)"),
        ("recipes lenet", "Got unexpected extra argument(s) (lenet)"),
        ("train", "which recipe? Like `ptrun train lenet`; `ptrun recipes` lists them"),
        ("show", "Missing argument 'RECIPE'"),
        ("eval", "Missing argument 'WORD'"),
        ("eval lenet --devce cpu", "No such option: --devce (Possible options: --device, --recipe)"),
        ("train lenet --devce cpu", "lenet has no option '--devce'; did you mean '--device'?"),
        ("train lenet --output runs", "lenet has no option '--output'; did you mean '--output-dir'?"),
        ("train lenet --batchsize 3", "lenet has no option '--batchsize'; did you mean '--batch-size'?"),
        ("train lenett", "unknown recipe 'lenett'"),
        ("train lenet --preset papr", "lenet has no preset 'papr' (it has paper); did you mean 'paper'?"),
        ("train lenet --data mnits", f"{UNKNOWN} 'mnits' {SETS}; did you mean 'mnist'?"),
        ("train lenet --data imagenet", f"{UNKNOWN} 'imagenet' {SETS}\n"),
        ("train lenet --device gpu", "unknown device 'gpu'; use auto, cpu, cuda, cuda:N or mps"),
        ("train lenet --device cuda:x", "unknown device 'cuda:x'; use auto, cpu, cuda, cuda:N or mps"),
        ("eval lenet --data mnits", f"{UNKNOWN} 'mnits' {SETS}; did you mean 'mnist'?"),
        ("eval lenet --device gpu", "unknown device 'gpu'; use auto, cpu, cuda, cuda:N or mps"),
        ("train lenet --max-time soon", "--max-time 'soon' is not a duration; write 90s, 10m or 1h30m"),
        (
            "train lenet --checkpoint-every 0",
            "--checkpoint-every 0 would save without end; write steps (500) or a time",
        ),
        ("train lenet --checkpoint-every x", "--checkpoint-every 'x' is not a duration; write 90s, 10m or 1h30m"),
        ("train lenet --log-interval 0", f"{INTERVAL}: Input should be greater than or equal to 1"),
        ("train lenet --log-interval 2.5", f"{INTERVAL}: Input should be a valid integer"),
        ("train lenet --name", "Option '--name' requires an argument"),
        ("train lenet --json=1", "Option '--json' does not take a value"),
        ("train lenet --name a/b --data digits", "--name 'a/b' must be up to 64 letters, digits, '_', '.' or '-'"),
        ("train lenet --dry-run --fast-dev-run", EXCLUDE),
        ("train lenet --resume last --fast-dev-run", EXCLUDE),
        ("eval lenet --require-accuracy nan", "Invalid value for '--require-accuracy'"),
        ("eval lenet --require-accuracy 99", "Invalid value for '--require-accuracy'"),
        ("show lenet --device cpu", "lenet has no option '--device'; ptrun train RECIPE --help lists all of them"),
    ],
)
def test_usage(invoke: Callable[..., Ran], work: Path, line: str, message: str) -> None:
    assert_explained(invoke(*line.split()), message)
    assert list(work.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PTRUN_DEVICE", "gpu", "unknown device 'gpu'"),
        ("PTRUN_MAX_TIME", "soon", "--max-time 'soon' is not a duration"),
        ("PTRUN_CHECKPOINT_EVERY", "0", "--checkpoint-every 0 would save without end"),
        ("PTRUN_LOG_INTERVAL", "often", "Invalid value for '--log-interval'"),
        ("PTRUN_LR", "nan", "lenet: lr = 'nan' (PTRUN_LR): input should be a finite number"),
        ("PTRUN_DATA", "digts", f"{UNKNOWN} 'digts' {SETS}; did you mean 'digits'?"),
    ],
)
def test_variables(
    invoke: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(name, value)
    assert_explained(invoke("train", "lenet"), message)


def test_a_flag_beats_its_variable(invoke: Callable[..., Ran], work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTRUN_DEVICE", "gpu")
    monkeypatch.setenv("PTRUN_OUTPUT_DIR", "one")
    path = write_recipe(work / "tiny.py")
    line = ["train", path, "--device", "cpu", "--epochs", "1", "--quiet"]
    assert invoke(*line).code == 0
    assert invoke(*line, "--output-dir", "two").code == 0
    assert [len(list(Path(folder).glob("tiny/*"))) for folder in ("one", "two")] == [1, 1]


@pytest.mark.parametrize(
    ("function", "line", "start"),
    [
        ("model", 30, "return nn.Seq"),
        ("data", 34, "return ptrun.Images"),
        ("optimizer", 38, "return torch.optim"),
        ("schedule", 42, "return ptrun.schedule"),
        ("loss", 46, "return nn.functional"),
    ],
)
def test_a_function_of_a_recipe_raises(
    invoke: Callable[..., Ran], work: Path, function: str, line: int, start: str
) -> None:
    write_recipe(work / "tiny.py", (start, f"raise RuntimeError('no\\nluck')\n    {start}"))
    ran = invoke("train", "./tiny.py", "--quiet")
    assert_explained(ran, f"recipe tiny.py, line {line}: {function} failed with RuntimeError: no\n")
    assert not (work / "runs").exists()


@pytest.mark.parametrize(
    ("start", "value", "fault"),
    [
        ("return nn.Seq", "3", "model must return Module, not int"),
        ("return nn.Seq", "nn.Linear", "model must return Module, not type"),
        ("return ptrun.Images", "[]", "data must return Images, not list"),
        ("return torch.optim", "torch.optim", "optimizer must return Optimizer, not module"),
        ("return ptrun.schedule", "None", "schedule must return LRScheduler, not NoneType"),
        ("return nn.functional", "0.5", "loss must return Tensor, not float"),
    ],
)
def test_a_function_of_a_recipe_returns_something_else(
    invoke: Callable[..., Ran], work: Path, start: str, value: str, fault: str
) -> None:
    write_recipe(work / "tiny.py", (start, f"return {value}\n    {start}"))
    assert_explained(invoke("train", "./tiny.py", "--quiet"), f"recipe tiny.py: {fault}\n")
    assert not (work / "runs").exists()


LOGITS = "the model must give logits [2, 10] for the 10 classes of digits, but it gives"
PER_SAMPLE = "loss must return one value for each sample, [2], not"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("cfg.width)", "9)"), f"{LOGITS} [2, 9]\n"),
        (("nn.Linear(784, cfg.width)", "nn.LSTM(784, 10)"), f"{LOGITS} tuple\n"),
        (
            ("nn.Flatten(), ", ""),
            "the model on a batch of shape [2, 1, 28, 28] failed with RuntimeError: mat1 and mat2",
        ),
        ((', reduction="none")', ")"), f'{PER_SAMPLE} []; give your loss function reduction="none"\n'),
        (('reduction="none")', 'reduction="none")[:, None]'), f"{PER_SAMPLE} [2, 1]; "),
    ],
)
def test_parts_of_a_recipe_do_not_fit(
    invoke: Callable[..., Ran], work: Path, change: tuple[str, str], fault: str
) -> None:
    write_recipe(work / "tiny.py", change)
    assert_explained(invoke("train", "./tiny.py", "--quiet"), f"recipe tiny.py: {fault}")
    assert not (work / "runs").exists()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("def model(", "int('x')\n\n\ndef model("), "line 29: importing it failed with ValueError: invalid literal"),
        (
            ("import torch\n", "import nosuch\n"),
            "line 8: importing it failed with ModuleNotFoundError: No module named",
        ),
        (
            ("cfg.lr)", "cfg.rate)"),
            "line 38: optimizer failed with AttributeError: 'Config' object has no attribute 'rate'",
        ),
        (
            ("def loss(", "def loss(output):\n    return output\n\n\ndef lost("),
            "loss failed with TypeError: loss() takes 1",
        ),
    ],
)
def test_other_faults_of_a_recipe(invoke: Callable[..., Ran], work: Path, change: tuple[str, str], fault: str) -> None:
    write_recipe(work / "tiny.py", change)
    ran = invoke("train", "./tiny.py", "--quiet")
    assert_explained(ran, "recipe tiny.py")
    assert fault in ran.err
    assert not (work / "runs").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"digits", size', '"digts", size'), f"{UNKNOWN} 'digts' {SETS}; did you mean 'digits'?"),
        (
            ("size=28", "size=20"),
            "the recipe's images are 20x20, but those of 'digits' are 28x28; size must be at least 28",
        ),
        (("size=28", "size=28, shift=99"), "shift must be 0 to 27 pixels for size 28, not 99"),
        (("Field(0.1", "Field(-0.1"), "tiny: lr = -0.1 (default): input should be greater than 0"),
    ],
)
def test_values_of_a_recipe_are_wrong(
    invoke: Callable[..., Ran], work: Path, change: tuple[str, str], message: str
) -> None:
    write_recipe(work / "tiny.py", change)
    assert_explained(invoke("train", "./tiny.py", "--quiet"), message)
    assert not (work / "runs").exists()


def test_a_preset_is_wrong(invoke: Callable[..., Ran], work: Path) -> None:
    write_recipe(work / "tiny.py", ('{"lr": 1.0}', '{"lrr": 1.0, "epochs": 0}'))
    assert_explained(
        invoke("train", "./tiny.py", "--preset", "fast"),
        "tiny: no field 'lrr' (preset fast); did you mean 'lr'?; epochs = 0 (preset fast): input should be greater",
    )


def test_a_fault_in_the_middle_of_training(invoke: Callable[..., Ran], work: Path) -> None:
    # The last batch of 1,438 images in batches of 64 has 30: only there this loss fails.
    broken = "    if len(target) == 30:\n        raise RuntimeError('short batch')\n    return nn.functional"
    write_recipe(work / "tiny.py", ("    return nn.functional", broken))
    ran = invoke("train", "./tiny.py", "--quiet")
    assert_explained(ran, "recipe tiny.py, line 47: loss failed with RuntimeError: short batch")


@pytest.mark.parametrize("switch", ["flag", "variable"])
def test_debug_shows_the_traceback(
    invoke: Callable[..., Ran], work: Path, monkeypatch: pytest.MonkeyPatch, switch: str
) -> None:
    write_recipe(work / "tiny.py", ("return nn.Seq", "raise RuntimeError('no luck')\n    return nn.Seq"))
    if switch == "variable":
        monkeypatch.setenv("PTRUN_DEBUG", "1")
    ran = invoke("train", "./tiny.py", "--quiet", *["--debug"][: switch == "flag"])
    assert (ran.code, ran.out) == (2, "")
    assert "Traceback (most recent call last)" in ran.err
    assert f'File "{work / "tiny.py"}", line 30, in model' in ran.err
    assert ran.err.endswith("\nerror: recipe tiny.py, line 30: model failed with RuntimeError: no luck\n")


@pytest.mark.parametrize("value", ["", "0", "false", "no", "OFF"])
def test_debug_switched_off(invoke: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("PTRUN_DEBUG", value)
    assert_explained(invoke("train", "lenett"), "unknown recipe 'lenett'")


def test_debug_shows_usage_errors_of_typer_too(invoke: Callable[..., Ran]) -> None:
    ran = invoke("trian", "--debug")
    assert ran.code == 2
    assert "Traceback (most recent call last)" in ran.err
    assert ran.err.endswith("\nerror: No such command 'trian'. Did you mean 'train'?\n")


def test_output_directory_is_a_file(invoke: Callable[..., Ran], work: Path) -> None:
    path = write_recipe(work / "tiny.py")
    (work / "taken").touch()
    for folder in ("taken", "taken/below"):
        ran = invoke("train", path, "--output-dir", folder, "--quiet")
        assert_explained(ran, f"--output-dir {folder} cannot be written: ")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")  # noqa: PTH110
def test_full_disk_behind_stdout(spawn: Callable[..., "object"]) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        process = spawn("recipes", "--json", stdout=full)
        _, err = process.communicate(timeout=60)  # type: ignore[attr-defined]
    assert process.returncode == 1  # type: ignore[attr-defined]
    assert err == "error: writing: No space left on device\n"


def test_version(invoke: Callable[..., Ran]) -> None:
    assert invoke("--version") == Ran(0, f"ptrun {ptrun.__version__}\n", "")


def test_without_arguments_there_is_help(invoke: Callable[..., Ran]) -> None:
    ran = invoke()
    assert (ran.code, ran.err) == (0, "")
    assert ran == invoke("--help") == invoke("-h")
    for command in ("train", "eval", "recipes", "show", "new"):
        assert f"\n  {command} " in ran.out
    assert ran.out.endswith("Start with: ptrun train lenet\n")

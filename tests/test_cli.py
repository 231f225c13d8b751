"""A user's mistake is one sentence with the remedy and exit code 2; a traceback is for --debug."""

import json
import os
import subprocess
import sys
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
        (
            "train lenet --checkpoint-every 0s",
            "--checkpoint-every 0s would save without end; write steps (500) or a time (30s)\n",
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


def test_variables_stand_for_options(invoke: Callable[..., Ran], work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_recipe(work / "tiny.py")
    (work / "mine.toml").write_text("batch_size = 719")
    for name, value in {"PRESET": "slow", "CONFIG": "mine.toml", "JSON": "1", "QUIET": "1"}.items():
        monkeypatch.setenv(f"PTRUN_{name}", value)
    train = ("train", path, "--max-time", "0s")
    runs = [
        json.loads(ran.out)["run"] for ran in (invoke(*train, "--name", "first"), invoke(*train, "--name", "second"))
    ]
    fields = json.loads((Path(runs[0]) / "config.json").read_text())["fields"]
    assert fields["lr"] == {"value": 0.01, "source": "preset slow"}
    assert fields["batch_size"] == {"value": 719, "source": "mine.toml"}

    (work / "other.toml").write_text("batch_size = 100")
    for command in ("show", "train"):
        options = ("--preset", "fast", "--config", "other.toml", *["--dry-run"][: command == "train"])
        fields = json.loads(invoke(command, path, *options).out)["fields"]
        assert (fields["lr"]["value"], fields["lr"]["source"]) == (1.0, "preset fast")
        assert (fields["batch_size"]["value"], fields["batch_size"]["source"]) == (100, "other.toml")

    for name in ("PRESET", "CONFIG"):
        monkeypatch.delenv(f"PTRUN_{name}")
    monkeypatch.setenv("PTRUN_RESUME", "first")
    assert [json.loads(invoke("train", "--max-time", "0s").out)[key] for key in ("run", "steps")] == [runs[0], 2]
    resumed = json.loads(invoke("train", "--resume", "second", "--max-time", "0s").out)
    assert (resumed["run"], resumed["steps"]) == (runs[1], 2)
    monkeypatch.delenv("PTRUN_RESUME")
    monkeypatch.setenv("PTRUN_FAST_DEV_RUN", "1")
    ran = invoke("train", path)
    assert [json.loads(ran.out)[key] for key in ("run", "steps")] == [None, 2]
    assert ran.err == ""
    monkeypatch.setenv("PTRUN_FAST_DEV_RUN", "0")
    monkeypatch.setenv("PTRUN_JSON", "0")
    assert "\nrun " in invoke("train", path, "--max-time", "0s").out
    monkeypatch.setenv("PTRUN_DRY_RUN", "1")
    assert invoke("train", path).out.endswith("Nothing was trained; no run was made.\n")


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


# Each fails in the second step of training: (what is changed, the line that fails, the error).
FAULTS = {
    "forward": (
        ("nn.Flatten(), ", "nn.Flatten(), Faulty(), "),
        """
class Faulty(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        global steps
        steps += self.training
        if steps == 2:
            raise RuntimeError("no luck")  # HERE
        return x
""",
    ),
    "backward": (
        ("nn.Flatten(), ", "nn.Flatten(), Faulty(), "),
        """
class Faulty(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return Fails.apply(x.requires_grad_())


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        global steps
        steps += 1
        if steps == 2:
            raise RuntimeError("no luck")  # HERE
        return gradient
""",
    ),
    "optimizer": (
        ("return torch.optim.SGD", "return Faulty"),
        """
class Faulty(torch.optim.SGD):
    def step(self, closure=None):
        global steps
        steps += 1
        if steps == 2:
            raise RuntimeError("no luck")  # HERE
        return super().step(closure)
""",
    ),
    "schedule": (
        ('return ptrun.schedule("constant", optimizer, steps)', "return Faulty(optimizer)"),
        """
class Faulty(torch.optim.lr_scheduler.LRScheduler):
    def get_lr(self):
        if self.last_epoch == 2:
            raise RuntimeError("no luck")  # HERE
        return self.base_lrs
""",
    ),
}


@pytest.mark.parametrize(("change", "code"), FAULTS.values(), ids=FAULTS.keys())
def test_a_recipe_raises_in_the_second_step(
    invoke: Callable[..., Ran], work: Path, change: tuple[str, str], code: str
) -> None:
    path = write_recipe(work / "tiny.py", change)
    path.write_text(path.read_text() + "\n\nsteps = 0\n" + code)
    line = 1 + [text.endswith("# HERE") for text in path.read_text().splitlines()].index(True)
    ran = invoke("train", "./tiny.py", "--quiet")
    assert ran == Ran(1, "", f"error: recipe tiny.py, line {line}: step 2 failed with RuntimeError: no luck\n")
    (run,) = work.glob("runs/tiny/*")
    assert not (run / "result.json").exists()
    ran = invoke("eval", "tiny", "--quiet")
    assert (ran.code, "no run of tiny in runs is finished" in ran.err) == (2, True)


def test_a_last_batch_of_one_sample_that_cannot_be_normalised(invoke: Callable[..., Ran], work: Path) -> None:
    write_recipe(work / "tiny.py", ("nn.Linear(784, cfg.width)", "nn.Linear(784, cfg.width), nn.BatchNorm1d(10)"))
    ran = invoke("train", "./tiny.py", "--batch-size", "1437", "--quiet")  # of 1,438 images
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: recipe tiny.py: step 2 failed with ValueError: Expected more than 1 value per ")
    assert "torch.Size([1, 10])" in ran.err
    assert ran.err.count("\n") == 1
    assert not list(work.glob("runs/tiny/*/result.json"))
    assert invoke("train", "./tiny.py", "--batch-size", "719", "--epochs", "1", "--quiet").code == 0


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


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("arguments", "code"), [("recipes", 0), ("--version", 0), ("train lenett", 2)])
def test_closed_streams(closed: str, arguments: str, code: int) -> None:
    command = [f'"$0" -m ptrun {arguments} {closed}', sys.executable]
    done = subprocess.run(["sh", "-c", *command], capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    assert (done.stdout == "") == (">&-" in closed.split() or code > 0)
    error = "error: unknown recipe 'lenett'" if code and "2>&-" not in closed else ""
    assert done.stderr[: len(error) or None] == error


def test_a_run_whose_output_nobody_wants_is_trained_all_the_same(work: Path) -> None:
    write_recipe(work / "tiny.py")
    command = '"$0" -m ptrun train ./tiny.py --epochs 1 >&- 2>&-; echo $?'
    done = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("0\n", "")
    (result,) = work.glob("runs/tiny/*/result.json")
    assert json.loads(result.read_text())["status"] == "finished"


def test_version(invoke: Callable[..., Ran]) -> None:
    assert invoke("--version") == Ran(0, f"ptrun {ptrun.__version__}\n", "")


def test_without_arguments_there_is_help(invoke: Callable[..., Ran]) -> None:
    ran = invoke()
    assert (ran.code, ran.err) == (0, "")
    assert ran == invoke("--help") == invoke("-h")
    for command in ("train", "eval", "recipes", "show", "new"):
        assert f"\n  {command} " in ran.out
    assert ran.out.endswith("Start with: ptrun train lenet\n")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("train lenet --data-dir", "--data-dir"),
        ("train lenet --config", "--config"),
        ("train lenet --output-dir", "--output-dir"),
        ("new", "file"),
    ],
)
def test_a_path_that_is_not_utf8_is_refused(invoke: Callable[..., Ran], line: str, what: str) -> None:
    ran = invoke(*line.split(), "a\udcff.py")
    assert ran == Ran(2, "", f"error: {what} 'a\\udcff.py' is not UTF-8; choose another name or rename it\n")
    assert list(Path().iterdir()) == []

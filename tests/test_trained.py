"""`ptrun.load`: a trained model from Python, with the preprocessing it was trained with."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import Ran
from own_set_recipe import write_noise_recipe
from PIL import Image
from recipe_text import TINY, write_recipe
from torch import Tensor

import ptrun
from ptrun.data.images import open_images
from ptrun.errors import DataError, UsageError


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of lenet, of quickstart and of quickstart without normalisation, one epoch each."""
    from ptrun.main import run

    root = tmp_path_factory.mktemp("runs")
    options = ["--data", "digits", "--epochs", "1", "--batch-size", "512", "--quiet", "--output-dir", str(root)]
    assert run(["train", "lenet", *options]) == 0
    assert run(["train", "quickstart", *options, "--name", "plain"]) == 0
    assert run(["train", "quickstart", *options, "--name", "raw", "--no-normalize"]) == 0
    return root


def test_what_is_loaded(trained: Path) -> None:
    model = ptrun.load("lenet", output_dir=trained)
    assert not model.model.training
    assert sum(p.numel() for p in model.model.parameters()) == 61_706
    assert model.classes == tuple("0123456789")
    assert (model.config.epochs, model.config.batch_size, model.config.data) == (1, 512, "digits")
    assert model.recipe.name == "lenet"
    assert model.epoch == 1
    saved = torch.load(model.file, weights_only=True)["model"]
    assert all(torch.equal(saved[name], value) for name, value in model.model.state_dict().items())


def test_path_objects_and_strings(trained: Path) -> None:
    by_word = ptrun.load("plain", output_dir=str(trained))
    by_directory = ptrun.load(str(by_word.file.parent.parent))
    by_file = ptrun.load(str(by_word.file))
    assert by_directory.file == by_file.file == by_word.file


@pytest.mark.parametrize("word", ["lenet", "plain", "raw"])
def test_preprocess_equals_what_eval_feeds(trained: Path, word: str) -> None:
    model = ptrun.load(word, output_dir=trained)
    mean_std = (model.data["mean"], model.data["std"])
    opened = open_images(
        model.recipe.data(model.config),
        override="digits",
        data_dir=None,
        device="cpu",
        seed=0,
        val_fraction=0.0,
        mean_std=mean_std,
    )
    fed = torch.cat([images for images, _ in opened.test.batches(100)])
    assert torch.equal(model.preprocess(opened.test.images), fed)
    assert fed.shape == (359, 1, model.data["size"], model.data["size"])
    assert (fed.min().item() == 0) == (word == "raw")


def test_forms_of_an_image(trained: Path) -> None:
    model = ptrun.load("lenet", output_dir=trained)
    pixels = torch.arange(28 * 28).remainder(256).to(torch.uint8).view(28, 28)
    expected = model.preprocess(pixels)
    assert expected.shape == (1, 1, 32, 32)
    assert expected.dtype == torch.float32
    assert expected[0, 0, 2, 2] == pytest.approx((0 - 0.1560) / 0.2777)
    assert expected[0, 0, 3, 2] == pytest.approx((28 / 255 - 0.1560) / 0.2777)
    array = pixels.numpy()
    for form in (pixels[None], pixels[None, None], array, array[None], Image.fromarray(array)):
        assert torch.equal(model.preprocess(form), expected)
    flipped = model.preprocess(np.flip(array))  # negative strides
    assert torch.equal(flipped, expected.flip(2, 3))
    assert torch.equal(model.preprocess(pixels.expand(5, 1, 28, 28)), expected.expand(5, 1, 32, 32))
    frozen = array.copy()
    frozen.flags.writeable = False
    assert torch.equal(model.preprocess(frozen), expected)
    assert torch.equal(pixels.view(-1), torch.arange(28 * 28).remainder(256).to(torch.uint8))  # left as it was


def test_pil_images_of_any_size_and_mode(trained: Path) -> None:
    model = ptrun.load("plain", output_dir=trained)
    grey = Image.linear_gradient("L")  # 256x256
    expected = model.preprocess(np.asarray(grey.resize((28, 28), Image.Resampling.BILINEAR)))
    assert torch.equal(model.preprocess(grey), expected)
    for mode in ("RGB", "RGBA", "P"):
        assert torch.allclose(model.preprocess(grey.convert(mode)), expected, atol=0.02), mode
    assert model.preprocess(grey.resize((60, 20))).shape == (1, 1, 28, 28)
    assert model.preprocess(Image.new("1", (5, 5), 1)).unique().tolist() == pytest.approx([(1 - 0.1560) / 0.2777])


def test_gives_probabilities(trained: Path) -> None:
    model = ptrun.load("plain", output_dir=trained)
    with torch.no_grad():
        shares = model.model(model.preprocess(Image.new("L", (28, 28)))).softmax(1)
    assert shares.shape == (1, 10)
    assert shares.sum().item() == pytest.approx(1)


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (torch.zeros(28, 28), r"expected a PIL image or uint8 \[\(B,\) C, H, W\], not torch.float32 \[28, 28\]"),
        (torch.zeros(28, dtype=torch.uint8), r"not torch.uint8 \[28\]"),
        (torch.zeros(2, 1, 1, 28, 28, dtype=torch.uint8), r"not torch.uint8 \[2, 1, 1, 28, 28\]"),
        (torch.zeros(32, 32, dtype=torch.uint8), r"expected images of \[1, 28, 28\], not \[1, 32, 32\]"),
        (torch.zeros(3, 28, 28, dtype=torch.uint8), r"expected images of \[1, 28, 28\], not \[3, 28, 28\]"),
    ],
)
def test_refuses_what_it_cannot_know(trained: Path, image: Tensor, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ptrun.load("plain", output_dir=trained).preprocess(image)


def test_colour_images_that_are_not_square(invoke: Callable[..., Ran], work: Path) -> None:
    write_noise_recipe(work / "noise.py", channels=3, height=19)
    assert invoke("train", "./noise.py", "--quiet").code == 0
    model = ptrun.load("noise")
    picture = Image.new("RGB", (28, 19), (255, 0, 51))
    fed = model.preprocess(picture)
    assert fed.shape == (1, 3, 28, 28)
    assert fed[0, :, 14, 14].tolist() == pytest.approx([1.5, -0.5, -0.1])  # (share - 0.25) / 0.5
    assert fed[0, :, 0, 0].tolist() == pytest.approx([-0.5] * 3)  # padding is black
    opened = open_images(
        model.recipe.data(model.config), override=None, data_dir=None, device="cpu", seed=0, val_fraction=0.0
    )
    images, _ = next(opened.test.batches(30))
    assert torch.equal(model.preprocess(opened.test.images), images)


def test_the_recipe_that_ran_is_used(invoke: Callable[..., Ran], work: Path) -> None:
    path = write_recipe(work / "tiny.py")
    assert invoke("train", "./tiny.py", "--epochs", "1", "--quiet").code == 0
    path.write_text(TINY.replace("nn.Linear(784, cfg.width)", "nn.Linear(784, cfg.width, bias=False)"))
    assert ptrun.load("tiny").model[1].bias is not None
    path.unlink()
    assert ptrun.load("last").model[1].bias is not None


def test_weights_of_another_model(invoke: Callable[..., Ran], work: Path) -> None:
    path = write_recipe(work / "tiny.py")
    assert invoke("train", "./tiny.py", "--epochs", "1", "--quiet").code == 0
    shutil.copy(next(work.glob("runs/tiny/*/checkpoints/last.pt")), work / "mine.pt")
    path.write_text(TINY.replace("nn.Linear(784, cfg.width)", "nn.Linear(784, 5), nn.Linear(5, cfg.width)"))
    reason = (
        "the weights in mine.pt are of another model: 2 missing (2.weight, 2.bias); "
        "2 of another shape (1.weight [10, 784] for [5, 784], 1.bias [10] for [5]); nothing was loaded"
    )
    with pytest.raises(DataError) as caught:
        ptrun.load("mine.pt", recipe="./tiny.py")
    assert str(caught.value) == reason
    assert invoke("eval", "mine.pt", "--recipe", "./tiny.py") == Ran(3, "", f"error: {reason}\n")


def test_fields_that_the_recipe_no_longer_has(invoke: Callable[..., Ran], work: Path) -> None:
    path = write_recipe(work / "tiny.py")
    assert invoke("train", "./tiny.py", "--epochs", "1", "--quiet").code == 0
    shutil.copy(next(work.glob("runs/tiny/*/checkpoints/last.pt")), work / "mine.pt")
    path.write_text(TINY.replace("    nesterov: bool", "    momentum: bool"))
    with pytest.raises(UsageError) as caught:
        ptrun.load("mine.pt", recipe="./tiny.py")
    assert str(caught.value) == (
        "recipe tiny.py no longer has the fields nesterov that this checkpoint was trained with"
    )


def test_a_word_that_names_nothing(work: Path) -> None:
    with pytest.raises(UsageError, match="there is no run of lenet in runs; ptrun train lenet makes one"):
        ptrun.load("lenet")
    (work / "mine.pt").write_bytes(b"not a checkpoint")
    with pytest.raises(DataError, match=r"^checkpoint mine\.pt is damaged or not "):
        ptrun.load("mine.pt")


def test_loading_opens_no_data(invoke: Callable[..., Ran], work: Path) -> None:
    write_recipe(
        work / "tiny.py", ("    return ptrun.Images", "    open('opened', 'a').close()\n    return ptrun.Images")
    )
    assert invoke("train", "./tiny.py", "--epochs", "1", "--quiet").code == 0
    (work / "opened").unlink()
    assert ptrun.load("tiny").classes == tuple("0123456789")
    assert not (work / "opened").exists()


def test_the_folder_of_runs_is_that_of_the_commands(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTRUN_OUTPUT_DIR", str(trained))
    assert ptrun.load("plain").file.is_relative_to(trained)
    with pytest.raises(UsageError, match="there is no run of lenet in "):
        ptrun.load("lenet", output_dir=tmp_path)

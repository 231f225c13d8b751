"""The data sets that ptrun knows by name. Imports nothing heavy: names are checked before torch is loaded."""

from dataclasses import dataclass

from ptrun.errors import UsageError, did_you_mean

AUTO = "auto"  # the recipe's own set, or digits where that can be neither found nor downloaded


@dataclass(frozen=True)
class Part:
    """One IDX file: its name without ".gz", the shape of its array, and the SHA-256 of its uncompressed bytes."""

    file: str
    shape: tuple[int, ...]
    sha256: str


@dataclass(frozen=True)
class Known:
    """A data set with everything needed to find and to check it.

    `mean` and `std` are those of the training images in [0, 1]. `folder` is torchvision's layout below a data folder,
    `debian` the folder of the Debian package. `parts` are, in this order: training images [N, H, W], training
    labels [N], test images, test labels. A set without parts needs no files.
    """

    name: str
    title: str
    classes: tuple[str, ...]
    mean: float
    std: float
    folder: str | None = None
    debian: str | None = None
    parts: tuple[Part, ...] = ()
    mirrors: tuple[str, ...] = ()


def _parts(train_images: str, train_labels: str, test_images: str, test_labels: str) -> tuple[Part, ...]:
    """Both MNISTs have the same file names and shapes; only the four sums differ."""
    return (
        Part("train-images-idx3-ubyte", (60_000, 28, 28), train_images),
        Part("train-labels-idx1-ubyte", (60_000,), train_labels),
        Part("t10k-images-idx3-ubyte", (10_000, 28, 28), test_images),
        Part("t10k-labels-idx1-ubyte", (10_000,), test_labels),
    )


_DIGITS = tuple("0123456789")

_MNIST = Known(
    name="mnist",
    title="MNIST",
    classes=_DIGITS,
    mean=0.1307,
    std=0.3081,
    folder="MNIST/raw",
    parts=_parts(
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    # As in torchvision.datasets.MNIST.mirrors, repeated because importing torchvision costs more than a second.
    mirrors=("https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/"),
)

_FASHION = Known(
    name="fashion",
    title="FashionMNIST",
    classes=(
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ),
    mean=0.2860,
    std=0.3530,
    folder="FashionMNIST/raw",
    debian="/usr/share/datasets/fashion-mnist",
    parts=_parts(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    mirrors=("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
)

_EMBEDDED = Known(name="digits", title="scikit-learn's digits", classes=_DIGITS, mean=0.1560, std=0.2777)

CATALOG: dict[str, Known] = {entry.name: entry for entry in (_MNIST, _FASHION, _EMBEDDED)}

ALIASES = {"fashionmnist": "fashion", "fashion-mnist": "fashion"}


def known(name: str) -> Known:
    """Return the entry for `name` (any case, or an alias). Raise UsageError with the nearest name if there is none."""
    lower = name.lower()
    entry = CATALOG.get(ALIASES.get(lower, lower))
    if entry is None:
        names = sorted([AUTO, *CATALOG])
        raise UsageError(f"unknown data set '{name}' (known: {', '.join(names)}){did_you_mean(lower, names)}")
    return entry


def check_name(name: str) -> str:
    """Return the proper name for what a user typed: "auto" or a key of CATALOG. Raise UsageError for any other."""
    return AUTO if name.lower() == AUTO else known(name).name

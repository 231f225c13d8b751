"""LeNet-5 under Lightning with its defaults, TensorBoard included; needs pytorch_lightning."""

import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import pytorch_lightning as pl
import torch
from dataloader_loop import Digits
from pytorch_lightning.loggers import TensorBoardLogger
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


class LeNet(pl.LightningModule):
    """The network with its training step; counts samples and seconds of training alone."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
        )  # fmt: skip
        self.seconds, self.trained = 0.0, 0

    def training_step(self, batch: tuple[Tensor, Tensor], _: int) -> Tensor:
        """Return the loss of a batch, and log it."""
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.log("loss", loss)
        self.trained += len(batch[1])
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return Adam."""
        return torch.optim.Adam(self.parameters(), lr=1e-3)

    def on_train_epoch_start(self) -> None:
        """Start the clock."""
        self.seconds -= time.perf_counter()

    def on_train_epoch_end(self) -> None:
        """Stop the clock."""
        self.seconds += time.perf_counter()


name, folder, batch_size, seconds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
transform = transforms.Compose(
    [transforms.Resize(32), transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))]
)
data = datasets.MNIST(folder, transform=transform) if name == "mnist" else Digits(transform)
pl.seed_everything(0)
with tempfile.TemporaryDirectory() as runs:
    model = LeNet()
    trainer = pl.Trainer(
        max_time=timedelta(seconds=seconds), accelerator="cpu", logger=TensorBoardLogger(runs), default_root_dir=runs,
        enable_progress_bar=sys.stderr.isatty(),
    )  # fmt: skip
    trainer.fit(model, DataLoader(data, batch_size, shuffle=True))
print(model.trained / model.seconds)

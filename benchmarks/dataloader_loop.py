"""LeNet-5 in the loop of most tutorials: torchvision's data set, a transform for each sample, a DataLoader, Adam."""

import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from ptrun.data.load import load


class Digits(datasets.MNIST):
    """ptrun's embedded digits as torchvision would hold them."""

    def __init__(self, transform: transforms.Compose) -> None:
        images = load("digits", None)
        self.data, self.targets = torch.from_numpy(images.train_images), torch.from_numpy(images.train_labels).long()
        self.transform, self.target_transform = transform, None


def main(name: str, folder: Path, batch_size: int, seconds: int, workers: int) -> None:
    """Train for some seconds and print images a second."""
    torch.manual_seed(0)
    transform = transforms.Compose(
        [transforms.Resize(32), transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))]
    )
    data = datasets.MNIST(folder, transform=transform) if name == "mnist" else Digits(transform)
    loader = DataLoader(data, batch_size, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    net = nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    trained, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for images, labels in loader:
            optimizer.zero_grad()
            loss = criterion(net(images), labels)
            loss.backward()
            optimizer.step()
            trained += len(labels)
            if time.perf_counter() - start >= seconds:
                break
    print(trained / (time.perf_counter() - start))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:6]))

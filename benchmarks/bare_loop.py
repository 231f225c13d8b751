"""LeNet-5 in a bare loop: the data set as one float tensor in memory, nothing logged, checked or saved.

This is about as fast as eager PyTorch gets. Same network, optimizer and schedule as the recipe `lenet`.
"""

import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from ptrun.data.load import load

name, folder, batch_size, seconds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])

torch.manual_seed(0)
data = load(name, folder)
x = torch.from_numpy(data.train_images).float().div(255).sub(data.normalisation.mean).div(data.normalisation.std)
x = F.pad(x.unsqueeze(1), (2, 2, 2, 2), value=-data.normalisation.mean / data.normalisation.std)  # [N, 1, 32, 32]
y = torch.from_numpy(data.train_labels).long()

net = nn.Sequential(
    nn.Conv2d(1, 6, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
    nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
)  # fmt: skip
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=5e-4, fused=True)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=1_000_000, cycle_momentum=False)

trained, start = 0, time.perf_counter()
while time.perf_counter() - start < seconds:
    for batch in torch.randperm(len(x)).split(batch_size):
        optimizer.zero_grad()
        F.cross_entropy(net(x[batch]), y[batch]).backward()
        optimizer.step()
        scheduler.step()
        trained += len(batch)
        if time.perf_counter() - start >= seconds:
            break
print(trained / (time.perf_counter() - start))

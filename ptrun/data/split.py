"""Split: a part of a data set that lies on the device and is handed out in batches."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ptrun.data.canvas import Canvas
from ptrun.data.imageset import Normalisation
from ptrun.data.sampling import generator, order


@dataclass(frozen=True, eq=False)
class Split:
    """Some samples of a data set, as square float images in batches.

    `images` uint8 [M, C, H, W] and `labels` int64 [M] are the storage, shared between splits; `index` int64 [N] says
    which of them belong to this one. All three lie on the same device. With `shuffle_seed` every epoch has its own
    order and random shifts of up to `shift` pixels (training); without it samples come in order and unshifted.
    """

    images: Tensor = field(repr=False)
    labels: Tensor = field(repr=False)
    index: Tensor = field(repr=False)
    classes: tuple[str, ...]
    size: int
    normalisation: Normalisation
    shuffle_seed: int | None = None
    shift: int = 0

    def __len__(self) -> int:
        return len(self.index)

    def batches(self, batch_size: int, *, epoch: int = 0, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield images float32 [B, C, size, size] and labels int64 [B]; the last batch may be shorter.

        `start` is the number of samples of this epoch already seen. From a multiple of `batch_size` on, the batches
        are bit for bit those of the whole epoch.
        """
        picks, shifts = self._epoch(epoch)
        labels = self.labels.index_select(0, picks)
        canvas = Canvas(self.images, min(batch_size, len(self)), self.size, self._largest_shift)
        corners = canvas.corners(shifts)
        # Scaling folded into one subtraction and one multiplication; each is rounded the same at any place in a batch.
        mean, scale = 255 * self.normalisation.mean, 1 / (255 * self.normalisation.std)
        for first in range(start, len(self), batch_size):
            batch = slice(first, first + batch_size)
            pixels = canvas.draw(picks[batch], corners[batch])  # uint8 [B, C, size, size]
            yield torch.sub(pixels, mean).mul_(scale), labels[batch]

    @property
    def _largest_shift(self) -> int:
        return 0 if self.shuffle_seed is None else self.shift

    def _epoch(self, epoch: int) -> tuple[Tensor, Tensor]:
        """Return, in the order of this epoch, storage rows [N] and the shifts (dy, dx) of each sample [2, N]."""
        n, device = len(self), self.index.device
        if self.shuffle_seed is None:
            return self.index, torch.zeros(2, n, dtype=torch.int64, device=device)
        ranking = order(self.shuffle_seed, epoch, n)
        draw = generator(self.shuffle_seed, "shift", epoch)
        shifts = torch.randint(-self.shift, self.shift + 1, (2, n), generator=draw)
        # Drawn per sample and then put in order: a sample's shift does not depend on its place in the epoch.
        return self.index[ranking.to(device)], shifts[:, ranking].to(device)

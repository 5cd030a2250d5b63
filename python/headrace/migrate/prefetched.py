# SPDX-License-Identifier: Apache-2.0
"""timm's PrefetchLoader: a DataLoader of uint8 images, whose batches are processed further on the
device.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from headrace import transforms as T
from headrace.migrate.originals import pixels_from_value
from headrace.migrate.translations.registry import Form, NoOperator, Translated, native, shown


def opened(dataloader: Any) -> tuple[Any, Prefetched | None]:
    """The DataLoader itself, and the operations of a PrefetchLoader around it."""
    kind = type(dataloader)
    if kind.__name__ == "PrefetchLoader" and kind.__module__.startswith("timm."):
        return dataloader.loader, Prefetched(dataloader)
    return dataloader, None


class Prefetched:
    """Bytes to floats, normalization, and timm's RandomErasing."""

    def __init__(self, loader: Any) -> None:
        self._dtype = loader.img_dtype
        self._mean = loader.mean.detach().cpu()
        self._std = loader.std.detach().cpu()
        self._erasing = copy.copy(loader.random_erasing)
        if self._erasing is not None:
            self._erasing.device = "cpu"  # its generator is seeded for each batch
        self.name = f"PrefetchLoader(mean={_listed(self._mean)}, std={_listed(self._std)})"

    def steps(self, probe: Any) -> list[Translated]:
        """The equivalent steps on each record. Raises NoOperator. probe: a sample image."""
        if str(self._dtype) != "torch.float32":
            raise NoOperator(f"it returns {self._dtype}")
        ours = [
            T.ToDtype("float32"),
            T.Normalize(self._mean.flatten().tolist(), self._std.flatten().tolist()),
        ]
        out = [Translated([self.name], ours, ours, lambda image: self._normalized(image)[0], True)]
        if self._erasing is not None:
            if self._erasing.num_splits > 1:
                raise NoOperator(f"{shown(self._erasing)} skips a part of each batch")
            form = Form("tensor", "float32", True, [self._normalized(probe)[0]])
            step = native(self._erasing, form)
            assert step is not None
            out.append(step)
        return out

    def __call__(self, batch: Any) -> Any:
        """The same for a whole batch, as timm does it: (images, targets)."""
        images, targets = batch
        return self.erased(self._normalized(images)), targets

    def erased(self, images: Any) -> Any:
        """Applies the erasing, the last operation, to normalized images."""
        return images if self._erasing is None else self._erasing(images)

    def planes(self) -> list[tuple[Any, Any]] | None:
        """Mean and deviation of each channel, as float32; None if it returns another dtype."""
        if str(self._dtype) != "torch.float32":
            return None
        values = (each.flatten().to(self._dtype).numpy() for each in (self._mean, self._std))
        return list(zip(*values, strict=True))

    def _normalized(self, images: Any) -> Any:
        import torch

        if not isinstance(images, torch.Tensor):
            images = torch.from_numpy(np.ascontiguousarray(pixels_from_value(images)))
        mean, std = (each.to(images.device, self._dtype) for each in (self._mean, self._std))
        numbers = images.to(self._dtype)
        # may be overwritten, and has as many axes as the result
        of_ours = numbers is not images and numbers.ndim == mean.ndim
        return (numbers.sub_(mean) if of_ours else numbers.sub(mean)).div_(std)


def _listed(values: Any) -> str:
    return str([round(float(value) / 255, 4) for value in values.flatten()])

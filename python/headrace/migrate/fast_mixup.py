# SPDX-License-Identifier: Apache-2.0
"""timm's FastCollateMixup on uint8 batches, with the same random draws and arithmetic.

timm's function allocates new memory for each sum of two images, and a PrefetchLoader then makes
three passes over the whole batch. Here the two images of a pair are converted once, for both sums,
plane by plane; on the host, normalization is applied while the plane is in the cache.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from headrace.migrate.collated import Collated
from headrace.migrate.prefetched import Prefetched
from headrace.migrate.samples import Samples
from headrace.migrate.seeding import seeded

_SEEDS = 8  # cases in which both are compared: mixed, cut, with and without a border


def of(function: Any, samples: Samples, after: Prefetched | None) -> Collated | None:
    """A function that returns the collate function's batches; None if that is not timm's, or
    returns other batches. ``mixup_enabled`` is checked at each batch.
    """
    kind = type(function)
    if kind.__name__ != "FastCollateMixup" or not kind.__module__.startswith("timm."):
        return None
    if getattr(function, "mode", None) != "batch" or not hasattr(function, "_params_per_batch"):
        return None
    mixup = _FastMixup(function, samples, after)
    try:
        return mixup if all(_is_alike(mixup, seed) for seed in range(_SEEDS)) else None
    except Exception:  # a different version
        return None


class _FastMixup(Collated):
    def __init__(self, function: Any, samples: Samples, prefetched: Prefetched | None) -> None:
        super().__init__(function, samples, after=prefetched)
        self._prefetched = prefetched
        # Mean and standard deviation of each channel, if float32 is requested.
        self._planes = None if prefetched is None else prefetched.planes()

    def called(self, samples: list[Any], device: Any) -> Any:
        import torch

        images = [_bytes_of(image) for image, _ in samples]
        first = images[0]
        if len(samples) % 2 or any(image is None or image.shape != first.shape for image in images):
            return super().called(samples, device)
        own: Any = self.function
        home: Any = sys.modules[type(own).__module__]
        is_ended = device is None and self._planes is not None  # done on the device
        dtype = torch.float32 if is_ended else torch.uint8
        output = torch.empty((len(samples), *first.shape), dtype=dtype)
        share = self._mix(images, output.numpy(), home)
        labels = torch.utils.data.default_collate([label for _, label in samples])
        targets = home.mixup_target(
            labels, own.num_classes, share, own.label_smoothing, own.multi_label
        )
        return output, targets

    def finished(self, batch: Any, device: Any) -> Any:
        images, targets = batch
        if self._prefetched is None or str(images.dtype) == "torch.uint8":
            return super().finished(batch, device)
        return self._prefetched.erased(images), targets

    def _mix(self, images: list[Any], output: Any, home: Any) -> Any:
        """Mixes each image with that at the mirrored position in the batch; returns the image's
        weight."""
        own: Any = self.function
        share, cuts = own._params_per_batch()
        rows, columns = slice(0), slice(0)
        if cuts:
            (top, bottom, left, right), share = home.cutmix_bbox_and_lam(
                output.shape, share, ratio_minmax=own.cutmix_minmax, correct_lam=own.correct_lam
            )
            rows, columns = slice(top, bottom), slice(left, right)
        one, two, sums, parts = (np.empty(output.shape[2:], np.float32) for _ in range(4))
        for number, other in ((n, -1 - n) for n in range(len(images) // 2)):
            for plane in range(output.shape[1]):
                one[...] = images[number][plane]
                two[...] = images[other][plane]
                for a, b, place in ((one, two, number), (two, one, other)):
                    if cuts or share == 1:
                        sums[...] = a
                        if share != 1:
                            sums[rows, columns] = b[rows, columns]
                    else:
                        np.multiply(a, share, out=sums)
                        np.multiply(b, 1 - share, out=parts)
                        np.add(sums, parts, out=sums)
                        np.rint(sums, out=sums)
                    self._store(sums, plane, output[place][plane])
        return share

    def _store(self, values: Any, plane: int, to: Any) -> None:
        if to.dtype == np.uint8:
            np.copyto(to, values, casting="unsafe")
            return
        assert self._planes is not None
        mean, deviation = self._planes[plane]
        np.subtract(values, mean, out=values)
        np.divide(values, deviation, out=to)


def _bytes_of(image: Any) -> Any:
    """A (C, H, W) uint8 image as an array; None for other values."""
    if hasattr(image, "detach") and str(image.dtype) == "torch.uint8":
        image = image.numpy()
    is_bytes = isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.ndim == 3
    return image if is_bytes else None


def _is_alike(mixup: _FastMixup, seed: int) -> bool:
    import torch

    rng = np.random.default_rng(seed)
    function: Any = mixup.function
    arrays = [rng.integers(0, 256, (3, 19, 23), np.uint8) for _ in range(4)]
    labels = [int(rng.integers(function.num_classes)) for _ in arrays]
    for make in (np.copy, torch.tensor):
        made = [list(zip(map(make, arrays), labels, strict=True)) for _ in range(2)]
        with seeded(seed):
            expected = Collated.finished(mixup, function(made[0]), None)
        with seeded(seed):
            given = mixup.finished(mixup.called(made[1], None), None)
        if not all(torch.equal(*pair) for pair in zip(given, expected, strict=True)):
            return False
    return True

# SPDX-License-Identifier: Apache-2.0
"""Converts finished batches of patches to the form of timm's NaFlexCollator and
NaFlexPrefetchLoader.
"""

from __future__ import annotations

from typing import Any

import torch

from headrace import transforms as T
from headrace.migrate.seeding import seeded
from headrace.trainers import MISFIT
from headrace.trainers.timm_schedule import Key


class PatchForm:
    """From finished batches to timm's."""

    fields = ("image", "label")

    def __init__(self, plan: Any, prefetched: Any, channels_last: bool) -> None:
        self.device = None if prefetched is None else prefetched.device
        self._plan, self._channels_last = plan, channels_last
        self._prefetched = prefetched
        if prefetched is not None:
            self._mean, self._std = (
                each.detach().float().cpu().flatten() for each in (prefetched.mean, prefetched.std)
            )

    def _edge(self, key: Key) -> int:
        height, width = self._plan.patches[key.patch]
        if height != width:
            raise MISFIT.error(
                f"patches of {height} x {width} pixels are not square",
                hint="pass one number as patch_size, or use timm's own create_naflex_loader",
            )
        return int(height)

    def steps(self, key: Key) -> list[Any]:
        """What follows timm's transforms of an image."""
        edge = self._edge(key)
        steps = []
        if self._prefetched is not None:
            steps = [T.ToDtype("float32"), T.Normalize(self._mean.tolist(), self._std.tolist())]
        patches, coordinates = [T.Patchify(edge)], [T.PatchCoordinates(edge)]
        return [*steps, T.Fork(self.fields[0], patches=patches, patch_coord=coordinates)]

    def theirs(self, batch: dict[str, Any], key: Key, draws: int) -> Any:
        """The batch in the form of NaFlexCollator and NaFlexPrefetchLoader."""
        patches, coordinates, valid = self._padded(batch, key.seq_len)
        edge = self._edge(key)
        if self._prefetched is not None:  # timm pads with black pixels before it normalizes
            black = (-self._mean / self._std).to(patches.device, patches.dtype)
            patches[~valid] = black.repeat(edge * edge)
            patches = self._erased(patches, coordinates, valid, draws)
        channels = patches.shape[-1] // (edge * edge)
        if not self._channels_last:
            patches = patches.unflatten(-1, (edge * edge, channels)).transpose(-2, -1).flatten(-2)
        if not self._plan.is_flat:
            inner = (edge, edge, channels) if self._channels_last else (channels, edge, edge)
            patches = patches.unflatten(-1, inner)
        theirs = {
            "patches": patches,
            "patch_coord": coordinates,
            "patch_valid": valid,
            "seq_len": key.seq_len,
        }
        return theirs, batch[self.fields[1]]

    def _padded(self, batch: dict[str, Any], seq_len: int) -> tuple[Any, Any, Any]:
        """Patches, their coordinates with zeros in the padding, and which are valid."""
        patches, coordinates = batch["patches"], batch["patch_coord"]
        valid = batch.get("patches_mask")
        if valid is None:  # all images have one size, so the loader has not padded them
            count = patches.shape[1]
            more = (0, 0, 0, seq_len - count)
            patches = torch.nn.functional.pad(patches, more)
            coordinates = torch.nn.functional.pad(coordinates, more)
            known = torch.arange(seq_len, device=patches.device) < count
            return patches, coordinates, known.expand(len(patches), -1).contiguous()
        coordinates.masked_fill_(~valid[..., None], 0)
        return patches, coordinates, valid

    def _erased(self, patches: Any, coordinates: Any, valid: Any, draws: int) -> Any:
        """timm's erasing of patches, with draws of this batch, in its dtype."""
        patches = patches.to(self._prefetched.img_dtype)
        if self._prefetched.random_erasing is None:
            return patches
        pixels = patches.unflatten(-1, (-1, len(self._mean)))
        with seeded(draws & 0x7FFFFFFF):
            erased = self._prefetched.random_erasing(
                pixels, patch_coord=coordinates, patch_valid=valid
            )
        return erased.flatten(-2)

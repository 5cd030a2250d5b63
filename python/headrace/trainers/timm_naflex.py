# SPDX-License-Identifier: Apache-2.0
"""timm's loader for NaFlex models: each batch has its own sequence length and patch size, and as
many records as its budget of tokens allows. The order is timm's, the batches are Headrace's.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from timm import data
from timm.data.naflex_transforms import Patchify

from headrace import _core
from headrace import transforms as T
from headrace.loader import Loader
from headrace.migrate.known_dataset import Dataset as Translated
from headrace.migrate.known_dataset import Told
from headrace.migrate.pipeline import Parts, parts_of
from headrace.migrate.report import NATIVE, PYTHON, Report
from headrace.migrate.resolved import resolved
from headrace.migrate.seeding import seeded
from headrace.sampling import Batches, Records, Sampling
from headrace.trainers import MISFIT

_AHEAD = 4  # batches whose loaders run ahead
_STATE = ("epoch", "batch", "schedule")


def create_naflex_loader(
    dataset: Any,
    *arguments: Any,
    verbose: bool = True,
    check: bool = True,
    on_error: str = "raise",
    **options: Any,
) -> NaFlexLoader:
    """Like ``timm.data.create_naflex_loader`` with the same arguments, but loads with Headrace.
    Batches are ``({"patches", "patch_coord", "patch_valid", "seq_len"}, targets)``, in timm's order
    and sizes, for the epoch of ``loader.dataset.set_epoch(epoch)``, else for one epoch after the
    other. ``state_dict()`` and ``load_state_dict()`` resume in mid-epoch, on the same number of
    ranks. verbose: prints how each part was translated. check: compares 32 records with timm's,
    without randomness. on_error: of a damaged image, as for Loader.

    Raises ConfigError HR0850 for ``mixup_fn``.
    """
    with contextlib.redirect_stdout(None):  # timm prints the number of batches
        theirs = data.create_naflex_loader(dataset, *arguments, **options)
    loader = NaFlexLoader(theirs, check, on_error)
    if verbose:
        print(loader.report)
    return loader


class _Key(NamedTuple):
    """What all records of a batch have in common."""

    seq_len: int
    patch: int  # index of the patch size


class _Planned(NamedTuple):
    key: _Key
    records: list[int]


class _Transformed:
    """Records of a dataset that has no attribute ``transform``."""

    def __init__(self, dataset: Any, transform: Any) -> None:
        self.dataset, self.transform = dataset, transform

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        image, label = self.dataset[index]
        return self.transform(image), label


def _with_transform(dataset: Any, transform: Any) -> Any:
    if not hasattr(dataset, "transform"):
        return _Transformed(dataset, transform)
    copied = copy.copy(dataset)
    copied.transform = transform
    return copied


class _Training:
    """The batches of each epoch as timm's NaFlexMapDatasetWrapper plans them."""

    def __init__(self, wrapper: Any) -> None:
        if wrapper.mixup_fn is not None:
            raise MISFIT.error(
                "mixup_fn mixes images of different sizes, which this loader does not",
                hint="mixup_fn=None, or timm's own create_naflex_loader",
            )
        self.wrapper, self.base = wrapper, wrapper.base_dataset
        self.transforms = {_Key(*key): each for key, each in wrapper.transforms.items()}
        self.patches = list(wrapper.patch_sizes)
        self.is_flat = not wrapper.variable_patch_size
        self.seed, self.rank = int(wrapper.seed), int(wrapper.rank)
        self.epoch = int(wrapper.shared_epoch.value)

    def batches(self, epoch: int) -> list[_Planned]:
        planned = self.wrapper._prepare_epoch_batches(epoch)
        return [_Planned(_Key(seq_len, patch), rows) for seq_len, patch, rows in planned]

    def __len__(self) -> int:
        return len(self.wrapper)

    def identity(self) -> Any:
        w = self.wrapper
        return [w.world_size, w.seed, w.shuffle, w._canonical_batch_schedule, w.patch_size_probs]


class _Evaluation:
    """All records in order, with one sequence length."""

    seed = rank = epoch = 0
    is_flat = True

    def __init__(self, loader: Any) -> None:
        dataset = self.base = loader.dataset
        *steps, patchify = dataset.transform.transforms
        assert isinstance(patchify, Patchify)
        composed = copy.copy(dataset.transform)
        composed.transforms = steps
        self.key = _Key(loader.collate_fn.max_seq_len, 0)
        self.transforms = {self.key: composed}
        self.patches = [patchify.patch_size]
        self._order = [int(index) for index in loader.sampler]
        self._size: int = loader.batch_size

    def batches(self, epoch: int) -> list[_Planned]:
        begins = range(0, len(self._order), self._size)
        return [_Planned(self.key, self._order[at : at + self._size]) for at in begins]

    def __len__(self) -> int:
        return -(-len(self._order) // self._size)

    def identity(self) -> Any:
        return [len(self._order), self._size]


class _Fixed(Sampling):
    """These batches of record indices, in every epoch."""

    def __init__(self, batches: Sequence[Sequence[int]]) -> None:
        self._sizes = [len(batch) for batch in batches]
        self._order = np.fromiter((i for batch in batches for i in batch), np.int64)

    def engine(self, source: Records, shuffle: bool, batches: Batches) -> _core.Sampler:
        def order(seed: int, epoch: int) -> Any:
            return self._order

        fingerprint = _digest(self._sizes, self._order.tobytes())
        count = len(self._order)
        text = "timm's schedule"
        return _core.asked(order, len(source), count, self._sizes, fingerprint, text)


def _digest(*described: Any) -> int:
    digest = hashlib.blake2b(repr(described).encode(), digest_size=7).digest()
    return int.from_bytes(digest, "little")


class NaFlexLoader:
    """The result of ``create_naflex_loader``."""

    def __init__(self, theirs: Any, check: bool, on_error: str) -> None:
        inner = getattr(theirs, "loader", theirs)
        prefetched = theirs if inner is not theirs else None
        wrapped = inner.dataset
        is_training = isinstance(wrapped, data.NaFlexMapDatasetWrapper)
        self._plan: Any = _Training(wrapped) if is_training else _Evaluation(inner)
        self._form = _Form(self._plan, prefetched, _is_channels_last(wrapped))
        self.report = Report(f"NaFlex loader over {type(self._plan.base).__name__}")
        self._translated: Translated | None = None
        self._keys = list(self._plan.transforms)
        self._steps: dict[_Key, list[Any]] = {}
        for key, transform in self._plan.transforms.items():
            self._translate(key, transform, self.report if check else None)
        self._on_error = on_error
        self._memory: int | None = None
        self.dataset = Dataset(self, wrapped)
        self.sampler = self.batch_sampler = self.dataset
        self._epoch, self._batch = self._plan.epoch, 0
        self._is_placed = True  # whether the next iteration begins exactly there
        self._running: Iterator[Any] | None = None
        self._schedule = _digest(len(self._plan.base), self._plan.identity(), self._plan.patches)

    def _translate(self, key: _Key, transform: Any, report: Report | None) -> None:
        first = self._translated
        if first is not None and first.transform is not None:  # only the transform differs
            translated = copy.copy(first)
            translated.transform = transform
            parts = parts_of(translated)
        else:
            dataset = _with_transform(self._plan.base, transform)
            told = Told(None, False, None, False)
            translated, parts = resolved(dataset, told, True, report, {})
        if first is None:
            self._translated = translated
            self._describe(translated, parts)
        steps = parts.pipeline(translated, steady=False)
        self._steps[key] = [*steps, *self._form.steps(key)]

    def _describe(self, translated: Translated, parts: Parts) -> None:
        image, *rest = translated.fields
        if len(rest) != 1:
            raise MISFIT.error(
                f"records have the fields {', '.join(translated.fields)}, not an image and a target"
            )
        self._form.fields = image, rest[0]
        became = PYTHON if translated.steps else NATIVE
        named = f"{translated.name} ({len(translated.source):,} records)"
        self.report.add(named, became, translated.note, translated.cost)
        for step, note in parts.listed:
            for name in step.names:
                self.report.add(name, NATIVE if step.native else PYTHON, note)
        lengths = ", ".join(str(each) for each in dict.fromkeys(k.seq_len for k in self._keys))
        edges = ", ".join(str(edge) for edge, _ in self._plan.patches)
        self.report.add(f"sequence lengths {lengths}, patch sizes {edges}", NATIVE)

    @property
    def epoch(self) -> int:
        """The current epoch; it advances when an iteration is exhausted."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration this epoch; a loaded position in it is kept."""
        if epoch != self._epoch or not self._is_placed:
            self._place(epoch, 0)

    def _place(self, epoch: int, batch: int) -> None:
        self._epoch, self._batch, self._is_placed = int(epoch), int(batch), True

    def state_dict(self) -> dict[str, int]:
        """The position after the batches received so far."""
        return {"epoch": self._epoch, "batch": self._batch, "schedule": self._schedule}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Makes the next iteration begin after the last batch that ``state`` has counted. Raises
        ConfigError HR0850 for a state of other records, arguments or number of ranks.
        """
        missing = [name for name in _STATE if name not in state]
        if missing or state["schedule"] != self._schedule:
            raise MISFIT.error(
                f"the state has no {', '.join(missing)}"
                if missing
                else "the state is of a loader "
                "with other records, other arguments or another number of ranks",
                hint="load the state_dict() of a loader with the same arguments and ranks",
            )
        self._place(state["epoch"], state["batch"])

    def __len__(self) -> int:
        return len(self._plan)

    def __iter__(self) -> Iterator[Any]:
        self.close()
        if not self._is_placed:  # the last iteration was left before its end
            self._place(self._epoch + 1, 0)
        self._running = self._of_epoch(self._epoch, self._batch)
        return self._running

    def close(self) -> None:
        """Ends the present iteration."""
        if self._running is not None:
            self._running.close()  # type: ignore[attr-defined]
            self._running = None

    def _of_epoch(self, epoch: int, begin: int) -> Iterator[Any]:
        planned = self._plan.batches(epoch)
        of_key: dict[_Key, list[list[int]]] = {}
        for key, records in planned:
            of_key.setdefault(key, []).append(records)
        done = Counter(key for key, _ in planned[:begin])
        with contextlib.ExitStack() as loaders:
            runs: dict[_Key, Iterator[Any]] = {}
            for number in range(begin, len(planned)):
                for key, _ in planned[number : number + _AHEAD]:
                    if key not in runs:
                        view = self._view(key, of_key[key], epoch, done[key])
                        loaders.callback(view.close)
                        runs[key] = iter(view)
                batch = next(runs[planned[number].key])
                self._epoch, self._batch, self._is_placed = epoch, number + 1, False
                draws = _digest(self._plan.seed, self._plan.rank, epoch, number)
                yield self._form.theirs(batch, planned[number].key, draws)
        self._place(epoch + 1, 0)

    def _view(self, key: _Key, batches: list[list[int]], epoch: int, done: int) -> Any:
        seed = _digest(self._plan.seed, self._plan.rank, key)
        assert self._translated is not None
        loader = Loader(
            self._translated.source,
            self._steps[key],
            sampler=_Fixed(batches),
            seed=seed,
            shard=False,
            ragged="pad",
            pad_to_multiple_of=key.seq_len,
            pad_value={"patch_coord": 0},
            fields=("patches", "patch_coord", self._form.fields[1]),
            on_error=self._on_error,
            memory_limit=self._memory,
            **self._translated.options,
        )
        if self._memory is None:
            self._memory = int(loader.stats()["memory_limit"]) // len(self._steps)
            loader.close()
            return self._view(key, batches, epoch, done)
        view = loader.torch(self._form.device, batch="dict")
        place = {"epoch": epoch, "batch": done, "bad_records": 0}
        view.load_state_dict({**view.state_dict(), **place})
        return view


def _is_channels_last(dataset: Any) -> bool:
    patchifiers = getattr(dataset, "patchifiers", None) or dataset.transform.transforms
    return bool(patchifiers[-1].channels_last)


class Dataset:
    """timm's dataset of the loader, with this loader's epoch."""

    def __init__(self, loader: NaFlexLoader, dataset: Any) -> None:
        self._loader, self._dataset = loader, dataset

    def set_epoch(self, epoch: int) -> None:
        """See NaFlexLoader.set_epoch."""
        self._loader.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._dataset, name)


class _Form:
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

    def _edge(self, key: _Key) -> int:
        height, width = self._plan.patches[key.patch]
        if height != width:
            raise MISFIT.error(
                f"patches of {height} x {width} pixels are not square",
                hint="one number as patch_size, or timm's own create_naflex_loader",
            )
        return int(height)

    def steps(self, key: _Key) -> list[Any]:
        """What follows timm's transforms of an image."""
        edge = self._edge(key)
        steps = []
        if self._prefetched is not None:
            steps = [T.ToDtype("float32"), T.Normalize(self._mean.tolist(), self._std.tolist())]
        patches, coordinates = [T.Patchify(edge)], [T.PatchCoordinates(edge)]
        return [*steps, T.Fork(self.fields[0], patches=patches, patch_coord=coordinates)]

    def theirs(self, batch: dict[str, Any], key: _Key, draws: int) -> Any:
        """The batch in the form of NaFlexCollator and NaFlexPrefetchLoader."""
        patches, valid = batch["patches"], batch["patches_mask"]
        edge = self._edge(key)
        if self._prefetched is not None:  # timm pads with black pixels before it normalizes
            black = (-self._mean / self._std).to(patches.device, patches.dtype)
            patches[~valid] = black.repeat(edge * edge)
            patches = self._erased(patches, batch, draws)
        channels = patches.shape[-1] // (edge * edge)
        if not self._channels_last:
            patches = patches.unflatten(-1, (edge * edge, channels)).transpose(-2, -1).flatten(-2)
        if not self._plan.is_flat:
            inner = (edge, edge, channels) if self._channels_last else (channels, edge, edge)
            patches = patches.unflatten(-1, inner)
        theirs = {
            "patches": patches,
            "patch_coord": batch["patch_coord"],
            "patch_valid": valid,
            "seq_len": key.seq_len,
        }
        return theirs, batch[self.fields[1]]

    def _erased(self, patches: Any, batch: dict[str, Any], draws: int) -> Any:
        """timm's erasing of patches, with draws of this batch, in its dtype."""
        patches = patches.to(self._prefetched.img_dtype)
        if self._prefetched.random_erasing is None:
            return patches
        pixels = patches.unflatten(-1, (-1, len(self._mean)))
        with seeded(draws & 0x7FFFFFFF):
            erased = self._prefetched.random_erasing(
                pixels, patch_coord=batch["patch_coord"], patch_valid=batch["patches_mask"]
            )
        return erased.flatten(-2)


__all__ = ["NaFlexLoader", "create_naflex_loader"]

# SPDX-License-Identifier: Apache-2.0
"""timm's loader for NaFlex models: each batch has its own sequence length and patch size, and as
many records as its budget of tokens allows. The order is timm's, the batches are Headrace's.
"""

from __future__ import annotations

import contextlib
import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from timm import data

from headrace.errors import Error
from headrace.loader import Loader
from headrace.migrate.known_dataset import Dataset as Translated
from headrace.migrate.known_dataset import Told
from headrace.migrate.pipeline import Parts, parts_of
from headrace.migrate.report import NATIVE, PYTHON, Report
from headrace.migrate.resolved import resolved
from headrace.trainers import MISFIT
from headrace.trainers.timm_patches import PatchForm
from headrace.trainers.timm_schedule import Evaluation, FixedBatches, Key, Training, digest

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


class _Transformed:
    """Records of a dataset that has no attribute ``transform``."""

    def __init__(self, dataset: Any, transform: Any) -> None:
        self.dataset, self.transform = dataset, transform

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        image, label = self.dataset[index]
        return self.transform(image), label


def _with_transform(dataset: Any, transform: Any, joined: bool) -> Any:
    """The dataset with this transform: after its own one if ``joined``, else instead of it."""
    if not hasattr(dataset, "transform"):
        about = {"__module__": type(dataset).__module__}  # it is traced like the user's classes
        return type("Transformed", (_Transformed,), about)(dataset, transform)
    copied = copy.copy(dataset)
    before = dataset.transform if joined else None
    copied.transform = transform if before is None else type(transform)([before, transform])
    return copied


class NaFlexLoader:
    """The result of ``create_naflex_loader``."""

    def __init__(self, theirs: Any, check: bool, on_error: str) -> None:
        inner = getattr(theirs, "loader", theirs)
        prefetched = theirs if inner is not theirs else None
        wrapped = inner.dataset
        is_training = isinstance(wrapped, data.NaFlexMapDatasetWrapper)
        self._plan: Any = Training(wrapped) if is_training else Evaluation(inner)
        self._form = PatchForm(self._plan, prefetched, _is_channels_last(wrapped))
        self.report = Report(f"NaFlex loader over {type(self._plan.base).__name__}")
        self._translated: Translated | None = None
        self._keys = list(self._plan.transforms)
        self._steps: dict[Key, list[Any]] = {}
        for key, transform in self._plan.transforms.items():
            self._translate(key, transform, self.report if check else None)
        self._on_error = on_error
        self._memory: int | None = None
        self._memory = self._memory_of_each()
        self.dataset = Dataset(self, wrapped)
        self.sampler = self.batch_sampler = self.dataset
        self._epoch, self._batch = self._plan.epoch, 0
        self._is_placed = True  # whether the next iteration begins exactly there
        self._running: Iterator[Any] | None = None
        self._schedule = digest(len(self._plan.base), self._plan.identity(), self._plan.patches)

    def _translate(self, key: Key, transform: Any, report: Report | None) -> None:
        first = self._translated
        dataset = _with_transform(self._plan.base, transform, self._plan.is_training)
        if first is not None and first.transform is not None:  # only the transform differs
            translated = copy.copy(first)
            translated.transform = dataset.transform
            parts = parts_of(translated)
        else:
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

    def _loader(self, key: Key, batches: list[list[int]]) -> Loader:
        assert self._translated is not None
        return Loader(
            self._translated.source,
            self._steps[key],
            sampler=FixedBatches(batches),
            seed=digest(self._plan.seed, self._plan.rank, key),
            shard=False,
            ragged="pad",
            pad_to_multiple_of=key.seq_len,
            fields=("patches", "patch_coord", self._form.fields[1]),
            on_error=self._on_error,
            memory_limit=self._memory,
            **self._translated.options,
        )

    def _memory_of_each(self) -> int:
        """The default of memory_limit, divided. Raises ConfigError HR0850 for a dataset whose
        images are not read from files.
        """
        assert self._translated is not None
        try:
            with self._loader(self._keys[0], [[0]]) as first:
                return int(first.stats()["memory_limit"]) // len(self._keys)
        except Error as reason:
            if not self._translated.steps:
                raise
            raise MISFIT.error(
                f"records of {self._translated.name} stay in Python: {self._translated.note}",
                hint="use a dataset that opens image files, or timm's own create_naflex_loader",
            ) from reason

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
                else "the state is from a loader with other records, other arguments or another "
                "number of ranks",
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
        """Ends the current iteration."""
        if self._running is not None:
            self._running.close()  # type: ignore[attr-defined]
            self._running = None

    def _of_epoch(self, epoch: int, begin: int) -> Iterator[Any]:
        planned = self._plan.batches(epoch)
        of_key: dict[Key, list[list[int]]] = {}
        for key, records in planned:
            of_key.setdefault(key, []).append(records)
        done = Counter(key for key, _ in planned[:begin])
        with contextlib.ExitStack() as loaders:
            runs: dict[Key, Iterator[Any]] = {}
            for number in range(begin, len(planned)):
                for key, _ in planned[number : number + _AHEAD]:
                    if key not in runs:
                        view = self._view(key, of_key[key], epoch, done[key])
                        loaders.callback(view.close)
                        runs[key] = iter(view)
                batch = next(runs[planned[number].key])
                self._epoch, self._batch, self._is_placed = epoch, number + 1, False
                draws = digest(self._plan.seed, self._plan.rank, epoch, number)
                yield self._form.theirs(batch, planned[number].key, draws)
        self._place(epoch + 1, 0)

    def _view(self, key: Key, batches: list[list[int]], epoch: int, done: int) -> Any:
        view = self._loader(key, batches).torch(self._form.device, batch="dict")
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


__all__ = ["NaFlexLoader", "create_naflex_loader"]

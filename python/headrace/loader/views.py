# SPDX-License-Identifier: Apache-2.0
"""Batches as a framework's arrays: the results of ``loader.torch()`` and similar methods.

A view holds no batch and no position: both belong to the loader. Several views of one loader are
one iteration, seen as different arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from headrace import _core
from headrace.loader.form import Devices, Form
from headrace.loader.options import memory_format
from headrace.loader.viewed import ViewedLoader
from headrace.per_record import per_record

_View = TypeVar("_View", bound="Delivered")


class Field(NamedTuple):
    """A delivered field; ``shape``: of one record, in memory order."""

    kind: str
    dtype: str
    shape: tuple[int, ...]
    is_picture: bool
    is_list: bool  # text, bytes, keys, records of differing shape
    is_packed: bool  # without a record axis: packed rows, or the offsets of each record's rows


def delivered_fields(loader: ViewedLoader) -> dict[str, Field]:
    """The loader's fields, for frameworks that need to know them beforehand and have no strides."""
    turned = memory_format(loader.assembly.given["memory_format"]) == "channels_last"
    fields = {}
    for output in loader.assembly.engine().outputs():
        shape = tuple(output["shape"])
        is_packed = output["ragged"] == "packed"
        if is_packed and output["is_companion"]:
            shape = (-1,)
        if turned and output["is_picture"] and len(shape) == 3:
            shape = (*shape[1:], shape[0])
        fields[output["name"]] = Field(
            output["kind"], output["dtype"], shape, output["is_picture"], output["list"], is_packed
        )
    return fields


class Delivered:
    """A loader whose batches are a framework's arrays. Everything else is forwarded to the loader.

    It can be iterated repeatedly, one epoch each time. It is not a DataLoader: the loader already
    divides each global batch over the ranks, so nothing may divide it a second time; Lightning and
    Accelerate leave it unchanged.
    """

    def __init__(
        self,
        loader: ViewedLoader,
        convert: Callable[[_core.Array], Any],
        batch: str = "tuple",
        devices: Devices = (),
        depth: int = 2,
    ) -> None:
        self.loader = loader
        self.form = Form(convert, batch, devices, depth)

    # Written out although __getattr__ would find them: frameworks look for them on the class.

    def __iter__(self) -> Iterator[Any]:
        return self.loader.iterate_as(self.form)

    def __len__(self) -> int:
        return len(self.loader)

    @property
    def batch_size(self) -> int:
        """Records in a full batch of this rank."""
        return self.loader.batch_size

    @property
    def epoch(self) -> int:
        """The current epoch; it advances when an iteration is exhausted."""
        return self.loader.epoch

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration this epoch. See Loader.set_epoch."""
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """The position after the batches received so far. See Loader.state_dict."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next iteration begin after the last batch that ``state`` has counted."""
        self.loader.load_state_dict(state)

    def batch(self, epoch: int, index: int) -> Any:
        """Batch ``index`` of an epoch, with ``.id`` and ``.key``. See Loader.batch."""
        return self.loader.batch_as(epoch, index, self.form)

    def peek(self) -> Any:
        """The next batch, without consuming it."""
        return self.loader.peek_as(self.form)

    def per_record(self, batch: Any, *fields: str) -> list[dict[str, Any]]:
        """Splits a batch into one dictionary per record, of ``fields`` or of all, like
        ``batch.per_record``.

        For batches delivered as dictionaries, which lack this method. Raises ConfigError HR0743 for
        an unknown field, or one that is no longer in the dictionary.
        """
        values = batch if isinstance(batch, Mapping) else batch._asdict()
        return per_record(self.loader.assembly.layout(), values, fields)

    def close(self) -> None:
        """Closes the loader; batches that you keep stay valid."""
        self.loader.close()

    def __enter__(self: _View) -> _View:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if (
            name.startswith("_") or name == "loader"
        ):  # during copying, the attribute may not exist yet
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        try:
            return getattr(self.loader, name)
        except AttributeError:
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name!r}: it is not a DataLoader, and "
                "docs/guide/frameworks.md lists the attributes that .torch() shares with it; "
                ".loader is the headrace.Loader, .source its records"
            ) from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.loader)})

    def __repr__(self) -> str:
        return repr(self.loader)

# SPDX-License-Identifier: Apache-2.0
"""Datasets of torchvision and torch as sources; others as a Python transform that calls them for
each record."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace import transforms as T
from headrace.migrate import coco, huggingface, voc
from headrace.migrate.deferred.proof import deferred_fields
from headrace.migrate.generators import generators_in
from headrace.migrate.known_dataset import (
    REFUSED,
    Dataset,
    NoFormat,
    Told,
    is_wrapped,
    untransformed,
)
from headrace.migrate.look import child
from headrace.migrate.modules import is_users
from headrace.migrate.nesting import Node, node_of
from headrace.migrate.originals import Fetch, NotLikeTheFirst, described, value_crossing
from headrace.migrate.seeding import seeded
from headrace.migrate.spread import spread
from headrace.sources import Source, records, subset
from headrace.sources.column_list import ColumnList
from headrace.sources.columns import array_of
from headrace.sources.media_paths import is_media_path
from headrace.sources.pictures import is_picture
from headrace.sources.values import is_integer

Traced = Callable[[Any, str], Dataset]


def translate(dataset: Any, told: Told, traced: Traced) -> Dataset:
    """Translates the dataset, or a torch Subset of one. Raises ConfigError if its records have no
    fields. traced(dataset, why): for an unknown dataset, and why it is unknown; or NoFormat.
    """
    base, rows = _opened(dataset)
    _refuse_whole_batches(base)
    if not hasattr(base, "__getitem__") or not hasattr(base, "__len__"):
        raise REFUSED.error(
            f"{type(base).__name__} has no random access to its records",
            hint="hr.prefetch(dataloader, device) feeds a GPU from any iterable",
        )
    if not len(base if rows is None else rows):
        raise REFUSED.error(
            f"its {type(dataset).__name__} has no records",
            hint="a DataLoader gives no batches then, and needs no replacement",
        )
    try:
        if huggingface.is_known(base):
            files = huggingface.rows_of(base, rows, told.collate)
            out = traced(files, "")
            out.left_out = files.rows_left_out
            return out
        out = _maker_of(base)(base, told)
    except NoFormat as reason:
        try:
            return traced(dataset, str(reason))
        except NoFormat as left:
            return asked(dataset, left, told)
    out.name = type(base).__name__
    if rows is not None:
        of_all = out.raw
        picked = rows
        out.source = subset(out.source, rows)
        out.raw = lambda i: of_all(int(picked[i]))
    return out


def _refuse_whole_batches(dataset: Any) -> None:
    """A DataLoader calls ``__getitems__`` for the records of a batch, if it exists."""
    fetch = getattr(dataset, "__getitems__", None)
    if type(fetch).__module__.startswith("headrace."):  # set by a view
        fetch = getattr(type(dataset), "__getitems__", None)
        fetch = fetch and fetch.__get__(dataset)
    own = getattr(fetch, "__self__", None) is dataset
    if fetch and not (own and not is_users(getattr(fetch, "__module__", None))):
        raise REFUSED.error(
            f"{type(dataset).__name__} has a __getitems__ of its own, which a DataLoader calls "
            "for whole batches",
            hint="remove it if it returns the same records as __getitem__; draws and work per "
            "batch go into a collate_fn. hr.prefetch(dataloader, device) keeps it",
        )


def _opened(dataset: Any) -> tuple[Any, Any]:
    """The dataset below all Subsets, and the indices of the records that are used (None: all)."""
    rows: Any = None
    while type(dataset).__name__ == "Subset" and type(dataset).__module__.startswith("torch."):
        indices = np.asarray(dataset.indices, np.int64)
        if indices.size and indices.min() < 0:  # counted from the end
            count = len(dataset.dataset)  # beyond it, they are an error of the dataset
            indices = np.where((indices < 0) & (indices >= -count), indices + count, indices)
        rows = indices if rows is None else indices[rows]
        dataset = dataset.dataset
    return dataset, rows


def _maker_of(dataset: Any) -> Callable[[Any, Told], Dataset]:
    if is_wrapped(dataset):
        return _wrapped_maker_of(dataset)
    for base in type(dataset).__mro__:
        known = _MAKERS.get(base.__name__)
        if known is None or base.__module__.partition(".")[0] not in _HOMES:
            continue
        for method in ("__getitem__", "__len__"):
            if getattr(type(dataset), method) is not getattr(base, method, None):
                raise NoFormat(f"it has a {method} of its own on top of {base.__name__}'s")
        together = getattr(dataset, "transforms", None)
        if together is not None and type(together).__name__ != "StandardTransform":
            if base.__name__ in _JOINT:
                return known
            raise NoFormat("its transforms= takes image and target together")
        if base.__name__ in _JOINT:
            continue
        return known
    raise NoFormat("unknown class")


def _wrapped_maker_of(dataset: Any) -> Callable[[Any, Told], Dataset]:
    inner = type(dataset).__mro__[2]  # by the wrapped class and the wrapper
    known = _WRAPPED.get(inner.__name__)
    if known is None or not inner.__module__.startswith("torchvision."):
        raise NoFormat(
            f"among torchvision's wrapped datasets Headrace supports {', '.join(_WRAPPED)}"
        )
    return known


def _pictures(dataset: Any, source: Source, **more: Any) -> Dataset:
    """A dataset of torchvision whose records are (image, label)."""
    plain = untransformed(dataset)
    return Dataset(
        "",
        source,
        ("image", "label"),
        lambda i: dict(zip(("image", "label"), plain[i], strict=True)),
        transform=dataset.transform,
        target_transform=dataset.target_transform,
        **more,
    )


def _labeled(column: Any, labels: Any, classes: Sequence[str] = ()) -> Source:
    """A source of images (paths, or an array) and labels with the names of their classes."""
    columns = ColumnList()
    if isinstance(column, list):
        columns.add_paths("image", column)
    else:
        columns.add_array("image", column)
    numbers = np.ascontiguousarray(labels, np.int64)
    columns.add_array("label", numbers, classes=[str(name) for name in classes])
    return columns.source(evident_kinds=False)


def _classes(dataset: Any) -> Sequence[str]:
    return getattr(dataset, "classes", None) or ()


def _folder(dataset: Any, _: Told) -> Dataset:
    loader = dataset.loader
    if loader.__module__ != "torchvision.datasets.folder" or "accimage" in loader.__name__:
        raise NoFormat("it has a loader= of its own")
    labels = [label for _, label in dataset.samples]
    return _pictures(dataset, _labeled(_decodable(dataset.samples), labels, _classes(dataset)))


def _decodable(samples: Sequence[tuple[Any, int]]) -> list[str]:
    """The files. Raises NoFormat if one has a suffix that images do not have."""
    paths = [os.fspath(path) for path, _ in samples]
    others = sorted({os.path.splitext(path)[1] for path in paths if not is_media_path(path)})
    if others:
        raise NoFormat(f"Headrace has no decoder for its files of {', '.join(others)}")
    return paths


def _cifar(dataset: Any, _: Told) -> Dataset:
    images = np.ascontiguousarray(np.asarray(dataset.data).transpose(0, 3, 1, 2))
    return _pictures(dataset, _labeled(images, dataset.targets, _classes(dataset)), fixed=True)


def _mnist(dataset: Any, _: Told) -> Dataset:
    images = np.ascontiguousarray(dataset.data)[:, None]
    return _pictures(dataset, _labeled(images, dataset.targets, _classes(dataset)), fixed=True)


def _svhn(dataset: Any, _: Told) -> Dataset:
    images = np.ascontiguousarray(dataset.data)
    return _pictures(dataset, _labeled(images, dataset.labels, _classes(dataset)), fixed=True)


def _tensors(dataset: Any, _: Told) -> Dataset:
    columns = [np.asarray(array_of("a tensor", tensor)) for tensor in dataset.tensors]
    names: list[str] = []
    for column in columns:
        first = column[0]
        picture = not names and is_picture(first) and first.shape[0] in (1, 3, 4)
        label = bool(names) and is_integer(first) and first.dtype == np.int64
        base = "image" if picture else "label" if label else "data"
        taken = sum(name.rstrip("0123456789") == base for name in names)
        names.append(base if not taken else f"{base}{taken + 1}")
    fields = dict(zip(names, columns, strict=True))
    shared = [_shares(*each) for each in zip(columns, dataset.tensors, strict=True)]
    return Dataset(
        "",
        records(**fields),
        tuple(names),
        lambda i: {name: column[i] for name, column in fields.items()},
        fixed=True,
        current=tuple(itertools.compress(dataset.tensors, shared)),
        beside={"attribute with the tensors of TensorDataset": lambda: _memory_of(dataset.tensors)},
    )


def _shares(column: Any, tensor: Any) -> bool:
    """Whether the source reads the tensor's memory, so that later changes are seen."""
    return bool(tensor.is_contiguous() and column.ctypes.data == tensor.data_ptr())


def _memory_of(tensors: Sequence[Any]) -> Any:
    return tuple((each.data_ptr(), *each.shape) for each in tensors)


def _image_dataset(dataset: Any, _: Told) -> Dataset:
    """timm's dataset over a folder."""
    reader = dataset.reader
    if type(reader).__name__ != "ReaderImageFolder":
        raise NoFormat(f"Headrace does not know its {type(reader).__name__}")
    if dataset.load_bytes or dataset.input_img_mode != "RGB":
        raise NoFormat("its images are not decoded as RGB")
    if dataset.additional_features is not None:
        raise NoFormat("it has additional_features")
    names = sorted(reader.class_to_idx, key=reader.class_to_idx.__getitem__)
    known = [reader.class_to_idx[name] for name in names] == list(range(len(names)))
    samples, classes = reader.samples, tuple(names) if known else ()
    out = _pictures(dataset, _labeled(_decodable(samples), [n for _, n in samples], classes))
    out.note = "a file that cannot be read is an error (on_error=), whereas timm takes the next one"
    return out


_HOMES = ("torch", "torchvision", "timm")
_MAKERS: dict[str, Callable[[Any, Told], Dataset]] = {
    "ImageDataset": _image_dataset,
    "DatasetFolder": _folder,
    "CIFAR10": _cifar,  # CIFAR100 is a subclass of it, as MNIST's four relatives are of MNIST
    "MNIST": _mnist,
    "SVHN": _svhn,
    "CocoDetection": coco.alone,
    "TensorDataset": _tensors,
    "VOCSegmentation": voc.alone,
}
_JOINT = ("VOCSegmentation",)  # only supported with transforms=
_WRAPPED: dict[str, Callable[[Any, Told], Dataset]] = {
    "CocoDetection": coco.wrapped,
    "VOCSegmentation": voc.wrapped,
}


# All others.


_PROBES = 8  # records used to find dtypes and shapes


def asked(dataset: Any, reason: NoFormat, told: Told) -> Dataset:
    """A source of record indices, and a step that gets the record from the dataset."""
    dataset, rows = _opened(dataset)
    numbers = np.arange(len(dataset)) if rows is None else rows
    probed = None
    if reason.keeps_state:  # the dataset is unchanged
        probed = child.run(lambda say: _probed(dataset, numbers, told), child.SILENCE).value
    node, returns, pictures = probed or _probed(dataset, numbers, told)
    defers = pictures is not None
    plain = Fetch(dataset, node, returns, steady=True)
    steady = Fetch(dataset, node, returns, steady=True, defers=defers)
    return Dataset(
        type(dataset).__name__,
        records(index=np.ascontiguousarray(numbers, np.int64)),
        tuple(returns),
        lambda i: _record(plain, numbers, i),
        steps=[T.Python(Fetch(dataset, node, returns, defers=defers), returns, fields="index")],
        steady=[T.Python(steady, returns, fields="index")],
        named=node.how == "dict",
        node=node,
        note="; ".join(filter(None, [str(reason), _said_of_images(pictures)])),
        way=reason.way,
        keeps_state=reason.keeps_state,
        options={"threads": 1} if reason.keeps_state else {},  # in the order of its records
        timed=steady,
    )


Probed = tuple[Node, dict[str, tuple[Any, ...]], list[str] | None]


def _probed(dataset: Any, numbers: Any, told: Told) -> Probed:
    """The nesting of its records, their fields, and which of them the engine can decode (None if
    the dataset opens no images)."""
    with seeded(0, generators_in(dataset)):
        node = node_of(dataset[int(numbers[0])])
    fetch = Fetch(dataset, node, steady=True)
    places = spread(len(numbers), _PROBES)
    probes = [_record(fetch, numbers, i) for i in places]
    returns = {n: declared(n, [p[n] for p in probes], told.lists) for n in probes[0]}
    deferring = Fetch(dataset, node, returns, steady=True, defers=True)
    pictures = deferred_fields(deferring, [int(numbers[i]) for i in places], probes)
    for name in pictures or ():
        dtype, shape = returns[name][:2]
        returns[name] = dtype, (probes[0][name].shape[0], *shape[1:]), "image"
    return node, returns, pictures


def _said_of_images(pictures: list[str] | None) -> str:
    """images: fields that the engine decodes; None: none."""
    if pictures is None:
        return ""
    names = f" ({', '.join(pictures)} into the batch)" if pictures else ""
    return f"the images that it opens are decoded, resized and cropped by the engine{names}"


def _record(fetch: Fetch, numbers: Any, i: int) -> dict[str, Any]:
    try:
        return fetch.fields(int(numbers[i]), 0)
    except NotLikeTheFirst as reason:
        raise REFUSED.error(str(reason), hint=_FLAT) from None


_FLAT = (
    "records are tuples, lists or dictionaries, possibly nested, of tensors, arrays, numbers and "
    "text, "
    'the same in each, with ragged="list" where shapes differ (hr.coco() reads COCO); a missing '
    "label is a number, such as -1"
)


def declared(name: str, values: Sequence[Any], lists: bool = False) -> tuple[Any, ...]:
    """(dtype, shape, kind) of a field, from its values in some records; the dtype of empty ones
    does not count. lists: other records may have any shape with the same number of axes.
    """
    crossed = [value_crossing(value) for value in values]
    if isinstance(crossed[0], (str, bytes)):
        return "uint8", (), "text" if isinstance(crossed[0], str) else "bytes"
    first = next((value for value in crossed if value.size), crossed[0])
    if first.dtype.name not in _core.DType.__members__:
        raise REFUSED.error(
            f"{name} of a record is {described(values[0])}",
            hint=_FLAT,
        )
    shapes = {value.shape for value in crossed if value.size or value.ndim == first.ndim}
    alike = [not lists and all(s[i] == n for s in shapes) for i, n in enumerate(first.shape)]
    shape = [n if same else -1 for n, same in zip(first.shape, alike, strict=True)]
    return first.dtype.name, tuple(shape), "tensor"

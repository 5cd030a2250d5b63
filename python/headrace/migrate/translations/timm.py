# SPDX-License-Identifier: Apache-2.0
"""timm's transforms for training, as its create_transform makes them.

Its policies hold operations, not the original string, so the string is reconstructed, provided that
timm 1.0 would make the same operations from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from headrace import transforms as T
from headrace.migrate.translations.arguments import numbers_of, sibling
from headrace.migrate.translations.dtypes import to_float
from headrace.migrate.translations.registry import Form, Made, NoOperator, nothing, translation

# Digests of the tables in timm 1.0.31: operations with their weights, or with probability and
# strength.
SETS = {
    "6ef46717f8be5501": "rand",
    "c8c208fd471c80ac": "rand-inc1",
    "03da5f54fed69654": "rand-t3a",
    "4db60472a8a154a1": "rand-t3aw",
    "2680e92756f4bac8": "rand-tweights",
    "0fff03035d2961b8": "augmix",
    "91812f33898cbcb5": "original",
    "6cca53b7e2da232f": "originalr",
    "054827ef41f4b999": "v0",
    "e488d5372447a172": "v0r",
    "5069a97840bd1bd2": "3a",
}


def digest(described: Any) -> str:
    import hashlib  # imported late, so that importing headrace is fast

    return hashlib.sha256(repr(described).encode()).hexdigest()[:16]


def described_choice(names: Iterable[str], weights: Any) -> Any:
    shares = None if weights is None else [round(float(weight), 9) for weight in weights]
    return list(names), shares


def described_policy(policy: Any) -> Any:
    return [[(op.name, float(op.prob), float(op.magnitude)) for op in steps] for steps in policy]


def _one(values: Iterable[Any], what: str) -> Any:
    first, *rest = values
    if any(value != first for value in rest):
        raise NoOperator(f"its operations differ in {what}")
    return first


def _number(value: float, whole: bool = False) -> str:
    """A number as written in the string, where "-" is not a sign."""
    text = str(int(value)) if whole else f"{value:.12f}"
    if float(text) != value:
        raise NoOperator(f"no string can express {value!r}")
    return text


def _shared(ops: list[Any]) -> dict[str, Any]:
    """Random draws and fills that all operations share."""
    for op in ops:
        if type(op).__name__ != "AugmentOp" or not type(op).__module__.startswith("timm."):
            raise NoOperator("an operation of your own is among them")
        functions = sibling(op, "NAME_TO_OP").get(op.name), sibling(op, "LEVEL_TO_ARG").get(op.name)
        if (op.aug_fn, op.level_fn) != functions:
            raise NoOperator("an operation of your own is among them")
    resample = _one([op.kwargs["resample"] for op in ops], "interpolation")
    names = [str(each.name).lower() for each in _listed(resample)]
    interpolation = "random" if names == ["bilinear", "bicubic"] else names[0]
    if (len(names) > 1 and interpolation != "random") or names[0] not in (
        "nearest",
        "bilinear",
        "bicubic",
    ):
        raise NoOperator(f"it interpolates with {' or '.join(names)}")
    return {
        "fill": numbers_of(_one([op.kwargs["fillcolor"] for op in ops], "fill")),
        "interpolation": interpolation,
        "translate_pct": float(
            _one([op.hparams.get("translate_pct", 0.45) for op in ops], "moves")
        ),
    }


def _several(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _listed(value: Any) -> list[Any]:
    """The values where timm takes one or several."""
    return list(value) if _several(value) else [value]


def _noise(ops: list[Any], usual: float, uniform: str | None) -> str:
    """The piece for the noise of magnitudes; ``uniform``: the spelling for an infinite one."""
    deviation = float(_one([op.magnitude_std for op in ops], "noise"))
    if deviation == usual:
        return ""
    if math.isinf(deviation) and uniform is not None:
        return uniform
    if not 0 <= deviation <= 100:
        raise NoOperator(f"no string can express a noise of {deviation}")
    return "-mstd" + _number(deviation)


def _drawn(policy: str, form: Form, shared: dict[str, Any]) -> Made:
    if form.kind != "pil":
        raise NoOperator("timm's operations are for Pillow images")
    return [T.TimmAugment(policy, **shared)], [], lambda value: value


@translation("timm.RandAugment")
def rand_augment(transform: Any, form: Form) -> Made:
    ops = list(transform.ops)
    shared = _shared(ops)
    chosen = digest(described_choice([op.name for op in ops], transform.choice_weights))
    if chosen not in SETS:
        raise NoOperator("its operations are not one of timm's sets")
    most = _one([op.magnitude_max for op in ops], "their largest magnitude")
    pieces = [
        SETS[chosen],
        "m" + _number(_one([op.magnitude for op in ops], "magnitude"), whole=True),
        "n" + _number(transform.num_layers, whole=True),
        "p" + _number(_one([op.prob for op in ops], "probability")),
        *([] if most is None else ["mmax" + _number(most, whole=True)]),
    ]
    return _drawn("-".join(pieces) + _noise(ops, 0, "-mstd101"), form, shared)


@translation("timm.AugMixAugment")
def aug_mix(transform: Any, form: Form) -> Made:
    ops = list(transform.ops)
    shared = _shared(ops)
    probable = all(op.prob == 1 and op.magnitude_max is None for op in ops)
    chosen = digest(described_choice([op.name for op in ops], None))
    if not probable or SETS.get(chosen) != "augmix":
        raise NoOperator("its operations are not timm's own set")
    pieces = [
        "augmix",
        "m" + _number(_one([op.magnitude for op in ops], "magnitude"), whole=True),
        "w" + _number(transform.width, whole=True),
        *(["d" + _number(transform.depth, whole=True)] if transform.depth > 0 else []),
        "a" + _number(transform.alpha),
        "b" + str(int(bool(transform.blended))),
    ]
    return _drawn("-".join(pieces) + _noise(ops, math.inf, None), form, shared)


@translation("timm.AutoAugment")
def auto_augment(transform: Any, form: Form) -> Made:
    ops = [op for steps in transform.policy for op in steps]
    shared = _shared(ops)
    name = SETS.get(digest(described_policy(transform.policy)))
    if name is None or any(op.magnitude_max is not None for op in ops):
        raise NoOperator("its policy is not one of timm's")
    return _drawn(name + _noise(ops, 0, None), form, shared)


@translation("timm.RandomResizedCropAndInterpolation", sizes=True)
def random_resized_crop(transform: Any, form: Form) -> Made:
    if form.kind != "pil":
        raise NoOperator("on tensors, torch's filters differ from Pillow's")
    size = [int(extent) for extent in transform.size]
    filters = _listed(transform.interpolation)
    steps = [
        T.RandomResizedCrop(size, scale=transform.scale, ratio=transform.ratio, interpolation=each)
        for each in filters
    ]
    resize, first = sibling(transform, "F").resize, filters[0]
    return (
        [T.RandomChoice(steps)] if _several(transform.interpolation) else steps,
        [T.Resize(size, interpolation=first)],
        lambda image: resize(image, size, first),
    )


def _square(patch: Any) -> int:
    """The edge of a square patch. Raises NoOperator for others."""
    edges = {int(edge) for edge in _listed(patch)}
    if len(edges) > 1:
        raise NoOperator("its patches are not square")
    return edges.pop()


def _to_sequence(
    transform: Any, form: Form, edge: int, drawn: list[Any], max_ratio: float | None = None
) -> Made:
    """``drawn``: our steps, one for each filter that is drawn from."""
    if form.kind != "pil":
        raise NoOperator("on tensors, torch's filters differ from Pillow's")
    if not transform.divisible_by_patch:
        raise NoOperator("its sizes are not multiples of a patch")
    patches = int(transform.max_seq_len)
    first = _listed(transform.interpolation)[0]
    resize, size_of = sibling(transform, "F").resize, sibling(transform, "get_image_size_for_seq")

    def original(image: Any) -> Any:
        _, size = size_of((image.height, image.width), edge, patches, max_ratio=max_ratio)
        return resize(image, size, first)

    steady = T.ResizeToSequence(edge, patches, max_ratio=max_ratio, interpolation=first)
    form.fixed = False
    return drawn if len(drawn) == 1 else [T.RandomChoice(drawn)], [steady], original


@translation("timm.ResizeToSequence")
def resize_to_sequence(transform: Any, form: Form) -> Made:
    edge, most = _square(transform.patch_size), transform.max_ratio
    steps = [
        T.ResizeToSequence(edge, int(transform.max_seq_len), max_ratio=most, interpolation=each)
        for each in _listed(transform.interpolation)
    ]
    return _to_sequence(transform, form, edge, steps, most)


@translation("timm.RandomResizedCropToSequence")
def random_resized_crop_to_sequence(transform: Any, form: Form) -> Made:
    if transform.final_scale_range is not None:
        raise NoOperator("it draws the size, too")
    edge = _square((transform.patch_h, transform.patch_w))
    steps = [
        T.RandomResizedCropToSequence(
            edge,
            int(transform.max_seq_len),
            scale=transform.scale,
            ratio=transform.ratio,
            interpolation=each,
        )
        for each in _listed(transform.interpolation)
    ]
    return _to_sequence(transform, form, edge, steps)


@translation("timm.MaybeToTensor")
def to_tensor(transform: Any, form: Form) -> Made:
    ours = [to_float()] if form.kind == "pil" else []
    return ours, ours, transform


nothing("timm.MaybePILToTensor", "timm.ToNumpy")


@translation("timm.RandomErasing")
def random_erasing(transform: Any, form: Form) -> Made:
    if form.dtype != "float32":
        raise NoOperator("it erases floating-point values")
    if transform.rand_color:
        raise NoOperator("mode='rand' draws one color for the whole rectangle")
    if (transform.min_count, transform.max_count) != (1, 1):
        raise NoOperator("it erases several rectangles")
    ours = T.RandomErasing(
        p=float(transform.probability),
        scale=(float(transform.min_area), float(transform.max_area)),
        ratio=[math.exp(each) for each in transform.log_aspect_ratio],
        value="random" if transform.per_pixel else 0,
    )
    return [ours], [], lambda value: value  # without randomness, it does nothing

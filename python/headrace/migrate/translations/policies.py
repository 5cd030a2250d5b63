# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentation."""

from __future__ import annotations

from typing import Any

from headrace import transforms as T
from headrace.migrate.translations.arguments import arithmetic_of, numbers_of, refuse_floats
from headrace.migrate.translations.registry import Form, Made, NoOperator, translation


def _shared(transform: Any, form: Form) -> dict[str, Any]:
    refuse_floats(form)
    fill = transform.fill
    if isinstance(fill, dict):
        raise NoOperator("its fill differs by type")
    return {
        "interpolation": transform.interpolation,
        "fill": None if fill is None else numbers_of(fill),
        "arithmetic": arithmetic_of(transform, form),
    }


def _drawn(ours: T.Transform) -> Made:
    return [ours], [], lambda value: value  # without randomness, it does nothing


@translation("AutoAugment")
def auto_augment(transform: Any, form: Form) -> Made:
    return _drawn(T.AutoAugment(transform.policy, **_shared(transform, form)))


@translation("RandAugment")
def rand_augment(transform: Any, form: Form) -> Made:
    shared = _shared(transform, form)
    if transform.num_ops == 0:
        raise NoOperator("it has no operations")
    return _drawn(
        T.RandAugment(
            int(transform.num_ops),
            int(transform.magnitude),
            int(transform.num_magnitude_bins),
            **shared,
        )
    )


@translation("TrivialAugmentWide")
def trivial_augment_wide(transform: Any, form: Form) -> Made:
    shared = _shared(transform, form)
    return _drawn(T.TrivialAugmentWide(int(transform.num_magnitude_bins), **shared))


@translation("AugMix")
def aug_mix(transform: Any, form: Form) -> Made:
    shared = _shared(transform, form)
    shared["arithmetic"] = "torch"  # takes tensors, which it makes from images first
    return _drawn(
        T.AugMix(
            int(transform.severity),
            int(transform.mixture_width),
            max(-1, int(transform.chain_depth)),
            float(transform.alpha),
            bool(transform.all_ops),
            **shared,
        )
    )

# SPDX-License-Identifier: Apache-2.0
"""A list of transforms as plain data, as in YAML and Hydra, and back."""

from __future__ import annotations

import json
from collections import UserDict, UserList
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import presets
from headrace import transforms as T

LISTS: list[Any] = [
    presets.imagenet_train(64),
    presets.imagenet_reference(64, num_classes=10),
    presets.simclr(32),
    presets.dino(64, small=32, locals=2),
    presets.detection_mosaic(64),
    [T.RandomChoice([[T.Resize((4, 4)), T.RandomHorizontalFlip()], T.CenterCrop(4)])],
    [T.ToDtype(np.float32, scale=True), T.Resize(size=(4, 5), interpolation="bicubic")],
    [T.RandomHorizontalFlip(fields="image")],
]


@pytest.mark.parametrize("steps", LISTS, ids=lambda steps: steps[0].name)
def test_lists_survive_json(steps: list[Any]) -> None:
    config = json.loads(json.dumps(T.to_config(steps)))
    again = T.from_config(config)
    assert T.to_config(again) == config
    assert [step.name for step in again] == [step.name for step in steps]
    source = [{"image": np.zeros((3, 90, 80), np.uint8), "label": 1}] * 16
    if steps is not LISTS[4]:  # which requires boxes
        texts = [
            hr.Loader(source, list_, batch_size=8).assembly.engine().plan_text()
            for list_ in (steps, again)
        ]
        assert texts[0] == texts[1]


def test_every_operator_without_required_arguments_survives_json() -> None:
    for name in T.__all__:
        kind = getattr(T, name)
        if not (isinstance(kind, type) and kind is not T.Transform):
            continue
        try:
            step = kind()
        except hr.ConfigError:
            continue  # it has required arguments
        assert T.from_config(T.to_config([step])) == [step]


def test_each_field_may_have_its_own_list() -> None:
    steps = {"image": [T.Resize(8)], "label": None}
    config = T.to_config(steps)
    assert config == {"image": [{"Resize": {"size": 8}}], "label": None}
    assert T.from_config(config) == steps


def test_short_forms_and_custom_list_types_are_accepted() -> None:
    steps = [T.RandomHorizontalFlip(), T.Resize([4, 5])]
    given = UserList(
        ["RandomHorizontalFlip", UserDict({"Resize": UserDict(size=UserList([4, 5]))})]
    )
    assert T.from_config(given) == steps
    assert T.from_config([{"RandomHorizontalFlip": None}]) == steps[:1]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("Resize", "not a list of transforms"),
        ([{"Resise": {"size": 8}}], "HR0177.*no transform is named 'Resise'.*\n.*Resize"),
        ([{"Resize": 8}], "not a dictionary of arguments"),
        ([{"Resize": {"size": 8}, "Pad": {}}], "not a transform"),
        ([{"Resize": {"sice": 8}}], "HR0151.*sice"),
        ([{"Resize": {"size": -8}}], "Resize"),
        ([{"RandomApply": {"transforms": "Resize"}}], "not a list of transforms"),
        (["Transform"], "no transform"),
        (["to_config"], "no transform"),
    ],
)
def test_an_invalid_configuration_is_refused(config: Any, message: str) -> None:
    with pytest.raises(hr.ConfigError, match=message):
        T.from_config(config)


def test_functions_have_no_configuration() -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0176.*invert"):
        T.to_config([T.Resize(8), invert])


def invert(image: Any) -> Any:
    return 255 - image

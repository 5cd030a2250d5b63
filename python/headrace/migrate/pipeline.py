# SPDX-License-Identifier: Apache-2.0
"""A dataset's transforms as steps, for each of its images, and the list that runs them."""

from __future__ import annotations

import dataclasses
from typing import Any

from headrace import _core
from headrace import transforms as T
from headrace.loader.form import Cast
from headrace.migrate import dataset as datasets
from headrace.migrate.known_dataset import REFUSED, Dataset, NoFormat
from headrace.migrate.look import guards
from headrace.migrate.originals import OnTarget, described, value_crossing
from headrace.migrate.transform_list import translate
from headrace.migrate.translations.registry import (
    Form,
    NoOperator,
    SeveralValues,
    Translated,
    shown,
)


@dataclasses.dataclass
class Parts:
    """The steps of a dataset: for each image, and for the label."""

    pictures: dict[str, list[Translated]]
    label: Translated | None = None

    @property
    def all(self) -> list[Translated]:
        steps = [step for parts in self.pictures.values() for step in parts]
        return [*steps, *([self.label] if self.label else [])]

    @property
    def listed(self) -> list[tuple[Translated, str]]:
        """The steps as listed in a report, with a comment on each; listed once if all images have
        the same.
        """
        lists = list(self.pictures.values())
        names = [[(step.native, step.names) for step in steps] for steps in lists]
        label = [(self.label, self.label.note)] if self.label else []
        if len(lists) > 1 and names.count(names[0]) == len(names) and all(n for n, _ in names[0]):
            of_each = f"for each of {', '.join(self.pictures)}"
            notes = ["; ".join(filter(None, (of_each, step.note))) for step in lists[0]]
            return [*zip(lists[0], notes, strict=True), *label]
        return [(step, step.note) for step in self.all]

    @property
    def draw(self) -> bool:
        """Whether a step is random, if known: comparisons use a different form of it."""
        return any(list(map(id, step.step)) != list(map(id, step.steady)) for step in self.all)

    @property
    def casts(self) -> dict[str, Cast]:
        """Dtypes of fields that are converted when a batch is delivered."""
        return {name: cast for step in self.all for name, cast in step.casts.items()}

    def pipeline(self, dataset: Dataset, steady: bool) -> Any:
        """The transforms of a Loader. steady: in the form without randomness."""
        before = dataset.steady if steady else dataset.steps
        steps = {
            name: [step for part in parts for step in (part.steady if steady else part.step)]
            for name, parts in self.pictures.items()
        }
        label = (self.label.steady if steady else self.label.step) if self.label else []
        if dataset.shared and steps:  # views of one file, which is read only once
            return [T.Fork(dataset.shared, **steps)]
        if len(steps) <= 1:
            return [*before, *(step for each in steps.values() for step in each), *label]
        return steps


def parts_of(dataset: Dataset) -> Parts:
    """Its transforms, translated. Raises NoFormat if they are not steps on single images."""
    pictures = {name: _picture_steps(dataset, name) for name in dataset.pictures}
    python = [step for parts in pictures.values() for step in parts if not step.native]
    if len(pictures) > 1 and python and not (dataset.shared and _keep_nothing(python)):
        raise NoFormat(
            "left unchanged: its records have several images, which the unknown "
            f"{python[0].names[0]} may transform together"
        )
    return Parts(pictures, _label_step(dataset))


def _keep_nothing(python: list[Translated]) -> bool:
    """Whether calls leave Python transforms unchanged, so that no call affects the next."""
    for step in python:
        assert step.before is not None
        before = [guards.held(each, ()) for each in step.transforms]
        for probe in step.before.probes:
            step.original(probe)
        if before != [guards.held(each, ()) for each in step.transforms]:
            return False
    return True


def _picture_steps(dataset: Dataset, name: str) -> list[Translated]:
    picture = dataset.pictures[name]
    if picture.transform is None:
        return []
    numbers = (0, len(dataset.source) // 2, len(dataset.source) - 1)
    records = [dataset.raw(i) for i in numbers]
    probes = records if dataset.together else [record[name] for record in records]
    form = Form(picture.kind, "uint8", dataset.fixed, probes, dataset.shared or name)
    try:
        return translate(picture.transform, form)
    except SeveralValues as reason:
        raise NoFormat(str(reason)) from None
    except NoOperator as reason:
        raise NoFormat(f"its transforms take image and target together, and {reason}") from None


def _label_step(dataset: Dataset) -> Translated | None:
    transform = dataset.target_transform
    if transform is None:
        return None

    timed = OnTarget(transform, steady=True)

    def steadily(label: Any) -> Any:
        with timed.seeded(0):
            return transform(label)

    given = steadily(dataset.raw(0)["label"])
    value = value_crossing(given)
    returns = None
    if not isinstance(value, (str, bytes)) and value.dtype.name not in _core.DType.__members__:
        raise REFUSED.error(
            f"target_transform makes the label {described(given)}",
            hint="a number, an array, a tensor or text; a missing label is a number, such as -1",
        )
    if isinstance(value, (str, bytes)) or (value.dtype, value.shape) != ("int64", ()):
        returns = {"label": datasets.declared("label", [value])}
    return Translated(
        [f"target_transform {shown(transform)}"],
        [T.Python(OnTarget(transform), returns, fields="label")],
        [T.Python(timed, returns, fields="label")],
        steadily,
        False,
        "a callable of your own",
        timed=timed,
    )

# SPDX-License-Identifier: Apache-2.0
"""A dataset of torch or torchvision as a source, with what is known about its records."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from headrace.errors import declare
from headrace.migrate.look.outside import Outside
from headrace.migrate.nesting import Node
from headrace.sources import Source

REFUSED = declare(
    "HR0834",
    "config",
    "DataLoader cannot be translated",
    "from_dataloader() takes DataLoaders over map-style datasets whose batches are assembled by "
    "torch's own collate function, in an order known before the epoch begins. The message names "
    "the part that differs, and its replacement.",
)

Records = Callable[[int], dict[str, Any]]


@dataclasses.dataclass
class Picture:
    """The transforms of a record's image, and its form before them: see ``registry.Form.kind``."""

    transform: Any
    kind: str = "pil"


@dataclasses.dataclass
class Dataset:
    """A dataset as a source; ``raw(i)`` gives record i without Headrace, before any transform."""

    name: str
    source: Source
    fields: tuple[str, ...]
    raw: Records
    steps: list[Any] = dataclasses.field(default_factory=list)  # steps that make the fields
    steady: list[Any] = dataclasses.field(default_factory=list)
    transform: Any = None
    together: bool = False  # the transform takes the whole record
    target_transform: Any = None
    fixed: bool = False  # whether all images have the same size
    ragged: bool = False
    named: bool = False  # its records are dictionaries
    note: str = ""
    node: Node | None = None  # the nesting of its records; None: flat
    # Whether it was traced.
    is_traced: bool = False
    # the transforms of each image, by field, if there are several
    several: dict[str, Picture] = dataclasses.field(default_factory=dict)
    shared: str = ""  # the field whose files all images are views of
    options: dict[str, Any] = dataclasses.field(default_factory=dict)  # keywords of the Loader
    left_out: frozenset[str] = frozenset()  # values of its records that are not in batches
    outside: Outside = dataclasses.field(
        default_factory=Outside
    )  # files and variables that its code read
    skips: bool = False  # its code catches exceptions, and may skip damaged files
    # Its origins: objects whose current state matters, and external state.
    current: tuple[Any, ...] = ()
    beside: dict[str, Callable[[], Any]] = dataclasses.field(default_factory=dict)
    # For a dataset that is called record by record.
    way: str = ""  # what would make it native
    keeps_state: bool = False  # its records depend on earlier calls
    timed: Any = None
    cost: str = ""

    @property
    def pictures(self) -> dict[str, Picture]:
        """What is done to images, by field."""
        return self.several or ({"image": Picture(self.transform)} if self.transform else {})

    def narrow(self, wanted: str | Sequence[str]) -> None:
        """Restricts it to delivered fields; others are not compared or copied."""
        wanted = (wanted,) if isinstance(wanted, str) else wanted
        self.fields = tuple(name for name in self.fields if name in wanted)
        self.several = {n: picture for n, picture in self.several.items() if n in wanted}


class NoFormat(Exception):
    """The dataset must be called record by record; the message says why, ``way`` how to make it
    native. keeps_state: calls change the results of later ones.
    """

    def __init__(self, why: str, way: str = "", keeps_state: bool = False) -> None:
        super().__init__(why)
        self.way = way
        self.keeps_state = keeps_state

    def again(self) -> NoFormat:
        """A copy without the traceback of the attempt."""
        return NoFormat(str(self), self.way, self.keeps_state)


class Told(NamedTuple):
    """Facts about a dataset that only the user knows."""

    annotations: Any = None  # CocoDetection's file
    outside: bool = False  # whether its files may be outside its folder
    collate: Any = None  # the function that runs on lists of its records
    lists: bool = False  # its records may have any shape: batches are lists of them


def untransformed(dataset: Any) -> Any:
    """A copy of the dataset that shares its data and has no transforms."""
    plain = copy.copy(dataset)
    plain.transform = plain.target_transform = plain.transforms = None
    return plain


def is_wrapped(dataset: Any) -> bool:
    """Whether it is wrapped by torchvision's wrap_dataset_for_transforms_v2."""
    return any(base.__name__ == "VisionDatasetTVTensorWrapper" for base in type(dataset).__mro__)


def joint_transforms(dataset: Any) -> Any:
    """A wrapped dataset's transforms=, which get the image and its target together, or None.
    Raises NoFormat if it has transforms for the image alone: its target would not be transformed.
    """
    together = dataset.transforms
    if type(together).__name__ == "StandardTransform":
        raise NoFormat(
            "its transform= takes only the image, so its target would not be transformed"
        )
    return together

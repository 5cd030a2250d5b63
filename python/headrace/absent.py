# SPDX-License-Identifier: Apache-2.0
"""Hints for unknown names of operators, formats and error codes: what to write instead.

For torchvision's transforms that have no operator of the same name:

>>> print(instead_of("LinearTransformation"))
torchvision's own runs as a Python transform: put v2.LinearTransformation(...) into the list
>>> instead_of("RandomHorizontalFlop") is None
True
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.errors import Error, declare, did_you_mean, nearest

_NO_SUCH_TRANSFORM = declare(
    "HR0153",
    "config",
    "unknown transform",
    "headrace.transforms has no class of this name. `headrace operators` lists them. If a "
    "transform is missing, put a Python function or torchvision's own transform in the list.",
)
_NO_SUCH_CODE = declare(
    "HR0196",
    "config",
    "unknown error code",
    "`headrace explain CODE` takes the code at the start of a message: HR and four digits. "
    "`headrace explain` without a code lists all codes.",
)
_NO_SUCH_FORMAT = declare(
    "HR0197",
    "config",
    "unknown format",
    "This build has no container and no codec of this name. `headrace formats` lists all of them.",
)

# Classes that are not needed: their effect is built in, or the list of transforms replaces them.
_OTHERWISE = {
    "ToTensor": 'write ToDtype("float32", scale=True)',
    "ConvertImageDtype": "write ToDtype(dtype, scale=True)",
    "PILToTensor": "omit it: images are (C, H, W) uint8 tensors from the start",
    "ToPureTensor": "omit it: batches are plain arrays and tensors",
    "ToPILImage": "omit it: a Python transform receives arrays, and may convert them",
    "Identity": "omit it",
    "Lambda": "put the function itself into the list; its arguments are names of fields",
}
# Transforms of a single image: they run unchanged.
_PICTURES = frozenset(("LinearTransformation", "RGB"))
_MORE = frozenset(("UniformTemporalSubsample",))  # of several images
NAMES = _PICTURES | _MORE | set(_OTHERWISE)


def instead_of(name: str) -> str | None:
    """Replacement for torchvision's transform of this name; None without one."""
    if name in _PICTURES:
        return f"torchvision's own runs as a Python transform: put v2.{name}(...) into the list"
    if name in _MORE:
        return "write a function whose arguments are fields: def step(image, boxes): ..."
    return _OTHERWISE.get(name)


def no_such_transform(name: str, known: Iterable[str]) -> Error:
    """Error HR0153 for a transform that is not in ``known``."""
    hint = instead_of(name) or did_you_mean(name, known)
    return _NO_SUCH_TRANSFORM.error(f"no transform is named {name!r}", hint=hint)


def no_such_format(name: str, known: Iterable[str]) -> Error:
    """Error HR0197 for a format or codec that is not in ``known``."""
    return _NO_SUCH_FORMAT.error(f"{name!r}", hint=did_you_mean(name, known))


def no_such_code(id: str, known: Iterable[str]) -> Error:
    """Error HR0196 for a code that is not in ``known``, a list too long to print."""
    near = nearest(id.upper(), known)
    hint = f"did you mean {near}?" if near else "`headrace explain` lists them all"
    return _NO_SUCH_CODE.error(f"{id!r}", hint=hint)

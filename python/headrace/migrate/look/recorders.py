# SPDX-License-Identifier: Apache-2.0
"""Copies a dataset, replacing its transforms with other callables. The copy is shallow, except that
nested datasets are copied, too. Every callable attribute, and every callable in a short list or
dictionary, is replaced by the result of ``made(name, real)``; the name is its path from the
dataset: ``transform``, ``dataset.transforms['train']``. Opaque objects are replaced as well.
"""

from __future__ import annotations

import copy
import sys
import types
from collections.abc import Callable
from typing import Any

from headrace.migrate.look.marks import Attempt, Left, Mark
from headrace.migrate.look.opaque import is_opaque
from headrace.migrate.translations.registry import known_name, opened

Made = Callable[[str, Any], Any]
_MOST = 64  # maximum length of a list to inspect
_LIBRARIES = ("torchvision", "albumentations", "timm")


def clone(
    dataset: Any,
    made: Made,
    deep: bool = False,
    prefix: str = "",
    pairs: list[tuple[Any, Any]] | None = None,
) -> Any:
    """The dataset with its callables replaced by ``made(name, real)``. deep: also clone the user's
    wrappers around other callables, which then run. pairs: collects the originals and their clones.
    """
    out = copy.copy(dataset)
    if out is dataset:
        raise TypeError(f"a {type(dataset).__name__} is not copied by copy.copy()")
    pairs = [] if pairs is None else pairs
    pairs.append((dataset, out))
    own = out.__dict__
    for base in reversed(type(dataset).__mro__):  # attributes of classes
        for name, value in vars(base).items():
            if _is_transform(value) and name not in own:
                own[name] = made(prefix + name, value)
    for name, value in list(vars(dataset).items()):
        own[name] = _wrapped(value, prefix + name, made, deep, pairs)
    return out


def is_dataset(value: Any) -> bool:
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(value, data.Dataset)


def _wrapped(value: Any, name: str, made: Made, deep: bool, pairs: list[tuple[Any, Any]]) -> Any:
    out = _in_place_of(value, name, made, deep, pairs)
    if out is not value and isinstance(value, (dict, list, set)):
        pairs.append((value, out))
    return out


def _in_place_of(
    value: Any, name: str, made: Made, deep: bool, pairs: list[tuple[Any, Any]]
) -> Any:
    if isinstance(value, (type, types.ModuleType)):
        return value
    if is_opaque(value):
        return made(name, value)
    if is_dataset(value) or (deep and is_composite(value)):
        return clone(value, made, deep, name + ".", pairs)
    if type(value).__name__ == "StandardTransform":  # torchvision's: it only calls its contents
        return clone(value, made, deep, name + ".", pairs)
    if isinstance(value, types.MethodType):  # of the dataset itself, which is copied
        return value
    if callable(value):
        return made(name, value)
    if type(value) is dict:
        if len(value) > _MOST:
            return copy.copy(value)
        out = {
            key: _wrapped(each, f"{name}[{key!r}]", made, deep, pairs)
            for key, each in value.items()
        }
        # A nested dictionary of plain values is shared; changes to it are detected.
        inside = "[" in name and all(out[key] is each for key, each in value.items())
        return value if inside else out
    if type(value) is list:
        if len(value) > _MOST or not any(map(_is_replaced, value)):
            return value
        return [
            _wrapped(each, f"{name}[{number}]", made, deep, pairs)
            for number, each in enumerate(value)
        ]
    if isinstance(value, (dict, set)):
        return copy.copy(value)
    return value


def _is_replaced(value: Any) -> bool:
    return callable(value) or is_dataset(value) or is_opaque(value)


def is_composite(value: Any) -> bool:
    """Whether it is a callable object of the user that holds other callables, such as a preset or
    two views.
    """
    home = type(value).__module__.partition(".")[0]
    if not callable(value) or home in (*_LIBRARIES, "torch", "builtins", "functools"):
        return False
    if not hasattr(value, "__dict__") or isinstance(value, (type, *_FUNCTIONS)):
        return False
    return any(
        callable(each) or (isinstance(each, (list, tuple, dict)) and _MOST > len(each) > 0)
        for each in vars(value).values()
    )


_FUNCTIONS = (types.FunctionType, types.ModuleType, types.MethodType, types.BuiltinFunctionType)


def _is_transform(value: Any) -> bool:
    """Whether it is a transform object of a library, even if it is not an attribute."""
    if not callable(value) or isinstance(value, (type, types.FunctionType, types.ModuleType)):
        return False
    return type(value).__module__.partition(".")[0] in _LIBRARIES


def replaced_in(namespace: dict[str, Any]) -> dict[str, Any]:
    """Transform objects, and opaque ones, that a module holds by name."""
    return {
        name: value
        for name, value in list(namespace.items())
        if _is_transform(value) or is_opaque(value)
    }


def runs_together(transform: Any) -> bool:
    """Whether it is a list of torchvision v2's transforms, which accept any values and change only
    those of known types.
    """
    parts = opened(transform)
    return bool(parts) and all(map(_is_second, parts))


def _is_second(transform: Any) -> bool:
    home = type(transform).__module__
    return bool(known_name(transform)) and home.startswith("torchvision.transforms.v2")


class Stand:
    """A mock that looks like a callable and is called instead. Setting an attribute on it ends the
    attempt, since the callable would not get it.
    """

    own_name: str
    own_real: Any
    own_attempt: Attempt

    def __init__(self, name: str, real: Any, attempt: Attempt) -> None:
        self.__dict__.update(own_name=name, own_real=real, own_attempt=attempt)

    def __setattr__(self, name: str, value: Any) -> None:
        raise self.own_attempt.leave(
            f"{self.own_attempt.caller} sets .{name} of its {self.own_name}"
        )

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.own_real)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["own_real"], name)

    def __bool__(self) -> bool:
        return bool(self.own_real)

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise NotImplementedError


class Recorder(Stand):
    """Records a call with a mark. Without a mark, the original runs."""

    def __init__(self, name: str, real: Any, attempt: Attempt) -> None:
        super().__init__(name, real, attempt)
        self.__dict__.update(own_joint=None)

    def __call__(self, *args: Any, **named: Any) -> Any:
        if len(args) == 1 and not named and type(args[0]) is Mark:
            return self._on(args[0], ())
        found = [each for each in (*args, *named.values()) if type(each) is Mark]
        inner = [
            each
            for holder in args
            if type(holder) is dict
            for each in holder.values()
            if type(each) is Mark
        ]
        if not found and not inner:
            return self._without_files(*args, **named)
        if len(found) + len(inner) > 1:
            raise self._leave("takes several images at once")
        if named:
            return self._by_keyword(found, args, named)
        if self.own_joint is None:
            self.__dict__.update(own_joint=runs_together(self.own_real))
        if not self.own_joint:
            raise self._leave(
                "takes the image and other values together, and is not a list of torchvision v2's "
                "transforms that Headrace has"
            )
        if inner:
            return self._in_dictionary(args)
        place = next(k for k, each in enumerate(args) if type(each) is Mark)
        image = self._on(args[place], ("argument", place, len(args)))
        return tuple(image if k == place else each for k, each in enumerate(args))

    def _on(self, mark: Mark, how: tuple[Any, ...]) -> Mark:
        if mark.kind not in ("pil", "bgr", "array", "tensor", "out"):
            raise mark.leave(f"gives {self.own_name} to")
        self.own_attempt.check(self.own_name)
        return mark.then("out", "call", self.own_name, how)

    def _by_keyword(self, found: list[Mark], args: Any, named: dict[str, Any]) -> Any:
        """``transform(image=image)["image"]``, the calling convention of Albumentations."""
        if args or len(named) > 1 or not found:
            raise self._leave("is called with more than image=")
        ((key, mark),) = named.items()
        return self._on(mark, ("keyword", key)).keyed()

    def _in_dictionary(self, args: Any) -> Any:
        if len(args) > 1:
            raise self._leave("takes several values, one of them a dictionary with an image")
        return {
            key: self._on(each, ("key", key)) if type(each) is Mark else each
            for key, each in args[0].items()
        }

    def _without_files(self, *args: Any, **named: Any) -> Any:
        for each in (*args, *named.values()):
            if hasattr(each, "getbands") or getattr(each, "ndim", 0) > 1:
                raise self.own_attempt.leave(
                    f"{self.own_name} gets an image from memory, not from a file, at record "
                    f"{self.own_attempt.record}",
                    "hr.records(image=arrays, label=labels), or hr.open() of the file that holds "
                    "them",
                )
        return self.own_real(*args, **named)

    def _leave(self, what: str) -> Left:
        return self.own_attempt.leave(f"its {self.own_name} {what}")

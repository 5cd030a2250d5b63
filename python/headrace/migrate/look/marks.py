# SPDX-License-Identifier: Apache-2.0
"""Marks represent values that come from files. They know their file and the operations on them; any
other access ends the attempt.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any, Protocol

from headrace.migrate.modules import is_installed

Op = tuple[Any, ...]  # ("convert", "RGB"), ("array",), ("call", "self.transform", ...), ...

_OURS = os.path.dirname(__file__)
_LIBRARIES = ("torch", "torchvision", "PIL", "numpy", "cv2", "albumentations", "timm")
DIFFERS = " differs the second time"


class Left(BaseException):
    """Ends the attempt; the dataset is then called unchanged. Not an Exception, so that handlers
    let it pass.
    """


class Holds(Protocol):
    """Watches the contents of transforms."""

    @property
    def unwatched(self) -> dict[str, str]: ...
    def changed(self) -> str: ...


class Attempt:
    """One run over a dataset: why it ended, and the answers to questions about modes."""

    def __init__(self) -> None:
        self.reason = ""
        self.way = ""  # advice on what to write instead
        self.keeps_state = False  # whether calls change its state
        self.record = 0
        self.answers: list[bool] = []
        self.asked = 0
        self.caller = "__getitem__"
        self._held: Holds | None = None

    def watches(self, held: Holds) -> None:
        """Transforms must not change as long as the attempt lasts."""
        self._held = held

    def check(self, called: str) -> None:
        """Raises Left if a transform has changed. called: the name of the running one."""
        if self._held is None:
            return
        if why := self._held.unwatched.get(called):
            raise self.leave(f"its {called} cannot be watched: {why}")
        if name := self._held.changed():
            raise self.leave(f"{self.caller} changes {name}, at record {self.record}", state=True)

    def leave(self, why: str, way: str = "", state: bool = False) -> Left:
        """The exception to raise. The first reason counts, even if the code swallows it. state:
        calls change the results of later ones.
        """
        if not self.reason:
            self.reason, self.way, self.keeps_state = why + _place(), way, state
        return Left(self.reason)


def _place() -> str:
    """ " (sets.py:61)": the innermost line of user code."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        home = str(frame.f_globals.get("__name__", ""))
        file = frame.f_code.co_filename
        if home.startswith("headrace.") and not file.startswith(_OURS):
            return ""
        foreign = file.startswith((_OURS, "<")) or home.partition(".")[0] in _LIBRARIES
        if not foreign and not is_installed(file):
            return f" ({os.path.basename(file)}:{frame.f_lineno})"
        frame = frame.f_back
    return ""


_KINDS = {
    "pil": "the image",
    "bgr": "the image",
    "array": "the image",
    "tensor": "the image",
    "file": "the file",
    "bytes": "the bytes",
    "out": "the result of its transform",
    "keyed": "the result of its transform",
}
_BACKWARDS = slice(None, None, -1)
_REVERSED = ((Ellipsis, _BACKWARDS), (slice(None), slice(None), _BACKWARDS))


class Mark:
    """A mock of the contents of file ``path`` after ``ops``, as a value of this ``kind``."""

    __slots__ = ("attempt", "kind", "ops", "path")

    def __init__(self, attempt: Attempt, kind: str, path: str, ops: tuple[Op, ...] = ()) -> None:
        self.attempt = attempt
        self.kind = kind
        self.path = path
        self.ops = ops

    def then(self, kind: str, *op: Any) -> Mark:
        return Mark(self.attempt, kind, self.path, (*self.ops, op))

    def keyed(self) -> Mark:
        """A dictionary with the value under its argument name."""
        return Mark(self.attempt, "keyed", self.path, self.ops)

    def leave(self, what: str, way: str = "") -> Left:
        record = f" of record {self.attempt.record}"
        return self.attempt.leave(f"__getitem__ {what} {_KINDS[self.kind]}{record}", way)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise self.leave("asks for the class of")

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__" and name not in _ARRAY_PROTOCOLS:
            raise AttributeError(name)
        raise self.leave(f"uses .{name} of")

    def __getitem__(self, key: Any) -> Mark:
        if self.kind == "keyed":
            if isinstance(key, str) and key == self.ops[-1][2][1]:
                call = self.ops[-1]
                ops = (*self.ops[:-1], (*call[:2], (*call[2], key)))
                return Mark(self.attempt, "out", self.path, ops)
        elif self.kind == "bgr" and key in _REVERSED:
            return self.then("array", "reversed")
        raise self.leave(f"takes [{_shown(key)}] of")

    # Methods of Pillow images that do not reveal contents.

    def convert(self, mode: Any = None, *more: Any, **options: Any) -> Mark:
        if self.kind != "pil" or more or options or type(mode) is not str:
            raise self.leave("passes more than a mode to convert() of")
        return self.then("pil", "convert", mode)

    def copy(self) -> Mark:
        if self.kind not in ("pil", "array", "bgr"):
            raise self.leave("uses .copy of")
        return self

    def load(self) -> None:
        self._of_files("load")

    def close(self) -> None:
        self._of_files("close")

    def read(self, *size: Any) -> Mark:
        if self.kind != "file" or size:
            raise self.leave("uses .read of")
        return Mark(self.attempt, "bytes", self.path, self.ops)

    def __enter__(self) -> Mark:
        self._of_files("__enter__")
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def _of_files(self, name: str) -> None:
        if self.kind not in ("pil", "file"):
            raise self.leave(f"uses .{name} of")

    @property
    def mode(self) -> Mode:
        if self.kind != "pil":
            raise self.leave("uses .mode of")
        return Mode(self)


_ARRAY_PROTOCOLS = ("__array__", "__array_interface__", "__array_struct__", "__torch_function__")
OPERATORS = (
    "bool len iter next reversed contains eq ne lt gt le ge add radd sub rsub mul rmul truediv "
    "rtruediv floordiv mod pow matmul neg abs invert and or xor lshift rshift float int complex "
    "index setitem delitem array str repr format call buffer iadd isub imul itruediv"
)


def refusal(name: str) -> Any:
    """A method of a mock that ends the attempt."""

    def refuse(self: Any, *_: Any, **__: Any) -> Any:
        raise self.leave(f"calls __{name}__ of")

    return refuse


for _name in OPERATORS.split():
    setattr(Mark, f"__{_name}__", refusal(_name))
Mark.__hash__ = object.__hash__  # type: ignore[method-assign]


class Mode:
    """An image's unknown mode: each question is answered both ways, in separate calls that must
    treat the image alike.
    """

    __slots__ = ("_mark",)

    def __init__(self, mark: Mark) -> None:
        self._mark = mark

    def __eq__(self, other: object) -> bool:
        mark = self._mark
        known = [op[1] for op in mark.ops if op[0] in ("convert", "is")]
        if known:
            return bool(known[-1] == other)
        if type(other) is not str:
            raise mark.leave("compares with something other than text the mode of")
        attempt = mark.attempt
        if attempt.asked == len(attempt.answers):
            attempt.answers.append(False)
        answer = attempt.answers[attempt.asked]
        attempt.asked += 1
        if answer:
            mark.ops += (("is", other),)
        return answer

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __getattr__(self, name: str) -> Any:
        raise self._mark.leave(f"uses .mode.{name} of")

    __hash__ = None  # type: ignore[assignment]


def plain(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """The operations without those that have no effect: convert("RGB") leaves an RGB image
    unchanged."""
    out: list[Op] = []
    for op in ops:
        each = ("convert", op[1]) if op[0] == "is" else op
        if not (out and each[0] == "convert" and out[-1] == each):
            out.append(each)
    return tuple(out)


def _shown(key: Any) -> str:
    text = str(key).replace("slice(None, None, None)", ":").replace("Ellipsis", "...")
    return text if len(text) < 60 else type(key).__name__

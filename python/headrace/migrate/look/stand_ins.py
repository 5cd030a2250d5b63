# SPDX-License-Identifier: Apache-2.0
"""Mocks of functions that read files: they do not open anything and return marks. They replace the
functions in their own modules and in the dataset's modules, in a child process that ends
afterwards.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

from headrace.migrate.look.marks import Attempt, Left, Mark
from headrace.migrate.look.row_files import RowFile

_SEEDS = {
    "random": "seed getstate setstate",
    "numpy.random": "seed get_state set_state",
    "torch": "manual_seed seed initial_seed get_rng_state set_rng_state",
    "torch.random": "manual_seed seed initial_seed get_rng_state set_rng_state fork_rng",
}

Make = Callable[[Any], Any]  # the replacement of a function


def put(homes: Iterable[dict[str, Any]], replacements: dict[tuple[str, str], Make]) -> None:
    """Replaces functions, given as (module, name), with the result of ``made``; also methods, as
    "Path.open". homes: namespaces."""
    for (module, name), make in replacements.items():
        home: Any = sys.modules.get(module)
        *classes, name = name.split(".")
        for each in classes:
            home = getattr(home, each, None)
        real = getattr(home, name, None)
        if real is None:
            continue
        stand_in = make(real)
        setattr(home, name, stand_in)
        for namespace in homes:
            for own, value in list(namespace.items()):
                if value is real:
                    namespace[own] = stand_in


class StandIns:
    """The mock functions of one attempt. homes: names of modules whose ``open`` is watched."""

    def __init__(self, attempt: Attempt, homes: Iterable[str]) -> None:
        self._attempt = attempt
        self._homes = frozenset(homes)

    def replacements(self) -> dict[tuple[str, str], Make]:
        out: dict[tuple[str, str], Make] = {
            ("PIL.Image", "open"): lambda real: self.image_open,
            ("PIL.ImageOps", "exif_transpose"): self._upright,
            ("io", "BytesIO"): self._bytes_io,
            ("cv2", "imread"): lambda real: self.imread,
            ("cv2", "cvtColor"): self._cvt_color,
            ("numpy", "array"): self._array,
            ("numpy", "asarray"): self._array,
            ("builtins", "open"): self._open,
            ("pathlib", "Path.open"): self._open,
            ("pathlib", "Path.read_bytes"): self._read_bytes,
        }
        for module in ("torchvision.io", "torchvision.io.image"):
            out[module, "read_file"] = lambda real: self.read_file
            for name in ("decode_image", "read_image"):
                out[module, name] = lambda real, name=name: self._decoder(name)  # type: ignore[misc]
        for module in ("torch.utils.data", "torch.utils.data._utils.worker"):
            out[module, "get_worker_info"] = lambda real: self._worker
        for module, names in _SEEDS.items():
            for name in names.split():
                out[module, name] = lambda real, name=name: self._seeding(name)  # type: ignore[misc]
        return out

    def _seeding(self, name: str) -> Any:
        """Two transforms with the same generator state draw the same numbers; ours would not."""

        def call(*args: Any, **named: Any) -> Any:
            raise self._attempt.leave(
                f"__getitem__ calls {name}(): it changes the state of the generators"
            )

        return call

    def _worker(self) -> Any:
        raise self._attempt.leave(
            "__getitem__ calls get_worker_info(), but there are no workers here"
        )

    def path_of(self, value: Any, call: str) -> str:
        if type(value) is str:
            return value
        if type(value) is Mark and value.kind == "file" and not value.ops:
            return value.path
        if type(value) is RowFile:
            return value.path
        if isinstance(value, os.PathLike):
            path = os.fspath(value)
            if type(path) is str:
                return path
        if type(value) is io.BufferedReader and value.tell() == 0:  # opened by a library
            name = getattr(value, "name", None)
            if isinstance(name, (str, os.PathLike)):
                return os.fspath(name)
        what = "the inputs that were read" if type(value) is Mark else type(value).__name__
        raise self._leave(
            f"{call} of {what}, not of a path",
            "hr.open() reads LMDB, HDF5, tar and other containers" if what == "BytesIO" else "",
        )

    def _leave(self, what: str, way: str = "") -> Left:
        return self._attempt.leave(
            f"__getitem__ calls {what}, at record {self._attempt.record}", way
        )

    def image_open(self, fp: Any, mode: str = "r", formats: Any = None) -> Mark:
        return Mark(self._attempt, "pil", self.path_of(fp, "Image.open()"))

    def imread(self, filename: Any, flags: int = 1) -> Mark:
        if int(flags) != 1:
            raise self._leave(f"imread(flags={int(flags)})")
        return Mark(self._attempt, "bgr", self.path_of(filename, "imread()"), (("imread",),))

    def read_file(self, path: Any) -> Mark:
        return Mark(self._attempt, "file", self.path_of(path, "read_file()"))

    def _decoder(self, name: str) -> Any:
        def decode(
            input: Any, mode: Any = "UNCHANGED", apply_exif_orientation: bool = False
        ) -> Mark:
            path = self.path_of(input, f"{name}()")
            word = str(getattr(mode, "name", mode)).upper()
            ops: tuple[Any, ...] = (("decode", word),)
            if apply_exif_orientation:
                ops = (*ops, ("upright",))
            return Mark(self._attempt, "tensor", path, ops)

        return decode

    def _upright(self, real: Any) -> Any:
        def exif_transpose(image: Any, *, in_place: bool = False) -> Any:
            if type(image) is not Mark:
                return real(image, in_place=in_place)
            if image.kind != "pil" or in_place:
                raise image.leave("calls exif_transpose(in_place=) with")
            return image.then("pil", "upright")

        return exif_transpose

    def _bytes_io(self, real: Any) -> Any:
        class BytesIO(real):  # type: ignore[misc]
            def __new__(cls, initial_bytes: Any = b"") -> Any:
                if type(initial_bytes) is Mark and initial_bytes.kind == "bytes":
                    return Mark(initial_bytes.attempt, "file", initial_bytes.path)
                return real(initial_bytes)

        BytesIO.__module__ = real.__module__
        return BytesIO

    def _cvt_color(self, real: Any) -> Any:
        def cvt_color(src: Any, code: int, *more: Any, **named: Any) -> Any:
            if type(src) is not Mark:
                return real(src, code, *more, **named)
            is_swap = code == sys.modules["cv2"].COLOR_BGR2RGB
            if src.kind != "bgr" or not is_swap or more or named:
                raise src.leave(f"calls cvtColor({code}) of")
            return src.then("array", "reversed")

        return cvt_color

    def _array(self, real: Any) -> Any:
        def array(value: Any, *more: Any, **named: Any) -> Any:
            if type(value) is Mark:
                if value.kind in ("array", "bgr") and not (more or named):
                    return value
                if value.kind != "pil" or more or named:
                    raise value.leave("calls np.array() with more than an image of")
                return value.then("array", "array")
            if isinstance(value, (list, tuple)) and any(type(each) is Mark for each in value):
                raise self._leave("np.array() of several images")
            return real(value, *more, **named)

        return array

    def _read_bytes(self, real: Any) -> Any:
        def read_bytes(path: Any) -> Any:
            if sys._getframe(1).f_globals.get("__name__") not in self._homes:
                return real(path)
            return Mark(self._attempt, "bytes", self.path_of(path, "read_bytes()"))

        return read_bytes

    def _open(self, real: Any) -> Any:
        def opened(file: Any, mode: str = "r", *more: Any, **named: Any) -> Any:
            if set(mode) & set("wax+"):
                raise self._attempt.leave(f"__getitem__ writes to {file}")
            caller = sys._getframe(1).f_globals.get("__name__")
            if "b" in mode and caller in self._homes and isinstance(file, (str, os.PathLike)):
                return Mark(self._attempt, "file", self.path_of(file, "open()"))
            return real(file, mode, *more, **named)  # text next to an image is stored in the table

        return opened

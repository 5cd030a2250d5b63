# SPDX-License-Identifier: Apache-2.0
"""Steps written in Python: any callable in the list of transforms.

A function's argument names are fields; an argument named ``rng`` receives a
``numpy.random.Generator`` that belongs to this record and this step, so its draws repeat exactly
after a resume and on any number of threads. It returns a dictionary of fields, or the value alone
where it takes one field. Pictures are (C, H, W) arrays. A torchvision v2 transform and an
Albumentations Compose act on ``image``. Fields come back with the dtype and shape that they had;
what does not is declared with ``headrace.transforms.Python``.

    >>> import numpy as np
    >>> def invert(image):
    ...     return 255 - image
    >>> step = wrap(invert)
    >>> step.inputs
    ['image']
    >>> step.run([([np.zeros((3, 2, 2), np.uint8)], [1, 2, 3, 4])])[0]["image"].max()
    np.uint8(255)
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.dtypes import dtype_name
from headrace.errors import declare

_WRONG_FUNCTION = declare(
    "HR0613",
    "config",
    "a callable that cannot be a step",
    "A callable in the list of transforms takes fields by the names of its arguments, and "
    "optionally rng, a numpy Generator for this record. *args and **kwargs do not say which fields "
    "are meant; wrap the callable in a function that names them. What comes back with another "
    "dtype or shape, and fields that it adds, are declared: T.Python(function, returns={...}).",
)

Words = Sequence[int]  # four of 32 bits, a pure function of (seed, epoch, position, step)


Returned = dict[str, Any]  # what comes back, by field
Call = Callable[[list[Any], Words], Returned]
Run = Callable[[list[tuple[list[Any], Words]]], list[Any]]


class Step:
    """A callable with the fields that it takes and what it declares to give back."""

    def __init__(
        self, name: str, inputs: list[str], call: Call, returns: Mapping[str, Any] | None = None
    ) -> None:
        self.name = name
        self.inputs = inputs
        self.returns = [_declared(name, field, form) for field, form in (returns or {}).items()]
        self.home = ""  # the module that the callable comes from
        self._call = call
        self._made_from: tuple[Any, ...] = ()

    def run(self, records: list[tuple[list[Any], Words]]) -> list[Any]:
        """For each record its new values, or the text of what went wrong; called by the engine."""
        return [self._one(values, words) for values, words in records]

    def _one(self, values: list[Any], words: Words) -> Any:
        try:
            arrays = [_from_engine(n, value) for n, value in zip(self.inputs, values, strict=True)]
            returned = self._call(arrays, words)
            return {str(name): _to_engine(str(name), value) for name, value in returned.items()}
        except KeyboardInterrupt:
            raise  # comes on the main thread only, where batch() and trace() run steps
        except BaseException as failure:
            return describe(failure)

    def spec(self, runner: Callable[[Step], Run] | None = None) -> _core.Spec:
        """The engine's form; ``runner(step)`` is what it calls, if not the step's own ``run``."""
        run = runner(self) if runner else self.run
        step = _core.PythonStep(self.name, self.inputs, self.returns, run)
        return _core.Spec(self.name, {}, [], step)

    def __reduce__(self) -> tuple[Any, ...]:
        return (wrap, self._made_from)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(self.inputs)})"


Runner = Callable[[Step], Run]  # where a step's records are run


def Python(
    function: Callable[..., Any],
    returns: Mapping[str, Any] | None = None,
    *,
    fields: str | Iterable[str] = (),
) -> Step:
    """A step in Python that says more about itself than a bare function in the list.

    returns: fields that come back with another dtype or shape, and fields that it adds:
    (dtype, shape) with -1 where records differ, or (dtype, shape, kind).
    fields: those that it takes, in the order of its arguments; default, the arguments' names.

    >>> Python(lambda x: x.mean(), returns={"brightness": ("float64", ())}, fields="image")
    <lambda>(image)
    """
    return wrap(function, returns, (fields,) if isinstance(fields, str) else tuple(fields))


def wrap(
    function: Callable[..., Any],
    returns: Mapping[str, Any] | None = None,
    fields: tuple[str, ...] = (),
) -> Step:
    """A callable as a step."""
    step = _wrapped(function, returns, fields)
    step.home = str(getattr(function, "__module__", ""))
    step._made_from = (function, returns, fields)
    return step


def _wrapped(
    function: Callable[..., Any], returns: Mapping[str, Any] | None, fields: tuple[str, ...]
) -> Step:
    name = getattr(function, "__name__", type(function).__name__)
    home = type(function).__module__.partition(".")[0]
    if home in _LIBRARIES:
        inputs = list(fields) or ["image"]
        adapted = _LIBRARIES[home](function)
        return Step(name, inputs, lambda v, words: {inputs[0]: adapted(v[0], words)}, returns)
    arguments, takes_rng = _arguments_of(function, name)
    inputs = list(fields) or arguments
    if len(inputs) != len(arguments):
        raise _WRONG_FUNCTION.error(f"[{name}] takes {arguments}, fields= names {inputs}")

    def call(values: list[Any], words: Words) -> Returned:
        given = dict(zip(arguments, values, strict=True))
        if takes_rng:
            given["rng"] = generator(words)
        return _by_field(function(**given), inputs)

    return Step(name, inputs, call, returns)


def generator(words: Words) -> np.random.Generator:
    """The record's own generator."""
    key = sum(word << (32 * i) for i, word in enumerate(words))
    return np.random.Generator(np.random.Philox(key=key))


def describe(failure: BaseException) -> str:
    """'ValueError: too dark (in speckle, train.py, line 12)': the traceback's last line."""
    text = traceback.format_exception_only(failure)[-1].strip()
    frames = [
        frame for frame in traceback.extract_tb(failure.__traceback__) if frame.filename != __file__
    ]
    if frames:
        text += f" (in {frames[-1].name}, {frames[-1].filename}, line {frames[-1].lineno})"
    return text


def _arguments_of(function: Callable[..., Any], name: str) -> tuple[list[str], bool]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise _WRONG_FUNCTION.error(
            f"[{name}] its arguments are unknown",
            hint="wrap it: def step(image): return {'image': ...}",
        ) from None
    kinds = inspect.Parameter
    if any(p.kind in (kinds.VAR_POSITIONAL, kinds.POSITIONAL_ONLY) for p in parameters):
        raise _WRONG_FUNCTION.error(
            f"[{name}] its arguments have no names",
            hint="wrap it: def step(image): return {'image': ...}",
        )
    named = [p for p in parameters if p.kind is not kinds.VAR_KEYWORD and p.default is kinds.empty]
    inputs = [p.name for p in named if p.name != "rng"]
    if not inputs:
        raise _WRONG_FUNCTION.error(
            f"[{name}] takes no field",
            hint="name the fields that it takes: def step(image, rng): ...",
        )
    return inputs, any(p.name == "rng" for p in parameters)


def _by_field(returned: Any, inputs: list[str]) -> Returned:
    if isinstance(returned, dict):
        return returned
    if returned is None:
        raise TypeError("returned None; return a dictionary of fields")
    if len(inputs) == 1:
        return {inputs[0]: returned}
    raise TypeError(f"returned {type(returned).__name__}; return a dictionary of {inputs}")


def _declared(step: str, name: str, form: Any) -> _core.Field:
    """("float32", (3, 224, 224)) or ("float32", shape, kind) as a field."""
    parts = form if isinstance(form, (tuple, list)) else ()
    if not 2 <= len(parts) <= 3 or dtype_name(parts[0]) not in _core.DType.__members__:
        raise _WRONG_FUNCTION.error(
            f"[{step}] returns= gives {name} as {form!r}",
            hint=f'returns={{{name!r}: ("float32", (3, 224, 224))}}, with -1 where records differ',
        )
    guess = name if name in ("image", "mask") and len(parts[1]) == 3 else "tensor"
    dtype = _core.DType.__members__[dtype_name(parts[0])]
    return _core.make_field(
        name, parts[2] if len(parts) == 3 else guess, dtype, list(parts[1]), False
    )


def can_be_read(value: Any) -> bool:
    """Whether NumPy has the dtype of a value of the engine."""
    return not isinstance(value, _core.Array) or value.dtype != "bfloat16"


def _from_engine(name: str, value: Any) -> Any:
    if not isinstance(value, _core.Array):
        return value
    if not can_be_read(value):
        raise TypeError(
            f"{name} is bfloat16, which NumPy has not; put ToDtype('bfloat16') after this step"
        )
    return np.asarray(value)


def _to_engine(name: str, value: Any) -> Any:
    if isinstance(value, (str, bytes)):
        return value
    if hasattr(value, "detach"):  # a tensor of torch
        value = value.detach().cpu().numpy()
    elif hasattr(value, "getbands"):  # a picture of Pillow
        value = np.atleast_3d(np.asarray(value)).transpose(2, 0, 1)
    # ascontiguousarray() would make an array of one element out of a scalar.
    array = np.asarray(value)
    if array.dtype.name not in _core.DType.__members__:
        raise TypeError(f"{name} is {type(value).__name__} of dtype {array.dtype}, not of numbers")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array if array.flags.c_contiguous else array.copy(order="C")


def _torchvision_call(transform: Callable[..., Any]) -> Callable[[Any, Words], Any]:
    """torchvision draws from torch's global generator: seeded for the record, then put back."""

    def call(image: Any, words: Words) -> Any:
        torch = sys.modules["torch"]
        tv_tensors = sys.modules.get("torchvision.tv_tensors")
        tensor = torch.from_numpy(image)
        state = torch.random.get_rng_state()
        torch.random.default_generator.manual_seed(words[0] | words[1] << 32)
        try:
            return transform(tv_tensors.Image(tensor) if tv_tensors else tensor)
        finally:
            torch.random.set_rng_state(state)

    return call


def _albumentations_call(transform: Any) -> Callable[[Any, Words], Any]:
    """Albumentations takes (H, W, C) by name and can be seeded."""

    def call(image: Any, words: Words) -> Any:
        if hasattr(transform, "set_random_seed"):
            transform.set_random_seed(words[0])
        out = transform(image=np.ascontiguousarray(image.transpose(1, 2, 0)))["image"]
        if hasattr(out, "detach"):  # ToTensorV2 gives (C, H, W)
            return out
        return np.atleast_3d(out).transpose(2, 0, 1)

    return call


_LIBRARIES = {"torchvision": _torchvision_call, "albumentations": _albumentations_call}

# SPDX-License-Identifier: Apache-2.0
"""Transforms written in Python: any callable in the list of transforms.

A function's argument names are fields; an argument named ``rng`` receives a
``numpy.random.Generator`` that belongs to this record and this step, so its draws repeat exactly
after a resume and on any number of threads. It returns a dictionary of fields, or just the value if
it takes one field. Images are (C, H, W) arrays. Fields are returned with the dtype and shape that
they had; a different dtype or shape is declared with ``headrace.transforms.Python``. In a record
with a single field, the argument may have any name. Torchvision v2 transforms and Albumentations
Composes that change positions get all fields in image coordinates (headrace.library_steps), all
other library transforms get ``image``; ``T.Python(transform, fields=("image", "mask"))`` selects
the fields instead. A function that moves an image must also move the fields in its coordinates: a
transform that is known to move only the image is rejected for a record with a mask or boxes
(HR0180), and so is an image that is returned in a different size.

    >>> import numpy as np
    >>> def invert(image):
    ...     return 255 - image
    >>> step = wrap(invert)
    >>> step.inputs
    ['image']
    >>> next(step.run([([np.zeros((3, 2, 2), np.uint8)], [1, 2, 3, 4])]))["image"].max()
    np.uint8(255)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from headrace import _core, library_steps
from headrace.dtypes import dtype_name, is_known
from headrace.errors import declare
from headrace.library_steps import Kinds, Taken, Words
from headrace.plain_array import plain_array

_WRONG_FUNCTION = declare(
    "HR0613",
    "config",
    "invalid callable",
    "A callable in the list of transforms receives fields by its argument names, and optionally "
    "rng, a numpy Generator for this record. *args and **kwargs do not name fields; wrap the "
    "callable in a function with named arguments. Declare results with another dtype or shape, "
    "and new fields: T.Python(function, returns={...}).",
)

# Words are four 32-bit numbers, a pure function of (seed, epoch, position, step).
Returned = dict[str, Any]  # returned values, by field
Call = Callable[[list[Any], Kinds, Words], Returned]
Run = Callable[[list[tuple[list[Any], Words]], Kinds], Iterable[Any]]


class Step:
    """A callable with the fields that it takes and those it declares to return."""

    def __init__(
        self, name: str, inputs: list[str], call: Call, returns: Mapping[str, Any] | None = None
    ) -> None:
        self.geometry = _core.PythonGeometry.unknown  # how it affects positions in the image
        self.name = name
        self.inputs = inputs
        self.returns = [_declared(name, field, form) for field, form in (returns or {}).items()]
        self.guessed = [field for field, form in (returns or {}).items() if len(form) == 2]
        self.home = ""  # the module that the callable comes from
        self.remedy = ""  # advice if a result is not as declared; empty: use returns=
        self._call = call
        self._made_from: tuple[Any, ...] = ()

    def run(self, records: list[tuple[list[Any], Words]], kinds: Kinds = ()) -> Iterator[Any]:
        """For each record, its new values or an error text; called by the engine, which copies them
        before the next call, since a function may reuse its arrays. kinds: kinds of the fields.
        Raises ConfigError if the step cannot take such fields.
        """
        self.check(kinds)
        fields = [Taken(*field) for field in kinds]
        return (self._one(values, fields, words) for values, words in records)

    def chosen(self, seen: Kinds) -> list[str]:
        """Names of the fields that it takes, among those available at its position; called by the
        engine. Raises ConfigError if it cannot take a required one.
        """
        return self.inputs

    def check(self, kinds: Kinds) -> None:
        """Raises ConfigError if the step cannot take these fields."""

    def _one(self, values: list[Any], kinds: Kinds, words: Words) -> Any:
        names = [field.name for field in kinds] or self.inputs
        try:
            arrays = [_from_engine(n, value) for n, value in zip(names, values, strict=True)]
            returned = self._call(arrays, kinds, words)
            return {str(name): _to_engine(str(name), value) for name, value in returned.items()}
        except KeyboardInterrupt:
            raise  # raised on the main thread only, where batch() and trace() run steps
        except BaseException as failure:
            return describe(failure)

    def spec(self, runner: Callable[[Step], Run] | None = None) -> _core.Spec:
        """The engine's form; ``runner(step)`` is called instead of the step's own ``run``."""
        run = runner(self) if runner else self.run
        step = _core.PythonStep(
            self.name,
            self.inputs,
            self.returns,
            self.guessed,
            self.geometry,
            self.remedy,
            run,
            self.chosen,
        )
        return _core.Spec(self.name, {}, [], step)

    def __reduce__(self) -> tuple[Any, ...]:
        return (wrap, self._made_from)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(self.inputs)})"


Runner = Callable[[Step], Run]  # runs a step's records, possibly in another process


def Python(
    function: Callable[..., Any],
    returns: Mapping[str, Any] | None = None,
    *,
    fields: str | Iterable[str] = (),
) -> Step:
    """A Python transform with declarations that a plain function in the list does not have.
    returns: fields that are returned with another dtype or shape, and fields that it adds: (dtype,
    shape) with -1 where records differ, or (dtype, shape, kind). Without a kind, a field in image
    coordinates keeps its kind if the new shape allows it; the kind of other fields follows from the
    name. fields: the fields that it takes, in the order of its arguments; default: the arguments'
    names. They also declare that nothing else moves: with fields="image", a crop leaves a mask
    unchanged.

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
    if fields:
        step.geometry = _core.PythonGeometry.alone
    step.home = str(getattr(function, "__module__", ""))
    step.remedy = str(getattr(function, "remedy", ""))
    step._made_from = (function, returns, fields)
    return step


def _wrapped(
    function: Callable[..., Any], returns: Mapping[str, Any] | None, fields: tuple[str, ...]
) -> Step:
    name = getattr(function, "__name__", type(function).__name__)
    if library_steps.home_of(function):
        return LibraryStep(function, name, list(fields), returns)
    arguments, takes_rng = _arguments_of(function, name)
    inputs = list(fields) or arguments
    if len(inputs) != len(arguments):
        raise _WRONG_FUNCTION.error(f"[{name}] takes {arguments}, but fields= has {inputs}")

    def call(values: list[Any], kinds: Kinds, words: Words) -> Returned:
        given = dict(zip(arguments, values, strict=True))
        if takes_rng:
            given["rng"] = generator(words)
        return _by_field(function(**given), inputs)

    return Step(name, inputs, call, returns)


class LibraryStep(Step):
    """A transform of torchvision or Albumentations, called with all its fields at once."""

    def __init__(
        self, transform: Any, name: str, fields: list[str], returns: Mapping[str, Any] | None
    ) -> None:
        self._adapter = library_steps.adapter_of(transform)
        adapted = self._adapter.adapted(transform)

        def call(values: list[Any], kinds: Kinds, words: Words) -> Returned:
            back = adapted(values, kinds, words)
            return {field.name: value for field, value in zip(kinds, back, strict=True)}

        super().__init__(name, fields or ["image"], call, returns)
        self.natively = library_steps.native_names(transform)
        self._transform, self._fields = transform, fields
        if library_steps.moves(transform):
            self.geometry = _core.PythonGeometry.moves

    def chosen(self, seen: Kinds) -> list[str]:
        fields = [Taken(*field) for field in seen]
        names = self._fields or self._adapter.chosen(self._transform, fields)
        taken = [field for name in names for field in fields if field.name == name]
        if len(taken) == len(names):  # otherwise the engine reports the missing one
            self.check(taken)
        return names

    def __repr__(self) -> str:
        return (
            f"{self.name}({', '.join(self._fields)})"  # otherwise all fields in image coordinates
        )

    def check(self, kinds: Kinds) -> None:
        self._adapter.check(self._transform, [Taken(*field) for field in kinds])


def generator(words: Words) -> np.random.Generator:
    """The random generator of a record."""
    key = sum(word << (32 * i) for i, word in enumerate(words))
    return np.random.Generator(np.random.Philox(key=key))


def describe(failure: BaseException) -> str:
    """'ValueError: too dark (in speckle, train.py, line 12)': with the traceback's last line."""
    import traceback

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
            f"[{name}] its signature is unknown",
            hint="wrap it: def step(image): return {'image': ...}",
        ) from None
    kinds = inspect.Parameter
    if any(p.kind in (kinds.VAR_POSITIONAL, kinds.POSITIONAL_ONLY) for p in parameters):
        raise _WRONG_FUNCTION.error(
            f"[{name}] its arguments are not named",
            hint="wrap it: def step(image): return {'image': ...}",
        )
    named = [p for p in parameters if p.kind is not kinds.VAR_KEYWORD and p.default is kinds.empty]
    inputs = [p.name for p in named if p.name != "rng"]
    if not inputs:
        raise _WRONG_FUNCTION.error(
            f"[{name}] takes no field",
            hint="name its fields as arguments: def step(image, rng): ...",
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
    """A field from ("float32", (3, 224, 224)) or ("float32", shape, kind)."""
    parts = form if isinstance(form, (tuple, list)) else ()
    if not 2 <= len(parts) <= 3 or dtype_name(parts[0]) not in _core.DType.__members__:
        raise _WRONG_FUNCTION.error(
            f"[{step}] returns= declares {name} as {form!r}",
            hint=f'returns={{{name!r}: ("float32", (3, 224, 224))}}, with -1 where records differ',
        )
    dtype = _core.DType.__members__[dtype_name(parts[0])]
    picture = name in ("image", "mask") and len(parts[1]) == 3
    guess = name if picture else _core.evident_kind(name, dtype, list(parts[1]))
    return _core.make_field(
        name, parts[2] if len(parts) == 3 else guess, dtype, list(parts[1]), False
    )


def can_be_read(value: Any) -> bool:
    """Whether NumPy has the dtype of an engine value."""
    return not isinstance(value, _core.Array) or value.dtype != "bfloat16"


def _from_engine(name: str, value: Any) -> Any:
    if not isinstance(value, _core.Array):
        return value
    if not can_be_read(value):
        raise TypeError(
            f"{name} is bfloat16, which NumPy lacks; put ToDtype('bfloat16') after this step"
        )
    return np.asarray(value)


def _to_engine(name: str, value: Any) -> Any:
    if isinstance(value, (str, bytes, _core.DeferredPicture)):
        return value
    if hasattr(value, "getbands"):  # a Pillow image
        value = np.atleast_3d(np.asarray(value)).transpose(2, 0, 1)
    array = plain_array(value)
    if not is_known(array.dtype):
        raise TypeError(f"{name} is {type(value).__name__} of dtype {array.dtype}, not of numbers")
    # ascontiguousarray() would turn a scalar into an array with one element.
    return array if array.flags.c_contiguous else array.copy(order="C")

# SPDX-License-Identifier: Apache-2.0
"""Transforms: one class for each operator of the engine. Names, arguments and defaults are the same
as in torchvision v2. Enumerations may be strings, dtypes may be strings, NumPy's or torch's. Every
transform takes ``fields=``, which restricts it to those fields; otherwise it applies to all fields
that it supports. Any callable may be in the list as well. The classes are made from the engine's
registry.

    >>> from headrace import transforms as T
    >>> T.RandomHorizontalFlip(p=0.25)
    RandomHorizontalFlip(p=0.25)
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable, Mapping
from typing import Any

from headrace import _core, steps
from headrace.dtypes import dtype_name
from headrace.errors import declare, did_you_mean, warn
from headrace.signatures import docstring, signature
from headrace.steps import Python as Python

_WRONG_CALL = declare(
    "HR0151",
    "config",
    "wrong arguments for a transform",
    "The call does not match the transform's signature. `headrace operators NAME` prints it with "
    "the meaning, default and range of each argument.",
)
_NOT_A_TRANSFORM = declare(
    "HR0152",
    "config",
    "not a transform",
    "transforms= is a list whose entries are headrace.transforms, or callables whose argument "
    "names are fields. A dictionary gives each field a separate list; None drops the field.",
)


class Transform:
    """A transform over fields, as given; the engine checks it when a loader is made."""

    record: Mapping[str, Any] = {}
    name = ""
    arguments: dict[str, Any]
    fields: tuple[str, ...]
    count: int  # number of transforms in it, itself included
    _alone: Any = None  # the arguments of a call

    def __init__(self, *args: Any, fields: str | Iterable[str] = (), **named: Any) -> None:
        self.arguments = _bind(self.record, args, named)
        self.fields = (fields,) if isinstance(fields, str) else tuple(fields)
        self.count = 1 + _count(self.arguments)
        if self.count > _MOST:
            raise _WRONG_CALL.error(
                f"[{self.name}] contains {self.count:,} transforms, each counted wherever it "
                "appears",
                hint=f"the limit is {_MOST:,}; nest fewer lists",
            )
        _core.check_arguments(self.name, self._engine_arguments())

    def _engine_arguments(self, runner: steps.Runner | None = None) -> dict[str, Any]:
        types = {param["name"]: param["type"] for param in self.record["params"]}
        return {n: _to_engine(v, types.get(n, ""), runner) for n, v in self.arguments.items()}

    def spec(self, runner: steps.Runner | None = None) -> _core.Spec:
        """The engine's form; ``runner`` is for Python transforms (headrace.steps.Step.spec)."""
        return _core.Spec(self.name, self._engine_arguments(runner), list(self.fields))

    def __call__(self, value: Any, *, seed: int | None = None) -> Any:
        """Applies the transform to one image or record, without a loader; see ``headrace.Compose``,
        which applies several in one pass."""
        if self._alone is None:
            from headrace.compose import Compose  # late

            self._alone = Compose([self])
        return self._alone(value, seed=seed)

    def __repr__(self) -> str:
        inside = [f"{name}={value!r}" for name, value in self.arguments.items()]
        if self.fields:
            inside.append(f"fields={self.fields!r}")
        return f"{self.name}({', '.join(inside)})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A plug-in's transform may be unpickled where the plug-in is not loaded yet."""
        if self.record.get("plugin") is None:
            return super().__reduce_ex__(protocol)
        return (_from_plugin, (dict(self.record["plugin"]), self.name, self.__getstate__()))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_alone"}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__getstate__() == other.__getstate__()

    __hash__ = None  # type: ignore[assignment]


_MOST = 50_000  # as in the engine's plan (Note [How large a plan may become])


def _count(value: Any) -> int:
    """The number of transforms in an argument."""
    if isinstance(value, Transform):
        return value.count
    if isinstance(value, Mapping):
        value = list(value.values())
    return sum(map(_count, value)) if isinstance(value, (list, tuple)) else 0


def flatten(transforms: Any) -> list[Any]:
    """The entries of a list of transforms, with nested lists flattened and callables wrapped."""
    if isinstance(transforms, (list, tuple)):
        return [step for entry in transforms for step in flatten(entry)]
    if isinstance(transforms, (Transform, steps.Step)):
        return [transforms]
    if isinstance(transforms, type) and issubclass(transforms, Transform):
        raise _NOT_A_TRANSFORM.error(
            f"{transforms.__name__} is a class", hint=f"call it: {transforms.__name__}(...)"
        )
    if callable(transforms):
        step = steps.wrap(transforms)
        if isinstance(step, steps.LibraryStep) and step.natively:
            warn(
                f"torchvision's [{step.name}] runs in Python, one record at a time; "
                f"headrace.transforms has {', '.join(step.natively)} natively"
            )
        return [step]
    raise _NOT_A_TRANSFORM.error(
        f"{transforms!r} is not a transform", hint="a transform, a callable, or a list of them"
    )


def _bind(
    record: Mapping[str, Any], args: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    """Arguments by name. Unknown ones go to the parameter that takes branches, or are rejected."""
    params = [param for param in record["params"] if param["type"] != "branches"]
    branches = [param["name"] for param in record["params"] if param["type"] == "branches"]
    if branches and any(isinstance(value, Mapping) for value in args):
        raise _WRONG_CALL.error(
            f"[{record['name']}] takes its lists by name, not in a dictionary",
            hint=f'{record["name"]}("image", view1=[...], view2=[...])',
        )
    if len(args) > len(params):
        raise _WRONG_CALL.error(
            f"[{record['name']}] takes at most {len(params)} arguments (got {len(args)})",
            hint=f"{record['name']}{signature(record)}",
        )
    bound = {param["name"]: value for param, value in zip(params, args, strict=False)}
    names = {param["name"] for param in params}
    rest = {name: value for name, value in named.items() if name not in names}
    for name in set(bound) & set(named):
        raise _WRONG_CALL.error(f"[{record['name']}] {name} is given twice")
    bound.update((name, value) for name, value in named.items() if name in names)
    if rest and branches:
        bound[branches[0]] = {name: flatten(value) for name, value in rest.items()}
        rest = {}
    for name in rest:
        raise _WRONG_CALL.error(
            f"[{record['name']}] has no argument {name!r}",
            hint=did_you_mean(name, names | {"fields"}),
        )
    for param in params:
        if param["type"] == "transforms" and param["name"] in bound:
            bound[param["name"]] = flatten(bound[param["name"]])
        if param["type"] == "lists" and param["name"] in bound:
            bound[param["name"]] = _lists(record["name"], bound[param["name"]])
    return bound


def _lists(name: str, entries: Any) -> list[Any]:
    """Entries of a list for a record: transforms, or lists of them, which remain lists."""
    if not isinstance(entries, (list, tuple)):
        raise _WRONG_CALL.error(f"[{name}] chooses from a list of transforms (got {entries!r})")
    lists = [flatten(entry) for entry in entries]
    return [steps[0] if len(steps) == 1 else steps for steps in lists]


def _to_engine(value: Any, kind: str, runner: steps.Runner | None) -> Any:
    """Converts a value of Python to a form that the engine's parameters accept."""
    if kind == "branches":
        return [(name, [step.spec(runner) for step in steps]) for name, steps in value.items()]
    if kind == "transforms":
        return [("", [step.spec(runner) for step in value])]
    if kind == "lists":
        return [("", [step.spec(runner) for step in flatten(entry)]) for entry in value]
    if kind == "dtype":
        return _core.DType.__members__.get(dtype_name(value), dtype_name(value))
    if kind == "string" and isinstance(value, enum.Enum):
        return str(value.value if isinstance(value.value, str) else value.name).lower()
    if kind == "source":
        return getattr(value, "engine", value)
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays, torch's tensors
        value = value.tolist()
    if kind in ("float", "floats") and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, (list, tuple)):
        value = [item.item() if hasattr(item, "item") else item for item in value]
        if kind == "floats" and all(isinstance(item, (int, float)) for item in value):
            return [float(item) for item in value]
    return value


def to_config(transforms: Any) -> Any:
    """A list of transforms, or a dictionary of lists by field, as plain data for YAML, JSON and
    Hydra configurations. Raises ConfigError HR0176 for functions of your own.

    >>> from headrace import transforms as T
    >>> T.to_config([T.Resize(64), T.RandomHorizontalFlip(p=0.2)])
    [{'Resize': {'size': 64}}, {'RandomHorizontalFlip': {'p': 0.2}}]
    """
    from headrace.step_config import config_of  # late

    return config_of(transforms)


def from_config(config: Any) -> Any:
    """The transforms of ``to_config``'s data; a transform without arguments may be just its name.
    Raises ConfigError HR0177 for invalid data.

    >>> from headrace import transforms as T
    >>> T.from_config([{"Resize": {"size": 64}}, "RandomHorizontalFlip"])
    [Resize(size=64), RandomHorizontalFlip()]
    """
    from headrace.step_config import steps_of  # late

    return steps_of(config)


def _make_class(record: Mapping[str, Any]) -> type[Transform]:
    members = {
        "record": record,
        "name": record["name"],
        "__doc__": docstring(record),
        "__module__": __name__,
        "__signature__": signature(record),
    }
    return type(record["name"], (Transform,), members)


def _from_plugin(plugin: dict[str, Any], name: str, state: dict[str, Any]) -> Transform:
    require(plugin, load=True)
    step: Transform = object.__new__(globals().get(name) or __getattr__(name))
    vars(step).update(state)
    return step


def require(plugin: Mapping[str, Any], *, load: bool) -> None:
    """Loads the plug-in that a pickle needs. For plain data, which must not run code from files,
    load=False only checks that it is loaded. Raises ConfigError HR0578 if it differs or is missing.
    """
    name, version, path, fingerprint = (
        str(plugin.get(key, "")) for key in ("name", "version", "path", "fingerprint")
    )
    _core.require_plugin(name, version, path, fingerprint, load)


_operators = functools.cache(_core.operators)


def known() -> dict[str, Any]:
    """All operators by name, including those of loaded plug-ins."""
    return {**_operators(), **_core.plugin_operators()}


def _names() -> list[str]:
    return sorted({*_operators(), "Python", "Transform", "from_config", "to_config"})


def __getattr__(name: str) -> Any:
    """The class of an operator, created on first access, since there are many."""
    if name == "__all__":
        return _names()
    if name.startswith("_"):
        raise AttributeError(name)
    if name in _operators():
        return globals().setdefault(name, _make_class(_operators()[name]))
    if name in (plugins := _core.plugin_operators()):
        return globals().setdefault(name, _make_class(plugins[name]))
    from headrace.absent import no_such_transform  # only for this message

    error = no_such_transform(name, [*_names(), *_core.plugin_operators()])
    raise AttributeError(str(error)) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *known()})

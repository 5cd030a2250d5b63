# SPDX-License-Identifier: Apache-2.0
"""Converts lists of transforms to plain data and back, for YAML, JSON and Hydra configurations. A
transform is ``{name: arguments}``, or just its name; nested lists remain lists.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace import transforms as T
from headrace.dtypes import dtype_name
from headrace.errors import Code, declare, did_you_mean
from headrace.steps import Step

_NOT_PLAIN = declare(
    "HR0176",
    "config",
    "transform cannot be plain data",
    "transforms.to_config() converts transforms of headrace.transforms with numbers, texts and "
    "lists as arguments. Functions of your own cannot be converted: refer to them separately in "
    "the configuration, and add them to the list that from_config() returns.",
)
_NOT_A_CONFIG = declare(
    "HR0177",
    "config",
    "invalid configuration of transforms",
    "transforms.from_config() takes a list whose entries are {name: arguments}, or just names of "
    "transforms: [{'Resize': {'size': 256}}, 'RandomHorizontalFlip']. A dictionary gives each "
    "field such a list.",
)

Plain = Callable[[Any], Any]


def _refused(value: Any) -> Any:
    raise _NOT_PLAIN.error(f"{value!r} as an argument", hint="use numbers, texts, lists, dtypes")


def config_of(transforms: Any, plain: Plain = _refused, refused: Code = _NOT_PLAIN) -> Any:
    """The transform as plain data. plain: converts other values, such as a source. refused: the
    code of the ConfigError for Python transforms.
    """
    if isinstance(transforms, Mapping):
        return {
            str(name): None if steps is None else config_of(steps, plain, refused)
            for name, steps in transforms.items()
        }
    return [_step(step, plain, refused) for step in T.flatten(transforms)]


def _step(step: Any, plain: Plain, refused: Code) -> dict[str, Any]:
    if isinstance(step, Step):
        raise refused.error(f"{step!r} is a Python transform")
    types = {param["name"]: param["type"] for param in step.record["params"]}
    arguments: dict[str, Any] = {}
    for name, value in step.arguments.items():
        if types[name] == "branches":
            arguments |= config_of(value, plain, refused)
        elif types[name] == "transforms":
            arguments[name] = config_of(value, plain, refused)
        elif types[name] == "lists":
            arguments[name] = [
                config_of(entry, plain, refused)
                if isinstance(entry, list)
                else _step(entry, plain, refused)
                for entry in value
            ]
        else:
            arguments[name] = _value(value, plain)
    if step.fields:
        arguments["fields"] = list(step.fields)
    return {step.name: arguments}


def name_of(value: Any) -> str | None:
    """Name of an enumeration's member, or a dtype; None for anything else."""
    if isinstance(value, enum.Enum):
        return str(value.value if isinstance(value.value, str) else value.name).lower()
    if isinstance(value, type) or type(value).__name__ == "dtype":
        return dtype_name(value)
    return None


def _value(value: Any, plain: Plain) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if (name := name_of(value)) is not None:
        return name
    if hasattr(value, "tolist"):  # NumPy's and torch's
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_value(item, plain) for item in value]
    return plain(value)


def steps_of(config: Any, made: Plain = lambda value: value) -> Any:
    """The transforms from plain data. made: the inverse of ``plain``. Raises ConfigError HR0177 if
    the data does not describe known transforms with valid arguments.
    """
    if isinstance(config, Mapping):
        return {
            str(name): None if steps is None else steps_of(steps, made)
            for name, steps in config.items()
        }
    if not _is_list(config):
        raise _NOT_A_CONFIG.error(f"{config!r} is not a list of transforms")
    return [_made_step(step, made) for step in config]


def _made_step(entry: Any, made: Plain) -> Any:
    if isinstance(entry, str):
        entry = {entry: {}}
    if not isinstance(entry, Mapping) or len(entry) != 1:
        raise _NOT_A_CONFIG.error(f"{entry!r} is not a transform", hint="{'Resize': {'size': 256}}")
    ((name, given),) = entry.items()
    operators = T.known()
    if name not in operators:
        raise _NOT_A_CONFIG.error(
            f"no transform is named {name!r}",
            hint=f"{did_you_mean(str(name), operators)}; for a plug-in's transform, call "
            "hr.load_plugin() first",
        )
    kind: type[T.Transform] = getattr(T, name)
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise _NOT_A_CONFIG.error(
            f"{name}: {given!r} is not a dictionary of arguments",
            hint=f"{{{str(name)!r}: {{argument: value}}}}",
        )
    types = {param["name"]: param["type"] for param in kind.record["params"]}
    branches = "branches" in types.values()
    arguments: dict[str, Any] = {}
    for argument, value in given.items():
        lists = types.get(argument) in ("transforms", "lists")
        if lists or (branches and argument not in types and argument != "fields"):
            arguments[argument] = [_entry(item, made) for item in _listed(name, argument, value)]
        else:
            arguments[argument] = _plain_value(value, made)
    return kind(**arguments)


def _entry(item: Any, made: Plain) -> Any:
    """An entry of a list of transforms: a transform, or a list, which remains a list."""
    return steps_of(item, made) if _is_list(item) else _made_step(item, made)


def _listed(name: Any, argument: str, value: Any) -> Any:
    if not _is_list(value):
        raise _NOT_A_CONFIG.error(f"{argument} of {name} is {value!r}, not a list of transforms")
    return value


def _plain_value(value: Any, made: Plain) -> Any:
    """Converts the list classes of configuration libraries to plain lists."""
    return [_plain_value(item, made) for item in value] if _is_list(value) else made(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))

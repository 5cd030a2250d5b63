# SPDX-License-Identifier: Apache-2.0
"""Options of one container, declared as data: names, types, defaults and help texts.

>>> declared = (Option("fps", "float", None, "Frames per second."),)
>>> completed(declared, {"fps": "30"}, "lerobot")
{'fps': 30.0}
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from headrace.errors import declare, did_you_mean

WRONG_OPTION = declare(
    "HR0414",
    "config",
    "invalid conversion option",
    "convert() writes the containers listed by `headrace convert --help`, to a local path. Not "
    "every container can hold every field: a folder, RecordIO and LMDB hold only an image and a "
    "label.",
)


class Option(NamedTuple):
    """An option of a container. kind: "text", "names" (a list, or text with commas), "count" (a
    positive integer), "integer" (non-negative), "float" (positive), "switch", or the allowed words
    separated by "|".
    """

    name: str
    kind: str
    default: Any
    help: str


def completed(
    declared: Sequence[Option], given: Mapping[str, Any], to: str, others: Iterable[str] = ()
) -> dict[str, Any]:
    """All options with their values; text is converted to the option's type.

    others: arguments that are not options of the container, to be suggested for a misspelled name.
    Raises ConfigError HR0414 for an unknown name or an invalid value.
    """
    known = {option.name: option for option in declared}
    for name in given:
        if name not in known:
            raise WRONG_OPTION.error(
                f"[{to}] no option {name!r:.80}",
                hint=did_you_mean(name, [*known, *others])
                if known or others
                else "this container has no options",
            )
    return {
        name: _value(option, given[name], to) if given.get(name) is not None else option.default
        for name, option in known.items()
    }


def page_table(declared: Sequence[Option]) -> str:
    """The table of a guide."""
    rows = (f"| `{each.name}` | {_shown(each.default)} | {each.help} |" for each in declared)
    return "\n".join(["| option | default | meaning |", "|---|---|---|", *rows])


def _shown(default: Any) -> str:
    return "" if default is None else f"`{str(default).lower() if default is False else default}`"


def _value(option: Option, value: Any, to: str) -> Any:
    try:
        return _converted(option.kind, value)
    except (TypeError, ValueError, OverflowError):
        raise WRONG_OPTION.error(
            f"[{to}] {option.name} is {value!r:.80}, but must be {_expected(option.kind)}"
        ) from None


def _converted(kind: str, value: Any) -> Any:
    if kind == "names":
        names = value.split(",") if isinstance(value, str) else list(value)
        return [_text(name).strip() for name in names]
    if kind == "switch":
        if value not in (True, False, "true", "false"):
            raise ValueError
        return value in (True, "true")
    if kind in ("count", "integer"):
        number = int(value) if isinstance(value, str) else value
        if isinstance(number, bool) or int(number) != number or number < (kind == "count"):
            raise ValueError
        return int(number)
    if kind == "float":
        number = float(value)
        if isinstance(value, bool) or not number > 0 or math.isinf(number):
            raise ValueError
        return number
    if "|" in kind and value not in kind.split("|"):
        raise ValueError
    return _text(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # command lines may have bytes that are not UTF-8, as lone surrogates
    return value


def _expected(kind: str) -> str:
    named = {
        "text": "text (UTF-8)",
        "names": "a list of names",
        "count": "a positive integer",
        "integer": "an integer from 0 on",
        "float": "a positive number",
        "switch": "true or false",
    }
    return named.get(kind) or f"one of {', '.join(kind.split('|'))}"

# SPDX-License-Identifier: Apache-2.0
"""Formats: one function for each container that can be opened, ``headrace.tfrecord`` and so on.

``headrace.open`` recognizes a container by its content; these functions select one explicitly and
document its parameters:

    >>> import headrace as hr
    >>> print(hr.folder.__doc__.splitlines()[0])
    A folder of images. With folders in it, each is a class (their names, sorted) and is ...

Where the format takes several files, a path may be a pattern ("train-{0000..0146}.tar",
"train-*.tar") or a list of paths. The functions are made from the engine's registry; no container
is named here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace import _core
from headrace.errors import declare
from headrace.signatures import NOT_FUNCTIONS, format_docstring, format_signature
from headrace.sources import Progress, Source, open

_TOO_MANY = declare(
    "HR0168",
    "config",
    "wrong arguments for a format",
    "The call has more positional arguments than the format has parameters, or gives an argument "
    "twice. `help(headrace.NAME)` describes each parameter with its default and range.",
)


def _make_function(record: Mapping[str, Any]) -> Callable[..., Source]:
    name = record["name"]
    params = [param["name"] for param in record["params"]]

    def function(path: Any, *args: Any, progress: Progress | None = None, **named: Any) -> Source:
        given = dict(zip(params, args, strict=False))
        twice = sorted(set(given) & set(named))
        if len(args) > len(params) or twice:
            raise _TOO_MANY.error(
                f"[{name}] {twice[0]} is given twice"
                if twice
                else f"[{name}] takes at most {len(params) + 1} arguments (got {len(args) + 1})",
                hint=f"{name}{format_signature(record)}",
            )
        return open(path, progress=progress, format=name, **given, **named)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = format_docstring(record)
    function.__signature__ = format_signature(record)  # type: ignore[attr-defined]
    return function


def function_of(name: str) -> Callable[..., Source]:
    """The function of a plug-in's format."""
    return _make_function(_core.formats()[name])


def _register(formats: Mapping[str, Mapping[str, Any]]) -> list[str]:
    names = sorted(set(formats) - NOT_FUNCTIONS)
    for name in names:
        globals()[name] = _make_function(formats[name])
    return names


__all__ = _register(_core.formats())

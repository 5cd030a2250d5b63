# SPDX-License-Identifier: Apache-2.0
"""Command-line options made from the loader's table of options, with its texts and choices."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from headrace.cli import output
from headrace.loader.options import KEYWORDS

# Options for commands that decode images.
DECODING = ("damaged", "strict", "sixteen_bit", "page", "max_pixels")

_Body = TypeVar("_Body", bound=Callable[..., Any])

Kinds = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD=KIND",
        help="Set a field's kind where the format does not define it: seg=mask (repeatable).",
    ),
]


def loader_options(*names: str, **defaults: Any) -> Callable[[_Body], _Body]:
    """Replaces a command's ``**keywords`` with these keywords of Loader. defaults: those that
    differ from Loader's.
    """

    def with_options(body: _Body) -> _Body:
        signature = inspect.signature(body, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        added = [_parameter(name, defaults) for name in names]
        keyword_only = [p.replace(kind=p.KEYWORD_ONLY) for p in own]
        body.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*keyword_only, *added]
        )
        return body

    return with_options


def _parameter(name: str, defaults: dict[str, Any]) -> inspect.Parameter:
    keyword = KEYWORDS[name]
    types: dict[str, Any] = {
        "str": str,
        "bool": bool,
        "bool | None": bool,
        "int": int,
        "int | None": int | None,
    }
    told: dict[str, Any] = {"help": keyword.doc.replace("None:", "Default:")}
    if keyword.choices:
        told |= output.one_of(keyword.choices)
    elif types[keyword.annotation] is not bool:
        told |= {"metavar": "N", "min": 0 if keyword.default == 0 else 1}
    flag = "--" + name.replace("_", "-")  # without a negation: there is no --no-strict
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=defaults.get(name, keyword.default),
        annotation=Annotated[types[keyword.annotation], typer.Option(flag, **told)],
    )


def kinds_from(given: list[str] | None) -> dict[str, Any]:
    """The ``kinds`` argument of ``headrace.open`` from ``--kinds``."""
    if not given:
        return {}
    kinds = {}
    for text in given:
        name, equals, kind = text.partition("=")
        if not (name and equals and kind):
            output.fail(f"headrace: --kinds {text}: write FIELD=KIND, as in seg=mask", output.USAGE)
        kinds[name] = kind
    return {"kinds": kinds}

# SPDX-License-Identifier: Apache-2.0
"""Promise: names that users type or read (options, parameters, counters, flags, counted reasons)
are words of the field, not words that only this project uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import typer.main
from headrace.cli.app import application
from headrace.loader.options import KEYWORDS

import headrace as hr
from headrace import _core, counters, write

OURS = {
    *("anew", "behind", "beside", "besides", "crossing", "far", "lend", "lends", "lent"),
    *("learned", "partner", "partners", "picture", "pictures", "refuse", "said", "shard_itself"),
    *("sound", "sounds", "tell", "told", "twin"),
}


def names() -> Iterator[tuple[str, str]]:
    yield from (("keyword of Loader", name) for name in KEYWORDS)
    yield from (("counter", name) for name in {**counters.LOADER, **counters.COPIES})
    parts = {"operator": _core.operators(), "format": _core.formats(), "sampler": _core.samplers()}
    for kind, records in parts.items():
        for name, record in records.items():
            yield f"{kind} {name}", name
            for param in record["params"]:
                yield f"parameter of {name}", param["name"]
                yield from ((f"{param['name']}= of {name}", word) for word in param["choices"])
    for record in _core.loader_options():
        if record["group"]:
            yield from ((f"{record['name']}=", word) for word in record["choices"])
    for name in write.names():
        yield from ((f"option of {name}", option.name) for option in write.container(name).options)
    command_line = typer.main.get_command(application())
    for name, command in command_line.commands.items():  # type: ignore[attr-defined]
        for param in command.params:
            yield from ((f"headrace {name}", flag) for flag in param.opts)
    with hr.Loader(hr.records(x=[1.0, 2.0]), batch_size=1) as loader:
        yield from (("key of decoded", key) for key in loader.stats()["decoded"])


def test_public_names_are_words_of_the_field() -> None:
    seen = 0
    for where, name in names():
        seen += 1
        words = {name.strip("-"), *re.split(r"[^a-z]+", name.lower())}
        assert not words & OURS, f"{where}: {name}"
    assert seen > 500


@pytest.mark.parametrize("name", ["partners_within", "sound", "far.bytes", "--picture"])
def test_a_word_of_ours_is_found(name: str) -> None:
    assert {name.strip("-"), *re.split(r"[^a-z]+", name)} & OURS

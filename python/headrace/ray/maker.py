# SPDX-License-Identifier: Apache-2.0
"""An actor that makes rows of another process's loader."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from headrace import _core
from headrace.loader import Loader
from headrace.loader.lending import facts, keywords_under
from headrace.workers.lent_rows import Rows, Terms, rows_of


class Maker:
    """Has its own loader, but only makes single rows with it. parcel: the loader's source,
    transforms and keywords in the object store. It is opened by the first call, whose errors reach
    the pool, not when the actor starts.
    """

    def __init__(self, parcel: list[Any], folder: str) -> None:
        with contextlib.suppress(OSError):  # not a folder on this machine, or disabled ("")
            os.chdir(folder)
        self._parcel = parcel
        self._made_of: tuple[Any, Any, dict[str, Any]] | None = None
        self._terms: Terms | None = None
        self._loader: Loader | None = None

    def _engine(self, terms: Terms) -> _core.Loader:
        import ray

        if self._made_of is None:
            self._made_of = ray.get(self._parcel[0]).opened()
        if self._loader is None or terms != self._terms:
            source, transforms, keywords = self._made_of
            self._loader = Loader(source, transforms, **keywords_under(terms, keywords))
            self._terms = terms
        return self._loader.assembly.engine()

    def facts(self, terms: Terms) -> dict[str, str]:
        """Facts that must be equal in the requesting process."""
        return facts(self._engine(terms))

    def node(self) -> str:
        """The id of the node on which it runs."""
        import ray

        return str(ray.get_runtime_context().get_node_id())

    def make(self, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        """Byte arrays by output, and the report."""
        wanted = Rows(*rows)
        made = rows_of(self._engine(wanted.terms), wanted)
        return made.arrays, made.report

# SPDX-License-Identifier: Apache-2.0
"""An actor that makes rows of another process's loader."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from headrace import _core
from headrace.loader import Loader
from headrace.loader.lending import facts, keywords_under
from headrace.workers.lent_rows import Rows, Terms, rows_of


class Maker:
    """Has a loader of its own, of which it asks for single rows alone.

    source: comes by the object store, and is checked when it is unpickled.
    """

    def __init__(
        self, source: Any, transforms: Any, keywords: Mapping[str, Any], folder: str
    ) -> None:
        with contextlib.suppress(OSError):  # not a folder on this machine, or none ("")
            os.chdir(folder)
        self._source, self._transforms, self._keywords = source, transforms, dict(keywords)
        self._terms: Terms | None = None
        self._loader: Loader | None = None

    def _engine(self, terms: Terms) -> _core.Loader:
        if self._loader is None or terms != self._terms:
            given = keywords_under(terms, self._keywords)
            self._loader = Loader(self._source, self._transforms, **given)
            self._terms = terms
        return self._loader.assembly.engine()

    def facts(self, terms: Terms) -> dict[str, str]:
        """What must be equal in the process that asks for rows."""
        return facts(self._engine(terms))

    def make(self, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arrays of bytes by output, and the report."""
        wanted = Rows(*rows)
        return tuple(rows_of(self._engine(wanted.terms), wanted))

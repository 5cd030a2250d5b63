# SPDX-License-Identifier: Apache-2.0
"""Changes to modules that are not imported yet: they are made on import.

    with when_imported({"torch": patch}):  # patch(module), at once if it is there already
        run_the_script()

Nothing is imported for it. A module that cannot be changed is imported as it is.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Change = Callable[[Any], None]


@contextlib.contextmanager
def when_imported(changes: Mapping[str, Change]) -> Iterator[None]:
    """Calls each change with its module once its code has run, until the block ends."""
    finder = _Finder(changes)
    for name in changes:
        if name in sys.modules:
            finder.change(name, sys.modules[name])
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder:
    def __init__(self, changes: Mapping[str, Change]) -> None:
        self._changes = changes

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._changes:
            return None
        for other in sys.meta_path:
            find = getattr(other, "find_spec", None)
            spec = find(name, path, target) if other is not self and find is not None else None
            if spec is not None:
                self._attend(name, spec)
                found: ModuleSpec = spec
                return found
        return None

    def _attend(self, name: str, spec: ModuleSpec) -> None:
        """Its loader, which belongs to this spec, calls us after it has run the code."""
        loader: Any = spec.loader
        original = getattr(loader, "exec_module", None)
        if original is None:
            return

        def exec_module(module: ModuleType) -> None:
            original(module)
            self.change(name, module)

        with contextlib.suppress(AttributeError):  # for a loader without such an attribute
            loader.exec_module = exec_module

    def change(self, name: str, module: ModuleType) -> None:
        with contextlib.suppress(AttributeError, TypeError):  # another version of it
            self._changes[name](module)

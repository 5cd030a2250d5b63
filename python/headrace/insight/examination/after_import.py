# SPDX-License-Identifier: Apache-2.0
"""Patches modules when they are imported.

    with when_imported({"torch": patch}):  # calls patch(module), now if it is already imported
        run_the_script()

Does not import anything itself. A module that cannot be patched is imported unchanged.
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
    """Until the block ends, calls each patch with its module once the module's code has run."""
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
        """Makes the spec's loader call the patch after it has run the module's code."""
        loader: Any = spec.loader
        original = getattr(loader, "exec_module", None)
        if original is None:
            return

        def exec_module(module: ModuleType) -> None:
            original(module)
            self.change(name, module)

        with contextlib.suppress(AttributeError):  # the loader does not allow it
            loader.exec_module = exec_module

    def change(self, name: str, module: ModuleType) -> None:
        with contextlib.suppress(AttributeError, TypeError):  # another version of the module
            self._changes[name](module)

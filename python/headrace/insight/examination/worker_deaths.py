# SPDX-License-Identifier: Apache-2.0
"""Reports the death of a DataLoader's worker through its loader, when a batch is requested.

torch also has a handler of SIGCHLD, which raises RuntimeError in the main thread, wherever that is:
in a loop that catches it, or in the doctor's own code between two loops. A loader that waits for a
batch checks its workers itself, every five seconds, and raises the same from next().
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from headrace.insight.examination.after_import import when_imported

_HANDLER, _CHECK = "torch.utils.data._utils.signal_handling", "_error_if_any_worker_fails"


@contextlib.contextmanager
def told_by_loaders_only() -> Iterator[None]:
    """Keeps torch's signal handler from raising until the end of the block. Does not import
    torch."""
    with contextlib.ExitStack() as undo:

        def disarm(module: Any) -> None:
            undo.callback(setattr, module, _CHECK, getattr(module, _CHECK))
            setattr(module, _CHECK, lambda: None)  # the handler looks it up when it is called

        with when_imported({_HANDLER: disarm}):
            yield

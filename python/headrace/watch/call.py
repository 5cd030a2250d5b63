# SPDX-License-Identifier: Apache-2.0
"""The function that people call: ``hr.watch(loader)``."""

from __future__ import annotations

from typing import Any

from headrace.watch.seen import Watch


def watch(
    loader: Any,
    *,
    every: float | None = 10.0,
    warn: float | None = 0.10,
    port: int | None = None,
    host: str = "127.0.0.1",
    name: str = "",
    window: float = 30.0,
) -> Watch:
    """Watches a run that goes on: how long the loop waits for data, and whether that gets worse.

    with hr.watch(loader) as seen:
        for batch in loader:  # as ever
            step(batch)

    Works on a headrace.Loader and its views, hr.prefetch(...), torch's DataLoader and other objects
    of classes in Python. What cannot be seen that way (a list, a generator) is iterated as
    ``for batch in seen``, which works for all. Costs two readings of the clock for each batch.

    Args:
        loader: what the training loop iterates. It is put back when the context ends.
        every: seconds between status lines on standard error: over one another on a terminal,
            at most one a minute elsewhere. None: no line. Of several ranks the first writes.
        warn: share of the time, 0 to 1, spent waiting for data above which a headrace.Warning
            says, once, that the input has begun to stall. None: never.
        port: serve figures for Prometheus at http://host:port/metrics; 0 chooses a port, which is
            then ``seen.port``. None: no server.
        host: on which address; by default only this machine can ask.
        name: of the loader, in the line and as a label of the figures.
        window: seconds that "recent" means, and after which the share is judged.

    Returns a context manager; see its ``stats()``, ``status()`` and ``prometheus()``.
    Raises ConfigError for what cannot be iterated, numbers that make no sense, and a port that is
    taken.
    """
    return Watch(loader, every, warn, port, host, name, window)

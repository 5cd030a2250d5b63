# SPDX-License-Identifier: Apache-2.0
"""A state loaded into a loader, kept until the next batch is received."""

from __future__ import annotations

from headrace import _core
from headrace.loader.assembly import Assembly


class LoadedState:
    """The position at which a loader will continue. Until a batch is received after it, each
    iteration starts there, and it is the loader's state: the engine's may be incomplete while the
    process group is not initialized.
    """

    def __init__(self) -> None:
        self._state: dict[str, int] | None = None
        self._passed = False  # it is at an epoch's end, which an empty iteration has consumed

    @property
    def state(self) -> dict[str, int] | None:
        """None if no state is loaded, or if a batch has been received since."""
        return self._state

    def load(self, state: dict[str, int], assembly: Assembly) -> None:
        """Raises ConfigError HR0711 if it is not a state of this loader."""
        assembly.engine().load_state(_as_far_as_known(state, assembly))
        self._state, self._passed = state, False

    def place(self, assembly: Assembly) -> None:
        """Moves the engine's loader to where the iteration will begin. Raises ConfigError HR0711 if
        the process group was initialized after the state was loaded, and the state does not fit it.
        """
        engine = assembly.engine()
        if self._state is not None and not assembly.is_settled:
            engine.load_state(self._state)

    def begin(self, engine: _core.Loader) -> None:
        """The engine's loader for a new iteration: at the state, or at the start of an epoch."""
        if self._state is not None and not self._passed:
            engine.load_state(self._state)
            self._passed = self._state["batch"] >= engine.batches_per_epoch()
        else:
            self._state = None
            engine.restart()

    def forget(self) -> None:
        """From now on the engine's position counts."""
        self._state = None


def _as_far_as_known(state: dict[str, int], assembly: Assembly) -> dict[str, int]:
    """The state, without its position if that depends on ranks that do not exist yet."""
    alone, size = assembly.engine().state()["global_batch"], assembly.given["batch_size"]
    may_grow = assembly.may_join_ranks() and size is not None
    if may_grow and state["global_batch"] > alone and state["global_batch"] % size == 0:
        return {**state, "global_batch": alone, "batch": 0}
    return state

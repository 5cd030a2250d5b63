# SPDX-License-Identifier: Apache-2.0
"""The actors of one loader. They belong to the loader's process, so none of them outlives it. An
actor that dies is replaced here, because Ray's own restarts are reported only once they are
complete.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable
from typing import Any, NamedTuple, Protocol

from headrace.errors import StorageError, declare
from headrace.log import WARNING, log
from headrace.ray.maker import Maker
from headrace.ray.parcel import packed
from headrace.ray.share import needs, share
from headrace.sources.recipe import current_folder
from headrace.workers.lent_rows import OTHER_BATCHES, TOO_LARGE, Failed, Lost, Made, Rows, Work

_NO_RAY = declare(
    "HR0838",
    "config",
    "Ray is not running",
    "hr.ray uses the cluster that this process is connected to: ray.init() starts one on this "
    "machine, ray.init(address='auto') joins the existing one. Ray Train connects by itself.",
)

_DIE = declare(
    "HR0840",
    "config",
    "remote workers fail before producing any rows",
    "Actors that die, or whose storage fails, are replaced. If many consecutive actors do so "
    "without producing rows, something is wrong on their machines: too little memory, a missing "
    "package, a library that crashes, a storage that only this machine can read. The reason is in "
    "Ray's logs (/tmp/ray/session_latest/logs).",
)

# CPU seconds per byte in other processes of this machine: for Ray to receive rows from another
# machine's object store, 24 to 39 ms for 19.3 MB; for an actor of this machine and Ray to store
# them, 8 ms. Measured with Ray 2.60 on loopback (bench/ray_rows.py).
_SECONDS_A_BYTE_FROM_FAR, _SECONDS_A_BYTE_HERE = 1.6e-9, 0.4e-9
_PARCEL = 0.5  # fraction of an object store that arrays in memory may fill
_A_TIME = 2  # requests per actor: one in progress, one queued
_FETCH = 10.0  # time limit in seconds for objects that are on this machine already
_AGAIN = 30.0  # seconds between checks of the cluster's CPUs
# Seconds that an actor may wait for a free CPU that was counted; setting up a runtime_env, which
# Ray does first, takes at most so long by default.
_UNPLACED = 600.0
_DEATHS = 20  # consecutive deaths of actors that had not made a row
_NODE = "ray.io/node-id"  # Ray's label


class Wanted(Protocol):
    """A pool's requirements for its actors."""

    @property
    def cpus(self) -> int | str: ...
    @property
    def resources(self) -> dict[str, float]: ...
    @property
    def cpus_per_actor(self) -> float: ...
    @property
    def store(self) -> float: ...
    @property
    def runtime_env(self) -> dict[str, Any]: ...


class _Starting(NamedTuple):
    number: int
    actor: Any
    node: Any  # the reference to its node's id, which is known once Ray has placed it
    since: float


class Actors:
    """See headrace.workers.lent_rows.Makers."""

    def __init__(self, wanted: Wanted) -> None:
        try:
            import ray
        except ImportError as failure:
            raise _NO_RAY.error(str(failure), hint="pip install ray") from None
        if not ray.is_initialized():
            raise _NO_RAY.error("no connection to a cluster", hint="ray.init() before the loader")
        self._ray = ray
        self._wanted = wanted
        self._actors: dict[int, Any] = {}  # ready actors, by number
        self._starting: dict[Any, _Starting] = {}  # by the reference to their probe's answer
        self._draining: set[int] = set()  # ready actors that get no new requests
        self._asked: dict[Any, int] = {}  # number of the actor, by the reference to its answer
        self._load: Counter[int] = Counter()
        self._near: set[int] = set()  # actors on this machine
        self._made: set[int] = set()  # actors that have made anything
        self._next = 0
        self._looked = 0.0
        self._target = 0
        self._died = 0
        self._deaths = 0  # consecutive deaths before any row
        self._work: Work | None = None
        self._here = ""  # the id of this machine's node
        self._avoids_here = False
        self._parcel: Any = None  # its reference in the object store
        self._store = 0  # bytes of the smallest object store
        self._facts: dict[str, str] = {}
        self._options: dict[str, Any] = {}
        self._room = 0
        self._closed = False
        self._lost = False  # without its object store, Ray ends a process that releases a reference

    # Number of actors.

    def begin(self, work: Work) -> None:
        self._work = work
        self._here = self._ray.get_runtime_context().get_node_id()
        parcel = packed((work.source, work.transforms, dict(work.keywords)))
        self._options = {
            "num_cpus": self._wanted.cpus_per_actor,
            "max_restarts": 0,
            "max_task_retries": 0,
            "max_concurrency": _A_TIME,
            "scheduling_strategy": "SPREAD",
        }
        if self._wanted.resources:
            self._options["resources"] = self._wanted.resources
        if self._wanted.runtime_env:
            self._options["runtime_env"] = self._wanted.runtime_env
        self._facts = work.facts()
        nodes = self._nodes()
        if parcel.nbytes > _PARCEL * self._store:
            raise TOO_LARGE.error(
                f"arrays in memory have {parcel.nbytes:,} bytes, but object stores only "
                f"{self._store:,}",
                hint="write them with hr.npy or hr.pack where all machines can read them",
            )
        self._parcel = self._ray.put(parcel)
        self._look(nodes)

    def _nodes(self) -> list[dict[str, Any]]:
        """The live nodes; sets the space for rows from the smallest of their stores."""
        assert self._work is not None
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        stores = [int(node["Resources"].get("object_store_memory", 0)) for node in nodes]
        self._store = min(stores, default=0)
        self._room = int(self._wanted.store * self._store) // self._work.ranks_here
        return nodes

    def _look(self, nodes: list[dict[str, Any]]) -> None:
        """Looks at the cluster, and updates how many actors there should be."""
        assert self._work is not None
        self._looked = time.monotonic()
        if self._wanted.cpus != "auto":
            self._target = int(self._wanted.cpus)
        else:
            from ray._private.state import available_resources_per_node  # a DeveloperAPI

            self._drop_unplaced()
            others = [node for node in nodes if node["NodeID"] != self._here]
            self._avoids_here = bool(others)
            free = available_resources_per_node()
            self._target = share(
                [node["Resources"] for node in others or nodes],
                [free.get(node["NodeID"], {}) for node in others or nodes],
                needs(self._wanted.cpus_per_actor, self._wanted.resources),
                len(self._actors.keys() - self._misplaced()) + len(self._starting),
                self._work.terms().world_size,
            )
        self._adjust()

    def _misplaced(self) -> set[int]:
        """Actors that started on this machine when the cluster had no other."""
        return self._near if self._avoids_here else set()

    def _drop_unplaced(self) -> None:
        """Ends actors whose CPUs others use: Ray would queue them forever, and an autoscaler would
        start machines for them.
        """
        for answer, one in list(self._starting.items()):
            if time.monotonic() - one.since < _UNPLACED:
                continue
            if not self._ray.wait([one.node], timeout=0)[0]:
                self._ray.kill(self._starting.pop(answer).actor)

    def _adjust(self) -> None:
        """Starts missing actors, or ends surplus ones, first those that are not ready. A busy actor
        ends with its last answer.
        """
        able = sorted(
            self._actors.keys() - self._misplaced(),
            key=lambda number: (number in self._draining, -self._load[number], number),
        )
        surplus = max(0, len(able) + len(self._starting) - self._target)
        for answer in list(self._starting)[::-1][:surplus]:
            self._ray.kill(self._starting.pop(answer).actor)
        able = able[: self._target]
        self._draining = self._actors.keys() - set(able)
        for number in list(self._draining):
            self._end_if_drained(number)
        for _ in range(self._target - len(able) - len(self._starting)):
            self._start()

    def _end_if_drained(self, number: int) -> None:
        if number in self._draining and not self._load[number]:
            self._draining.remove(number)
            self._ray.kill(self._actors.pop(number))

    def _start(self) -> None:
        if self._closed:
            return
        assert self._work is not None
        options = dict(self._options)
        if self._avoids_here:
            options["label_selector"] = {_NODE: f"!{self._here}"}
        maker = self._ray.remote(Maker).options(**options)
        actor = maker.remote([self._parcel], current_folder())
        answer, node = actor.facts.remote(self._work.terms()), actor.node.remote()
        self._starting[answer] = _Starting(self._next, actor, node, time.monotonic())
        self._next += 1

    def _lose(self, number: int, failure: Exception) -> None:
        """Replaces a ready actor that died or failed."""
        self._draining.discard(number)
        if self._actors.pop(number, None) is not None:
            self._replace(number, failure)

    def _replace(self, number: int, failure: Exception) -> None:
        self._died += 1
        log(WARNING, "worker", f"remote worker {number} is replaced: {failure}")
        self._deaths = 0 if number in self._made else self._deaths + 1
        if self._deaths == _DEATHS:
            raise _DIE.error(f"{_DEATHS} consecutive actors failed, the last: {failure}")
        self._adjust()

    def _check(self, answer: Any) -> None:
        """Accepts an actor whose probe has answered. Raises ConfigError HR0837 if it would make
        other bytes.
        """
        assert self._work is not None
        number, actor, node, _ = self._starting.pop(answer)
        errors = self._ray.exceptions
        try:
            found, place = self._ray.get([answer, node])
        except errors.RayTaskError as failure:
            cause = _cause(failure)
            if not isinstance(cause, StorageError | MemoryError):
                raise cause from None
            self._ray.kill(actor)
            self._replace(number, cause)
            return
        except errors.RayError as failure:
            self._replace(number, failure)
            return
        for what, value in self._facts.items():
            if found[what] != value:
                raise OTHER_BATCHES.error(f"{what}: {found[what]} there, {value} here")
        if place == self._here:
            self._near.add(number)
        self._actors[number] = actor

    # Rows.

    def live(self) -> int:
        if self._work is not None and time.monotonic() - self._looked > _AGAIN:
            self._look(self._nodes())
        if self._starting:
            ready, _ = self._ray.wait(
                list(self._starting), num_returns=len(self._starting), timeout=0
            )
            for answer in ready:
                if answer in self._starting:  # not ended as surplus meanwhile
                    self._check(answer)
        return len(self._actors) - len(self._draining)

    def room(self) -> int:
        return self._room

    def ask(self, rows: Rows, again: bool) -> Hashable | None:
        most = _A_TIME + again
        able = [n for n in self._actors.keys() - self._draining if self._load[n] < most]
        if not able:
            return None
        number = min(able, key=lambda number: (self._load[number], number))
        answer: Hashable = self._actors[number].make.remote(tuple(rows))
        self._asked[answer] = number
        self._load[number] += 1
        return answer

    def answers(self, seconds: float) -> list[tuple[Hashable, Made | Exception]]:
        if not self._asked:
            time.sleep(seconds)
            return []
        try:  # fetch_local: finished rows are transferred here before they are requested
            ready, _ = self._ray.wait(
                list(self._asked), num_returns=1, timeout=seconds, fetch_local=True
            )
        except OSError as failure:
            self._lost = True
            raise _NO_RAY.error(
                f"Ray's processes on this machine have ended ({failure})",
                hint="Ray will end this process, too: start it again from its checkpoint",
            ) from None
        out: list[tuple[Hashable, Made | Exception]] = []
        for answer in ready:
            number = self._asked.pop(answer)
            self._load[number] -= 1
            out.append((answer, self._answer(answer, number)))
            self._end_if_drained(number)
        return out

    def _answer(self, answer: Any, number: int) -> Made | Exception:
        errors = self._ray.exceptions
        try:
            arrays, report = self._ray.get(answer, timeout=_FETCH)
        except errors.RayTaskError as failure:
            cause = _cause(failure)
            if number in self._actors:
                self._ray.kill(self._actors[number])
            self._lose(number, cause)
            return Failed(str(cause))
        except errors.RayError as failure:
            if isinstance(failure, (errors.RayActorError, errors.WorkerCrashedError)):
                self._lose(number, failure)
            return Lost(str(failure))
        self._made.add(number)
        size = sum(array.nbytes for array in arrays)
        a_byte = _SECONDS_A_BYTE_HERE if number in self._near else _SECONDS_A_BYTE_FROM_FAR
        return Made(arrays, report, size * a_byte)

    def connected(self) -> bool:
        return bool(self._ray.is_initialized())

    def counters(self) -> dict[str, Any]:
        return {
            "actors": len(self._actors) - len(self._draining),
            "starting": len(self._starting),
            "died": self._died,
            "target": self._target,
            "bytes_limit": self._room,
        }

    def close(self) -> None:
        self._closed = True
        if self._lost:
            return
        if self._ray.is_initialized():
            for actor in [*self._actors.values(), *(one.actor for one in self._starting.values())]:
                self._ray.kill(actor)
        self._actors.clear()
        self._starting.clear()
        self._draining.clear()
        self._asked.clear()
        self._parcel = None


def _cause(failure: Any) -> Exception:
    """The exception that an actor's function raised, as if raised here."""
    cause = getattr(failure, "cause", None)
    return cause if isinstance(cause, Exception) else failure

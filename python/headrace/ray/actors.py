# SPDX-License-Identifier: Apache-2.0
"""The actors of one loader. They belong to its process, so none outlives it, and are replaced here
when they die: Ray's own restarts would be heard of only when they are through."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable
from typing import Any, Protocol

from headrace.errors import Error, declare
from headrace.ray.maker import Maker
from headrace.sources.recipe import carrying_arrays, current_folder
from headrace.workers.lent_rows import OTHER_BATCHES, Lost, Made, Rows, Work

_NO_RAY = declare(
    "HR0838",
    "config",
    "Ray is not running",
    "hr.ray uses the cluster that this process is connected to: ray.init() starts one on this "
    "machine, ray.init(address='auto') joins the existing one. Ray Train connects by itself.",
)

# CPU that Ray's processes of this machine take for a byte from another one's object store: 24 to 39
# ms for 19.3 MB, measured with Ray 2.60 on loopback.
_SECONDS_A_BYTE = 1.6e-9
_A_TIME = 2  # parts that an actor has at once: one it makes, one that waits
_FETCH = 10.0  # seconds for what is on this machine already
_AGAIN = 30.0  # seconds between looks at the cluster's CPUs
_DEATHS = 20  # of actors that died before they had made a row, in a row


class Wanted(Protocol):
    """What a pool says of its actors."""

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


class Actors:
    """As headrace.workers.lent_rows.Makers has it."""

    def __init__(self, wanted: Wanted) -> None:
        try:
            import ray
        except ImportError as failure:
            raise _NO_RAY.error(str(failure), hint="pip install ray") from None
        if not ray.is_initialized():
            raise _NO_RAY.error("no connection to a cluster", hint="ray.init() before the loader")
        self._ray = ray
        self._wanted = wanted
        self._actors: dict[int, Any] = {}  # ready, by number
        self._starting: dict[Any, tuple[int, Any]] = {}  # by the answer to their probe
        self._asked: dict[Any, int] = {}  # the actor, by the answer
        self._load: Counter[int] = Counter()
        self._made: set[int] = set()  # actors that have made anything
        self._next = 0
        self._looked = 0.0
        self._target = 0
        self._died = 0
        self._deaths = 0  # before any row
        self._work: Work | None = None
        self._source: Any = None
        self._facts: dict[str, str] = {}
        self._options: dict[str, Any] = {}
        self._room = 0

    # Their number.

    def begin(self, work: Work) -> None:
        self._work = work
        with carrying_arrays():
            self._source = self._ray.put(work.source)
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
        self._look()

    def _look(self) -> None:
        """At the cluster: how many actors there should be, and how much its stores hold."""
        self._looked = time.monotonic()
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        stores = [node["Resources"].get("object_store_memory", 0) for node in nodes]
        self._room = int(self._wanted.store * min(stores, default=0))
        if self._wanted.cpus != "auto":
            self._target = int(self._wanted.cpus)
        else:
            here = self._ray.get_runtime_context().get_node_id()
            others = [node for node in nodes if node["NodeID"] != here] or nodes
            total = sum(node["Resources"].get("CPU", 0) for node in others)
            free = self._ray.available_resources().get("CPU", 0)
            own = len(self._actors) + len(self._starting)
            assert self._work is not None
            ranks = self._work.terms().world_size
            share = min(total / ranks, own + free / ranks)
            self._target = int(share / max(self._wanted.cpus_per_actor, 0.01))
        while len(self._actors) + len(self._starting) < self._target:
            self._start()
        for number in list(self._actors)[self._target :]:
            if not self._load[number]:
                self._end(number)

    def _start(self) -> None:
        assert self._work is not None
        keywords = self._work.keywords
        actor = (
            self._ray.remote(Maker)
            .options(**self._options)
            .remote(self._source, self._work.transforms, keywords, current_folder())
        )
        answer = actor.facts.remote(self._work.terms())
        self._starting[answer] = self._next, actor
        self._next += 1

    def _end(self, number: int) -> None:
        actor = self._actors.pop(number)
        self._ray.kill(actor)

    def _lose(self, number: int) -> None:
        """It died: another one takes its place."""
        if self._actors.pop(number, None) is None:
            return
        self._replace(number)

    def _replace(self, number: int) -> None:
        self._died += 1
        self._deaths = 0 if number in self._made else self._deaths + 1
        if self._deaths < _DEATHS:
            self._start()

    def _check(self, answer: Any) -> None:
        """Takes an actor whose probe has answered. ConfigError HR0837 where it would make other
        bytes."""
        assert self._work is not None
        number, actor = self._starting.pop(answer)
        errors = self._ray.exceptions
        try:
            found = self._ray.get(answer)
        except errors.RayTaskError as failure:
            raise _cause(failure) from None
        except errors.RayError:
            self._replace(number)
            return
        for what, value in self._facts.items():
            if found[what] != value:
                raise OTHER_BATCHES.error(f"{what}: {found[what]} there, {value} here")
        self._actors[number] = actor

    # Rows.

    def live(self) -> int:
        if self._work is not None and time.monotonic() - self._looked > _AGAIN:
            self._look()
        if self._starting:
            ready, _ = self._ray.wait(
                list(self._starting), num_returns=len(self._starting), timeout=0
            )
            for answer in ready:
                self._check(answer)
        return len(self._actors)

    def room(self, out: int, size: int) -> bool:
        """Whether the stores take another part."""
        return self._room == 0 or (out + 1) * size <= max(self._room, size)

    def ask(self, rows: Rows, again: bool) -> Hashable | None:
        most = _A_TIME + again
        able = [number for number in self._actors if self._load[number] < most]
        if not able:
            return None
        number = min(able, key=self._load.__getitem__)
        answer: Hashable = self._actors[number].make.remote(tuple(rows))
        self._asked[answer] = number
        self._load[number] += 1
        return answer

    def answers(self, seconds: float) -> list[tuple[Hashable, Made | Exception]]:
        if not self._asked:
            time.sleep(seconds)
            return []
        # fetch_local: what has been made is on its way here before it is asked for.
        ready, _ = self._ray.wait(
            list(self._asked), num_returns=1, timeout=seconds, fetch_local=True
        )
        return [(answer, self._answer(answer)) for answer in ready]

    def _answer(self, answer: Any) -> Made | Exception:
        number = self._asked.pop(answer)
        self._load[number] -= 1
        errors = self._ray.exceptions
        try:
            made = Made(*self._ray.get(answer, timeout=_FETCH))
        except errors.RayTaskError as failure:
            return _cause(failure)
        except errors.RayError as failure:
            if isinstance(failure, (errors.RayActorError, errors.WorkerCrashedError)):
                self._lose(number)
            return Lost(str(failure))
        self._made.add(number)
        return made

    def carrying_seconds(self, size: int) -> float:
        return size * _SECONDS_A_BYTE

    def connected(self) -> bool:
        return bool(self._ray.is_initialized())

    def counters(self) -> dict[str, Any]:
        return {
            "actors": len(self._actors),
            "starting": len(self._starting),
            "died": self._died,
            "target": self._target,
        }

    def close(self) -> None:
        if self._ray.is_initialized():
            for actor in [*self._actors.values(), *(actor for _, actor in self._starting.values())]:
                self._ray.kill(actor)
        self._actors.clear()
        self._starting.clear()
        self._asked.clear()
        self._source = None


def _cause(failure: Any) -> Exception:
    """What an actor's function raised, as it would be here."""
    cause = getattr(failure, "cause", None)
    return cause if isinstance(cause, Error) else failure

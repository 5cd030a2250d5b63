# SPDX-License-Identifier: Apache-2.0
"""Imitates what headrace.ray.actors uses of Ray: machines with CPUs, actors that queue for them,
and answers that a test gives."""

from __future__ import annotations

import types
from typing import Any

HERE = "here"


class RayError(Exception):
    pass


class RayActorError(RayError):
    pass


class WorkerCrashedError(RayError):
    pass


class RayTaskError(RayError):
    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Reference:
    """To the answer of a method: a value, or an exception."""

    def __init__(self) -> None:
        self.answers: list[Any] = []


class Method:
    def __init__(self, actor: Actor, name: str) -> None:
        self.actor, self.name = actor, name

    def remote(self, *arguments: Any) -> Reference:
        reference = Reference()
        self.actor.calls.append((self.name, reference))
        return reference


class Actor:
    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.place = ""  # its node
        self.is_dead = False
        self.calls: list[tuple[str, Reference]] = []

    def __getattr__(self, name: str) -> Method:
        return Method(self, name)

    def given(self, name: str) -> list[Reference]:
        """References of calls that are not answered."""
        return [call for called, call in self.calls if called == name and not call.answers]


class Maker:
    """An actor class with options."""

    def __init__(self, cluster: Cluster, options: dict[str, Any]) -> None:
        self.cluster, self.options = cluster, options

    def remote(self, *arguments: Any) -> Actor:
        actor = Actor(self.options)
        self.cluster.all.append(actor)
        return actor


class Cluster(types.ModuleType):
    """The module ``ray``. machines: CPUs by node. used: those that others use."""

    def __init__(self, **machines: int) -> None:
        super().__init__("ray")
        self.machines, self.used = machines, dict.fromkeys(machines, 0)
        self.all: list[Actor] = []
        self.exceptions = types.SimpleNamespace(
            RayError=RayError,
            RayActorError=RayActorError,
            RayTaskError=RayTaskError,
            WorkerCrashedError=WorkerCrashedError,
        )

    # The test's side.

    def live(self) -> list[Actor]:
        return [actor for actor in self.all if not actor.is_dead]

    def places(self) -> list[str]:
        """The node of each actor; "" for those that wait."""
        return sorted(actor.place for actor in self.live())

    def free(self, node: str) -> float:
        taken = sum(a.options["num_cpus"] for a in self.live() if a.place == node)
        return self.machines[node] - self.used[node] - taken

    def place(self, facts: Any = None) -> None:
        """Places waiting actors, and answers their first calls: facts, or an exception."""
        for actor in self.live():
            selector = actor.options.get("label_selector", {}).get("ray.io/node-id", "")
            nodes = [
                node
                for node in self.machines
                if f"!{node}" != selector and self.free(node) >= actor.options["num_cpus"]
            ]
            if actor.place or not nodes:
                continue
            actor.place = max(nodes, key=self.free)
            for method, answer in (("node", actor.place), ("facts", facts or {})):
                for call in actor.given(method):
                    call.answers.append(answer)

    def remove(self, node: str) -> None:
        """As if it failed: its actors die."""
        for actor in self.live():
            if actor.place == node:
                actor.is_dead = True
                for _, call in actor.calls:
                    call.answers.append(RayActorError("the node died"))
        del self.machines[node]

    # What headrace.ray calls.

    def is_initialized(self) -> bool:
        return True

    def get_runtime_context(self) -> Any:
        return types.SimpleNamespace(get_node_id=lambda: HERE)

    def nodes(self) -> list[dict[str, Any]]:
        store = {"object_store_memory": 1 << 30}
        return [
            {"NodeID": node, "Alive": True, "Resources": {"CPU": cpus, **store}}
            for node, cpus in self.machines.items()
        ]

    def available_resources_per_node(self) -> dict[str, dict[str, float]]:
        return {node: {"CPU": self.free(node)} for node in self.machines}

    def put(self, value: Any) -> Any:
        return value

    def remote(self, cls: Any) -> Any:
        return types.SimpleNamespace(options=lambda **options: Maker(self, options))

    def wait(self, references: list[Reference], **given: Any) -> tuple[list[Any], list[Any]]:
        done = [each for each in references if each.answers]
        return done, [each for each in references if not each.answers]

    def get(self, given: Any, timeout: float = 0) -> Any:
        if isinstance(given, list):
            return [self.get(each) for each in given]
        value = given.answers[0]
        if isinstance(value, Exception):
            raise value
        return value

    def kill(self, actor: Actor) -> None:
        actor.is_dead = True

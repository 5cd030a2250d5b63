# SPDX-License-Identifier: Apache-2.0
"""Promise: the actors of a pool use the free CPUs of other machines, no more, while machines come
and go. Here Ray is an imitation; tests/frameworks/test_ray.py uses Ray itself."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
from headrace.ray import actors
from headrace.ray.share import fitting, needs, share
from headrace.workers.lent_rows import Failed, Lost, Made, Rows, Terms, Work
from ray_imitation import HERE, Cluster, RayTaskError

import headrace as hr

ROWS = Rows(0, 0, 0, 8, Terms())
Start = Callable[..., actors.Actors]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    """Starts the actors of a pool on an imitated cluster, which is then looked at in each call."""

    def of(cluster: Cluster, ranks: list[int] | None = None, **given: Any) -> actors.Actors:
        state = types.ModuleType("ray._private.state")
        state.available_resources_per_node = (  # type: ignore[attr-defined]
            cluster.available_resources_per_node
        )
        monkeypatch.setitem(sys.modules, "ray", cluster)
        monkeypatch.setitem(sys.modules, "ray._private", types.ModuleType("ray._private"))
        monkeypatch.setitem(sys.modules, "ray._private.state", state)
        monkeypatch.setattr(actors, "packed", lambda value: types.SimpleNamespace(nbytes=0))
        monkeypatch.setattr(actors, "_AGAIN", -1.0)
        out = hr.ray.pool(**given).makers()
        world = ranks or [1]
        out.begin(Work(None, None, {}, dict, lambda: Terms(world_size=world[0])))
        cluster.place()
        return out

    return of


def test_actors_use_the_cpus_of_other_machines(start: Start) -> None:
    cluster = Cluster(here=8, a=3, b=2)
    cluster.used["b"] = 1
    assert start(cluster).live() == 4
    assert cluster.places() == ["a", "a", "a", "b"]


def test_actors_leave_this_machine_when_another_joins(start: Start) -> None:
    cluster = Cluster(here=2)
    found = start(cluster)
    assert found.live() == 2 and cluster.places() == [HERE, HERE]
    cluster.machines["a"], cluster.used["a"] = 3, 0
    found.live()
    cluster.place()
    assert found.live() == 3 and cluster.places() == ["a", "a", "a"]


def test_cpus_are_divided_by_the_ranks_and_by_the_cpus_of_an_actor(start: Start) -> None:
    cluster = Cluster(here=8, a=9, b=8)
    found = start(cluster, [2], cpus_per_actor=2)
    for _ in range(3):
        assert found.live() == 4
        cluster.place()
    assert {actor.options["num_cpus"] for actor in cluster.live()} == {2}


def test_actors_that_wait_for_a_lost_machine_are_ended(start: Start) -> None:
    cluster = Cluster(here=8, a=2, b=2)
    found = start(cluster)
    assert found.live() == 4
    asked = [found.ask(ROWS, False) for _ in range(8)]
    cluster.remove("b")
    answers = found.answers(0)
    assert len(answers) == 4 and all(isinstance(answer, Lost) for _, answer in answers)
    assert {token for token, _ in answers} < set(asked)
    assert cluster.places() == ["", "", "a", "a"]  # replacements
    assert found.live() == 2
    cluster.place()
    assert cluster.places() == ["a", "a"] and found.counters()["starting"] == 0


def test_actors_do_not_wait_forever_for_cpus_that_others_use(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(here=8, a=2)
    found = start(cluster)
    found.live()
    cluster.live()[0].is_dead = True
    found.ask(ROWS, False)
    cluster.all[0].calls[-1][1].answers.append(cluster.exceptions.RayActorError("killed"))
    cluster.used["a"] = 1  # before its replacement is placed
    found.answers(0)
    cluster.place()
    assert found.live() == 1 and cluster.places() == ["", "a"]
    monkeypatch.setattr(actors, "_UNPLACED", 0.0)
    for _ in range(3):
        assert found.live() == 1
        cluster.place()
        assert cluster.places() == ["a"]
    cluster.used["a"] = 0
    found.live()
    cluster.place()
    assert found.live() == 2


def test_busy_actors_get_no_new_rows_and_end_with_their_last_answer(start: Start) -> None:
    cluster, ranks = Cluster(here=8, a=4), [1]
    found = start(cluster, ranks)
    found.live()
    asked = [found.ask(ROWS, False) for _ in range(8)]
    assert None not in asked and found.ask(ROWS, False) is None
    ranks[0] = 2
    assert found.live() == found.counters()["actors"] == 2
    busy = {actor: actor.given("make") for actor in cluster.live()}
    assert len(busy) == 4
    for _, (first, _) in busy.items():
        first.answers.append(([], {}))
    assert all(isinstance(answer, Made) for _, answer in found.answers(0))
    assert [found.ask(ROWS, False) is None for _ in range(3)] == [False, False, True]
    assert found.live() == 2 and len(cluster.live()) == 4
    for _, (_, second) in busy.items():
        second.answers.append(([], {}))
    assert len(found.answers(0)) == 4
    assert found.live() == 2 and len(cluster.live()) == 2


def test_an_actor_that_fails_is_replaced_and_its_rows_are_made_here(start: Start) -> None:
    cluster = Cluster(here=8, a=1)
    found = start(cluster)
    for made in range(3):
        found.live()
        (actor,) = cluster.live()
        found.ask(ROWS, False)
        (call,) = actor.given("make")
        call.answers.append(([], {}))
        assert isinstance(found.answers(0)[0][1], Made)
        found.ask(ROWS, False)
        (call,) = actor.given("make")
        call.answers.append(RayTaskError(hr.StorageError("no answer", code="HR0221")))
        ((_, answer),) = found.answers(0)
        assert isinstance(answer, Failed) and "no answer" in str(answer)
        assert actor.is_dead and len(cluster.live()) == 1
        assert found.counters()["died"] == made + 1
        cluster.place()


def test_actors_that_all_fail_are_given_up(start: Start) -> None:
    cluster = Cluster(here=8, a=1)
    found = start(cluster)
    failure = RayTaskError(hr.StorageError("no answer", code="HR0221"))
    with pytest.raises(
        hr.ConfigError, match=r"HR0840[^\0]*20 consecutive actors failed, the last: no answer"
    ):
        for number in range(22):
            found.live()
            if found.ask(ROWS, False):
                cluster.live()[0].given("make")[0].answers.append(failure)
                found.answers(0)
            # The next one already fails at the rows that are compared, or at its first ones.
            cluster.place(facts=failure if number % 2 else None)


def test_an_actor_that_would_make_other_rows_ends_the_use_of_the_pool(start: Start) -> None:
    cluster = Cluster(here=1, a=0)
    found = start(cluster)
    cluster.machines["a"] = 1
    found.live()
    cluster.place(facts=RayTaskError(hr.ConfigError("other records", code="HR0172")))
    with pytest.raises(hr.ConfigError, match="other records"):
        found.live()


def test_actors_are_counted_by_machine() -> None:
    needed = needs(2, {"decode": 1, "none": 0})
    assert needed == {"CPU": 2, "decode": 1} and needs(0, {}) == {"CPU": 1}
    assert fitting({"CPU": 7.0, "decode": 10}, needed) == 3
    assert fitting({"CPU": 7.0, "decode": 2}, needed) == 2
    assert fitting({"CPU": 7.0}, needed) == 0
    assert fitting({"CPU": 0.3}, {"CPU": 0.1}) == 3  # 0.3 // 0.1 is 2
    machines = [{"CPU": 3.0}, {"CPU": 3.0}]  # one actor of two CPUs each
    assert share(machines, machines, {"CPU": 2}, own=0, ranks=1) == 2
    assert share(machines, [{"CPU": 1.0}, {}], {"CPU": 2}, own=1, ranks=1) == 1
    assert share(machines, [{}, {}], {"CPU": 1}, own=5, ranks=2) == 3

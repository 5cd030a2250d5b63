# SPDX-License-Identifier: Apache-2.0
"""Python transforms run on another thread than the training loop: neither gets the other's random
numbers, and steps find the loop's context."""

from __future__ import annotations

import contextvars
import gc
import os
import random
import threading
from typing import Any

import numpy as np
import pytest
from processes import run_code

import headrace as hr
from headrace import global_draws

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, Dataset  # noqa: E402

DRAWS = {
    "random": (random.seed, random.random),
    "numpy.random": (np.random.seed, np.random.random),
    "torch": (torch.manual_seed, lambda: torch.rand(1).item()),
}
RECORDS, SIZE = 48, 2


@pytest.fixture(autouse=True)
def first_loop_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_draws, "_turns", global_draws._Turns())


class Drawing(Dataset[Any]):
    """Its records are numbers from the global generators; other threads get every chance to run."""

    def __init__(self, inside: threading.Event) -> None:
        self.inside = inside

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, index: int) -> Any:
        self.inside.set()
        drawn = []
        for _ in range(3):
            os.sched_yield()  # without the GIL
            drawn.append([draw() for _, draw in DRAWS.values()])
        self.inside.clear()
        return torch.tensor(drawn, dtype=torch.float64)


@pytest.mark.parametrize("name", DRAWS)
def test_loop_and_steps_have_separate_random_numbers(name: str) -> None:
    neither_gets_the_others_numbers(*DRAWS[name])


def neither_gets_the_others_numbers(seed: Any, draw: Any) -> None:
    inside = threading.Event()
    view = hr.from_dataloader(DataLoader(Drawing(inside), batch_size=SIZE)).torch()
    alone = [batch.clone() for batch in view]
    view.set_epoch(0)
    seed(5)
    drawn = []
    for batch, expected in zip(view, alone, strict=True):
        for _ in range(30):
            os.sched_yield()
            assert not inside.is_set()
            drawn.append(draw())
        assert torch.equal(batch, expected)
    seed(5)
    assert drawn == [draw() for _ in drawn]


def test_loop_and_steps_have_separate_random_numbers_while_the_watch_serves_its_page() -> None:
    watched = hr.Loader([{"x": 0}] * 4, batch_size=2)
    with hr.watch(watched, port=0):
        neither_gets_the_others_numbers(*DRAWS["random"])


def test_loop_and_steps_have_separate_random_numbers_after_a_thread_left_its_loader() -> None:
    def left() -> None:
        next(iter(hr.Loader([{"x": 0}] * 48, batch_size=2)))

    thread = threading.Thread(target=left)
    thread.start()
    thread.join()
    neither_gets_the_others_numbers(*DRAWS["random"])


def test_a_thread_that_left_its_loader_does_not_wait() -> None:
    loader = hr.Loader([{"x": 0}] * 48, batch_size=2)
    iterator = iter(loader)
    next(iterator)
    global_draws._turns.loops[0] = threading.get_ident()  # another's
    del loader, iterator
    gc.collect()
    assert global_draws._turns.are_loops()


def test_a_loop_that_begins_to_draw_late_is_warned_about_and_serialized(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(global_draws._turns, "are_used", True)
    loader = {0}
    loop = global_draws.LoopTurn(loader)
    loop.begin()
    for _ in range(2 * global_draws._LOOK):
        loop.come_in()
        loop.go_out(True)
    assert not global_draws._turns.loops  # steps run at the same time
    random.random()
    with pytest.warns(hr.Warning, match="loop draws from random, and Python transforms"):
        loop.come_in()
    loop.go_out(True)
    assert global_draws._turns.are_loops()
    del loader
    assert not global_draws._turns.loops


WAITS = """
import random, threading
import numpy as np
import headrace as hr
from headrace import global_draws

class Drawing:
    def __len__(self): return 64
    def __getitem__(self, i): return {"x": i}

def step(x):
    with global_draws.seeded(int(x)):
        return np.float64(random.random())

def made():
    return hr.Loader(Drawing(), [hr.transforms.Python(step, {"x": ("float64", ())})], batch_size=4)

def first(loader):
    random.random()
    return next(iter(loader))

loader, other = made(), made()
for batch in loader:
    random.random()
    thread = threading.Thread(target=lambda: list(other))  # waits for steps, and the loop for it
    thread.start()
    thread.join()
    first(other)
    other = made()  # the one before goes while its steps wait
first(loader)
loader.close()
first(made())
abandoned = iter(made())
next(abandoned)
print("end")
"""


def test_a_running_steps_numbers_are_not_mistaken_for_the_loops(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setattr(global_draws._turns, "are_used", True)
    loader = threading.Event()  # as long as it exists
    loop = global_draws.LoopTurn(loader)
    for _ in range(2 * global_draws._LOOK):
        loop.go_out(True)  # the last of them is checked
    assert loop._left
    runs, go_on = threading.Event(), threading.Event()

    def step() -> None:
        with global_draws.seeded(5):
            runs.set()
            go_on.wait()

    threads = [threading.Thread(target=step), threading.Thread(target=loop.come_in)]
    threads[0].start()
    runs.wait()
    threads[1].start()
    threads[1].join(0.05)
    go_on.set()
    for thread in threads:
        thread.join()
    loop.go_out(False)
    assert not recwarn.list and not global_draws._turns.drawing


def test_steps_that_wait_for_the_loop_do_not_deadlock() -> None:
    done = run_code(WAITS)
    assert (done.stdout, done.stderr, done.returncode) == ("end\n", "", 0)


NAME = contextvars.ContextVar("NAME", default="unset")


def surroundings() -> tuple[Any, ...]:
    return (
        NAME.get(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        str(torch.get_default_device()),
        str(torch.get_default_dtype()),
        torch.is_autocast_enabled("cpu"),
    )


class Looks(Dataset[Any]):
    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        if threading.current_thread() is not threading.main_thread():
            self.seen.append(surroundings())
        return {"x": np.zeros(3, np.float32)}


@pytest.mark.parametrize("door", ["object", "step", "dataloader"])
def test_steps_find_the_context_that_the_loop_had_at_iter(door: str) -> None:
    looks = Looks()
    loaders = {
        "object": lambda: hr.Loader(looks, batch_size=4),
        "step": lambda: hr.Loader(
            [{"x": 0}] * 40, [lambda x: looks[0]["x"].sum(dtype=np.int64)], batch_size=4
        ),
        "dataloader": lambda: hr.from_dataloader(
            DataLoader(looks, batch_size=4, collate_fn=list), verbose=False
        ).torch(),
    }
    loader = loaders[door]()
    looks.seen.clear()

    def iterated() -> None:
        NAME.set("at iter")
        with torch.no_grad(), torch.device("meta"), torch.autocast("cpu"):
            iterator = iter(loader)
            expected = surroundings()
        NAME.set("later")
        list(iterator)
        assert set(looks.seen) == {expected}

    contextvars.copy_context().run(iterated)
    looks.seen.clear()
    with torch.inference_mode():
        iterator, expected = iter(loader), surroundings()
    list(iterator)
    assert set(looks.seen) == {expected}

# SPDX-License-Identifier: Apache-2.0
"""A running script, whose loaders return our iterators, which end the script once everything is
measured."""

from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from headrace.delivery.prefetch import Prefetch
from headrace.insight.examination.after_import import when_imported
from headrace.insight.measure import thread_clock
from headrace.insight.measure.loop import records_in
from headrace.insight.measure.process_sampler import ProcessSampler
from headrace.insight.measure.rendezvous import Rendezvous
from headrace.insight.measure.time_limit import TimeLimit
from headrace.insight.scripts.served import Loop, Out, Plan, Served, data_of
from headrace.loader import Loader
from headrace.loader.views import Delivered

_HESITATION = 2.0  # times a loop's measurements to wait for another loop that may train
_STUBBORN = 25  # how often a script may catch the exception that ends it
_OURS = str(Path(__file__).parents[2]) + os.sep
_CHECKS = os.path.join(_OURS, "migrate", "")
_LIBRARIES = tuple(
    os.path.join(os.path.realpath(sysconfig.get_paths()[name]), "")
    for name in ("stdlib", "purelib", "platlib")
)


class Over(BaseException):
    """Ends a script that was measured. Not an Exception, since scripts continue after those."""


class Running:
    """Knows the script's loops, chooses the one to examine, and ends the script."""

    def __init__(
        self,
        plan: Plan,
        limit: TimeLimit,
        sampler: ProcessSampler,
        rendezvous: Rendezvous | None = None,
        leave: Callable[[], object] = lambda: None,
    ) -> None:
        """leave: last resort, called once the script has caught the exception that ends it too
        often (more than 25 times). If it returns, the exception is raised again."""
        self._plan, self._limit, self._sampler = plan, limit, sampler
        self._rendezvous, self._leave = rendezvous, leave
        self._thread = threading.get_ident()
        self._pid = os.getpid()
        self.loops: list[Loop] = []
        self.elsewhere: list[Any] = []  # loaders that other threads iterate
        self.over = self.ended = False
        self.stopped = False  # by Ctrl-C, or by the parent process
        self._raised = 0
        self._backwards = self._taken = 0
        self._nested = False
        self._hesitates_until = 0.0  # after this time, a loop that does not train is accepted

    # Wrappers around loaders.

    @contextlib.contextmanager
    def attached(self) -> Iterator[None]:
        """Until the end of the block, loaders return our iterators, which remain usable
        afterwards."""
        undo = contextlib.ExitStack()
        with undo:
            for kind in (Loader, Delivered, Prefetch):
                self._wrap(undo, kind)
            for owner in (Loader, Prefetch):
                self._keep_open(undo, owner)
            changes = {
                "torch.utils.data.dataloader": lambda m: self._wrap_all(undo, m.DataLoader),
                "torch.autograd": lambda m: self._count_backward(undo, m),
                "torch.optim.optimizer": lambda m: self._count_steps(undo, m),
            }
            undo.enter_context(when_imported(changes))
            yield
        self.ended = True

    def _wrap(self, undo: contextlib.ExitStack, kind: Any) -> None:
        original = kind.__iter__

        def iterate(loader: Any) -> Any:
            if sys._getframe(1).f_code.co_filename.startswith(_CHECKS):
                return original(loader)  # hr.from_dataloader compares some records
            return self._iterate(loader, lambda: original(loader))

        kind.__iter__ = iterate
        undo.callback(setattr, kind, "__iter__", original)

    def _wrap_all(self, undo: contextlib.ExitStack, kind: Any) -> None:
        """A DataLoader, and subclasses that create and keep their own iterator, such as
        Ultralytics' InfiniteDataLoader."""
        self._wrap(undo, kind)
        run, made = self, kind.__init_subclass__.__func__

        def wrap_own(child: Any) -> None:
            code = getattr(vars(child).get("__iter__"), "__code__", None)
            if code is not None and "_get_iterator" in code.co_names:
                run._wrap(undo, child)

        def seen(child: type[Any], /, **options: Any) -> None:
            made(child, **options)
            wrap_own(child)

        for child in kind.__subclasses__():
            wrap_own(child)
        kind.__init_subclass__ = classmethod(seen)
        undo.callback(lambda: delattr(kind, "__init_subclass__"))

    def _keep_open(self, undo: contextlib.ExitStack, kind: Any) -> None:
        """A script that ends closes its loaders (``with hr.Loader(...)``), but the loop's is still
        needed."""
        original = kind.close

        def close(loader: Any) -> None:
            loops = (loop.loader for loop in self.loops)
            if not any(loader is known or loader is data_of(known) for known in loops):
                original(loader)

        kind.close = close
        undo.callback(setattr, kind, "close", original)

    def _count_backward(self, undo: contextlib.ExitStack, autograd: Any) -> None:
        original = autograd.backward

        def backward(*args: Any, **kwargs: Any) -> Any:
            self._backwards += 1
            return original(*args, **kwargs)

        autograd.backward = backward
        undo.callback(setattr, autograd, "backward", original)

    def _count_steps(self, undo: contextlib.ExitStack, module: Any) -> None:
        def stepped(*_: Any) -> None:
            self._backwards += 1

        handle = module.register_optimizer_step_post_hook(stepped)
        undo.callback(handle.remove)

    def _iterate(self, loader: Any, make: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        if self.ended or self._nested or os.getpid() != self._pid:
            return make()
        if threading.get_ident() != self._thread:
            if not any(known is loader for known in self.elsewhere):
                self.elsewhere.append(loader)
            return make()
        self._end_if_over()

        def alone() -> Iterator[Any]:
            self._nested = True  # iterators inside of it belong to it
            try:
                return make()
            finally:
                self._nested = False

        self._limit.begin("A loader has been creating its iterator")
        loop = self._loop_of(loader)
        loop.iterators += 1
        if loop.only is not None:  # next(iter(loader)), batch by batch
            self._stepped(loop, loop.only, time.perf_counter())
            self._end_if_over()
        return Served(self, loop, alone)

    def _loop_of(self, loader: Any) -> Loop:
        place, data = place_of_caller(), data_of(loader)
        for loop in self.loops:
            if loop.place == place and data_of(loop.loader) is data:
                loop.loader = loader
                return loop
        self.loops.append(Loop(loader, place, self._plan, self._sampler))
        return self.loops[-1]

    # A batch.

    def next_of(self, served: Served) -> Any:
        if self.ended or threading.get_ident() != self._thread:
            return next(served.inner)
        if served.out is not None:
            out, served.out = served.out, None
            self._stepped(served.loop, out, time.perf_counter())
        self._end_if_over()
        begin = time.perf_counter()
        if served.loop.replays:
            batch = self._replayed(served)
            out = Out(begin, 0.0, 0.0, records_in(batch), False, self._backwards, self._taken)
        else:
            batch, out = self._taken_from(served)
        served.count += 1
        served.loop.taken += 1
        self._limit.begin("The script has been busy with one batch")
        served.out = out
        served.loop.only = out if served.count == 1 else None
        out.since = time.perf_counter()
        return batch

    def _stepped(self, loop: Loop, out: Out, now: float) -> None:
        """The script requests the next batch: its step is over."""
        loop.only = None
        if out.copy is not None:
            loop.compare(out.batch, out.copy)
            out.batch = out.copy = None
        if self._backwards > out.backwards and not loop.trains:
            loop.learn(self._rendezvous)
        loop.among += self._taken > out.taken
        first = loop.batches == 0
        if first:
            loop.begins(out.waited)
        loop.count(
            self._rendezvous, out.begin, out.waited, out.computed, now - out.since, out.records,
            out.restarted,
        )  # fmt: skip
        if not loop.phase:
            self._measured(loop)

    def _taken_from(self, served: Served) -> tuple[Any, Out]:
        self._limit.begin("The loader has delivered no batch")
        begin = thread_clock.now()
        late, restarted, served.late = served.late, served.fresh, 0.0
        try:
            batch = next(served.inner)
        except StopIteration:
            if not served.loop.trains or not served.count:
                self._limit.begin("The script has requested no batch")
                raise
            served.loop.lengthen(served.count)
            served.again()
            restarted = True
            batch = next(served.inner)
        served.fresh = False
        spent = thread_clock.now().since(begin)
        self._taken += 1
        waited = spent.wall + late
        out = Out(
            begin.wall - late, waited, waited - spent.waited, records_in(batch), restarted,
            self._backwards, self._taken,
        )  # fmt: skip
        out.copy = served.loop.keep(batch)
        if out.copy is not None:
            out.batch = batch
        return batch, out

    def _replayed(self, served: Served) -> Any:
        """A recorded batch; a loop that does not train ends its epoch where it would have ended."""
        with contextlib.suppress(TypeError):
            if served.count >= len(served.loop.loader):
                if not served.loop.trains:
                    raise StopIteration
                served.loop.lengthen(len(served.loop.loader))
        return served.loop.replayed()

    # The end.

    def _measured(self, loop: Loop) -> None:
        """A loop is fully measured: ends the script, unless another one may be its training
        loop."""
        now = time.perf_counter()
        self._hesitates_until = self._hesitates_until or now + _HESITATION * loop.seconds
        may_train = self._backwards or "torch" in sys.modules
        late = now > self._hesitates_until
        self.over = loop.trains or late or not (may_train or self._rendezvous)

    def _end_if_over(self) -> None:
        if not (self.over or self._limit.expired or self.stopped):
            return
        self._raised += 1
        if self._raised > _STUBBORN:
            self._leave()
        self._limit.begin("The script has not ended")
        raise Over

    def chosen(self) -> Loop | None:
        """The loop to examine: preferably a training loop, then one whose measurement is complete,
        then the longest."""

        def worth(loop: Loop) -> tuple[bool, bool, float]:
            return loop.trains, not loop.phase, loop.seconds

        loops = [loop for loop in self.loops if loop.taken]
        return max(loops or self.loops, key=worth, default=None)


def is_users(name: str) -> bool:
    """Whether code in that file is the user's, not a library's or ours."""
    path = os.path.realpath(name)
    library = path.startswith(_LIBRARIES) or "site-packages" in path or "dist-packages" in path
    return not library and not name.startswith((_OURS, "<"))


def place_of_caller() -> str:
    """ "train.py:41", the nearest line of the user's own code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if is_users(name):
            path, here = os.path.realpath(name), os.path.join(os.getcwd(), "")
            return f"{path[len(here) :] if path.startswith(here) else name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""

# SPDX-License-Identifier: Apache-2.0
"""The result of ``hr.watch``: a watched loop, and all that is known about the loop."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from headrace import arguments
from headrace.counters import counted_up
from headrace.delivery.prefetch import Prefetch
from headrace.errors import declare, warn
from headrace.insight.live import stalls, tap
from headrace.insight.live.exported import BadCodes
from headrace.insight.live.histogram import spread
from headrace.insight.live.meter import Figures, Meter
from headrace.insight.live.ranks import Ranks, words
from headrace.insight.live.status import Writer, line
from headrace.insight.live.window import Moment, Recent, Snapshot
from headrace.insight.measure.process_sampler import ProcessSampler, Reading, Thinned, growth
from headrace.loader import Loader
from headrace.loader.iteration import live

NOT_ITERABLE = declare(
    "HR0910",
    "config",
    "not a loader",
    "hr.watch takes what a training loop iterates: a headrace.Loader or one of its views, a torch "
    "DataLoader, hr.prefetch(...), or anything that a for loop accepts.",
)
BAD_SHARE = declare(
    "HR0912",
    "config",
    "invalid fraction of time",
    "warn= is the fraction of the loop's time, above 0 and at most 1, that may be spent waiting "
    "for data before a warning: 0.1 is a tenth. With None, there is no warning.",
)
NOT_OPEN = declare(
    "HR0913",
    "config",
    "watch is not open",
    "A watch is a context manager: `with hr.watch(loader) as seen:` around the loop. It can be "
    "entered only once; create another watch for another run.",
)
OF_THIS_PROCESS = declare(
    "HR0914",
    "unsupported",
    "watch belongs to another process",
    "A watch has a thread and belongs to the process that created it. It cannot be pickled or "
    "copied; pass the figures of seen.stats(), which are plain values.",
)
NO_CLIENT = declare(
    "HR0915",
    "unsupported",
    "missing Prometheus client",
    "hr.watch exports metrics through Prometheus' own client, which is not installed with "
    "Headrace: `pip install prometheus-client`, or the extra `headrace[watch]`. seen.stats() has "
    "the same figures without it.",
)

NO_OPENTELEMETRY = declare(
    "HR0916",
    "unsupported",
    "OpenTelemetry missing",
    "seen.opentelemetry() exports metrics and spans through OpenTelemetry's own packages, which "
    "are not installed with Headrace: `pip install opentelemetry-sdk`, or the extra "
    "`headrace[otel]`. seen.stats() has the same figures without them.",
)

_TICK = 1.0  # seconds between readings of the process and the loop
_ASK_EVERY = 0.5  # seconds between requests for the GIL, on average
_MOMENTS = 256  # number of memory readings that are kept


class Watch:
    """A loop under watch: see ``hr.watch``. ``for batch in seen`` iterates the loader."""

    def __init__(
        self,
        loader: Any,
        every: float | None,
        warn: float | None,
        port: int | None,
        host: str,
        name: str,
        window: float,
    ) -> None:
        if not hasattr(loader, "__iter__") and not hasattr(loader, "__getitem__"):
            raise NOT_ITERABLE.error(f"{type(loader).__name__} cannot be iterated")
        if warn is not None and not 0 < float(warn) <= 1:
            raise BAD_SHARE.error(f"warn={warn!r}", hint="0.1 is a tenth of the time")
        self.loader, self.name = loader, name
        self._meter = Meter()
        self._window = max(_TICK, arguments.seconds("window", window))
        self._writer = None if every is None else Writer(arguments.seconds("every", every))
        self._stalls = None if warn is None else stalls.Stalls(float(warn))
        self._address = None if port is None else (host, arguments.integer("port", port))
        self._endpoint: Any = None
        self._telemetry: Any = None
        self._codes = BadCodes()
        self._sampler: ProcessSampler | None = None
        self._ranks = Ranks()
        self._process = os.getpid()
        self._tapped = self._entered = self._failed = False
        self._counted: Mapping[str, Any] = {}
        self._final: dict[str, Any] | None = None
        self._last_moment: Moment | None = None

    # The context.

    def __enter__(self) -> Watch:
        if self._entered:
            raise NOT_OPEN.error("it was entered before", hint="create another one for another run")
        if self._address is not None:
            from headrace.insight.live.endpoint import Endpoint

            _text_of()  # before the loop begins
            self._endpoint = Endpoint(*self._address, self.prometheus, self.status)
        self._sampler = ProcessSampler(_TICK, _ASK_EVERY, self._tick)
        self._memory: Thinned[tuple[int, int]] = Thinned(_MOMENTS)
        self._begin = self._window_begin = self._snapshot()
        self._good: Snapshot | None = None  # the last window without a stall
        self._recent = Recent(self._window, self._begin)
        self._sampler.__enter__()
        self._first_beat = self._sampler.readings[0]
        self._entered = True
        live.add(self)
        _open.add(self)
        self._tapped = tap.attach(self.loader, self._meter)
        if self._endpoint is not None:
            self._endpoint.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the watch, as leaving the context does; its figures remain."""
        if self._final is not None or not self._entered:
            return
        tap.detach(self.loader, self._meter)
        if os.getpid() != self._process:
            return  # a forked child has no such threads
        assert self._sampler is not None
        self._sampler.__exit__()
        self._last_line, self._last_moment = self.status(), self._moment()
        self._final = self.stats()
        if self._endpoint is not None:
            self._endpoint.close()
        if self._telemetry is not None:
            self._telemetry.close(self._last_moment)
        self._say_goodbye()

    def _say_goodbye(self) -> None:
        figures = self._meter.figures().since(self._begin.figures)
        if self._writer is not None and figures.batches and _writes_lines():
            reading = self._last_beat()
            self._writer.write(line(figures, reading.resident_bytes, self.name))
            self._writer.end()
        if not figures.batches and not self._tapped:
            warn(
                f"no batch was counted: a {type(self.loader).__name__} cannot be watched without "
                "iterating the watch; write `for batch in seen`"
            )

    # Iteration.

    def __iter__(self) -> Iterator[Any]:
        if not self._entered:
            raise NOT_OPEN.error(
                "it is iterated outside its context", hint="with hr.watch(loader) as seen: ..."
            )
        if self._tapped or self._final is not None:
            return iter(self.loader)
        return self._meter.timed(lambda: iter(self.loader))

    def __len__(self) -> int:
        """Batches of an epoch, if the loader knows."""
        return len(self.loader)

    def __bool__(self) -> bool:
        return True  # a loader of no batches can be watched, too

    # Results.

    @property
    def port(self) -> int | None:
        """The port for Prometheus; None without a server."""
        return None if self._endpoint is None else int(self._endpoint.port)

    def stats(self) -> dict[str, Any]:
        """Figures as plain values: times in seconds, memory in bytes, shares from 0 to 1.

        ``batches``, ``records``, ``epochs``; the sums ``wait_seconds`` and ``step_seconds``;
        ``wait`` and ``step``, each as mean, p50, p95, p99 (within 6 %); ``wait_share``;
        ``first_batch_seconds``; ``recent``: the same of the last window. Of the process:
        ``resident_bytes``, ``growth_bytes_per_1000_batches``, ``cpu_seconds`` (with those of the
        processes that it started), ``gil_share``. ``stalls``: how often the input began to stall.
        ``loader``: a Headrace loader's own counters. ``ranks``: on the first rank of a process
        group, how many took batches recently (``heard``), the one that waits longest for a batch
        (``slowest``, ``wait_seconds``) and the spread of ``wait_share``. None: unknown.
        """
        if self._final is not None:
            return self._final
        self._require_open()
        now = self._snapshot()
        whole, recent, reading = now.since(self._begin), self._recent.until(now), self._last_beat()
        first, moments = self._first_beat, self._memory.all()
        grown = growth([batches for batches, _ in moments], [size for _, size in moments])
        cpu = reading.cpu_seconds - first.cpu_seconds + reading.child_seconds - first.child_seconds
        return {
            "name": self.name,
            "seconds": whole.figures.at,
            **_loop(whole.figures),
            "first_batch_seconds": whole.figures.first_batch,
            "recent": {"seconds": recent.figures.at, **_loop(recent.figures)},
            "resident_bytes": reading.resident_bytes,
            "worker_bytes": reading.child_bytes,
            "growth_bytes_per_1000_batches": None if grown is None else 1000 * grown,
            "cpu_seconds": cpu,
            "gil_share": whole.gil_share,
            "stalls": self._stalls.count if self._stalls else 0,
            "loader": dict(self._counted),
            "ranks": self._ranks.compared,
        }

    def status(self) -> str:
        """The status line of the last window."""
        if self._final is not None:
            return self._last_line
        self._require_open()
        return self._line(self._recent.until(self._snapshot()).figures)

    def _line(self, recent: Figures) -> str:
        resident = self._last_beat().resident_bytes
        return line(recent, resident, self.name, words(self._ranks.compared))

    def prometheus(self) -> str:
        """The figures as Prometheus reads them, text format 0.0.4. Needs prometheus_client."""
        self._require_open()
        moment = self._moment()
        return _text_of()(moment)

    def opentelemetry(self, meter_provider: Any = None, tracer_provider: Any = None) -> None:
        """Exports the figures as OpenTelemetry metrics, and each stall as a span, from now on.

        The providers are by default the global ones, which the program has configured.
        Raises UnsupportedError HR0916 if opentelemetry-api is missing, ConfigError HR0913 if the
        watch is not open.
        """
        self._require_open()
        if self._telemetry is None and self._final is None:
            look = weakref.WeakMethod(self._moment)  # so that the export keeps no loader alive
            self._telemetry = _telemetry()(self._name(), look, meter_provider, tracer_provider)

    def _name(self) -> str:
        return self.name or type(tap.inner_loader(self.loader)).__name__

    def _moment(self) -> Moment:
        """The values for monitoring systems."""
        if self._last_moment is not None:
            return self._last_moment
        self._require_open()
        now = self._snapshot()
        stalled = self._stalls.count if self._stalls else 0
        codes = self._codes.of(self.loader, self._counted.get("bad_records", 0))
        return Moment(
            self._name(), now.since(self._begin), self._recent.until(now), self._last_beat(),
            stalled, self._counted, codes,
        )  # fmt: skip

    def _require_open(self) -> None:
        if not self._entered:
            raise NOT_OPEN.error(
                "it has no figures before", hint="with hr.watch(loader) as seen: ..."
            )

    def _last_beat(self) -> Reading:
        assert self._sampler is not None
        return self._sampler.readings[-1]

    def _snapshot(self) -> Snapshot:
        counted = _stats_of(self.loader)
        self._counted = counted or self._counted
        assert self._sampler is not None
        figures = self._meter.figures()
        return Snapshot(figures, counted_up(self._counted), self._sampler.requests)

    # Once a second, on the sampler's thread.

    def _tick(self) -> None:
        if self._failed:
            return
        try:
            self._look()
        except Exception as error:  # errors of the watch must not end the run
            self._failed = True
            with contextlib.suppress(Warning):
                warn(f"the watch has ended: {type(error).__name__}: {error}")

    def _look(self) -> None:
        now = self._snapshot()
        self._recent.add(now)
        self._ranks.exchange(now.figures.at, self._recent.until(now).figures)
        reading = self._last_beat()
        batches = now.figures.batches - self._begin.figures.batches
        self._memory.add((batches, reading.resident_bytes))
        window = now.since(self._window_begin)
        if window.figures.at >= self._window:
            self._window_begin = now
            self._judge(window)
        if self._writer is not None and _writes_lines() and self._writer.due(now.figures.at):
            self._writer.write(self._line(self._recent.until(now).figures))

    def _judge(self, window: Snapshot) -> None:
        if self._stalls is None:
            return
        share, text = window.figures.wait_share, ""
        if self._stalls.begins(share):
            text = stalls.message(self._good, window, _who(self.name))
            if self._writer is not None:
                self._writer.end()
            try:
                warn(text)
            except Warning:  # warnings are errors, but this is not the loop's thread
                Writer(0).write(f"headrace: {text}")
        elif share is not None and share <= self._stalls.share:
            self._good = window
        if self._telemetry is not None:
            self._telemetry.judged(self._stalls.stalled, text)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise OF_THIS_PROCESS.error("it cannot be pickled or copied", hint="seen.stats()")

    def __repr__(self) -> str:
        state = "not open" if not self._entered else "ended" if self._final else "open"
        return f"<watch of {type(self.loader).__name__}, {state}>"


_open: weakref.WeakSet[Watch] = weakref.WeakSet()


def _after_fork() -> None:
    tap.renew_lock()
    for watch in list(_open):
        watch._meter.renew_lock()


os.register_at_fork(after_in_child=_after_fork)


def _text_of() -> Callable[[Moment], str]:
    try:
        from headrace.insight.live.metrics import text_of
    except ImportError as error:
        raise NO_CLIENT.error(str(error), hint="pip install prometheus-client") from error
    return text_of


def _telemetry() -> Any:
    try:
        from headrace.insight.live.otel import Telemetry
    except ImportError as error:
        raise NO_OPENTELEMETRY.error(str(error), hint="pip install opentelemetry-sdk") from error
    return Telemetry


def _loop(figures: Figures) -> dict[str, Any]:
    return {
        "batches": figures.batches,
        "records": figures.records,
        "epochs": figures.epochs,
        "wait_seconds": figures.wait_seconds,
        "step_seconds": figures.step_seconds,
        "wait_share": figures.wait_share,
        "records_per_second": figures.rate(figures.records),
        "batches_per_second": figures.rate(figures.batches),
        "wait": spread(figures.waits, figures.wait_sum)._asdict(),
        "step": spread(figures.steps, figures.step_sum)._asdict(),
    }


def _stats_of(loader: Any) -> Mapping[str, Any]:
    """Counters of one of our loaders; nothing for others, or while it is being closed."""
    inner = tap.inner_loader(loader)
    try:
        if isinstance(inner, Loader):
            running = inner.assembly.present_engine is not None and inner.assembly.is_settled
            return inner.stats() if running else {}
        if isinstance(inner, Prefetch):
            return {**_stats_of(inner.source), **inner.stats()}
    except Exception:
        pass
    return {}


def _writes_lines() -> bool:
    """Whether to write lines: among several ranks only the first does."""
    return os.environ.get("RANK", "0") in ("", "0")


def _who(name: str) -> str:
    rank = os.environ.get("RANK")
    named = f"{name}: " if name else ""
    return f"rank {rank}: {named}" if rank else named

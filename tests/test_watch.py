# SPDX-License-Identifier: Apache-2.0
"""hr.watch: loops are measured without changing them, and without leftovers."""

from __future__ import annotations

import copy
import gc
import io
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.counters import counted_up
from headrace.insight.live import stalls, status
from headrace.insight.live.histogram import BOUNDS, SIZE, bucket_of, percentile
from headrace.insight.live.meter import Figures, Meter
from headrace.insight.live.window import Recent, Snapshot
from headrace.insight.measure.process_sampler import Requests

import headrace as hr
from headrace import counters
from headrace import transforms as T

PICTURES = Path(__file__).parent.parent / "examples" / "images"
QUIET: dict[str, Any] = {"every": None}


class Clock:
    """Time that only passes when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Planted:
    """A source whose batches take the planted time."""

    def __init__(self, clock: Clock, waits: list[float], records: int = 4) -> None:
        self.clock, self.waits, self.records = clock, waits, records

    def __iter__(self) -> Iterator[Any]:
        for wait in self.waits:
            self.clock.now += wait
            yield [np.zeros((self.records, 2)), np.zeros(self.records)]


def run(meter: Meter, source: Any, clock: Clock, steps: list[float]) -> None:
    for _, step in zip(meter.timed(lambda: iter(source)), steps, strict=False):
        clock.now += step


class Numbers:
    """A loader in Python."""

    def __init__(self, count: int = 5) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        for number in range(self.count):
            yield {"x": np.full((3, 2), number)}


def loader_of(**options: Any) -> hr.Loader:
    return hr.Loader(PICTURES, [T.Resize((8, 8))], **{"batch_size": 2, **options})


# The counters, on a virtual clock.


def test_waits_and_steps_have_the_planted_durations() -> None:
    clock = Clock()
    meter = Meter(clock)
    waits, steps = [0.5, 0.1, 0.1, 0.3], [1.0, 2.0, 3.0, 4.0]
    run(meter, Planted(clock, waits), clock, steps)
    seen = meter.figures()
    assert (seen.batches, seen.records, seen.epochs) == (4, 16, 1)
    assert seen.wait_seconds == pytest.approx(sum(waits))
    assert seen.step_seconds == pytest.approx(sum(steps))
    assert seen.first_batch == pytest.approx(0.5)
    assert sum(seen.waits) == 4 and sum(seen.steps) == 4


def test_time_between_epochs_is_not_a_step() -> None:
    clock = Clock()
    meter = Meter(clock)
    for _ in range(3):
        run(meter, Planted(clock, [0.1, 0.1]), clock, [1.0, 1.0])
        clock.now += 50.0  # validation
    seen = meter.figures()
    assert seen.step_seconds == pytest.approx(6.0)
    assert (seen.epochs, sum(seen.steps)) == (3, 6)


def test_a_wait_in_progress_counts_before_it_ends() -> None:
    clock = Clock()
    meter = Meter(clock)
    begun, go_on = threading.Event(), threading.Event()

    def batches() -> Iterator[int]:
        yield 1
        begun.set()
        assert go_on.wait(300)
        yield 2

    def loop() -> None:
        for _ in meter.timed(batches):
            pass

    thread = threading.Thread(target=loop)
    thread.start()
    assert begun.wait(300)
    clock.now += 30.0
    seen = meter.figures()
    assert seen.waiting == pytest.approx(30.0) and seen.wait_share == pytest.approx(1.0)
    assert seen.wait_sum == 0.0 and seen.batches == 1
    go_on.set()
    thread.join()
    assert meter.figures().waiting == 0.0


def test_loops_in_several_threads_add_up() -> None:
    meter = Meter()

    def loop() -> None:
        for _ in range(20):
            for _ in meter.timed(lambda: iter(Numbers(50))):
                pass

    threads = [threading.Thread(target=loop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = meter.figures()
    assert (seen.batches, seen.records, seen.epochs) == (4000, 12000, 80)
    assert len(meter._lanes) <= 4


def test_percentiles_equal_numpys_within_six_per_cent() -> None:
    random = np.random.default_rng(1)
    values = np.exp(random.normal(-6, 2, 20_000))
    values = values[(values > BOUNDS[0]) & (values < BOUNDS[-1])]
    counts = [0] * SIZE
    for value in values:
        counts[bucket_of(float(value))] += 1
    for share in (0.5, 0.95, 0.99):
        assert percentile(counts, share) == pytest.approx(np.quantile(values, share), rel=0.065)


def test_bucket_bounds_are_inclusive() -> None:
    for number in (0, 5, 20, 100, len(BOUNDS) - 1):
        assert bucket_of(BOUNDS[number]) == number
        assert bucket_of(float(np.nextafter(BOUNDS[number], np.inf))) == number + 1
    assert {1e-6, 2e-5, 0.005, 1.0, 50.0, 1000.0} <= set(BOUNDS)
    assert list(BOUNDS) == sorted(set(BOUNDS))


@pytest.mark.parametrize(
    ("batches", "records"),
    [
        ([np.zeros((3, 2)), np.zeros((5, 2))], 8),
        ([(np.zeros((3, 2)), np.zeros(3))] * 2, 6),
        ([{"x": [np.zeros((4, 2))]}, {"x": [np.zeros((2, 2))]}], 6),
        ([["a", "b"], ["c"]], 3),
        ([[1, 2, 3], [4]], 4),
        ([{"n": 1}, {"n": 2}], 2),
        ([np.zeros(()), 7, None, "text"], 7),
        ([[np.zeros(3)], {"x": np.zeros(2)}, np.zeros((4, 1))], 9),
        ([{}, [], ()], 0),
    ],
)
def test_records_are_counted_for_any_kind_of_batch(batches: list[Any], records: int) -> None:
    meter = Meter()
    assert len(list(meter.timed(lambda: iter(batches)))) == len(batches)
    assert meter.figures().records == records


# Loops are unchanged.


def test_our_loader_and_its_views_are_watched_without_edits() -> None:
    with loader_of() as plain, loader_of() as loader:
        expected = [batch.image.copy() for batch in plain]
        view = loader.dlpack()
        with hr.watch(loader, **QUIET) as seen:
            assert isinstance(loader, hr.Loader) and loader.__class__ is hr.Loader
            found = [batch.image for batch in loader]
            assert len(list(view)) == len(loader)
            assert len(list(seen)) == len(seen) == len(loader)
        assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
        assert type(loader) is hr.Loader
        stats = seen.stats()
        assert stats["batches"] == 3 * len(loader) and stats["epochs"] == 3
        assert stats["records"] == 3 * len(loader.source)
        assert stats["loader"]["records"] == stats["records"]
        assert {"read", "decode"} <= set(stats["loader"]["stages"])


def test_a_view_is_watched_as_its_loader() -> None:
    with loader_of() as loader, hr.watch(loader.numpy(batch="dict"), **QUIET) as seen:
        assert all(set(batch) == {"image"} for batch in seen)
        assert len(list(loader)) == len(loader)
        assert seen.stats()["batches"] == 2 * len(loader)


def test_any_python_class_is_watched_and_restored() -> None:
    loader, other = Numbers(), Numbers()
    with hr.watch(loader, **QUIET) as seen:
        assert isinstance(loader, Numbers) and type(other) is Numbers
        assert [int(batch["x"][0, 0]) for batch in loader] == [0, 1, 2, 3, 4]
        assert len(list(other)) == 5 and len(list(type(loader)(2))) == 2  # others are not counted
        assert seen.stats()["batches"] == 5
    assert type(loader) is Numbers
    assert len(list(loader)) == len(list(seen)) == 5
    assert seen.stats()["batches"] == 5


def test_objects_that_cannot_be_wrapped_are_watched_on_iteration() -> None:
    with hr.watch([np.zeros(2)] * 3, **QUIET) as seen:
        assert len(seen) == 3 and len(list(seen)) == 3 and len(list(seen)) == 3
    assert (seen.stats()["batches"], seen.stats()["records"]) == (6, 12)
    with hr.watch((x for x in range(4)), **QUIET) as seen:
        assert list(seen) == [0, 1, 2, 3]
    assert seen.stats()["batches"] == 4
    with (
        pytest.warns(hr.Warning, match=r"a list cannot be watched.*for batch in seen"),
        hr.watch([1], **QUIET),
    ):
        pass


def test_classes_with_slots_abstract_classes_and_list_subclasses_are_watched() -> None:
    class Slotted:
        __slots__ = ("count",)

        def __iter__(self) -> Iterator[int]:
            return iter([1, 2])

    class Listed(list[int]):
        pass

    class Refuses:
        def __init_subclass__(cls) -> None:
            raise TypeError("final")

        def __iter__(self) -> Iterator[int]:
            return iter([1, 2])

    for loader, plain in ((Slotted(), True), (Listed([1, 2]), True), (Refuses(), False)):
        kind = type(loader)
        with hr.watch(loader, **QUIET) as seen:
            assert list(loader) == list(seen) == [1, 2]
        assert seen.stats()["batches"] == (4 if plain else 2)
        assert type(loader) is kind


def test_watches_of_one_loader_nest_and_end_in_any_order() -> None:
    loader, other = Numbers(3), Numbers(4)
    first, second = hr.watch(loader, **QUIET), hr.watch(loader, **QUIET)
    first.__enter__()
    list(loader)
    with hr.watch(other, **QUIET) as third:
        second.__enter__()
        list(loader), list(other)
        first.close()
        list(loader)
    second.close()
    assert type(loader) is type(other) is Numbers
    assert [w.stats()["batches"] for w in (first, second, third)] == [6, 6, 4]


def test_the_iterator_behaves_like_the_loaders_own() -> None:
    class Inner:
        tag = "inner"

        def __len__(self) -> int:
            return 9

        def __iter__(self) -> Inner:
            return self

        def __next__(self) -> int:
            return 1

    class Outer:
        def __iter__(self) -> Inner:
            return Inner()

    loader = Outer()
    with hr.watch(loader, **QUIET):
        iterator: Any = iter(loader)
        assert (iterator.tag, len(iterator), iter(iterator)) == ("inner", 9, iterator)
    with hr.watch(Numbers(), **QUIET) as seen:
        assert bool(iter(seen)) and not hasattr(iter(seen), "__len__")


def test_the_watch_does_not_keep_batches_alive() -> None:
    class Batch:
        pass

    with hr.watch((Batch() for _ in range(2)), **QUIET) as seen:
        iterator = iter(seen)
        batch = next(iterator)
        alive = weakref.ref(batch)
        del batch
        gc.collect()
        assert alive() is None


def test_a_dataloader_with_workers_is_watched() -> None:
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.arange(20.0).reshape(10, 2))
    for options in ({}, {"num_workers": 2, "multiprocessing_context": "fork"}):
        loader = torch.utils.data.DataLoader(data, batch_size=4, **options)
        with hr.watch(loader, port=0, **QUIET) as seen:
            assert [len(rows) for (rows,) in loader] == [4, 4, 2]
            assert isinstance(loader, torch.utils.data.DataLoader)
            loader.multiprocessing_context = options.get("multiprocessing_context")
        assert type(loader) is torch.utils.data.DataLoader
        assert seen.stats()["records"] == 10


def test_prefetch_is_watched() -> None:
    batches = hr.prefetch(Numbers(6), "cpu")
    with hr.watch(batches, **QUIET) as seen:
        assert len(list(batches)) == 6
    assert seen.stats()["records"] == 18 and "source_seconds" in seen.stats()["loader"]
    batches.close()


# Ends that do not count.


def test_a_loop_that_is_left_early_counts_its_last_step() -> None:
    clock = Clock()
    meter = Meter(clock)
    for number, _ in enumerate(meter.timed(lambda: iter(Planted(clock, [0.1] * 9)))):
        clock.now += 2.0
        if number == 2:
            break
    seen = meter.figures()
    assert seen.step_seconds == pytest.approx(6.0) and seen.epochs == 0
    clock.now += 100
    assert meter.figures().step_seconds == pytest.approx(6.0)


def test_errors_of_the_source_and_of_the_loop_body_are_raised() -> None:
    class Broken:
        def __iter__(self) -> Iterator[int]:
            yield 1
            raise OSError("the disk is gone")

    loader = Broken()
    with pytest.raises(OSError, match="the disk is gone"), hr.watch(loader, **QUIET) as seen:
        for _ in loader:
            pass
    assert type(loader) is Broken and seen.stats()["batches"] == 1
    with pytest.raises(ZeroDivisionError), hr.watch(loader, **QUIET) as seen:
        for _ in loader:
            raise ZeroDivisionError
    assert type(loader) is Broken and seen.stats()["batches"] == 1


def test_an_iterator_may_continue_after_an_error_and_after_the_watch() -> None:
    class Shaky:
        def __init__(self) -> None:
            self.left = iter([1, None, 3, 4])

        def __iter__(self) -> Shaky:
            return self

        def __next__(self) -> int:
            value = next(self.left)
            if value is None:
                raise ValueError("a bad batch")
            return value

    with hr.watch(Shaky(), **QUIET) as seen:
        iterator = iter(seen)
        assert next(iterator) == 1
        with pytest.raises(ValueError, match="a bad batch"):
            next(iterator)
        assert next(iterator) == 3
    assert seen.stats()["batches"] == 2
    assert list(iterator) == [4]


def test_the_threads_end_with_the_watch() -> None:
    before = set(threading.enumerate())
    with hr.watch(Numbers(), port=0, **QUIET) as seen:
        assert set(threading.enumerate()) > before
        address = ("127.0.0.1", seen.port or 0)
    assert set(threading.enumerate()) <= before
    with pytest.raises(OSError):
        socket.create_connection(address, timeout=300)


INTERRUPTED = """
import threading, sys
import headrace as hr
class Endless:
    def __iter__(self):
        while True: yield 1
loader = Endless()
try:
    with hr.watch(loader, every=None, port=0) as seen:
        for number, _ in enumerate(loader):
            if number == 100: print("runs", flush=True)
except KeyboardInterrupt:
    print(type(loader).__name__, threading.active_count(), seen.stats()["batches"] >= 100)
"""


def test_ctrl_c_ends_it_cleanly() -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "runs\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "Endless 1 True\n"
        assert process.wait(300) == 0


def test_a_watch_that_is_never_closed_ends_with_the_process() -> None:
    code = (
        "import headrace as hr\nseen = hr.watch([1], every=1, port=0)\nseen.__enter__()\nlist(seen)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("headrace: ")


def test_a_forked_child_does_not_keep_the_port() -> None:
    loader = Numbers()
    reading, writing = os.pipe()
    with hr.watch(loader, port=0, **QUIET) as seen:
        port = seen.port or 0
        child = os.fork()
        if child == 0:
            os.close(writing)
            fine = len(list(loader)) == 5
            seen.close()
            os.read(reading, 1)  # until the parent closes
            os._exit(0 if fine else 1)
        os.close(reading)
        assert len(list(loader)) == 5
    with hr.watch(loader, port=port, **QUIET) as seen:  # while the child lives
        assert seen.port == port
    os.close(writing)
    assert os.waitpid(child, 0)[1] == 0
    assert type(loader) is Numbers


def test_copies_and_pickles_have_the_loaders_own_class() -> None:
    loader = Numbers(7)
    with hr.watch(loader, **QUIET) as seen:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            twin = pickle.loads(pickle.dumps(loader, protocol))
            assert type(twin) is Numbers and twin.count == 7
        assert type(copy.copy(loader)) is type(copy.deepcopy(loader)) is Numbers
        with pytest.raises(hr.UnsupportedError, match=r"seen\.stats"):
            pickle.dumps(seen)


# Stalls.


def snapshot(wait: float, step: float, counters: dict[str, float] | None = None) -> Snapshot:
    figures = Figures(30.0, 100, 1000, 0, wait, step, wait, step)
    return Snapshot(figures, counters or {}, Requests(100, 10, 0))


def test_a_stall_warns_once_until_it_is_over() -> None:
    judge = stalls.Stalls(0.10)
    shares = [0.02, 0.3, 0.02, 0.3, 0.3, 0.3, 0.07, 0.07, 0.3, 0.3, 0.01, None, 0.01, 0.3, 0.3]
    begins = [judge.begins(share) for share in shares]
    assert [number for number, began in enumerate(begins) if began] == [4, 14]
    assert judge.count == 2


def test_the_warning_says_what_changed() -> None:
    before = snapshot(0.3, 29.7, {"records": 1000, "stages.read": 0.1, "stages.decode": 2.0})
    now = snapshot(
        12.0, 18.0,
        {"records": 500, "stages.read": 4.0, "stages.decode": 1.0, "bad_records": 57},
    )  # fmt: skip
    text = stalls.message(before, now)
    assert "waits for data 40% of its time, 1% before" in text
    assert "57 records were bad" in text
    assert "reading takes 80.0 times as long (8.00 ms per record, 0.10 ms before)" in text
    assert "decoding" not in text and "a step takes 61% of its former time" in text
    assert text.endswith("`headrace doctor`.")


def test_the_warning_names_the_slowest_stage_if_nothing_changed() -> None:
    counted = {"records": 1000, "stages.read": 0.1, "stages.python": 3.9}
    text = stalls.message(None, snapshot(20, 10, counted), "rank 3: ")
    assert text.startswith("rank 3: the loop waits for data 67% of its time, since it began; ")
    assert "the loader's slowest part is Python transforms (98%)" in text


def test_a_stall_in_a_running_loop_warns(recwarn: pytest.WarningsRecorder) -> None:
    clock, loader = Clock(), Numbers()
    watch = hr.watch(loader, window=30, name="train", **QUIET)
    watch._meter = Meter(clock)
    with watch as seen:
        for waited in (0.01, 0.01, 2.0, 2.0, 2.0):
            run(seen._meter, Planted(clock, [waited] * 31), clock, [1.0] * 31)
            seen._look()
        assert seen.stats()["stalls"] == 1
        assert seen.status().startswith("headrace train: waits for data, waits 6")
    (found,) = [w for w in recwarn if issubclass(w.category, hr.Warning)]
    assert "train: the loop waits for data 67% of its time, 1% before" in str(found.message)


def test_recent_covers_the_last_window() -> None:
    recent = Recent(30.0, Snapshot(Figures(0.0)))
    for second in range(1, 101):
        recent.add(Snapshot(Figures(float(second), second)))
    now = recent.until(Snapshot(Figures(100.5, 101)))
    assert (now.figures.at, now.figures.batches) == (30.5, 31)


def test_counters_of_a_recreated_loader_do_not_go_back() -> None:
    old = Snapshot(counters=counted_up({"records": 50, "stages": {"read": 2.0}}))
    new = Snapshot(counters=counted_up({"records": 10, "stages": {"read": 3.0}}))
    assert new.since(old).counters == {"records": 0.0, "stages.read": 1.0}


def test_all_counters_are_in_one_table() -> None:
    with loader_of() as loader:
        next(iter(loader))
        stats = loader.stats()
    parts = ("stages", "remote_reads", "index", "cache", "disk_cache")
    names = [
        f"{name}.{part}" if name in parts else name
        for name, value in stats.items()
        for part in (value if name in parts else [""])
    ]
    # Of the Python front.
    own = {"remote", "python_workers", "finish", "decode", "decode_note", "resident", "devices"}
    assert [name for name in names if name not in own] == list(counters.LOADER)
    page = (Path(__file__).parent.parent / "docs" / "tools" / "watch.md").read_text()
    for name, entry in {**counters.LOADER, **counters.COPIES}.items():
        assert entry["doc"].endswith(".") and entry["adds"] in ("sum", "most"), name
        assert f"`headrace_loader_{entry['metric']}`" in page or not entry["metric"], name
        value = counters.number(stats, name) if name in counters.LOADER else 0.0
        assert (value is None) == (
            not entry["unit"] or name in ("decoded", "finished_before_transfer")
        )


# The status line.


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


RECENT = Figures(30, 240, 58_120, 0, 0.12, 9.88, 0.12, 9.88)


def test_the_line_shows_the_current_state() -> None:
    text = status.line(RECENT, 1_100_000_000)
    assert text == "headrace: fed, waits 1.2 %, 5,812 records/s, 24 batches/s, 1.1 GB"
    assert status.line(Figures(), 0, "val") == "headrace val: no loop"
    hung = Figures(30, 0, 0, 0, 30.0, 0, waiting=45.0)
    assert status.line(hung, 0) == "headrace: no batch for 45 s"


def test_on_a_terminal_a_line_replaces_the_previous_one(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    writer = status.Writer(10)
    assert [writer.due(now) for now in (0, 5, 10, 15, 20)] == [False, False, True, False, True]
    writer.write("one"), writer.write("two"), writer.end(), writer.end()
    assert screen.getvalue() == "\rone\x1b[K\rtwo\x1b[K\n"


def test_in_a_log_there_is_a_line_per_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    writer = status.Writer(10)
    assert [writer.due(now) for now in (0, 30, 60, 90, 120)] == [False, False, True, False, True]
    writer.write("one"), writer.write("two"), writer.end()
    assert log.getvalue() == "one\ntwo\n"
    log.close()
    writer.write("three"), writer.end()  # nobody reads it any longer
    monkeypatch.setattr(sys, "stderr", None)
    writer.write("four")


def test_tqdm_bars_are_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    class Bar:
        _instances = ("a bar",)

        @staticmethod
        def write(text: str, file: Any) -> None:
            written.append(text)

    monkeypatch.setitem(sys.modules, "tqdm", type(sys)("tqdm"))
    sys.modules["tqdm"].tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "stderr", Terminal())
    writer = status.Writer(10)
    assert not writer.due(0) and not writer.due(30) and writer.due(60)
    writer.write("one")
    assert written == ["one"] and sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


def test_only_the_first_rank_writes_lines(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("RANK", "1")
    with hr.watch([1, 2]) as seen:
        list(seen)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("RANK", "0")
    with hr.watch([1, 2]) as seen:
        list(seen)
    assert capsys.readouterr().err.startswith("headrace: ")


# Bad calls.


@pytest.mark.parametrize(
    ("loader", "options", "words", "code"),
    [
        (7, {}, "int cannot be iterated", "HR0910"),
        ([], {"warn": 10}, "warn=10", "HR0912"),
        ([], {"warn": 0}, "warn=0", "HR0912"),
        ([], {"every": -1}, "every must be seconds", "HR0105"),
        ([], {"port": "http"}, "port", "HR0105"),
        ([], {"port": 70_000}, "70000", "HR0911"),
    ],
)
def test_wrong_calls_are_corrected_in_the_message(
    loader: Any, options: Any, words: str, code: str
) -> None:
    with pytest.raises(hr.ConfigError, match=words) as caught, hr.watch(loader, **options):
        pass
    assert caught.value.code == code or code == "HR0105"


def test_opening_a_watch_twice_is_an_error() -> None:
    watch = hr.watch(Numbers())
    for call in (watch.stats, watch.status, watch.prometheus, lambda: iter(watch)):
        with pytest.raises(hr.ConfigError, match=r"with hr\.watch"):
            call()
    assert "not open" in repr(watch)
    with watch:
        pass
    with pytest.raises(hr.ConfigError, match="entered before"), watch:
        pass


def test_importing_headrace_imports_no_watch() -> None:
    code = (
        "import sys, headrace as hr\n"
        "assert not any(name.startswith('headrace.insight.live') for name in sys.modules)\n"
        "with hr.watch([1], every=None) as seen: list(seen)\n"
        "assert 'torch' not in sys.modules and 'http' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

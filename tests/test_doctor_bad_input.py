# SPDX-License-Identifier: Apache-2.0
"""For any behavior of loader and step, an examination ends with its measurements and a message."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.insight.examination.experiments import EXPERIMENTS
from timing import with_longer_limits
from virtual_clock import VirtualClock

import headrace as hr
from headrace import transforms as T

PICTURES = Path(__file__).parent.parent / "examples" / "images"
ROWS = np.ones((4, 3), np.float32)


def nothing(batch: Any) -> None:
    pass


def assert_told(report: Any, words: str = "") -> None:
    """Five complete lines, numbers that are valid JSON, and the sentence."""
    lines = str(report).splitlines()
    assert lines[5] == "" and all(line.endswith(".") for line in lines[:5]), report
    assert report.json()["verdict"] == report.verdict
    assert any(words in note for note in report.notes), report.notes


class Batches:
    """A loader with this many batches, which does something before each."""

    def __init__(self, make: Callable[[int], Any], count: int = 20) -> None:
        self.make, self.count = make, count

    def __iter__(self) -> Iterator[Any]:
        for number in range(self.count):
            yield self.make(number)


# Loaders.


@pytest.mark.parametrize("at", [0, 1, 7])
def test_a_loader_that_raises(at: int) -> None:
    def make(number: int) -> Any:
        if number == at:
            raise OSError("the disk is gone")
        return ROWS

    report = hr.doctor(Batches(make), nothing, seconds=0.5)
    assert_told(report, "the disk is gone")
    assert ("real" in report.rates) == (at > 1)


def test_our_own_loader_that_raises() -> None:
    class Rows:
        def __len__(self) -> int:
            return 12

        def __getitem__(self, number: int) -> Any:
            if number == 7:
                raise RuntimeError("row 7 is torn")
            return {"x": ROWS}

    with hr.Loader(Rows(), batch_size=2) as loader:
        report = hr.doctor(loader, nothing, seconds=0.5)
    assert_told(report, "row 7 is torn")


def ring(seconds: float = 0.2) -> None:
    """Waits forever, unless a signal ends it."""
    threading.Event().wait()


def test_a_hanging_loader_is_abandoned_and_its_line_is_named() -> None:
    def make(number: int) -> Any:
        if number == 9:
            ring()
        return ROWS

    def check(patience: float) -> None:
        report = hr.doctor(Batches(make), nothing, seconds=0.2, patience=patience)
        assert_told(report, "test_doctor_bad_input.py, line ")
        assert any(", in ring)" in note for note in report.notes), report.notes

    with_longer_limits(check, (0.2, 2, 10))
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_hanging_step_is_abandoned() -> None:
    def check(patience: float) -> None:
        calls = iter(range(10**9))

        def step(batch: Any) -> None:
            if next(calls) == 5:
                ring()

        report = hr.doctor([ROWS] * 9, step, seconds=0.2, patience=patience)
        assert_told(report, ", in ring)")

    with_longer_limits(check, (0.2, 2, 10))


def test_the_place_where_our_loader_hangs_is_reported() -> None:
    def check(patience: float) -> None:
        hung = threading.Event()

        class Rows:
            def __len__(self) -> int:
                return 64

            def __getitem__(self, number: int) -> Any:
                if number == 3:
                    hung.wait()
                return {"x": ROWS}

        with hr.Loader(Rows(), batch_size=2) as loader:
            try:
                report = hr.doctor(loader, nothing, seconds=0.2, patience=patience)
            finally:
                hung.set()
        assert_told(report, "The loader had delivered ")
        assert any("of epoch 0; the next begins with record" in note for note in report.notes)

    with_longer_limits(check, (0.2, 2, 10))


def test_a_program_that_uses_the_timer_itself_keeps_it() -> None:
    def own(number: int, frame: Any) -> None:
        pass

    before = signal.signal(signal.SIGALRM, own)
    try:
        hr.doctor([ROWS] * 9, nothing, seconds=0.1, patience=0.2)
        assert signal.getsignal(signal.SIGALRM) is own
    finally:
        signal.signal(signal.SIGALRM, before)


STRANGE = {
    "strings": ["a", "b", "c"],
    "empty list": [],
    "empty dict": {},
    "empty array": np.zeros((0, 3), np.float32),
    "no dimensions": np.float32(3),
    "none": None,
    "number": 7,
    "true": True,
    "bytes": b"1234",
    "objects": {"x": object(), "n": 3},
    "array of objects": np.array([object(), object()]),
    "ragged": [np.zeros(2), np.zeros(3)],
    "nested": {"a": ({"b": [ROWS, "x"]}, None), "c": []},
    "nan": np.full((4, 3), np.nan, np.float32),
}


def is_empty(batch: Any) -> bool:
    return hasattr(batch, "__len__") and len(batch) == 0


@pytest.mark.parametrize("batch", STRANGE.values(), ids=STRANGE)
def test_unusual_batches(batch: Any) -> None:
    report = hr.doctor(Batches(lambda number: batch), nothing, seconds=0.3)
    assert_told(report, "its batches are empty" if is_empty(batch) else "")
    assert ("real" in report.rates) == ("ceiling" in report.rates) == (not is_empty(batch)), report


def test_batches_of_different_kinds() -> None:
    kinds = list(STRANGE.values())
    report = hr.doctor(Batches(lambda number: kinds[number % len(kinds)]), nothing, seconds=0.3)
    assert_told(report)
    assert report.rates["real"] > 0


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("options", [{}, {"last_batch": "drop"}, {"shuffle": True}])
def test_few_records(count: int, options: dict[str, Any]) -> None:
    try:
        loader = hr.Loader(
            hr.subset(PICTURES, range(count)), [T.Resize((8, 8))], batch_size=2, **options
        )
    except hr.Error:
        assert count == 0 or options.get("last_batch") == "drop"  # rejected when it is made
        return
    with loader:
        report = hr.doctor(loader, nothing, seconds=0.5)
    assert_told(report)
    assert ("real" in report.rates) == (count > 1 or (count == 1 and "last_batch" not in options))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_records_of_a_dataloader(count: int) -> None:
    torch = pytest.importorskip("torch")
    loader = torch.utils.data.DataLoader([ROWS] * count, batch_size=2)
    report = hr.doctor(loader, nothing, seconds=0.5, sweep=True)
    assert_told(report)
    assert ("real" in report.rates) == (count > 0)


class Lying:
    """A loader whose len() differs from its number of batches."""

    def __init__(self, said: Any) -> None:
        self.said = said

    def __len__(self) -> int:
        if self.said is None:
            raise TypeError("no length")
        return int(self.said)

    def __iter__(self) -> Iterator[Any]:
        return iter([ROWS] * 5)


@pytest.mark.parametrize("said", [0, 2, 10**9, None])
def test_a_wrong_length(said: Any) -> None:
    report = hr.doctor(Lying(said), nothing, seconds=0.3)
    assert_told(report)
    assert report.rates["real"] > 0


def test_a_dataset_with_a_wrong_length() -> None:
    torch = pytest.importorskip("torch")

    class Rows(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return 100

        def __getitem__(self, number: int) -> Any:
            return torch.ones(3) if number < 50 else [][number]

    report = hr.doctor(torch.utils.data.DataLoader(Rows(), batch_size=4), nothing, seconds=0.5)
    assert_told(report, "IndexError")


class Dying:
    """Its third record kills the worker."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, number: int) -> Any:
        if number == 20 and os.getpid() != PARENT:
            os.kill(os.getpid(), signal.SIGKILL)
        return ROWS


PARENT = os.getpid()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # torch's __del__
def test_a_worker_that_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    iteration = torch.utils.data.dataloader._MultiProcessingDataLoaderIter
    monkeypatch.setattr(iteration._try_get_data, "__defaults__", (0.3,))  # not looked at each 5 s
    loader = torch.utils.data.DataLoader(Dying(), batch_size=2, num_workers=1)
    report = hr.doctor(loader, nothing, seconds=0.5, patience=20)
    assert_told(report, "ended early")
    # torch reports one or the other, depending on what remained in the worker's pipe.
    told = str(report.notes)
    assert "DataLoader worker" in told or "a worker process has died" in told
    assert report.verdict == "unsure" or report.rates


@pytest.mark.parametrize("error", [EOFError(), ConnectionResetError(104, "reset by peer")])
def test_a_workers_exit_is_described_in_words(error: Exception) -> None:
    def make(number: int) -> Any:
        raise error

    report = hr.doctor(Batches(make), nothing, seconds=0.3)
    assert_told(report, "a worker process has died")


# Steps.


@pytest.mark.parametrize("at", [0, 1, 12])
def test_a_step_that_fails(at: int) -> None:
    calls = iter(range(10**9))

    def step(batch: Any) -> None:
        if next(calls) >= at:
            raise ValueError("loss is NaN")

    report = hr.doctor([ROWS] * 9, step, seconds=0.3)
    assert_told(report, "ValueError: loss is NaN")
    assert report.rates["loader"] > 0


def test_a_step_that_changes_its_batch_in_place_gets_fresh_batches() -> None:
    seen: list[float] = []

    def step(batch: Any) -> None:
        seen.append(float(batch["x"][0, 0]))
        batch["x"] *= 0.5
        del batch["label"]

    def make(number: int) -> Any:
        return {"x": np.full((4, 3), 8.0, np.float32), "label": np.zeros(4)}

    report = hr.doctor(Batches(make), step, seconds=0.3)
    assert_told(report, "changes its batches")
    assert set(seen[-20:]) == {8.0}  # every experiment after the one that detected it
    assert {"ceiling", "cached", "real"} <= set(report.rates)


def test_a_step_that_changes_torch_tensors_gets_fresh_tensors() -> None:
    torch = pytest.importorskip("torch")
    seen: list[float] = []

    def step(batch: Any) -> None:
        seen.append(float(batch[0, 0]))
        batch.div_(255)

    report = hr.doctor(Batches(lambda n: torch.full((4, 3), 255.0)), step, seconds=0.3)
    assert_told(report, "changes its batches")
    assert set(seen[-20:]) == {255.0}


def test_a_step_of_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualClock(monkeypatch)
    report = hr.doctor([ROWS] * 9, lambda batch: clock.sleep(10), seconds=1)
    assert report.verdict == "consumer", report
    assert_told(report)
    assert report.rates["real"] == pytest.approx(0.4, rel=0.01)
    assert clock.now < 200  # the fewest steps needed for three windows


def test_a_batch_of_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualClock(monkeypatch)

    def make(number: int) -> Any:
        clock.sleep(10)
        return ROWS

    report = hr.doctor(Batches(make), nothing, seconds=1)
    assert_told(report)
    assert report.rates["real"] == pytest.approx(0.4, rel=0.01) and report.input_bound


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_ctrl_c_in_each_experiment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(found: Any, seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(
        EXPERIMENTS, name, type(EXPERIMENTS[name])(pressed, EXPERIMENTS[name].share)
    )
    with hr.Loader(PICTURES, [T.Resize((8, 8))], batch_size=2) as loader:
        before = loader.state_dict()
        report = hr.doctor(loader, nothing, seconds=0.3)
        assert loader.state_dict() == before
    assert report.interrupted
    assert_told(report)
    assert "Interrupted" in str(report)
    assert ("real" in report.rates) == (
        list(EXPERIMENTS).index(name) > list(EXPERIMENTS).index("real")
    )


# The machine.


def test_no_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import tempfile

    def refuse(*args: Any, **options: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    with hr.Loader(PICTURES, [T.Resize((8, 8))], batch_size=2) as loader:
        report = hr.doctor(loader, nothing, seconds=1)
    assert report.rates["real"] > 0
    assert_told(report)
    assert not {"pack", "index"} & {remedy["name"] for remedy in report.remedies}


@pytest.mark.skipif(sys.platform != "linux", reason="files are taken away under the loader")
def test_files_that_vanish_during_the_examination(tmp_path: Path) -> None:
    for path in PICTURES.glob("*.jpg"):
        (tmp_path / path.name).write_bytes(path.read_bytes())

    def tell(name: str, number: int) -> None:
        if name == "cached":
            for path in tmp_path.glob("*.jpg"):
                path.unlink()

    with hr.Loader(tmp_path, [T.Resize((8, 8))], batch_size=2) as loader:
        report = hr.doctor(loader, nothing, seconds=0.5, progress=tell)
    assert report.rates["real"] > 0
    assert_told(report)

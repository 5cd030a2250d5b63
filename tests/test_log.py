# SPDX-License-Identifier: Apache-2.0
"""Events of a loader are records of the logger "headrace": at fixed levels, with fixed attributes,
and without any output unless the program asks for it."""

from __future__ import annotations

import io
import logging
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Numbers
from headrace.errors import warn
from processes import run_code

import headrace as hr
from headrace import _core
from headrace import transforms as T

RECORDS = 23


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    """Everything that the logger receives, as it happens."""
    seen: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = seen.append  # type: ignore[method-assign]
    logger = logging.getLogger("headrace")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield seen
    logger.removeHandler(handler)
    logger.setLevel(before)


def of(event: str, records: list[logging.LogRecord]) -> list[Any]:
    return [record for record in records if record.__dict__["event"] == event]


@pytest.fixture
def damaged(pictures: Path, tmp_path: Path) -> Path:
    """The images, two of them truncated."""
    folder = tmp_path / "damaged"
    shutil.copytree(pictures, folder)
    for name in ("cat/03.png", "dog/13.png"):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[: len(whole) // 2])
    return folder


def loader_of(folder: Path, **more: Any) -> hr.Loader:
    return hr.Loader(folder, [T.Resize((16, 16))], batch_size=4, **more)


@pytest.mark.parametrize("view", ["host", "copied ahead"])
def test_each_bad_record_is_a_warning_with_code_file_and_record(
    view: str, damaged: Path, records: list[logging.LogRecord]
) -> None:
    with loader_of(damaged, on_error="skip", error_budget=100) as loader:
        batches: Any = loader
        if view != "host":
            batches = loader.dlpack(device=_core.simulated_device(1))
        assert sum(batch[0].shape[0] for batch in batches) == RECORDS - 2
        bad = of("bad_record", records)
        for _ in batches:  # the same two again, in the next epoch
            pass
        assert [record.epoch for record in of("bad_record", records)] == [0, 0, 1, 1]
        expected = [(e["code"], e["file"], e["record"], e["action"]) for e in loader.quarantine]
    assert [(r.code, r.file, r.record, r.action) for r in bad] == expected[:2]
    assert {Path(r.file).name for r in bad} == {"03.png", "13.png"}
    assert all(r.levelno == logging.WARNING and r.file in r.getMessage() for r in bad)


def test_bad_records_before_the_error_that_ends_the_run_are_in_the_log(
    damaged: Path, records: list[logging.LogRecord]
) -> None:
    loader = loader_of(damaged, on_error="skip", error_budget=1)
    with pytest.raises(hr.DataError, match="HR0731"):
        list(loader)
    assert len(of("bad_record", records)) == 2


def test_the_end_of_an_epoch_is_a_record_with_its_counters(
    damaged: Path, records: list[logging.LogRecord]
) -> None:
    with loader_of(damaged, on_error="skip", error_budget=100) as loader:
        for _ in range(2):
            list(loader)
        next(iter(loader))  # an epoch that is left is not at its end
    first, second = of("epoch", records)
    assert (first.levelno, first.epoch, second.epoch) == (logging.INFO, 0, 1)
    assert first.counters["batches"] == second.counters["batches"] == 6
    assert second.counters["bad_records"] == 2
    assert second.getMessage().startswith("epoch 1: 6 batches, 21 records in ")
    assert second.getMessage().endswith("; 2 bad records")


def test_resuming_and_the_shard_are_logged(
    pictures: Path, records: list[logging.LogRecord]
) -> None:
    loader = loader_of(pictures, shuffle=True, seed=7, shard=(1, 2))
    taken = iter(loader)
    next(taken)
    state = loader.state_dict()
    resumed = loader_of(pictures, shuffle=True, shard=(1, 2))
    resumed.load_state_dict(state)
    list(resumed)
    (resume,) = of("resume", records)
    assert (resume.levelno, resume.epoch, resume.batch, resume.seed) == (logging.INFO, 0, 1, 7)
    first, _ = of("shard", records)
    assert (first.rank, first.world_size) == (1, 2)
    assert first.getMessage() == "rank 1 of 2 (given)"


def test_a_warning_is_also_logged_at_the_callers_line(
    records: list[logging.LogRecord],
) -> None:
    with pytest.warns(hr.Warning, match="too slow"):
        warn("too slow")
    (record,) = of("warning", records)
    assert (record.levelno, record.getMessage()) == (logging.WARNING, "too slow")
    assert record.filename == Path(__file__).name
    with warnings.catch_warnings(), pytest.raises(hr.Warning):
        warnings.simplefilter("error")
        warn("an error for this program")
    assert len(of("warning", records)) == 2


class Failing:
    """A file system in the form of fsspec's, whose first reads fail."""

    protocol, left, words = "failing", 2, b'{"n": 1}\n{"n": 2}\n'

    def _strip_protocol(self, path: str) -> str:
        return path

    def invalidate_cache(self, path: str) -> None:
        pass

    def info(self, path: str) -> dict[str, Any]:
        if not path.endswith(".jsonl"):
            raise FileNotFoundError(path)
        return {"type": "file", "size": len(self.words), "mtime": 1.0}

    def cat_file(self, path: str, start: int | None, end: int | None) -> bytes:
        if self.left:
            self.left -= 1
            raise ConnectionResetError("reset by the test")
        return self.words[start:end]


def test_a_failed_read_of_a_filesystem_object_is_a_record(
    records: list[logging.LogRecord],
) -> None:
    source = hr.open("/logged/words.jsonl", filesystem=Failing())
    assert [record["n"] for record in source] == [1, 2]
    retries = of("retry", records)
    assert len(retries) == 2 and "reset by the test" in retries[0].getMessage()


def test_a_format_string_may_use_the_attributes_of_every_record(damaged: Path) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(event)s %(code)s|%(file)s|%(record)s"))
    logger = logging.getLogger("headrace")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        list(loader_of(damaged, on_error="skip", error_budget=100))
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3 and lines[2] == "INFO epoch ||None"
    assert lines[0].startswith("WARNING bad_record HR")


def test_nothing_is_printed_by_default(damaged: Path) -> None:
    code = """
import sys, logging, headrace as hr
steps = [hr.transforms.Resize((16, 16))]
loader = hr.Loader(sys.argv[1], steps, batch_size=4, on_error="skip", error_budget=100)
print(sum(len(batch[0]) for batch in loader))
"""
    done = run_code(code, damaged)
    assert (done.stdout, done.stderr) == (f"{RECORDS - 2}\n", "")


def test_a_program_without_logging_does_not_import_it(damaged: Path) -> None:
    code = """
import sys, headrace as hr
steps = [hr.transforms.Resize((16, 16))]
loader = hr.Loader(sys.argv[1], steps, batch_size=4, on_error="skip", error_budget=100)
loader.load_state_dict(loader.state_dict())
list(loader)
print("logging" in sys.modules)
"""
    assert run_code(code, damaged).stdout == "False\n"


def test_a_loop_inside_an_exception_handler_ends_its_epoch(
    records: list[logging.LogRecord],
) -> None:
    try:
        raise ValueError
    except ValueError:
        list(hr.Loader(Numbers(8), batch_size=4))
    assert len(of("epoch", records)) == 1


def test_names_that_are_not_utf8_can_be_written(
    damaged: Path, records: list[logging.LogRecord]
) -> None:
    (damaged / "cat" / "03.png").rename(damaged / "cat" / "\udcff\x1b[2J.png")
    with loader_of(damaged, on_error="skip", error_budget=100) as loader:
        assert sum(len(batch.label) for batch in loader) == RECORDS - 2
    (bad,) = (record for record in of("bad_record", records) if "[2J" in record.file)
    for text in (bad.getMessage(), bad.file, bad.key):
        assert r"\xff\x1b[2J.png" in text
        text.encode()

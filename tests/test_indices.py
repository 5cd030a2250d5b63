# SPDX-License-Identifier: Apache-2.0
"""Promise: no index passed to the engine reads out of bounds."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.drawing.png import png_from_pixels

import headrace as hr
from headrace import _core

FAR = (-1, 2**40, -(2**62), 2**62)
Calls = dict[str, tuple[Callable[[int], Any], int]]  # "Class.method(index)": call, its length


def folder(path: Path) -> Path:
    for i in range(4):
        place = path / "pictures" / "ab"[i % 2]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{i}.png").write_bytes(png_from_pixels(np.full((3, 4, 4), i, np.uint8)))
    return path / "pictures"


def list_file(path: Path) -> Path:
    lines = (f"{file.relative_to(path)},x\n" for file in sorted(folder(path).rglob("*.png")))
    (path / "list.csv").write_text("".join(lines))
    return path / "list.csv"


def converted(to: str, suffix: str) -> Callable[[Path], Path]:
    def write(path: Path) -> Path:
        hr.convert(folder(path), path / f"out{suffix}", to=to)
        return path / f"out{suffix}"

    return write


def packed(path: Path) -> Path:
    hr.pack(folder(path), path / "out.hrpack")
    return path / "out.hrpack"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "folder": folder,
    "list": list_file,
    "pack": packed,
    "tar": converted("tar", ".tar"),
    "tfrecord": converted("tfrecord", ".tfrecord"),
    "recordio": converted("recordio", ".rec"),
    "records": lambda path: hr.records(label=[0, 1, 2, 3]),
    "python": lambda path: [{"label": i} for i in range(4)],
    "subset": lambda path: hr.subset(hr.open(folder(path)), [3, 2, 1, 0]),
    "concat": lambda path: hr.concat(folder(path), folder(path)),
    "mix": lambda path: hr.mix(folder(path), folder(path)),
    "join": lambda path: hr.join(
        folder(path), folder(path), rename={"image": "other", "label": "right"}
    ),
}


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> hr.Source:
    return hr.open(SOURCES[request.param](tmp_path))


def refused(call: Callable[[int], Any], index: int) -> None:
    with pytest.raises(IndexError) as caught:
        call(index)
    assert "basic_string" not in str(caught.value) and "vector" not in str(caught.value)


@pytest.mark.parametrize("method", ["key", "file", "read"])
def test_record_numbers_of_engine_sources_are_checked(source: hr.Source, method: str) -> None:
    call = getattr(source.engine, method)
    call(len(source) - 1)
    for index in (*FAR, len(source)):
        refused(call, index)


def test_negative_indices_count_from_the_end_as_in_a_list(source: hr.Source) -> None:
    assert source.key(-1) == source.key(len(source) - 1)
    assert source.key(-len(source)) == source.key(0)
    for index in (-len(source) - 1, len(source), *FAR[1:]):
        refused(source.key, index)
        refused(source.__getitem__, index)
    with pytest.raises(TypeError):
        source.key("0")  # type: ignore[arg-type]


def made(name: str, values: list[Any], records: int = 5, parts: int = 1, **given: Any) -> Any:
    """An order by record number, as hr.sampling requests it."""
    return _core.make_sampler(name, given, values, parts, records, True)


SAMPLERS = {
    "sequential": lambda: _core.sequential(5),
    "shuffled": lambda: _core.shuffled(5),
    "shuffled_blocks": lambda: _core.shuffled_blocks([2, 5], 1),
    "shuffled_streams": lambda: _core.shuffled_streams([2, 5], 2, 1, True, 2),
    "indices": lambda: made("indices", [1, 2, 3]),
    "weighted": lambda: made("weighted", [1.0, 2.0], 2, num_samples=5),
    "buckets": lambda: made("buckets", [1, 2, 3, 4], 4, batch_size=2, pool=4),
    "budget": lambda: made("budget", [1, 2, 3, 4], 4, total=4.0, num_buckets=2),
    "balanced": lambda: made("balanced", [0, 0, 1], 3, num_samples=5),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_sampler_positions_are_checked(name: str) -> None:
    sampler = SAMPLERS[name]()
    sampler.index(0, 0, len(sampler) - 1)
    for position in (*FAR, len(sampler)):
        refused(lambda at: sampler.index(0, 0, at), position)
        refused(lambda at: sampler.indices(0, 0, at, 1), position)
        refused(lambda count: sampler.indices(0, 0, 0, count), position + (position > 0))


@pytest.mark.parametrize(
    "make",
    [
        _core.sequential,
        _core.shuffled,
        lambda n: made("weighted", [1.0], num_samples=n),
        lambda n: made("balanced", [0, 1], n),
        lambda n: made("indices", [n]),
        lambda n: _core.shuffled_blocks([n], 1),
        lambda n: _core.shuffled_blocks([5, n], 1),
        lambda n: _core.shuffled_streams([5, n], 2, 1, True, 2),
        lambda n: _core.shuffled_streams([5], 2, n, True, 2),
        lambda n: made("budget", [1, 2], 2, n, total=4.0),
    ],
)
@pytest.mark.parametrize("number", [-1, -(2**62)])
def test_negative_record_counts_are_refused(make: Callable[[int], Any], number: int) -> None:
    with pytest.raises((ValueError, IndexError, hr.ConfigError)):
        make(number)


def loader(source: Any, **given: Any) -> hr.Loader:
    return hr.Loader(source, batch_size=2, fields=("label",), **given)


def test_batch_numbers_of_loaders_are_checked(tmp_path: Path) -> None:
    run = loader(folder(tmp_path))
    engine = run._assembly.engine()
    for index in (*FAR, len(run)):
        for call in (lambda at: run.batch(0, at), lambda at: engine.batch(0, at)):
            with pytest.raises((IndexError, hr.ConfigError)):
                call(index)
        with pytest.raises((IndexError, hr.ConfigError)):
            engine.indices(0, index)
        with pytest.raises((IndexError, hr.ConfigError)):
            engine.weight(index)
    for epoch in (-1, -(2**62)):
        with pytest.raises((IndexError, hr.ConfigError)):
            engine.batch(epoch, 0)
        with pytest.raises((IndexError, hr.ConfigError)):
            engine.indices(epoch, 0)
        with pytest.raises((IndexError, hr.ConfigError)):
            engine.set_epoch(epoch)


def test_an_order_with_indices_outside_the_source_is_refused(tmp_path: Path) -> None:
    for index in (*FAR, 4):
        with pytest.raises((hr.ConfigError, IndexError, ValueError)):
            next(iter(loader(folder(tmp_path), sampler=made("indices", [0, index]))))
        with pytest.raises(hr.ConfigError):
            _core.subset(hr.open(folder(tmp_path)).engine, np.array([index], np.int64))


def test_fields_and_numbers_of_stored_batches_are_checked(tmp_path: Path) -> None:
    engine = hr.open(folder(tmp_path)).engine
    reader = _core.StoredReader(engine)
    for index in (*FAR, 4):
        with pytest.raises(IndexError):
            reader.read(np.array([index]))
    batch = reader.read(np.arange(2))
    first = [bytes(np.asarray(view)) for view in batch.views(0)]
    others = reader.read(np.arange(2, 4))  # in separate memory while the first is held
    assert [bytes(np.asarray(view)) for view in batch.views(0)] == first
    assert len(others) == len(batch) == 2 and batch.values(0)
    for field in (*FAR, len(engine.schema)):
        for call in (batch.values, batch.views):
            with pytest.raises((IndexError, TypeError)):
                call(field)


def test_edges_of_deferred_images_are_checked() -> None:
    picture = _core.DeferredPicture(png_from_pixels(np.zeros((3, 6, 8), np.uint8)), "RGB")
    for number in (*FAR, -(2**31), 2**31 - 1):
        for at in range(4):
            four = tuple(number if i == at else 1 for i in range(4))
            two = tuple(number if i == at % 2 else 1 for i in range(2))
            for method, arguments in (
                (picture.crop, four),
                (picture.pad, (*four, [0, 0, 0])),
                (picture.resize, (*two, "bilinear")),
            ):
                with pytest.raises((ValueError, TypeError)):
                    method(*arguments)


def test_files_and_ranges_of_stored_files_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    files = _core.StoredFiles([str(path)])
    assert files.size(0) == 3
    for number in (*FAR, 1):
        with pytest.raises((IndexError, TypeError)):
            files.size(number)
        with pytest.raises((IndexError, TypeError)):
            files.read([(number, 0, 1)])
    for offset, count in ((0, 4), (4, 1), (2**62, 1), (1, 2**62)):
        with pytest.raises(hr.Error, match="HR0205"):
            files.read([(0, offset, count)])


# The methods that the tests above call, and numbers that are not indexes.
SWEPT = {
    "Source": {"key(index)", "file(index)", "read(index)", "image_sizes(threads)"},
    "Sampler": {"index(seed)", "index(epoch)", "index(position)"}
    | {f"indices({name})" for name in ("seed", "epoch", "begin", "count")},
    "Loader": {"batch(epoch)", "batch(index)", "indices(epoch)", "indices(index)"}
    | {"set_epoch(epoch)", "weight(batch)"},
    "StoredFiles": {"size(file)"},
    "StoredBatch": {"values(field)", "views(field)"},
    "DeferredPicture": {f"crop({name})" for name in ("x", "y", "width", "height")}
    | {f"pad({name})" for name in ("left", "top", "right", "bottom")}
    | {f"resize({name})" for name in ("width", "height")},
    "Prefetcher": {"__init__(depth)", "__init__(staging_limit)"},
    "MemoryVolume": {"__init__(short_every)", "__init__(error_every)"},
    "RemoteOptions": {"connections(arg)", "retries(arg)"},  # by hr.remote.configure: test_remote.py
}


def test_every_method_that_takes_a_number_is_tested_here() -> None:
    spec = importlib.util.find_spec("headrace._core")
    assert spec is not None and spec.origin is not None
    stub = Path(spec.origin).with_name("_core.pyi").read_text()
    found: dict[str, set[str]] = {}
    for cls, body in re.findall(r"^class (\w+).*?:\n((?: .*\n|\n)+)", stub, re.M):
        for name, arguments in re.findall(r"^    def (\w+)\(self,? ?(.*?)\) ->", body, re.M):
            for argument in re.findall(r"(\w+): int\b", arguments):
                found.setdefault(cls, set()).add(f"{name}({argument})")
    assert found == SWEPT

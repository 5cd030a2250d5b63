# SPDX-License-Identifier: Apache-2.0
"""Promise: a dataset gives the same records, in the same order, from every container; all promises
for folders (resume, shards, bad records, columns, commands) hold for each of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mds_writer
import numpy as np
import pytest
from headrace.cli.app import application
from PIL import Image
from typer.testing import CliRunner

import headrace as hr
from headrace import _core
from headrace import transforms as T

CLASSES, RECORDS, BATCH = ("ant", "bee", "cow"), 30, 4
STEPS = [T.RandomResizedCrop(24), T.RandomHorizontalFlip()]


def write_folder(root: Path) -> None:
    rng = np.random.default_rng(3)
    for number in range(RECORDS):
        folder = root / CLASSES[number // 10]
        folder.mkdir(parents=True, exist_ok=True)
        height, width = rng.integers(30, 80, 2)
        pixels = rng.integers(0, 256, (height, width, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02}.jpg", quality=90)


def write_mds(source: hr.Source, out: Path) -> None:
    records = [source.engine.read(i) for i in range(len(source))]
    samples = [(record["image"], np.int64(record["label"]).tobytes()) for record in records]
    mds_writer.write(out, {"image": ("jpeg", None), "label": ("int", 8)}, samples, per_shard=17)


def write_manifest(folder: Path, source: hr.Source, out: Path) -> None:
    with out.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["path", "label", "number"])
        for i in range(len(source)):
            rows.writerow([source.key(i), int(source.column("label")[i]), i])


def write_json_lines(folder: Path, source: hr.Source, out: Path) -> None:
    lines = [
        json.dumps({"path": source.key(i), "label": int(source.column("label")[i])})
        for i in range(len(source))
    ]
    out.write_text("\n".join(lines))


def write_parquet(source: hr.Source, out: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    records = [source.engine.read(i) for i in range(len(source))]
    table = arrow.table(
        {
            "image": [{"bytes": record["image"], "path": None} for record in records],
            "label": [record["label"] for record in records],
        }
    )
    parquet.write_table(table, out, row_group_size=7)


CONTAINERS: dict[str, tuple[str, Callable[[Path, hr.Source, Path], Any]]] = {
    "webdataset": ("x.tar", lambda _, s, out: hr.convert(s, out, "tar")),
    "webdataset shards": ("tars", lambda _, s, out: hr.convert(s, out, "tar", shards=4)),
    "tfrecord": ("x.tfrecord", lambda _, s, out: hr.convert(s, out, "tfrecord")),
    "tfrecord shards": ("tfr", lambda _, s, out: hr.convert(s, out, "tfrecord", shards=3)),
    "recordio": ("x.rec", lambda _, s, out: hr.convert(s, out, "recordio")),
    "pack": ("x.hrpack", lambda _, s, out: hr.convert(s, out, "pack")),
    "lmdb": ("x.lmdb", lambda _, s, out: hr.convert(s, out, "lmdb")),
    "hdf5": ("x.h5", lambda _, s, out: hr.convert(s, out, "hdf5")),
    "mds": ("mds", lambda _, s, out: write_mds(s, out)),
    "manifest": ("x.csv", write_manifest),
    "json lines": ("x.jsonl", write_json_lines),
    "parquet": ("x.parquet", lambda _, s, out: write_parquet(s, out)),
}
NEEDS = {"lmdb": "lmdb", "hdf5": "h5py", "parquet": "pyarrow"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("dataset") / "folder"
    write_folder(root)
    return root


@pytest.fixture(scope="module", params=CONTAINERS)
def container(request: pytest.FixtureRequest, folder: Path) -> Path:
    if request.param in NEEDS:
        pytest.importorskip(NEEDS[request.param])
    name, write = CONTAINERS[request.param]
    out = folder.parent / name
    write(folder, hr.open(folder), out)
    return out


def loader(source: Any, **given: Any) -> hr.Loader:
    options = {"batch_size": BATCH, "shuffle": True, "seed": 5, "fields": ("image", "label")}
    return hr.Loader(source, STEPS, **{**options, **given})


def values_of(run: hr.Loader) -> list[tuple[bytes, list[int]]]:
    return [(batch.image.tobytes(), batch.label.tolist()) for batch in run]


def test_records_equal_those_of_the_folder(container: Path, folder: Path) -> None:
    expected, source = hr.open(folder), hr.open(container)
    assert len(source) == RECORDS
    for i in range(RECORDS):
        assert np.array_equal(source[i]["image"], expected[i]["image"])
        assert source[i]["label"] == expected[i]["label"]
    assert "image, label" in repr(source)
    assert source.fingerprint == hr.open(container).fingerprint


def test_epochs_equal_those_of_the_folder(container: Path, folder: Path) -> None:
    expected, run = loader(folder), loader(container, threads=3)
    for _epoch in range(2):
        assert values_of(run) == values_of(expected)


def far(path: Path, **behavior: Any) -> tuple[Any, str]:
    """Its files in an asynchronous storage, and their path there."""
    volume = _core.MemoryVolume("far", latency_ms=1, **behavior)
    if path.is_dir():
        volume.copy_from(str(path))
        return volume, volume.root
    return volume, volume.write(path.name, path.read_bytes())


@pytest.mark.parametrize("faults", [{}, {"short_every": 3, "error_every": 31}])
def test_epochs_from_remote_storage_are_the_same(
    container: Path, folder: Path, faults: dict[str, int]
) -> None:
    volume, path = far(container, **faults)
    expected, run = loader(folder), loader(path, threads=3)
    for _epoch in range(3):
        assert values_of(run) == values_of(expected)
    run.set_epoch(7)  # the part read of the fourth is dropped
    expected.set_epoch(7)
    assert values_of(run) == values_of(expected)
    run.close()
    del volume


def test_a_folder_in_remote_storage_is_the_same(folder: Path) -> None:
    volume, path = far(folder)
    expected, run = loader(folder), loader(path)
    for _epoch in range(2):
        assert values_of(run) == values_of(expected)
    assert volume.most_under_way >= 8
    state = run.state_dict()
    assert {k: v for k, v in state.items() if k != "fingerprint"} == {
        k: v for k, v in expected.state_dict().items() if k != "fingerprint"
    }


def test_it_resumes_after_every_batch(container: Path) -> None:
    whole = values_of(loader(container))
    first = loader(container)
    for number, _ in enumerate(first, 1):
        rest = loader(container)
        rest.load_state_dict(first.state_dict())
        assert values_of(rest) == whole[number:]


def test_shards_together_read_each_record_once(container: Path, folder: Path) -> None:
    source = hr.open(container)
    runs = [loader(source, shard=(rank, 2), batch_size=3, fields=("id",)) for rank in range(2)]
    met = [int(number) for run in runs for batch in run for number in batch.id]
    assert sorted(met) == list(range(RECORDS))


def test_a_column_reads_no_image(container: Path) -> None:
    source = hr.open(container)
    assert source.column("label").tolist() == [i // 10 for i in range(RECORDS)]


def test_every_way_to_read_gives_the_same_records(container: Path) -> None:
    whole = values_of(loader(container))
    assert values_of(loader(container, cache="1 MiB")) == whole
    assert values_of(loader(hr.subset(container, range(RECORDS)))) == whole
    by_blocks = [
        int(number)
        for batch in loader(container, shuffle="blocks", shuffle_window=1, fields=("id",))
        for number in batch.id
    ]
    assert sorted(by_blocks) == list(range(RECORDS))


def test_commands_accept_every_container(container: Path) -> None:
    facts = CliRunner().invoke(application(), ["info", str(container), "--json"])
    assert facts.exit_code == 0, facts.output
    assert json.loads(facts.stdout)["records"] == RECORDS
    scan = CliRunner().invoke(application(), ["scan", str(container), "--json"])
    assert scan.exit_code == 0, scan.output
    assert json.loads(scan.stdout)["bad"] == 0


def damaged(container: Path, tmp_path: Path, source: hr.Source) -> Path:
    """A copy in which the beginning of one image is overwritten."""
    import shutil

    picture = hr.open(source).engine.read(12)["image"]
    out = tmp_path / container.name
    (shutil.copytree if container.is_dir() else shutil.copyfile)(container, out)
    for path in sorted(out.rglob("*")) if out.is_dir() else [out]:
        data = path.read_bytes() if path.is_file() else b""
        at = data.find(picture[:200])
        if at >= 0:
            path.write_bytes(data[:at] + bytes(100) + data[at + 100 :])
            return out
    pytest.skip("the image's bytes do not stand in the container as they are")


def test_a_bad_record_does_not_end_a_run(container: Path, folder: Path, tmp_path: Path) -> None:
    if container.suffix in (".csv", ".jsonl", ".hrpack"):
        pytest.skip("images are files of their own, or in a different form")
    bad = damaged(container, tmp_path, hr.open(folder))
    run = loader(bad, on_error="skip", shuffle=False)
    labels = [label for batch in run for label in batch.label.tolist()]
    assert labels == [i // 10 for i in range(RECORDS) if i != 12]
    (entry,) = run.quarantine
    assert entry["record"] == 12
    assert str(bad.name) in entry["what"] + str(entry.get("file", "")) + entry["key"]
    with pytest.raises(hr.DataError):
        values_of(loader(bad))
    lines = tmp_path / "bad.jsonl"
    scan = CliRunner().invoke(application(), ["scan", str(bad), "-o", str(lines)])
    assert scan.exit_code == 1
    assert [json.loads(line)["record"] for line in lines.read_text().splitlines()] == [12]

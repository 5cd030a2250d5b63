# SPDX-License-Identifier: Apache-2.0
"""Promise: ``convert`` keeps every record, in order, images byte for byte, also after being
killed."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import audio_files
import numpy as np
import pytest
import videos

import headrace as hr
from headrace import write

OPTIONAL = {"lmdb": "lmdb", "hdf5": "h5py"}
OF_IMAGES = [to for to in write.names() if to != "lerobot"]  # which has episodes of frames


def stored(source: Any) -> list[dict[str, Any]]:
    """Stored records, without decoding."""
    return [source.engine.read(i) for i in range(len(source))]


def converted(source: Any, dest: Path, to: str, **given: Any) -> hr.Source:
    hr.convert(source, dest, to, **given)
    record = write.container(to)
    return hr.open(dest, format=record.format, **record.arguments(source))


@pytest.mark.parametrize("to", OF_IMAGES)
def test_images_and_labels_equal_the_source(pictures: Path, tmp_path: Path, to: str) -> None:
    if to in OPTIONAL:
        pytest.importorskip(OPTIONAL[to])
    source = hr.open(pictures)
    result = converted(source, tmp_path / "out", to, verify=True)
    expected, got = stored(source), stored(result)
    assert [record["label"] for record in got] == [record["label"] for record in expected]
    if to != "pack":  # which stores them in a different form
        assert [record["image"] for record in got] == [record["image"] for record in expected]
    for i in range(len(source)):
        assert np.array_equal(source[i]["image"], result[i]["image"])


@pytest.mark.parametrize("to", ["tar", "tfrecord", "hdf5"])
def test_other_fields_are_unchanged(tmp_path: Path, to: str) -> None:
    if to in OPTIONAL:
        pytest.importorskip(OPTIONAL[to])
    rng = np.random.default_rng(3)
    source = hr.records(
        boxes=rng.normal(size=(7, 2, 4)).astype(np.float32),
        caption=[f"a caption, number {i}: \u00e9" for i in range(7)],
        number=rng.integers(-(1 << 40), 1 << 40, 7),
    )
    result = converted(source, tmp_path / "out", to, verify=True)
    for expected, got in zip(stored(source), stored(result), strict=True):
        assert got["caption"] == expected["caption"]
        assert int(np.asarray(got["number"])) == expected["number"]
        assert np.array_equal(
            np.asarray(got["boxes"]).ravel(), np.asarray(expected["boxes"]).ravel()
        )


@pytest.mark.parametrize("to", ["tar", "tfrecord", "hdf5"])
def test_audio_and_video_files_are_unchanged(tmp_path: Path, to: str) -> None:
    if to in OPTIONAL:
        pytest.importorskip(OPTIONAL[to])
    files = {"audio": [audio_files.wav_of(audio_files.waves(100 + n)) for n in range(3)]}
    if not videos.missing_decoder():
        files["video"] = [videos.h264(n + 2) for n in range(3)]
    for name, contents in files.items():
        source = hr.open([{name: content} for content in contents], kinds={name: name})
        result = converted(source, tmp_path / name, to, verify=True)
        assert [record[name] for record in stored(result)] == contents


@pytest.mark.parametrize("to", ["tar", "tfrecord", "recordio", "pack"])
def test_shards_are_one_source(pictures: Path, tmp_path: Path, to: str) -> None:
    source = hr.open(pictures)
    out = tmp_path / "out"
    report = hr.convert(source, out, to, shards=3, verify=True)
    assert report["records"] == len(source)
    if to == "pack":
        return
    assert len(report["files"]) == 3
    for line in (out / "SHA256SUMS").read_text().splitlines():
        sum_, name = line.split("  ")
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == sum_
    assert sum(entry["records"] for entry in report["files"]) == len(source)
    assert len(hr.open(out)) == len(source)


def test_a_tar_equals_what_tarfile_reads(pictures: Path, tmp_path: Path) -> None:
    source = hr.open(pictures)
    hr.convert(source, tmp_path / "out.tar", "tar")
    with tarfile.open(tmp_path / "out.tar") as file:
        members = file.getmembers()
        assert len(members) == 2 * len(source)
        first = file.extractfile(members[0])
        assert first and first.read() == source.engine.read(0)["image"]
        label = file.extractfile(members[1])
        assert label and label.read() == str(source.engine.read(0)["label"]).encode()
    assert (tmp_path / "out.tar").stat().st_size % tarfile.RECORDSIZE == 0


def test_a_record_that_contains_the_recordio_magic_is_split_correctly(tmp_path: Path) -> None:
    from headrace.write.containers.recordio import _MAGIC, _parts

    for data in (b"", b"abc", _MAGIC, b"abcd" + _MAGIC + b"x", _MAGIC * 3, b"ab" + _MAGIC):
        parts = _parts(data)
        assert _MAGIC.join(parts) == data
        for part in parts:
            assert all(part[i : i + 4] != _MAGIC for i in range(0, len(part), 4))


KILLED = """
import sys
import headrace as hr
from headrace.write import conversion
conversion._JOURNAL_BYTES = 1
def slow(done, total):
    print(done, flush=True)
add = conversion.Told.add
def slow_add(self, records):
    import time; time.sleep(0.02); add(self, records)
conversion.Told.add = slow_add
hr.convert(sys.argv[1], sys.argv[2], sys.argv[3], shards=int(sys.argv[4]), progress=slow)
"""


@pytest.mark.parametrize(("to", "shards"), [("tar", 1), ("tfrecord", 2), ("recordio", 1)])
def test_after_a_kill_it_resumes_with_the_same_result(
    pictures: Path, tmp_path: Path, to: str, shards: int
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    hr.convert(pictures, whole, to, shards=shards)
    command = [sys.executable, "-c", KILLED, str(pictures), str(out), to, str(shards)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            if int(line) >= 6:
                break
        process.kill()
    assert not out.exists()
    report = hr.convert(pictures, out, to, shards=shards)
    assert report["resumed_records"] > 0
    assert not out.with_name("out.partial").exists()
    for path in sorted(whole.iterdir()) if whole.is_dir() else [whole]:
        other = out / path.name if whole.is_dir() else out
        assert other.read_bytes() == path.read_bytes()


def test_existing_output_is_not_overwritten(pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tar"
    out.write_text("mine")
    with pytest.raises(hr.ConfigError, match="HR0415"):
        hr.convert(pictures, out, "tar")
    assert out.read_text() == "mine"
    hr.convert(pictures, out, "tar", overwrite=True)
    assert tarfile.is_tarfile(out)


def test_records_that_a_container_cannot_hold_are_refused_before_writing(tmp_path: Path) -> None:
    source = hr.records(caption=["a", "b"])
    for to in ("folder", "recordio"):
        with pytest.raises(hr.ConfigError, match="HR0414"):
            hr.convert(source, tmp_path / "out", to)
    with pytest.raises(hr.ConfigError, match="did you mean 'tfrecord'"):
        hr.convert(source, tmp_path / "out", "tfrecords")
    assert not list(tmp_path.iterdir())


def test_verification_finds_a_byte_that_changed(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.write.containers import tar

    member = tar._member
    monkeypatch.setattr(tar, "_member", lambda f, v: member(f, v + 1 if v == 1 else v))
    with pytest.raises(hr.DataError, match=r"HR0416[^\n]*'label'"):
        hr.convert(pictures, tmp_path / "out.tar", "tar", verify=True)


def test_the_command_prints_its_report(pictures: Path, tmp_path: Path) -> None:
    from headrace.cli.app import application
    from typer.testing import CliRunner

    out = tmp_path / "x.tfrecord"
    call = ["convert", str(pictures), "-o", str(out), "--to", "tfrecord", "--verify", "--json"]
    result = CliRunner().invoke(application(), call)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["records"] == len(hr.open(pictures))
    assert report["verified"] and report["bytes"] == out.stat().st_size
    assert CliRunner().invoke(application(), call).exit_code == 2  # now it exists


@pytest.mark.parametrize(("to", "package"), [("hdf5", "h5py"), ("lmdb", "lmdb")])
def test_a_missing_package_is_named_with_how_to_install_it(
    to: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    source = hr.records(image=np.zeros((2, 3, 4, 4), np.uint8), label=[0, 1])
    with pytest.raises(hr.UnsupportedError, match="HR0297") as caught:
        hr.convert(source, tmp_path / "x", to)
    assert caught.value.hint == f"pip install {package}"

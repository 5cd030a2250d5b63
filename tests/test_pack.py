# SPDX-License-Identifier: Apache-2.0
"""A pack preserves its input: the same batches and the same files, even after interruptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from processes import run_command, run_on_terminal
from test_cli import run_json
from test_invariance import PIPELINES, RECORDS, make, write_photos
from test_invariance import run as hashes_of

import headrace as hr
from headrace import _core

LEVELS = ("fast", "dense", "none")
CORPUS = os.environ.get("HEADRACE_TEST_DATA", "")


def files_below(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JPEG of many kinds and PNG in three classes; two files are bad."""
    root = tmp_path_factory.mktemp("photos") / "data"
    write_photos(root)
    return root


@pytest.fixture(scope="module")
def packs(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The photos at each level, and in shards."""
    place = tmp_path_factory.mktemp("packs")
    for level in LEVELS:
        hr.pack(photos, place / level, level=level)
    hr.pack(photos, place / "shards", shards=5)
    return {path.name: path for path in place.iterdir()}


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Images of many pages: noise, which is incompressible."""
    rng = np.random.default_rng(5)
    (tmp_path / "large").mkdir()
    for number in range(40):
        pixels = rng.integers(0, 256, (600, 800, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "large" / f"{number:02}.jpg", quality=95)
    return tmp_path / "large"


# The same batches.


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_pack_gives_the_batches_of_the_folder(
    pipeline: str, photos: Path, packs: dict[str, Path]
) -> None:
    expected = hashes_of(photos, pipeline, threads=1)
    for name, path in packs.items():
        for threads in (1, 3):
            assert hashes_of(path, pipeline, threads=threads) == expected, (name, threads)


def test_bench_gives_one_batch_hash_for_folder_and_packs(large: Path, tmp_path: Path) -> None:
    hr.pack(large, tmp_path / "fast.hrpack")
    hr.pack(large, tmp_path / "dense.hrpack", level="dense", shards=2)
    hashes = {
        run_json("bench", path, "--epochs", 1, "--batch-size", 16, "--size", 64)["batch_hash"]
        for path in (large, tmp_path / "fast.hrpack", tmp_path / "dense.hrpack")
    }
    assert len(hashes) == 1


def test_order_labels_classes_and_keys_equal_those_of_the_folder(
    photos: Path, packs: dict[str, Path]
) -> None:
    folder = hr.open(photos)
    for path in packs.values():
        packed = hr.open(path)
        assert packed.classes == folder.classes
        np.testing.assert_array_equal(packed.column("label"), folder.column("label"))
        keys = [photos / packed.key(i) for i in range(len(packed))]
        assert keys == [Path(folder.key(i)) for i in range(len(folder))]


def test_a_loaders_state_resumes_on_any_pack_of_the_same_dataset(
    photos: Path, packs: dict[str, Path]
) -> None:
    assert len({hr.open(path).fingerprint for path in packs.values()}) == 1
    whole = hashes_of(packs["fast"])
    loader = make(packs["fast"])
    next(iter(loader))
    state = json.loads(json.dumps(loader.state_dict()))
    resumed = make(packs["shards"])
    resumed.load_state_dict(state)
    from test_invariance import digest

    assert [digest(batch) for batch in resumed] == whole[1 : RECORDS // 12]
    with pytest.raises(hr.ConfigError):  # the folder's fingerprint differs
        make(photos).load_state_dict(state)


# Restoring the files.


@pytest.mark.parametrize("name", [*LEVELS, "shards"])
def test_unpack_restores_every_file_byte_for_byte(
    name: str, photos: Path, packs: dict[str, Path], tmp_path: Path
) -> None:
    result = hr.unpack(packs[name], tmp_path / "out")
    assert files_below(tmp_path / "out") == files_below(photos)
    assert (result["files"], result["damaged"], result["manifest"]) == (RECORDS, [], "")


def test_a_pack_can_be_packed_again_at_another_level(
    photos: Path, packs: dict[str, Path], tmp_path: Path
) -> None:
    for level, other in (("fast", "dense"), ("dense", "fast"), ("none", "fast")):
        again = hr.pack(packs[level], tmp_path / level, other)
        direct = _core.pack_summary(str(packs[other]))
        assert again["fingerprint"] == direct["fingerprint"]
        assert again["levels"] == direct["levels"]
        assert again["stored_unchanged"] == direct["stored_unchanged"]
        hr.unpack(tmp_path / level, tmp_path / f"files of {level}")
        assert files_below(tmp_path / f"files of {level}") == files_below(photos)


@pytest.mark.skipif(not CORPUS, reason="HEADRACE_TEST_DATA names no corpus")
@pytest.mark.parametrize("part", ["jpeg_variants", "corrupt/jpeg", "photos", "coco/images"])
@pytest.mark.parametrize("level", ["fast", "dense"])
def test_unpack_restores_the_corpus(part: str, level: str, tmp_path: Path) -> None:
    root = Path(CORPUS) / part
    if not root.is_dir():
        pytest.skip(f"no {part} in HEADRACE_TEST_DATA")
    paths = sorted(path for path in root.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    summary = hr.pack(hr.records(image=paths), tmp_path / "pack", level=level)
    assert summary["records"] == len(paths)
    by_reason = sum(entry["count"] for entry in summary["stored_unchanged"])
    assert by_reason == summary["levels"]["none"]["count"]
    hr.unpack(tmp_path / "pack", tmp_path / "out")
    common = Path(os.path.commonpath([path.parent for path in paths]))
    for path in paths:
        unpacked = tmp_path / "out" / path.relative_to(common)
        assert unpacked.read_bytes() == path.read_bytes(), path


def test_bad_files_are_packed_unchanged_and_listed(photos: Path, packs: dict[str, Path]) -> None:
    facts = run_json("info", packs["fast"])["pack"]
    assert facts["unusable_count"] == 2
    bad = {Path(entry["key"]).stem for entry in facts["unusable"]}
    assert bad == {"08", "21"}
    scanned = run_json("scan", packs["fast"])
    assert {Path(entry["key"]).stem for entry in scanned["bad_records"]} == bad
    assert scanned["bad_records"] == [
        {**entry, **{name: mine[name] for name in ("file", "member", "key")}}
        for entry, mine in zip(
            run_json("scan", photos)["bad_records"], scanned["bad_records"], strict=True
        )
    ]


def test_fields_of_every_kind_are_restored(photos: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    paths = sorted(photos.rglob("*.png"))[:5]
    fields = {
        "image": paths,
        "mask": rng.integers(0, 9, (5, 6, 7), dtype=np.uint8),
        "caption": ["", "ein Stuhl", "chaise à côté", "椅子", "x" * 5000],
        "label": np.array([3, -1, 2**40, 0, 7]),
        "point": rng.normal(size=(5, 2)).astype(np.float16),
        "wide": rng.normal(size=(5, 3, 50)),
        "flag": np.array([True, False, True, True, False]),
    }
    source = hr.records(**fields)
    hr.pack(source, tmp_path / "x", shards=2)
    packed = hr.open(tmp_path / "x")
    for i in range(5):
        for name, value in source[i].items():
            if name != "key":
                np.testing.assert_array_equal(packed[i][name], value, err_msg=name)
    hr.unpack(tmp_path / "x", tmp_path / "out")
    for name in ("mask", "point", "wide", "flag"):
        stored = np.load(tmp_path / "out" / f"{name}.npy")
        np.testing.assert_array_equal(stored.reshape(fields[name].shape), fields[name])
    lines = (tmp_path / "out" / "labels.jsonl").read_text().splitlines()
    manifest = [json.loads(line) for line in lines]
    assert [entry["caption"] for entry in manifest] == fields["caption"]
    assert [entry["label"] for entry in manifest] == fields["label"].tolist()
    for path, entry in zip(paths, manifest, strict=True):
        assert (tmp_path / "out" / entry["key"]).read_bytes() == path.read_bytes()


def test_python_objects_with_ragged_arrays_are_restored(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    objects = [
        {"boxes": rng.normal(size=(i % 4, 4)).astype(np.float32), "name": f"é{i}", "label": i}
        for i in range(9)
    ]
    source = hr.open(objects, shapes={"boxes": (-1, 4)})
    hr.pack(source, tmp_path / "x", threads=3)
    packed = hr.open(tmp_path / "x")
    for i, wanted in enumerate(objects):
        np.testing.assert_array_equal(packed[i]["boxes"], wanted["boxes"])
        assert (packed[i]["name"], packed[i]["label"]) == (wanted["name"], i)


# Interruptions.

CHILD = """
import os, signal, sys
import headrace as hr
source, out, shards, at, name = sys.argv[1:]
def progress(done, total):
    if done >= int(at):
        os.kill(os.getpid(), getattr(signal, name))
hr.pack(source, out, level="none", shards=int(shards), progress=progress)
"""


def interrupted(source: Path, out: Path, shards: int, at: int, name: str) -> int:
    command = [sys.executable, "-c", CHILD, *map(str, (source, out, shards, at, name))]
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
def test_a_killed_pack_resumes_to_the_same_bytes(
    name: str, shards: int, large: Path, tmp_path: Path
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    hr.pack(large, whole, level="none", shards=shards)
    for at in (20, 31):
        assert interrupted(large, out, shards, at, name) != 0
        assert not out.exists()
    result = hr.pack(large, out, level="none", shards=shards)
    assert 15 <= result["resumed_records"] < 40
    assert not Path(f"{out}.partial").exists()
    if shards == 1:
        assert out.read_bytes() == whole.read_bytes()
    else:
        assert files_below(out) == files_below(whole)


def test_an_unfinished_pack_opens_on_request(large: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert interrupted(large, out, 1, 35, "SIGKILL") == -signal.SIGKILL
    partial = tmp_path / "out.partial"
    with pytest.raises(hr.DataError, match="HR0442") as caught:
        hr.open(partial)
    assert "recover=True" in caught.value.hint
    recovered, folder = hr.open(partial, recover=True), hr.open(large)
    assert 15 <= len(recovered) < 40
    assert f"records {len(recovered)} to 39 are missing" in repr(recovered)
    for i in range(len(recovered)):
        assert recovered.engine.read(i) == folder.engine.read(i)
    assert run_command("info", partial).returncode == 3
    facts = run_json("info", partial, "--recover")
    assert facts["records"] == len(recovered)
    assert "are missing" in facts["pack"]["missing"]
    assert run_json("unpack", partial, "-o", tmp_path / "files", "--recover")["files"] == len(
        recovered
    )


def test_a_second_process_cannot_write_the_same_pack(large: Path, tmp_path: Path) -> None:
    out, seen = tmp_path / "out", []

    def progress(done: int, total: int) -> None:
        if not seen:
            seen.append(run_command("pack", large, "-o", out))

    hr.pack(large, out, level="none", progress=progress)
    assert seen[0].returncode == 4
    assert "HR0448" in seen[0].stderr
    assert len(hr.open(out)) == 40


# The command line.


def test_pack_and_info_report_levels_reasons_and_sizes(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.hrpack"
    result = run_json("pack", photos, "-o", out, "--shards", 2, "--threads", 2)
    assert (result["records"], result["shards"], result["resumed_records"]) == (RECORDS, 2, 0)
    size = sum(path.stat().st_size for path in photos.rglob("*.*"))
    assert result["images"]["count"] == RECORDS
    assert result["images"]["original_bytes"] == size
    assert result["bytes"] == sum(path.stat().st_size for path in out.iterdir())
    levels = result["levels"]
    assert sum(share["count"] for share in levels.values()) == RECORDS
    reasons = {entry["reason"]: entry["count"] for entry in result["stored_unchanged"]}
    pngs = [path for path in photos.rglob("*.png") if path.stat().st_size > 50]
    assert reasons["not a JPEG but png"] == len(pngs)
    assert sum(reasons.values()) == levels["none"]["count"]
    facts = run_json("info", out)
    shared = {name: value for name, value in facts["pack"].items() if name in result}
    assert shared == {name: result[name] for name in shared} and len(shared) > 8
    ratio = result["images"]["stored_bytes"] / result["images"]["original_bytes"]
    assert facts["pack"]["ratio"] == pytest.approx(ratio, abs=1e-4)
    assert facts["fingerprint"] == result["fingerprint"] == hr.open(out).fingerprint
    text = run_command("info", out).stdout
    assert "not a JPEG but png" in text and "shards 2" in text


def test_scan_finds_disk_corruption(photos: Path, tmp_path: Path) -> None:
    sound = hr.subset(hr.open(photos), [0, 1, 2, 3])
    hr.pack(sound, tmp_path / "x", level="none")
    content = bytearray((tmp_path / "x").read_bytes())
    victim = Path(sound.key(2)).read_bytes()
    content[content.index(victim) + len(victim) // 2] ^= 16
    (tmp_path / "x").write_bytes(content)
    done = run_json("scan", tmp_path / "x")
    (entry,) = done["bad_records"]
    assert (entry["record"], entry["code"]) == (2, "HR0444")
    assert entry["file"] == str(tmp_path / "x") and entry["offset"] == content.index(victim[:200])
    assert "index_damage" not in done
    # Labels have a separate page: a bad picture does not cost its label.
    labels = hr.open(tmp_path / "x").column("label")
    assert labels.tolist() == sound.column("label").tolist()
    content[4096 + 70] ^= 1  # in the first page's table
    (tmp_path / "x").write_bytes(content)
    assert "HR0443" in run_json("scan", tmp_path / "x")["index_damage"]


def test_exit_codes_of_pack_and_unpack(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "x"
    assert run_command("pack", photos).returncode == 2
    assert run_command("pack", photos, "-o", out, "--level", "tiny").returncode == 2
    assert run_command("pack", tmp_path / "nothing", "-o", out).returncode == 3
    assert run_command("pack", photos, "-o", tmp_path / "no folder" / "x").returncode == 4
    assert run_command("pack", photos, "-o", out).returncode == 0
    done = run_command("pack", photos, "-o", out)
    assert done.returncode == 2 and "--force" in done.stderr
    assert run_command("pack", photos, "-o", out, "--force").returncode == 0
    done = run_command("pack", photos, "-o", photos, "--force")
    assert done.returncode == 2 and "not a pack" in done.stderr
    assert run_command("unpack", out, "-o", tmp_path / "files").returncode == 0
    # the pack is complete
    assert run_command("unpack", out, "-o", tmp_path / "files").returncode == 0
    next((tmp_path / "files").rglob("*.png")).write_bytes(b"mine")
    done = run_command("unpack", out, "-o", tmp_path / "files")
    assert done.returncode == 2 and "HR0451" in done.stderr
    assert run_command("unpack", out, "-o", tmp_path / "files", "--force").returncode == 0
    assert run_command("unpack", photos, "-o", tmp_path / "files").returncode == 3


def test_a_terminal_gets_a_progress_bar(photos: Path, tmp_path: Path) -> None:
    code, seen = run_on_terminal("pack", photos, "-o", tmp_path / "x")
    assert code == 0
    assert "packing" in seen and f"{RECORDS} records" in seen


def test_a_full_disk_is_an_environment_error(large: Path, tmp_path: Path) -> None:
    code = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (12_000_000, 12_000_000))\n"
        "from headrace.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "pack", str(large), "-o", str(tmp_path / "x")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    assert "HR0447" in done.stderr and "help:" in done.stderr
    assert hr.pack(large, tmp_path / "x")["resumed_records"] > 0


def test_names_that_are_not_utf8_are_restored(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff\xfe photo.jpg")
    (tmp_path / "data" / "a").mkdir(parents=True)
    Image.new("RGB", (20, 10), (1, 200, 3)).save(tmp_path / "data" / "a" / "x.jpg")
    (tmp_path / "data" / "a" / "x.jpg").rename(tmp_path / "data" / "a" / name)
    hr.pack(tmp_path / "data", tmp_path / "x")
    assert hr.open(tmp_path / "x").key(0) == f"a/{name}"
    hr.unpack(tmp_path / "x", tmp_path / "out")
    assert files_below(tmp_path / "out") == files_below(tmp_path / "data")


@pytest.mark.parametrize(
    "call",
    [
        lambda place: hr.pack(place, place / "x", level="best"),
        lambda place: hr.pack(place, place / "x", shards=0),
        lambda place: hr.pack([], place / "x"),
    ],
)
def test_wrong_options_are_refused_with_a_hint(call: Callable[[Path], Any], photos: Path) -> None:
    with pytest.raises(hr.ConfigError):
        call(photos)

# SPDX-License-Identifier: Apache-2.0
"""A row index lets decoding begin at the crop and changes no batch: complete, partial, stale,
missing."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from processes import run_command

import headrace as hr
from headrace import transforms as T

COUNT, BASELINE = 40, 36  # pictures; those that can have an index


def jpeg(seed: int, **options: Any) -> bytes:
    """An image with details in every row."""
    rng = np.random.default_rng(seed)
    height, width = rng.integers(120, 260, 2)
    noise = rng.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), dtype=np.uint8)
    picture = Image.fromarray(noise).resize((int(width), int(height)), Image.Resampling.BICUBIC)
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=85, subsampling=seed % 3, **options)
    return out.getvalue()


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """36 baseline JPEGs, three progressive ones and a PNG in two classes; a cache of their own."""
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "photos"
    for number in range(COUNT):
        folder = root / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        if number == BASELINE:
            Image.open(io.BytesIO(jpeg(number))).save(folder / f"{number:02}.png")
        else:
            content = jpeg(number, progressive=number > BASELINE)
            (folder / f"{number:02}.jpg").write_bytes(content)
    return root


def loader_of(source: Any, **options: Any) -> hr.Loader:
    given = {"batch_size": 8, "shuffle": True, "seed": 3, "threads": 2, **options}
    return hr.Loader(source, [T.RandomResizedCrop(48), T.RandomHorizontalFlip()], **given)


def hashes_of(loader: hr.Loader, epochs: int = 1) -> list[str]:
    """A hash of each batch of the next epochs."""
    return [
        hashlib.sha256(
            b"".join(np.ascontiguousarray(value).tobytes() for value in batch)
        ).hexdigest()
        for _ in range(epochs)
        for batch in loader
    ]


def read(epochs: int, pictures: int = BASELINE) -> range:
    """The number that a loader has read after this many epochs: some of the next epoch may have
    been read ahead."""
    return range(epochs * pictures, (epochs + 1) * pictures + 1)


def run(source: Any, epochs: int = 2, **options: Any) -> list[str]:
    with loader_of(source, **options) as loader:
        return hashes_of(loader, epochs)


def index_file(tmp_path: Path) -> Path:
    (file,) = (tmp_path / "cache").glob("rows-*")
    return file


def test_a_built_index_is_used_automatically_and_changes_no_batch(photos: Path) -> None:
    expected = run(photos, index=False)
    built = hr.index(photos)
    assert (built["records"], built["images"]) == (COUNT, COUNT)
    assert (built["indexed"], built["bad"]) == (BASELINE, 0)
    assert built["bytes"] < 0.1 * built["image_bytes"]
    for threads in (1, 2, 4):
        with loader_of(photos, threads=threads) as loader:
            assert hashes_of(loader, 2) == expected
            stats = loader.stats().index
            assert stats["used"] in read(2)
            assert (stats["stale"], stats["added"]) == (0, 0)
            assert f"{BASELINE} of {COUNT} images" in repr(loader)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_auto_learns_in_the_first_epoch_and_changes_no_batch(photos: Path, threads: int) -> None:
    expected = run(photos, epochs=4, index=False)
    with loader_of(photos, threads=threads, index="auto") as loader:
        first = hashes_of(loader)
        stats = loader.stats().index
        assert stats["used"] in read(0)
        assert (stats["added"], stats["entries"]) == (BASELINE, BASELINE)
        assert first + hashes_of(loader, 3) == expected
        stats = loader.stats().index
        # the second source's were read early
        assert stats["used"] in range(2 * BASELINE, 4 * BASELINE + 1)
        assert BASELINE < stats["added"] < 3 * BASELINE  # only rows below the known part
    with loader_of(photos, threads=threads) as loader:
        assert hashes_of(loader, 4) == expected
        assert loader.stats().index["used"] in read(4)


def test_a_run_that_resumes_in_the_middle_gives_the_same_batches(photos: Path) -> None:
    expected = run(photos, index=False)
    for index in ("auto", "auto", "use"):  # none yet, partial, partial
        with loader_of(photos, index=index) as loader:
            iterator = iter(loader)
            for _ in range(3):
                next(iterator)
            state = loader.state_dict()
        for threads in (1, 4):
            with loader_of(photos, index=index, threads=threads) as loader:
                loader.load_state_dict(state)
                assert hashes_of(loader, 2) == expected[3:]


def test_whole_images_and_resized_ones_are_the_same(photos: Path) -> None:
    def record_hashes(**options: Any) -> list[bytes]:
        loader = hr.Loader(photos, [], batch_size=5, ragged="list", **options)
        with loader:
            return [np.asarray(image).tobytes() for batch in loader for image in batch.image]

    expected = record_hashes(index=False)
    assert record_hashes(index="auto") == expected
    assert record_hashes() == expected


def padded(content: bytes, size: int) -> bytes:
    """The JPEG, padded after its end to this size."""
    return content + bytes(size - len(content))


def test_a_replaced_file_of_equal_size_and_time_does_not_use_the_old_index(
    photos: Path,
) -> None:
    hr.index(photos)
    victim = photos / "a" / "00.jpg"
    size, stamp = victim.stat().st_size, victim.stat()
    new = next(c for c in (jpeg(seed) for seed in range(100, 300)) if len(c) <= size)
    victim.write_bytes(padded(new, size))
    os.utime(victim, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    expected = run(photos, index=False)
    with loader_of(photos) as loader:
        assert hashes_of(loader, 2) == expected
        assert loader.stats().index["stale"] == 2
        assert loader.stats().index["used"] in read(2, BASELINE - 1)
    with loader_of(photos, index="auto") as loader:  # which is learned again
        assert hashes_of(loader, 2) == expected
    with loader_of(photos) as loader:
        assert hashes_of(loader, 2) == expected
        assert loader.stats().index["stale"] == 0


def test_swapped_files_do_not_keep_their_index(photos: Path) -> None:
    hr.index(photos)
    one, other = photos / "a" / "00.jpg", photos / "a" / "02.jpg"
    contents = one.read_bytes(), other.read_bytes()
    other.write_bytes(contents[0])
    one.write_bytes(contents[1])
    expected = run(photos, epochs=1, index=False)
    with loader_of(photos) as loader:
        assert hashes_of(loader) == expected
        assert loader.stats().index["stale"] == 2


def test_another_dataset_with_the_same_names_does_not_use_it(photos: Path, tmp_path: Path) -> None:
    hr.index(photos)
    twin = tmp_path / "twin"
    for number, path in enumerate(sorted(photos.rglob("*.jpg"))):
        copy = twin / path.relative_to(photos)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(jpeg(500 + number))
    shutil.copy(photos / "a" / "36.png", twin / "a" / "36.png")
    assert hr.open(twin).fingerprint == hr.open(photos).fingerprint
    expected = run(twin, epochs=1, index=False)
    with loader_of(twin) as loader:
        assert hashes_of(loader) == expected
        assert loader.stats().index["used"] == 0


def test_a_named_file_is_used_and_one_of_another_dataset_is_refused(
    photos: Path, tmp_path: Path
) -> None:
    file = tmp_path / "photos.rows"
    assert hr.index(photos, file)["file"] == str(file)
    assert not list((tmp_path / "cache").glob("rows-*"))
    for name in (file, str(file)):
        with loader_of(photos, index=name) as loader:
            assert hashes_of(loader, 2) == run(photos, index=False)
            assert loader.stats().index["used"] in read(2)
    (photos / "b" / "99.jpg").write_bytes(jpeg(99))
    with pytest.raises(hr.ConfigError, match="HR0461 row index belongs to another dataset"):
        loader_of(photos, index=file)
    (tmp_path / "text.rows").write_text("no index")
    with pytest.raises(hr.ConfigError, match="HR0460 not a row index"):
        loader_of(photos, index=tmp_path / "text.rows")
    with pytest.raises(hr.StorageError, match="HR0201"):
        loader_of(photos, index=tmp_path / "none.rows")


@pytest.mark.parametrize("index", [True, None, 3, "always", "auot"])
def test_an_invalid_index_argument_lists_the_choices(photos: Path, index: Any) -> None:
    with pytest.raises(hr.ConfigError, match="index must be 'use' or 'auto' or False or a path"):
        loader_of(photos, index=index)


def test_a_damaged_index_changes_no_batch(photos: Path, tmp_path: Path) -> None:
    expected = run(photos, index=False)
    hr.index(photos)
    file = index_file(tmp_path)
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    for cut in (0, 10, 64, 500, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:cut])
        assert run(photos) == expected
    for _ in range(10):
        damaged = bytearray(whole)
        for at in rng.integers(0, len(whole), 40):
            damaged[at] ^= int(rng.integers(1, 256))
        file.write_bytes(damaged)
        assert run(photos) == expected
        assert run(photos, index="auto") == expected


def test_an_unwritable_cache_is_not_used(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run(photos, index=False)
    (tmp_path / "file").write_text("in the way")
    for cache, note in ((str(tmp_path / "file" / "x"), "cannot be written"), ("", "no cache")):
        monkeypatch.setenv("HEADRACE_CACHE", cache)
        with loader_of(photos, index="auto") as loader:
            assert hashes_of(loader, 2) == expected
            assert note in loader.stats().index["note"]
            assert note in repr(loader)
        with pytest.raises(hr.StorageError, match="HR0463"):
            hr.index(photos)


def test_parts_of_a_source_use_its_index(photos: Path) -> None:
    source = hr.open(photos)
    parts = [hr.subset(source, [3, 1, 3, 7]), *hr.split(source, 0.5, 0.5)]
    expected = [run(part, batch_size=4, index=False) for part in parts]
    assert hr.index(parts[0])["records"] == COUNT
    for part, hashes in zip(parts, expected, strict=True):
        with loader_of(part, batch_size=4) as loader:
            assert hashes_of(loader, 2) == hashes
            assert loader.stats().index["used"] > 0
            assert loader.stats().index["stale"] == 0


def combined(a: Any, b: Any) -> dict[str, Any]:
    """Sources made of two, each over all records of both at least once."""
    both = hr.concat(a, b)
    numbers = [*range(0, len(both), 3), *range(len(both))]
    return {
        "concat": both,
        "mix": hr.mix(a, b, weights=[1, 1]),
        "subset of concat": hr.subset(both, numbers),
        "concat of subsets": hr.concat(hr.subset(b, range(len(b))), hr.subset(a, range(len(a)))),
        "concat of concat": hr.concat(hr.concat(a, b), b),
        "slice": both[: len(both)],
        "join": hr.join(
            hr.concat(a, b), hr.concat(a, b), rename={"image": "other", "label": "second"}
        ),
    }


@pytest.mark.parametrize(
    "name",
    ["concat", "mix", "subset of concat", "concat of subsets", "concat of concat", "slice", "join"],
)
@pytest.mark.parametrize("options", [{}, {"cache": "64 MiB"}, {"index": "auto"}], ids=str)
def test_an_index_is_used_in_all_combinations_of_its_dataset(
    photos: Path, name: str, options: dict[str, Any]
) -> None:
    a, b = (
        hr.records(image=sorted(files), label=np.arange(len(files)))
        for files in (list((photos / folder).iterdir()) for folder in "ab")
    )
    source = combined(a, b)[name]
    pictures = 2 if name == "join" else 1
    steps = {field: [T.RandomResizedCrop(48)] for field in ("image", "other")[:pictures]}

    def loader(**more: Any) -> hr.Loader:
        return hr.Loader(source, steps, batch_size=8, shuffle=True, seed=1, threads=2, **more)

    with loader(index=False) as without:
        expected = hashes_of(without)
    for each in (a, b):
        assert hr.index(each)["indexed"] > 0
    with loader(**options) as given:
        assert hashes_of(given) == expected
        stats = given.stats().index
        indexed = sum(key.endswith(".jpg") for key in map(source.key, range(len(source))))
        progressive = 3 / COUNT * len(source)
        assert pictures * (indexed - 2 * progressive) <= stats["used"] <= 2 * pictures * indexed
        assert (stats["stale"], stats["images"]) == (0, COUNT)
        assert f"{BASELINE} of {COUNT} images" in repr(given)


def test_a_loader_says_which_of_its_sources_have_no_index(photos: Path, tmp_path: Path) -> None:
    a, b = (hr.records(image=sorted((photos / folder).iterdir())) for folder in "ab")
    both = hr.concat(a, b)
    with hr.Loader(both, [T.Resize((9, 9))], batch_size=4) as loader:
        assert "none (2 sources of 2 without" in repr(loader) and "headrace index" in repr(loader)
    hr.index(b)
    with hr.Loader(both, [T.Resize((9, 9))], batch_size=4) as loader:
        assert "1 source of 2 without" in repr(loader)
    built = hr.index(both)  # each has its own
    assert (built["records"], built["indexed"]) == (COUNT, BASELINE)
    assert len(list((tmp_path / "cache").glob("rows-*"))) == 2
    named = tmp_path / "both.rows"
    assert hr.index(both, named)["indexed"] == BASELINE
    hr.index(a, tmp_path / "a.rows")
    for file, count in ((named, BASELINE), (tmp_path / "a.rows", BASELINE // 2)):
        with hr.Loader(both, [T.Resize((9, 9))], batch_size=4, index=file) as loader:
            hashes_of(loader)
            assert loader.stats().index["used"] in read(1, count)


def test_several_images_of_a_record_have_an_index_each(photos: Path) -> None:
    paths = sorted(str(path) for path in photos.rglob("*.jpg"))[:18]  # all baseline
    source = hr.records(image=paths[:9], other=paths[9:])
    pipeline = {"image": [T.RandomResizedCrop(32)], "other": [T.RandomResizedCrop(40)]}
    with hr.Loader(source, pipeline, batch_size=5, index=False) as loader:
        expected = hashes_of(loader, 2)
    assert hr.index(source)["indexed"] == 18
    with hr.Loader(source, pipeline, batch_size=5) as loader:
        assert hashes_of(loader, 2) == expected
        assert loader.stats().index["used"] in read(2, 18)
    with hr.Loader(source, pipeline, batch_size=5, fields=["other"]) as loader:
        hashes_of(loader)
        assert loader.stats().index["used"] in read(1, 9)


def test_bad_records_are_counted_and_left_out(photos: Path) -> None:
    (photos / "a" / "00.jpg").write_bytes(b"no picture")
    (photos / "a" / "02.jpg").unlink()
    (photos / "a" / "02.jpg").symlink_to("nowhere")
    built = hr.index(hr.records(image=sorted(str(p) for p in photos.rglob("*.*"))))
    assert (built["bad"], built["indexed"]) == (2, BASELINE - 2)


def test_records_without_encoded_images_are_refused() -> None:
    with pytest.raises(hr.ConfigError, match="HR0462 nothing to index"):
        hr.index(hr.records(image=np.zeros((4, 3, 8, 8), np.uint8)))
    with hr.Loader(hr.records(x=np.zeros(4)), batch_size=2, index="auto") as loader:
        assert len(list(loader)) == 2
        assert "no encoded images" in loader.stats().index["note"]


def test_progress_is_reported_and_may_cancel(photos: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    hr.index(photos, tmp_path / "a.rows", progress=lambda *now: told.append(now))
    assert told[-1] == (COUNT, COUNT)

    def cancel(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hr.index(photos, tmp_path / "b.rows", progress=cancel)
    assert sorted(path.name for path in tmp_path.glob("*.rows*")) == ["a.rows"]


BUILD = "import sys, headrace as hr; print(hr.index(sys.argv[1])['indexed'])"
LEARN = """
import sys, os, signal, headrace as hr
from headrace import transforms as T
loader = hr.Loader(sys.argv[1], [T.RandomResizedCrop(48)], batch_size=4, shuffle=True,
                   seed=int(sys.argv[2]), index="auto")
for epoch in range(3):
    for number, batch in enumerate(loader):
        if sys.argv[3] == "die" and (epoch, number) == (1, 5):
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_several_processes_may_build_and_learn_at_once(photos: Path) -> None:
    expected = run(photos, index=False)
    commands = [[sys.executable, "-c", BUILD, str(photos)]] * 2
    commands += [[sys.executable, "-c", LEARN, str(photos), str(seed), "live"] for seed in (1, 2)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for command in commands]
    outputs = [process.communicate(timeout=300)[0] for process in running]
    assert [process.returncode for process in running] == [0] * 4
    assert [int(text) for text in outputs[:2]] == [BASELINE] * 2
    with loader_of(photos) as loader:
        assert hashes_of(loader, 2) == expected
        assert loader.stats().index["used"] > 0
        assert loader.stats().index["stale"] == 0


def test_row_indexes_learned_by_a_killed_process_are_used(photos: Path, tmp_path: Path) -> None:
    expected = run(photos, index=False)
    command = [sys.executable, "-c", LEARN, str(photos), "1", "die"]
    assert subprocess.run(command, check=False, timeout=300).returncode == -9
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [""]  # nothing partial
    with loader_of(photos) as loader:
        assert hashes_of(loader, 2) == expected
        assert loader.stats().index["used"] > 0


def test_the_command_builds_the_index_that_loaders_use(photos: Path, tmp_path: Path) -> None:
    done = run_command("index", str(photos), "--json", "--threads", "1")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["file"] == str(index_file(tmp_path))
    assert (result["records"], result["indexed"], result["bad"]) == (COUNT, BASELINE, 0)
    with loader_of(photos) as loader:
        hashes_of(loader)
        assert loader.stats().index["used"] in read(1)
    named = run_command("index", str(photos), "-o", str(tmp_path / "x.rows"))
    assert named.returncode == 0
    assert f"{BASELINE} of {COUNT} images" in named.stdout
    assert "index='" in named.stdout
    assert run_command("index", str(tmp_path / "none")).returncode == 3
    assert run_command("index", str(photos), "-o", str(tmp_path / "no" / "x.rows")).returncode == 4
    assert run_command("index", str(photos), "--threads", "0").returncode == 2


LIMITED = """
import resource, signal, sys
import headrace as hr
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
from headrace.cli.app import application
sys.argv[1:] = sys.argv[2:]
application()()
"""


def test_a_full_disk_is_reported_and_leaves_nothing(photos: Path, tmp_path: Path) -> None:
    for limit in (100, 2000):
        command = [sys.executable, "-c", LIMITED, str(limit), "index", str(photos)]
        ended = subprocess.run(
            [*command, "-o", str(tmp_path / "out.index")], capture_output=True, text=True
        )
        assert ended.returncode == 4
        assert "HR0463" in ended.stderr and "Success" not in ended.stderr
        assert "File too large" in ended.stderr or "No space" in ended.stderr
        assert not list(tmp_path.glob("out*"))

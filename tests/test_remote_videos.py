# SPDX-License-Identifier: Apache-2.0
"""Promise: clips of separate remote video files are those of local files, and a record transfers
little more than the bytes that its clips need; files for which that cannot be done are counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("av", reason="av makes the videos")

import videos
from processes import run_code
from servers.object_server import Fault, ObjectServer, Request
from test_remote import bucket, quick, server

import headrace as hr
from headrace import transforms as T

__all__ = ["bucket", "quick", "server"]
if MISSING := videos.missing_decoder():
    pytest.skip(MISSING, allow_module_level=True)

FILES, FRAMES, GOP = 6, 240, 12
# How often a file may be read by a loader that delivers two epochs: while it makes batches of the
# next one, it reads ahead for the one after it.
AHEAD = 4
CLIP = T.RandomVideoClips(4, stride=2)
BATCH = {"batch_size": 2, "seed": 5, "shuffle": True}


def noise(count: int = FRAMES, height: int = 48, width: int = 64, seed: int = 1) -> Any:
    """Frames that compress badly: videos that are large and decoded quickly."""
    return np.random.default_rng(seed).integers(0, 255, (count, height, width, 3), np.uint8)


def write(folder: Path, suffix: str = "mp4", files: int = FILES, **codec: Any) -> Path:
    """A folder of two classes."""
    for number in range(files):
        path = folder / "ab"[number % 2] / f"{number}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(videos.encoded(noise(seed=number), **codec))
    return folder


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield write(tmp_path_factory.mktemp("clips"), g=GOP, qp=1, preset="ultrafast")


def upload(folder: Path, to: ObjectServer) -> str:
    for path in folder.rglob("*.*"):
        to.objects[f"/photos/clips/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
    return "s3://photos/clips/"


def loader(place: Any, steps: Any = (CLIP,), **how: Any) -> hr.Loader:
    return hr.Loader(
        place if isinstance(place, hr.Source) else hr.open(place),
        [*steps, T.CenterCrop((24, 32))],
        **BATCH | how,
    )


def epochs(place: Any, steps: Any = (CLIP,), count: int = 2, **how: Any) -> list[Any]:
    """The batches of some epochs, and the counts of reads at their end."""
    out = []
    with loader(place, steps, **how) as batches:
        for _ in range(count):
            out += [
                {name: np.array(batch[name]) for name in ("video", "label")} for batch in batches
            ]
        return [*out, dict(batches.stats()["remote_reads"])]


def check_equal(near: Any, far: Any, steps: Any = (CLIP,), **how: Any) -> dict[str, int]:
    """Compares all values; returns the counts of the far loader."""
    expected, found = epochs(near, steps, **how), epochs(far, steps, **how)
    assert len(found) == len(expected) > 2
    for batch, other in zip(found[:-1], expected[:-1], strict=True):
        for name in batch:
            np.testing.assert_array_equal(batch[name], other[name])
    counts: dict[str, int] = found[-1]
    return counts


def bytes_by_file(to: ObjectServer) -> Counter[str]:
    """How many bytes of each object were requested."""
    out: Counter[str] = Counter()
    for request in to.requests:
        if request.path not in to.objects:
            continue
        first, _, last = (
            request.headers.get("range", "bytes=0-").removeprefix("bytes=").partition("-")
        )
        size = len(to.objects[request.path])
        end = min(int(last), size - 1) if last else size - 1
        out[request.path] += end - int(first) + 1
    return out


# The tables of some are at the end, of others at the beginning.
CODECS: list[dict[str, Any]] = [
    {"g": 12, "bf": 3},
    {"g": 30, "movflags": "faststart"},
    {"g": 12, "container": "mov", "suffix": "mov"},
    {"x264-params": "open-gop=1:bframes=3:keyint=12"},
    {"codec": "mpeg4", "g": 12, "bf": 2, "qscale": 3, "b": "6M"},
    {"codec": "libx265", "g": 8, "bf": 2, "x265-params": "log-level=none:qp=4"},
    {"codec": "libsvtav1", "preset": 12, "g": 12, "crf": 10},
    {"codec": "mjpeg", "pixels": "yuvj420p", "qmin": 1, "qmax": 1},
]


@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_clips_are_those_of_local_files(
    tmp_path: Path, bucket: ObjectServer, codec: dict[str, Any]
) -> None:
    import av

    if codec.get("codec", "libx264") not in av.codecs_available:
        pytest.skip(f"av has no {codec['codec']}")
    near = write(tmp_path, files=4, **codec)
    counts = check_equal(near, upload(near, bucket))
    assert counts["clips"] >= 8 and counts["whole_videos"] == 0


@pytest.mark.parametrize(
    "how",
    [
        {"container": "matroska", "suffix": "mkv"},
        {"movflags": "frag_keyframe+empty_moov", "g": 5, "qp": 1},
        {"codec": "libvpx-vp9", "g": 12},  # whose packets tell what they show
    ],
    ids=["matroska", "fragments", "vp9"],
)
def test_files_without_a_table_are_read_whole_and_counted(
    tmp_path: Path, bucket: ObjectServer, how: dict[str, Any]
) -> None:
    near = write(tmp_path, files=4, **how)
    counts = check_equal(near, upload(near, bucket))
    assert counts["whole_videos"] >= 8 and counts["clips"] == 0
    for path, count in bytes_by_file(bucket).items():
        size = len(bucket.objects[path])
        assert count <= size / 4 + 300_000 + AHEAD * size


def test_a_file_with_a_wrong_table_is_read_whole(tmp_path: Path, bucket: ObjectServer) -> None:
    """Without its list of key frames, each frame counts as one: decoding finds out from the packets
    that it has to begin far before the clip."""
    near = write(tmp_path, files=2, g=120, qp=1, preset="ultrafast")
    for path in near.rglob("*.mp4"):
        path.write_bytes(path.read_bytes().replace(b"stss", b"free"))
    counts = check_equal(near, upload(near, bucket), count=4, batch_size=1)
    assert counts["whole_videos"] > 0
    assert len(bucket.requests) < 300  # packet by packet, they would be more than a thousand


STEPS: dict[str, list[Any]] = {
    "clips": [T.RandomVideoClips(3, num_clips=2, fps=10, times=True)],
    "center": [T.CenterVideoClip(4)],
    "uniform": [T.UniformVideoClips(4, num_clips=2, stride=3)],
    "short": [T.RandomVideoClips(130, stride=2, policy="wrap")],
}


@pytest.mark.parametrize("steps", STEPS)
def test_all_ways_to_take_clips(near: Path, bucket: ObjectServer, steps: str) -> None:
    counts = check_equal(near, upload(near, bucket), STEPS[steps])
    # Where most of a file is needed, reading it whole is cheaper, and nothing to be counted.
    assert counts["clips"] >= 2 * FILES or steps == "short"
    assert counts["whole_videos"] == 0


def test_a_video_whose_audio_is_taken_is_read_whole(tmp_path: Path, bucket: ObjectServer) -> None:
    near = tmp_path / "a"
    near.mkdir()
    for number in range(2):
        data = videos.with_sound(videos.encoded(noise(50, seed=number), g=12, qp=1), 2)
        (near / f"{number}.mp4").write_bytes(data)
    steps = [T.RandomVideoClips(4, audio=16000)]
    counts = check_equal(tmp_path, upload(tmp_path, bucket), steps, ragged="list", batch_size=1)
    assert counts["clips"] == counts["whole_videos"] == 0
    assert all(
        count <= AHEAD * len(bucket.objects[path]) for path, count in bytes_by_file(bucket).items()
    )


@pytest.mark.parametrize("threads", [1, 3])
def test_a_record_requests_the_bytes_of_its_clip(
    near: Path, bucket: ObjectServer, threads: int
) -> None:
    far = upload(near, bucket)
    with loader(far, threads=threads) as batches:
        assert sum(len(batch["label"]) for batch in batches) == FILES
        assert batches.stats()["remote_reads"]["clips"] == FILES
    seen = bytes_by_file(bucket)
    assert len(seen) == FILES
    for path, count in seen.items():
        size = len(bucket.objects[path])
        assert size > 1_000_000
        a_clip = 1.2 * 2 * GOP / FRAMES * size  # in at most two groups of pictures
        assert count <= (AHEAD - 1) * a_clip + 40_000, "the table, and the first bytes"


def test_a_table_is_read_once(near: Path, bucket: ObjectServer) -> None:
    source = hr.open(upload(near, bucket))
    for epoch in range(2):
        with loader(source, seed=epoch) as batches:
            assert len(list(batches)) == FILES / 2
        if epoch == 0:
            bucket.requests.clear()
    with loader(source) as batches:  # one loader knows the tables of its earlier epochs
        list(batches)
        list(batches)
        bucket.requests.clear()
        list(batches)
    assert bucket.requests
    for request in bucket.requests:
        last = int(request.headers["range"].rpartition("-")[2])
        assert last < len(bucket.objects[request.path]) - 1, "a table at the end of the file"
        assert request.headers.get("if-match")


@pytest.mark.parametrize("form", ["list", "subset", "concat", "records"])
def test_other_sources_of_files(near: Path, server: ObjectServer, form: str) -> None:
    names = sorted(path.relative_to(near).as_posix() for path in near.rglob("*.mp4"))
    for name in names:
        server.objects[f"/clips/{name}"] = (near / name).read_bytes()
    table = "video,label\n" + "".join(f"{name},{number}\n" for number, name in enumerate(names))

    def opened(root: str) -> hr.Source:
        if form == "records":
            files = [f"{root}/{name}" for name in names]
            return hr.records(video=files, label=np.arange(len(names)), kinds={"video": "video"})
        source = hr.open(f"{root}/all.csv")
        if form == "subset":
            return hr.subset(source, [4, 1, 1, 3])
        return hr.concat(source, source) if form == "concat" else source

    server.objects["/clips/all.csv"] = table.encode()
    (near / "all.csv").write_text(table)
    counts = check_equal(opened(str(near)), opened(f"{server.url}/clips"))
    assert counts["clips"] >= 4 and counts["whole_videos"] == 0


def test_records_in_a_cache_are_read_whole(near: Path, bucket: ObjectServer) -> None:
    counts = check_equal(near, upload(near, bucket), cache="64 MiB", memory_limit="512 MiB")
    assert counts["clips"] == 0


@pytest.mark.parametrize(
    "fault",
    [Fault(status=503, headers={"Retry-After": "0"}), Fault(cut=100), Fault(closes=0)],
    ids=["503", "reset", "closed"],
)
def test_temporary_errors_do_not_show(near: Path, bucket: ObjectServer, fault: Fault) -> None:
    far = upload(near, bucket)
    bucket.fault = lambda request: fault if request.number % 3 == 2 else None
    assert check_equal(near, far)["clips"] >= 2 * FILES


def test_a_run_is_resumed(near: Path, bucket: ObjectServer) -> None:
    far = upload(near, bucket)
    expected = epochs(near, count=1)[:-1]
    with loader(far) as first:
        batch = next(iter(first))
        np.testing.assert_array_equal(batch["video"], expected[0]["video"])
        state = json.loads(json.dumps(first.state_dict()))
    with loader(far, threads=1) as second:
        second.load_state_dict(state)
        for batch, other in zip(second, expected[1:], strict=True):
            np.testing.assert_array_equal(batch["video"], other["video"])


# What cannot be read.


def test_a_truncated_file_is_a_bad_record(near: Path, bucket: ObjectServer) -> None:
    far = upload(near, bucket)
    bucket.objects["/photos/clips/a/2.mp4"] = bucket.objects["/photos/clips/a/2.mp4"][:-900]
    with loader(far) as batches, pytest.raises(hr.DataError, match="HR0362") as caught:
        list(batches)
    assert "a/2.mp4" in str(caught.value)
    with loader(far, on_error="skip", error_budget=FILES) as batches:
        assert sum(len(batch["label"]) for batch in batches) == FILES - 1


def test_a_missing_file_is_named(near: Path, bucket: ObjectServer) -> None:
    source = hr.open(upload(near, bucket))
    del bucket.objects["/photos/clips/a/2.mp4"]
    with loader(source) as batches, pytest.raises(hr.Error, match="HR0201") as caught:
        list(batches)
    assert "a/2.mp4" in str(caught.value)


def test_substitutes_are_those_of_local_files(tmp_path: Path, bucket: ObjectServer) -> None:
    near = write(tmp_path, g=GOP, qp=1, preset="ultrafast")
    (near / "a" / "2.mp4").write_bytes((near / "a" / "2.mp4").read_bytes()[:-900])
    how: dict[str, Any] = {"on_error": "substitute", "error_budget": 20}
    assert check_equal(near, upload(near, bucket), **how)["clips"] >= 2 * FILES - 2


def test_a_file_that_is_replaced_is_found(near: Path, bucket: ObjectServer) -> None:
    source = hr.open(upload(near, bucket))
    with loader(source) as batches:
        list(batches)
        for path in list(bucket.objects):
            bucket.objects[path] = bucket.objects[path][:-1] + b"!"
        with pytest.raises(hr.DataError, match="HR0208") as caught:
            for _ in range(3):
                list(batches)
    assert "/clips/" in str(caught.value)


def test_a_file_that_was_replaced_before_it_was_first_read(
    near: Path, bucket: ObjectServer, tmp_path: Path
) -> None:
    """The version that a listing had seconds ago is not that of the table."""
    source = hr.open(upload(near, bucket))
    newer = write(tmp_path, g=8, qp=1, preset="ultrafast")
    upload(newer, bucket)
    assert check_equal(newer, source)["clips"] >= 2 * FILES


def test_a_server_without_ranges_sends_whole_files(near: Path, server: ObjectServer) -> None:
    """Like python -m http.server: single files can be read."""
    for number in range(2):
        server.objects[f"/{number}.mp4"] = (near / "ab"[number] / f"{number}.mp4").read_bytes()
    server.objects["/all.csv"] = b"video\n0.mp4\n1.mp4\n"
    source = hr.open(f"{server.url}/all.csv")
    server.fault = lambda request: Fault(whole=True)
    with hr.Loader(source, [CLIP, T.CenterCrop(8)], batch_size=2) as batches:
        assert next(iter(batches))["video"].shape[:2] == (2, 4)
        assert batches.stats()["remote_reads"]["whole_videos"] == 2


def test_a_server_that_stops_supporting_ranges_sends_whole_files(
    near: Path, bucket: ObjectServer
) -> None:
    """Like caches, some of which support ranges of what they have and no others."""

    def fault(request: Request) -> Fault | None:
        size = len(bucket.objects.get(request.path, b""))
        first, _, last = request.headers.get("range", "-").removeprefix("bytes=").partition("-")
        is_table = not first or not last or int(first) < 4096 or int(last) > size - 40_000
        return None if is_table else Fault(whole=True)

    bucket.fault = fault
    assert check_equal(near, upload(near, bucket))["whole_videos"] > 0


@pytest.mark.parametrize("of", ["tables", "clips"])
def test_record_timeout_applies_to_a_trickling_video(
    near: Path, bucket: ObjectServer, of: str
) -> None:
    hr.remote.configure(stall_seconds=600)
    source = hr.open(upload(near, bucket))
    path = "/photos/clips/a/2.mp4"

    def fault(request: Request) -> Fault | None:
        if request.path != path:
            return None
        late = of == "tables" or int(request.headers["range"].rpartition("-")[2]) > 5000
        return Fault(drip=0.05, drip_bytes=1) if late else None

    bucket.fault = fault
    how: dict[str, Any] = {"on_error": "skip", "error_budget": FILES, "record_timeout": 1.0}
    with loader(source, **how) as batches:
        assert sum(len(batch["label"]) for batch in batches) < FILES


ENDS = """
import sys
import headrace as hr
from headrace import transforms as T

hr.remote.configure(stall_seconds=600, hedge=False)
loader = hr.Loader(
    hr.open(sys.argv[1]), [T.RandomVideoClips(2)], batch_size=2, ragged="list", record_timeout=0.3
)
try:
    next(iter(loader))
except hr.StorageError as error:
    print(error.code)
"""


def test_a_program_may_exit_while_requests_hang(near: Path, server: ObjectServer) -> None:
    server.objects["/0.mp4"] = server.objects["/1.mp4"] = (near / "a" / "0.mp4").read_bytes()
    server.objects["/all.csv"] = b"video\n0.mp4\n1.mp4\n"
    server.fault = lambda request: Fault(stall=10) if ".mp4" in request.path else None
    done = run_code(ENDS, f"{server.url}/all.csv")
    assert (done.returncode, done.stdout.strip()) == (0, "HR0228"), done.stderr

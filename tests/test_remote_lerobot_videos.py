# SPDX-License-Identifier: Apache-2.0
"""Promise: a far LeRobot dataset gives the frames of a local one, and a record transfers only the
bytes that its frames need: each byte once in order, and a few groups of pictures in any order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("av", reason="av makes the videos, and says what is in them")
pytest.importorskip("pyarrow", reason="pyarrow writes the tables")

import lerobot_folders as folders
import videos
from lerobot_folders import LENGTHS, OFFSETS, TOP, WRIST, Folder, check, loader, opened
from processes import run_code
from servers.object_server import Fault, ObjectServer, Request
from test_remote import bucket, quick, server
from test_remote_lerobot import upload
from timing import with_longer_limits

import headrace as hr
from headrace import transforms as T

pytest_plugins = ["lerobot_fixtures"]
__all__ = ["bucket", "quick", "server"]
if MISSING := videos.missing_decoder():
    pytest.skip(MISSING, allow_module_level=True)

TOTAL = sum(LENGTHS)


def noise(count: int, height: int = 48, width: int = 64, seed: int = 1) -> Any:
    """Frames that compress badly: videos of megabytes that are decoded quickly."""
    random = np.random.default_rng(seed)
    return random.integers(0, 255, (count, height, width, 3), np.uint8)


@pytest.fixture(scope="module")
def make_noisy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Folder]]:
    """Makes a dataset whose videos are much larger than their tables, once for each codec."""
    made: dict[str, Folder] = {}

    def make(**codec: Any) -> Folder:
        key = json.dumps(codec, sort_keys=True)
        if key not in made:
            root = tmp_path_factory.mktemp("noisy")
            made[key] = folders.make_folder(root, **{"qp": 1, "preset": "ultrafast", **codec})
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(videos, "moving", noise)
        yield make


@pytest.fixture
def noisy(make_noisy: Callable[..., Folder]) -> Folder:
    return make_noisy()


def far(folder: Folder, to: ObjectServer, **how: Any) -> hr.Source:
    upload(folder.root, to, "/robot")
    return opened(folder, f"{to.url}/robot", **how)


def of_videos(to: ObjectServer) -> list[Request]:
    return [request for request in to.requests if "/videos/" in request.path]


def range_of(request: Request) -> tuple[int, int]:
    first, _, last = request.headers["range"].removeprefix("bytes=").partition("-")
    return int(first), int(last) + 1


def requested(requests: list[Request]) -> int:
    """How many bytes they asked for."""
    return sum(end - begin for begin, end in map(range_of, requests))


def of_the_first_epoch(requests: list[Request]) -> list[Request]:
    """Those up to the last one that asked for a new byte. How much of the next epoch, whose bytes
    are the same, is read ahead depends on the machine."""
    asked: dict[str, bytearray] = {}
    count = 0
    for number, request in enumerate(requests):
        begin, end = range_of(request)
        seen = asked.setdefault(request.path, bytearray())
        seen.extend(bytes(max(0, end - len(seen))))
        if not all(seen[begin:end]):
            count = number + 1
        seen[begin:end] = b"\1" * (end - begin)
    return requests[:count]


def distinct(requests: list[Request]) -> int:
    """The same, with bytes that several asked for counted once."""
    asked: dict[str, set[int]] = {}
    for request in requests:
        first, _, last = request.headers["range"].removeprefix("bytes=").partition("-")
        asked.setdefault(request.path, set()).update(range(int(first), int(last) + 1))
    return sum(map(len, asked.values()))


def size_of_videos(folder: Folder) -> int:
    return sum(path.stat().st_size for path in folder.root.rglob("*.mp4"))


CODECS = [
    {},
    {"g": 12, "bf": 3},
    {"g": 1000},
    {"g": 6, "movflags": "faststart"},
    {"g": 6, "bf": 0, "movflags": "frag_keyframe+empty_moov"},
    {"codec": "mpeg4", "g": 6, "bf": 2},
    {"codec": "libsvtav1", "preset": 12},
    {"codec": "libx265", "g": 8, "bf": 2, "x265-params": "log-level=none"},
    {"codec": "libvpx-vp9", "g": 8},
]


@pytest.mark.parametrize("shuffle", [False, True, "blocks"])
@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_every_frame_is_that_of_the_local_file(
    tmp_path: Path, server: ObjectServer, codec: dict[str, Any], shuffle: Any
) -> None:
    import av

    if codec.get("codec", "libx264") not in av.codecs_available:
        pytest.skip(f"av has no {codec['codec']}")
    folder = folders.make_folder(tmp_path, **codec)
    seen = []
    with loader(far(folder, server), threads=2, shuffle=shuffle) as batches:
        for batch in batches:
            check(folder, batch)
            seen += batch["index"].tolist()
    assert sorted(seen) == list(range(TOTAL))


def test_a_bucket_and_single_frames(folder: Folder, bucket: ObjectServer) -> None:
    upload(folder.root, bucket, "/photos/robot")
    source = hr.lerobot("s3://photos/robot", cameras=[TOP])
    local = hr.lerobot(folder.root, cameras=[TOP])
    for batch, expected in zip(loader(source), loader(local), strict=True):
        np.testing.assert_array_equal(batch[TOP], expected[TOP])


@pytest.mark.parametrize("codec", [{}, {"g": 1000}, {"g": 12, "bf": 2}], ids=str)
def test_an_epoch_in_order_requests_each_byte_once(
    make_noisy: Callable[..., Folder], server: ObjectServer, codec: dict[str, Any]
) -> None:
    folder = make_noisy(**codec)
    with loader(far(folder, server), threads=2) as batches:
        for batch in batches:
            check(folder, batch)
    requests = of_the_first_epoch(of_videos(server))
    size = size_of_videos(folder)
    assert size > 800_000
    ahead = 16 * size / TOTAL  # records of the next epoch, whose requests may arrive before
    assert requested(requests) <= 1.1 * size + ahead
    assert len(requests) <= TOTAL / 2  # records of two cameras with four frames each


def test_a_few_records_request_a_few_groups_of_pictures(
    noisy: Folder, server: ObjectServer
) -> None:
    chosen = [3, 40, 70]
    source = hr.subset(far(noisy, server), chosen)
    with loader(source, batch_size=1) as batches:
        for batch in batches:
            check(noisy, batch)
    requests = of_the_first_epoch(of_videos(server))
    tables = 4 * (4096 + 4096 + 512)
    a_group = 2 * size_of_videos(noisy) / (2 * TOTAL)
    groups = len(chosen) * 2 * len(OFFSETS)
    assert distinct(requests) <= tables + 1.2 * groups * a_group  # later epochs are read ahead
    assert len(requests) <= 4 * 4 + 3 * groups


def test_a_table_is_read_once(noisy: Folder, server: ObjectServer) -> None:
    source = far(noisy, server)
    for epoch in range(2):
        with loader(source, threads=2, shuffle=True, seed=epoch) as batches:
            for batch in batches:
                check(noisy, batch)
        if epoch == 0:
            server.requests.clear()
    sizes = {f"/robot/{p.relative_to(noisy.root)}": p.stat().st_size for p in videos_of(noisy)}
    ends = [
        request
        for request in of_videos(server)
        if int(request.headers["range"].rpartition("-")[2]) >= sizes[request.path] - 1
    ]
    assert not ends  # the tables are at the files' ends
    assert all(request.headers.get("if-match") for request in of_videos(server))


def videos_of(folder: Folder) -> list[Path]:
    return sorted(folder.root.rglob("*.mp4"))


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=503, headers={"Retry-After": "0"}),
        Fault(cut=100),
        Fault(closes=0),
        Fault(late=0.05),
    ],
    ids=["503", "reset", "closed", "late"],
)
def test_temporary_errors_do_not_show(folder: Folder, server: ObjectServer, fault: Fault) -> None:
    source = far(folder, server)
    hr.remote.configure(retries=1000)  # another attempt may be the third request again
    server.fault = lambda request: fault if request.number % 3 == 2 else None
    with loader(source, threads=2, shuffle=True) as batches:
        for batch in batches:
            check(folder, batch)


def test_a_run_is_resumed(folder: Folder, server: ObjectServer) -> None:
    source = far(folder, server)
    with loader(opened(folder), shuffle=True, seed=3) as local:
        expected = [batch["index"].tolist() for batch in local]
    with loader(source, shuffle=True, seed=3) as first:
        batches = iter(first)
        assert [next(batches)["index"].tolist() for _ in range(4)] == expected[:4]
        state = json.loads(json.dumps(first.state_dict()))
    with loader(source, shuffle=True, seed=3, threads=1) as second:
        second.load_state_dict(state)
        rest = []
        for batch in second:
            check(folder, batch)
            rest.append(batch["index"].tolist())
    assert rest == expected[4:]


def test_the_second_epoch_is_read_from_the_disk_cache(
    noisy: Folder, server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    source = far(noisy, server)
    with loader(source, shuffle=True, disk_cache="64 MiB") as batches:
        for batch in batches:
            check(noisy, batch)
        server.requests.clear()
        for batch in batches:
            check(noisy, batch)
        assert not of_videos(server)


# What cannot be read.


def broken_video(folder: Folder, to: ObjectServer) -> str:
    (path,) = (p for p in to.objects if WRIST in p and "file-001" in p)
    return path


def test_a_truncated_file_is_bad_records(
    folder: Folder, server: ObjectServer, tmp_path: Path
) -> None:
    source = far(folder, server)
    path = broken_video(folder, server)
    server.objects[path] = server.objects[path][:-700]
    with loader(source) as batches, pytest.raises(hr.DataError, match="HR0362") as caught:
        list(batches)
    assert path in str(caught.value) and "record 25" in str(caught.value)
    quarantine = tmp_path / "bad.jsonl"
    with loader(source, on_error="skip", error_budget=TOTAL, quarantine=quarantine) as batches:
        seen = []
        for batch in batches:
            check(folder, batch)
            seen += batch["index"].tolist()
    assert seen == list(range(LENGTHS[0]))  # all others need the file
    assert len(quarantine.read_text().splitlines()) == TOTAL - LENGTHS[0]
    assert len(server.seen(path)) <= 12, "its table is not read for each record"


def test_a_missing_file_is_named(folder: Folder, server: ObjectServer) -> None:
    source = far(folder, server)
    path = broken_video(folder, server)
    del server.objects[path]
    with loader(source) as batches, pytest.raises(hr.Error, match="HR0201") as caught:
        list(batches)
    assert path in str(caught.value)


def test_a_server_without_ranges_is_named(folder: Folder, server: ObjectServer) -> None:
    source = far(folder, server)
    server.fault = lambda request: Fault(whole=True) if "/videos/" in request.path else None
    with loader(source) as batches, pytest.raises(hr.StorageError, match="HR0222") as caught:
        list(batches)
    assert "/robot/videos/" in str(caught.value) and caught.value.hint


def test_a_file_that_is_replaced_is_found(noisy: Folder, server: ObjectServer) -> None:
    source = far(noisy, server)
    with loader(source) as batches:
        check(noisy, next(iter(batches)))
    for path in list(server.objects):
        if "/videos/" in path:
            server.objects[path] = server.objects[path][:-1] + b"!"
    with loader(source) as batches, pytest.raises(hr.DataError, match=r"HR0208") as caught:
        list(batches)
    assert "/robot/videos/" in str(caught.value)


@pytest.mark.parametrize("of", ["tables", "frames"])
def test_record_timeout_applies_to_a_trickling_video(
    noisy: Folder, server: ObjectServer, of: str
) -> None:
    def check_with(limit: float) -> None:
        server.fault = lambda request: None
        source = far(noisy, server)
        path = broken_video(noisy, server)
        seen = []

        def fault(request: Request) -> Fault | None:
            if request.path != path:
                return None
            seen.append(request)
            is_late = of == "tables" or len(seen) > 4
            return Fault(drip=limit / 8, drip_bytes=1) if is_late else None

        server.fault = fault
        how: dict[str, Any] = {"on_error": "skip", "error_budget": TOTAL, "record_timeout": limit}
        with loader(hr.subset(source, range(20, 30)), **how) as batches:
            records = [index for batch in batches for index in batch["index"].tolist()]
        assert records[:5] == [20, 21, 22, 23, 24] and len(records) < 10

    with_longer_limits(check_with)


def test_a_loader_is_closed_while_requests_hang(noisy: Folder, server: ObjectServer) -> None:
    def check_with(limit: float) -> None:
        hr.remote.configure(stall_seconds=2 * limit)
        server.fault = lambda request: None
        source = far(noisy, server)
        # The third episode's videos, and that of one camera of the second: read ahead, and needed
        # soon.
        server.fault = lambda request: Fault(stall=10) if "file-001" in request.path else None
        batches = loader(source, record_timeout=limit)
        for _, batch in zip(range(3), batches, strict=False):
            check(noisy, batch)
        batches.close()
        asked = len(server.requests)
        server.fault = lambda request: None
        with loader(source) as again:
            for batch in again:
                check(noisy, batch)
        assert len(server.requests) > asked

    with_longer_limits(check_with)


ENDS = """
import sys
import headrace as hr
from headrace import transforms as T

hr.remote.configure(stall_seconds=600, hedge=False)
loader = hr.Loader(
    hr.lerobot(sys.argv[1]), [T.VideoFramesAt()], batch_size=4, ragged="list", record_timeout=0.3
)
try:
    next(iter(loader))
except hr.StorageError as error:
    print(error.code)
"""


def test_a_program_may_exit_while_requests_hang(noisy: Folder, server: ObjectServer) -> None:
    upload(noisy.root, server, "/robot")
    server.fault = lambda request: Fault(stall=10) if "/videos/" in request.path else None
    done = run_code(ENDS, f"{server.url}/robot")
    assert (done.returncode, done.stdout.strip()) == (0, "HR0228"), done.stderr


def test_other_transforms_read_what_they_need(folder: Folder, server: ObjectServer) -> None:
    """Not the frames at the records' times, so they are not read ahead."""
    steps = {"fields": [TOP, "index"], "batch_size": 2, "shuffle": False, "seed": 1}
    clips = [T.RandomVideoClips(3, stride=2), T.CenterCrop((48, 64))]
    near, at = (hr.subset(s, range(6)) for s in (opened(folder), far(folder, server)))
    batches = zip(hr.Loader(at, clips, **steps), hr.Loader(near, clips, **steps), strict=True)
    for batch, expected in batches:
        np.testing.assert_array_equal(batch[TOP], expected[TOP])

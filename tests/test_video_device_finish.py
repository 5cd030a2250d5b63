# SPDX-License-Identifier: Apache-2.0
"""Clips are finished on a device like images: bytes are copied, and the batches equal the
host's."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import videos
from device_batches import MEAN, STD, copied, devices, epoch, fields_of
from PIL import Image
from processes import run_command

import headrace as hr
from headrace import _core
from headrace import transforms as T

pytest.importorskip("av", reason="av makes the videos")
if MISSING := videos.missing_decoder():
    pytest.skip(MISSING, allow_module_level=True)

RECORDS, BATCH, HEIGHT, WIDTH = 10, 4, 40, 48
PIXELS = 3 * HEIGHT * WIDTH  # of a frame
CLIPS = {
    "TCHW": T.RandomVideoClips(3),
    "CTHW": T.RandomVideoClips(3, layout="CTHW"),
    "KTCHW": T.UniformVideoClips(2, num_clips=3),
    "KCTHW": T.UniformVideoClips(2, num_clips=3, layout="CTHW"),
    "one frame": T.CenterVideoClip(1),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("videos")
    for number in range(RECORDS):
        path = root / ("run" if number % 2 else "hop") / f"{number}.mp4"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(videos.h264(20 + number, seed=number))
    return root


def loader(source: Any, steps: Any, **options: Any) -> Any:
    given = {"batch_size": BATCH, "shuffle": True, "seed": 3, "threads": 2, **options}
    return hr.Loader(hr.open(source) if isinstance(source, Path) else source, steps, **given)


def train(dtype: str = "float32", *more: Any, clip: Any = CLIPS["TCHW"]) -> list[Any]:
    return [
        clip,
        T.RandomCrop((HEIGHT, WIDTH)),
        T.RandomHorizontalFlip(),
        T.ToDtype(dtype, scale=True),
        T.Normalize(MEAN, STD),
        *more,
    ]


@pytest.mark.parametrize("memory_format", ["channels_first", "channels_last"])
@pytest.mark.parametrize("form", CLIPS)
def test_clips_equal_those_finished_on_the_host_in_a_fraction_of_the_bytes(
    folder: Path, form: str, memory_format: str
) -> None:
    steps = train("float32", T.RandomErasing(p=0.5, value=[0.1, 0.2, 0.3]), clip=CLIPS[form])
    frames = {"one frame": 1, "TCHW": 3, "CTHW": 3}.get(form, 6)
    expected = epoch(loader(folder, steps, memory_format=memory_format).dlpack())
    for device in devices():
        for finish in ("auto", "cpu", "device"):
            view = loader(folder, steps, memory_format=memory_format, finish=finish).dlpack(device)
            assert epoch(view) == expected
            counted = copied(view)
            pixels, labels = RECORDS * frames * PIXELS, RECORDS * 8
            assert counted["delivered_bytes"] == pixels * 4 + labels
            if finish == "cpu":
                assert counted["bytes"] == counted["delivered_bytes"]
            else:  # in addition, some numbers per frame, and a table per batch
                tables = 3 * 3 * 256 * 4
                assert counted["bytes"] == pixels + labels + RECORDS * frames * 48 + tables
                assert view.stats()["finished_before_transfer"] == {}


@pytest.mark.parametrize("form", CLIPS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "uint8"])
def test_clips_of_every_dtype_equal_the_hosts(folder: Path, dtype: str, form: str) -> None:
    steps = [CLIPS[form], T.RandomCrop((HEIGHT, 46)), T.RandomHorizontalFlip()]
    steps += [T.RandomErasing(p=0.5, value=7)] if dtype == "uint8" else [T.ToDtype(dtype, True)]
    for memory_format in ("channels_first", "channels_last"):
        expected = epoch(loader(folder, steps, memory_format=memory_format).dlpack())
        given = {"memory_format": memory_format, "finish": "device"}
        assert epoch(loader(folder, steps, **given).dlpack(_core.simulated_device(4))) == expected
    view = loader(folder, steps).dlpack(_core.simulated_device(4))
    next(iter(view))
    assert ("delivered as bytes" in view.stats()["finish"]) == (dtype == "uint8")


@pytest.mark.parametrize(
    "tone",
    [
        [T.RandomAutocontrast(p=1.0)],
        [T.RandomEqualize(p=0.5)],
        [T.ColorJitter(brightness=0.4, contrast=0.4)],
        [T.RandomPosterize(3, p=0.5), T.RandomInvert(p=0.5)],
        [T.RandAugment()],
    ],
    ids=["autocontrast", "equalize", "jitter", "several", "a policy"],
)
def test_per_frame_tables_are_copied_with_their_frames(folder: Path, tone: list[Any]) -> None:
    steps = train()
    steps[3:3] = tone
    expected = epoch(loader(folder, steps).dlpack())
    for device in devices():
        view = loader(folder, steps).dlpack(device)
        assert epoch(view) == expected
        assert view.stats()["finished_before_transfer"] == {}
        assert copied(view)["bytes"] < 0.4 * copied(view)["delivered_bytes"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ([T.RandomErasing(p=0.6, value="random")], "a rectangle of noise"),
        ([T.RandomErasing(p=0.6), T.RandomErasing(p=0.6, value=1.0)], "several rectangles"),
    ],
    ids=["noise", "two rectangles"],
)
def test_a_clip_copied_as_delivered_is_counted_once(
    folder: Path, more: list[Any], why: str
) -> None:
    for form in ("CTHW", "KTCHW"):
        steps = train("float32", *more, clip=CLIPS[form])
        expected = epoch(loader(folder, steps).dlpack())
        for device in devices():
            view = loader(folder, steps).dlpack(device)
            assert epoch(view) == expected
            assert set(view.stats()["finished_before_transfer"]) == {why}
            assert 0 < view.stats()["finished_before_transfer"][why] < RECORDS


@pytest.mark.parametrize(
    "mix",
    [
        [T.MixUp(num_classes=2, group=2)],
        [T.CutMix(num_classes=2, group=2)],
        [T.RandomApply([T.MixUp(num_classes=2, group=2, per_record=True)], p=0.5),
         T.CutMix(num_classes=2, group=4)],
    ],
    ids=["mixup", "cutmix", "both, some"],
)  # fmt: skip
@pytest.mark.parametrize("form", CLIPS)
def test_clips_are_mixed_on_the_device_as_on_the_host(
    folder: Path, form: str, mix: list[Any]
) -> None:
    steps = train("float32", *mix, clip=CLIPS[form])
    for memory_format in ("channels_first", "channels_last"):
        expected = epoch(loader(folder, steps, memory_format=memory_format).dlpack())
        for device in devices():
            view = loader(folder, steps, memory_format=memory_format).dlpack(device)
            assert epoch(view) == expected
            assert "is copied as uint8" in view.stats()["finish"]


@pytest.mark.parametrize("last_batch", ["keep", "drop", "pad"])
def test_a_short_last_batch_of_clips_is_finished_like_any_other(
    folder: Path, last_batch: str
) -> None:
    options = {"last_batch": last_batch, "fields": ["video", "label", "valid", "id", "key"]}
    expected = epoch(loader(folder, train(), **options).dlpack())
    for device in devices():
        assert epoch(loader(folder, train(), **options).dlpack(device)) == expected


@pytest.mark.parametrize("more", [[], [T.MixUp(num_classes=2, group=2)]], ids=["plain", "mixed"])
def test_several_devices_get_whole_records_of_a_batch(folder: Path, more: list[Any]) -> None:
    steps = train("float32", *more, clip=CLIPS["KTCHW"])
    expected = epoch(loader(folder, steps).dlpack())
    for finish in ("cpu", "device"):
        view = loader(folder, steps, finish=finish).dlpack(
            [_core.simulated_device(seed=n) for n in range(3)]
        )
        for parts, whole in zip(view, expected, strict=True):
            fields = [fields_of(part) for part in parts]
            assert b"".join(field[0][3] for field in fields) == whole[0][3]
            assert b"".join(field[1][3] for field in fields) == whole[1][3]


def test_ranks_get_their_clips_of_the_same_epoch(folder: Path) -> None:
    whole = epoch(loader(folder, train()).dlpack())
    ranks = [
        epoch(
            loader(folder, train(), batch_size=2, shard=(rank, 2)).dlpack(
                _core.simulated_device(rank)
            )
        )
        for rank in range(2)
    ]
    for expected, *parts in zip(whole, *ranks, strict=True):
        assert b"".join(part[0][3] for part in parts) == expected[0][3]


def test_a_run_of_clips_resumes_in_the_middle_on_another_device(folder: Path) -> None:
    expected = epoch(loader(folder, train(), batch_size=2).dlpack())
    view = loader(folder, train(), batch_size=2).dlpack(_core.simulated_device(seed=1))
    run = iter(view)
    got = [fields_of(next(run)) for _ in range(2)]
    for device, finish in ((_core.open_device("cpu"), "auto"), (_core.simulated_device(9), "cpu")):
        rest = loader(folder, train(), batch_size=2, finish=finish)
        rest.load_state_dict(view.state_dict())
        assert got + epoch(rest.dlpack(device)) == expected


@pytest.mark.parametrize("policy", ["substitute", "skip"])
def test_bad_videos_are_left_out_or_replaced_as_on_the_host(
    folder: Path, tmp_path: Path, policy: str
) -> None:
    for path in folder.rglob("*.mp4"):
        to = tmp_path / path.relative_to(folder)
        to.parent.mkdir(exist_ok=True)
        data = path.read_bytes()
        to.write_bytes(data[:300] if int(path.stem) % 4 == 1 else data)
    options = {"on_error": policy, "error_budget": 1.0}
    noisy = train("float32", T.RandomErasing(p=0.5, value="random"), clip=CLIPS["CTHW"])
    for steps in (train(), noisy):
        expected = epoch(loader(tmp_path, steps, **options).dlpack())
        for device in devices():
            assert epoch(loader(tmp_path, steps, **options).dlpack(device)) == expected


def darker(video: Any) -> Any:
    return video // 2


def negative(video: Any) -> Any:
    return 1 - video


def test_a_function_on_clips_may_precede_the_map_but_not_follow_it(
    folder: Path,
) -> None:
    steps = train()
    steps[2:2] = [darker]
    expected = epoch(loader(folder, steps).dlpack())
    view = loader(folder, steps).dlpack(_core.simulated_device(seed=1))
    assert epoch(view) == expected
    assert "is copied as uint8" in view.stats()["finish"]
    behind = [*train(), negative]
    expected = epoch(loader(folder, behind).dlpack())
    view = loader(folder, behind).dlpack(_core.simulated_device(seed=1))
    assert epoch(view) == expected
    assert "negative" in view.stats()["finish"] and "prevents it" in view.stats()["finish"]


def test_to_device_in_a_list_with_clips_gives_the_same_numbers(folder: Path) -> None:
    tail = [T.RandomSolarize(128, p=0.5), *train("float32", T.RandomErasing(p=0.5))[3:]]
    head = [CLIPS["KTCHW"], T.RandomCrop((HEIGHT, WIDTH))]
    expected = epoch(loader(folder, [*head, *tail]).dlpack())
    given = [*head, T.ToDevice(), *tail]
    assert epoch(loader(folder, given).dlpack()) == expected
    for device in devices():
        view = loader(folder, given).dlpack(device)
        assert epoch(view) == expected
        assert "is copied as uint8" in view.stats()["finish"]
        assert epoch(loader(folder, given, finish="cpu").dlpack(device)) == expected
    bytes_alone = [*head, T.ToDevice(), T.RandomInvert(p=0.5)]
    view = loader(folder, bytes_alone).dlpack(_core.simulated_device(seed=4))
    assert epoch(view) == epoch(loader(folder, [*head, T.RandomInvert(p=0.5)]).dlpack())
    assert "is copied as uint8" in view.stats()["finish"]
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0138.*GaussianBlur"):
        loader(folder, [*head, T.ToDevice(), T.GaussianBlur(3)])


def test_each_branch_of_a_fork_is_finished_separately(folder: Path) -> None:
    finished = train()[1:]
    steps = [
        T.Fork(
            "video",
            slow=[T.UniformVideoClips(2, num_clips=2), *finished],
            fast=[T.CenterVideoClip(6, layout="CTHW"), *finished],
            bytes=[T.CenterVideoClip(2), T.CenterCrop(32)],
        )
    ]
    expected = epoch(loader(folder, steps).dlpack())
    for device in devices():
        view = loader(folder, steps).dlpack(device)
        assert epoch(view) == expected
        said = view.stats()["finish"]
        assert '"slow" is copied' in said and '"fast" is copied' in said and '"bytes"' not in said


def jpeg(seed: int) -> bytes:
    out = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    Image.fromarray(pixels).resize((96, 72)).save(out, "jpeg")
    return out.getvalue()


def test_images_next_to_clips_may_be_decoded_on_the_device(folder: Path) -> None:
    paths = sorted(folder.rglob("*.mp4"))
    records = [
        {"image": jpeg(number), "video": path.read_bytes()} for number, path in enumerate(paths)
    ]
    source = hr.open(records, kinds={"image": "image", "video": "video"})
    steps = [
        T.RandomResizedCrop(32, fields="image"),
        CLIPS["TCHW"],
        T.RandomCrop((HEIGHT, WIDTH), fields="video"),
        *train()[2:],
    ]
    expected = epoch(loader(source, steps, decode="cpu").dlpack())
    for device in devices():
        view = loader(source, steps, decode="device").dlpack(device)
        assert epoch(view) == expected
        assert sum(view.stats()["decoded"].values()) == RECORDS  # pictures, and no frame
        assert '"video" is copied as uint8' in view.stats()["finish"]
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0717.*only clips"):
        iter(loader(folder, train(), decode="device").dlpack(_core.simulated_device(seed=1)))


def test_clips_in_lists_stay_on_the_host(folder: Path) -> None:
    steps = [T.CenterVideoClip(2), T.ToDtype("float32", scale=True)]
    expected = epoch(loader(folder, steps, ragged="list").dlpack())
    view = loader(folder, steps, ragged="list").dlpack(_core.simulated_device(seed=1))
    assert epoch(view) == expected
    assert "records differ in shape" in view.stats()["finish"]


def test_bench_has_the_same_hash_of_clips_on_every_device(folder: Path) -> None:
    def bench(*options: str) -> Any:
        common = ("--size", "32", "--batch-size", "4", "--epochs", "1", "--json")
        done = run_command("bench", folder, *common, *options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    plain = bench()
    crossed = {}
    for finish in ("auto", "cpu"):
        result = bench("--device", "simulated", "--finish", finish)
        assert result["batch_hash"] == plain["batch_hash"]
        crossed[finish] = result["copied_bytes_per_record"]
    assert 3.5 * crossed["auto"] < crossed["cpu"] < 4 * crossed["auto"]

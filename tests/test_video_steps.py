# SPDX-License-Identifier: Apache-2.0
"""A clip is passed to Python and back as one array, and clips are mixed as by torchvision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import videos

import headrace as hr
from headrace import transforms as T

pytest.importorskip("av", reason="av makes the videos")
if MISSING := videos.missing_decoder():
    pytest.skip(MISSING, allow_module_level=True)

WHOLE = T.CenterCrop((48, 64))
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("videos")
    for number in range(8):
        path = root / ("run" if number % 2 else "hop") / f"{number}.mp4"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(videos.h264(30, seed=number))
    return root


def batches(folder: Path, steps: list[Any], **options: Any) -> list[Any]:
    given = {"batch_size": 4, "shuffle": True, "seed": 7, **options}
    return list(hr.Loader(hr.open(folder), steps, **given))


def clips_of(folder: Path, steps: list[Any], **options: Any) -> Array:
    return np.concatenate([batch["video"] for batch in batches(folder, steps, **options)])


# Functions


def brighter(video: Array) -> Array:
    return np.minimum(video, 205) + np.uint8(50)


@pytest.mark.parametrize("clip", [T.RandomVideoClips(6), T.UniformVideoClips(3, num_clips=2)])
def test_a_function_gets_the_clip_as_one_array(folder: Path, clip: Any) -> None:
    shapes: set[tuple[int, ...]] = set()

    def seen(video: Array) -> Array:
        shapes.add(video.shape)
        return brighter(video)

    plain = clips_of(folder, [clip, WHOLE])
    assert (clips_of(folder, [clip, WHOLE, seen]) == brighter(plain)).all()
    assert shapes == {plain.shape[1:]}
    flipped = clips_of(folder, [clip, WHOLE, brighter, T.RandomHorizontalFlip(p=1.0)])
    assert (flipped == brighter(plain)[..., ::-1]).all(), "what it gives back goes on as images"


def test_a_clip_delivered_channels_first_is_passed_frame_by_frame(folder: Path) -> None:
    clip = T.CenterVideoClip(5, layout="CTHW")
    plain = clips_of(folder, [clip, WHOLE])
    assert plain.shape[1:] == (3, 5, 48, 64)
    assert (clips_of(folder, [clip, WHOLE, brighter]) == brighter(plain)).all()


def test_a_function_may_return_a_clip_of_another_declared_dtype_and_size(folder: Path) -> None:
    def small(video: Array) -> Array:
        return (video[..., ::2, ::2] / np.float32(255)).astype(np.float32)

    returns = {"video": ("float32", (6, 3, 24, 32))}
    step = T.Python(small, returns=returns)
    found = clips_of(folder, [T.CenterVideoClip(6), WHOLE, step])
    plain = clips_of(folder, [T.CenterVideoClip(6), WHOLE])
    np.testing.assert_array_equal(found, small(plain))


def test_a_function_may_make_a_new_field_from_a_clip(folder: Path) -> None:
    def motion(video: Array) -> dict[str, Array]:
        return {"motion": np.abs(np.diff(video.astype(np.float32), axis=0)).mean((1, 2, 3))}

    step = T.Python(motion, returns={"motion": ("float32", (5,))})
    for batch in batches(folder, [T.CenterVideoClip(6), WHOLE, step]):
        expected = np.abs(np.diff(np.asarray(batch["video"]).astype(np.float32), axis=1))
        np.testing.assert_allclose(batch["motion"], expected.mean((2, 3, 4)), rtol=1e-6)


def test_results_that_are_not_clips_are_refused(folder: Path) -> None:
    clip = T.CenterVideoClip(6)
    with pytest.raises(hr.ConfigError, match=r"HR0118(.|\n)*its number of frames"):
        step = T.Python(lambda video: video[:3], fields="video",
                        returns={"video": ("uint8", (3, 3, 48, 64))})  # fmt: skip
        hr.Loader(hr.open(folder), [clip, WHOLE, step])
    with pytest.raises(hr.ConfigError, match=r"HR0601(.|\n)*\(6, 3, 48, 64\)"):
        batches(folder, [clip, WHOLE, lambda video: video[:3]])


def test_processes_give_the_same_clips(folder: Path) -> None:
    steps = [T.RandomVideoClips(4), WHOLE, brighter]
    assert (clips_of(folder, steps, python_workers=2) == clips_of(folder, steps)).all()


def test_a_transform_of_torchvision_gets_the_clip(folder: Path) -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2")
    import torch
    from torchvision import tv_tensors

    kinds: set[type] = set()

    class Seen(v2.Transform):  # type: ignore[misc, name-defined]
        def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
            kinds.add(type(inpt))
            return inpt

    plain = clips_of(folder, [T.CenterVideoClip(4), WHOLE])
    step = v2.Compose([Seen(), v2.RandomInvert(p=1.0), v2.RandomVerticalFlip(p=1.0)])
    found = clips_of(folder, [T.CenterVideoClip(4), WHOLE, step])
    expected = v2.functional.vertical_flip(v2.functional.invert(torch.tensor(plain)))
    np.testing.assert_array_equal(found, expected.numpy())
    assert kinds == {tv_tensors.Video}


# Batch steps


def labels_of(count: int, labels: Array) -> Array:
    return np.eye(count, dtype=np.float32)[labels]


@pytest.mark.parametrize("layout", ["TCHW", "CTHW"])
@pytest.mark.parametrize("memory", ["channels_first", "channels_last"])
def test_clips_are_mixed_as_torchvision_mixes_them(folder: Path, layout: str, memory: str) -> None:
    functional = pytest.importorskip("torchvision.transforms.v2")
    import torch

    clip = T.RandomVideoClips(4, layout=layout)
    plain_steps = [clip, WHOLE, T.ToDtype("float32", scale=True)]
    plain = batches(folder, plain_steps, memory_format=memory)
    assert functional
    mixed = batches(folder, [*plain_steps, T.MixUp(num_classes=2, group=4)], memory_format=memory)
    for before, after in zip(plain, mixed, strict=True):
        clips, labels = torch.tensor(np.ascontiguousarray(before["video"])), before["label"]
        hot = labels_of(2, labels)
        # The proportion, computed from a row whose labels differ.
        row = next(i for i in range(4) if labels[i] != labels[i - 1])
        share = float(np.asarray(after["label"])[row, labels[row]])
        expected = clips.roll(1, 0).mul(1.0 - share).add_(clips.mul(share))
        np.testing.assert_allclose(after["video"], expected.numpy(), atol=1e-6)
        rolled = np.roll(hot, 1, 0) * np.float32(1 - share) + hot * np.float32(share)
        np.testing.assert_allclose(after["label"], rolled, atol=1e-6)


@pytest.mark.parametrize("layout", ["TCHW", "CTHW"])
@pytest.mark.parametrize("memory", ["channels_first", "channels_last"])
@pytest.mark.parametrize("clips", [None, 2])
def test_all_frames_of_a_clip_are_mixed_in_one_box(
    folder: Path, layout: str, memory: str, clips: int | None
) -> None:
    clip = T.RandomVideoClips(3, num_clips=clips, layout=layout)
    plain = batches(folder, [clip, WHOLE], memory_format=memory)
    step = T.CutMix(num_classes=2, group=4, uint8=True)
    mixed = batches(folder, [clip, WHOLE, step], memory_format=memory)
    for before, after in zip(plain, mixed, strict=True):
        one, other = np.asarray(before["video"]), np.asarray(after["video"])
        partner = np.roll(one, 1, 0)
        differs = (one != other).any(axis=tuple(range(one.ndim - 2)))  # over (H, W)
        ys, xs = np.nonzero(differs)
        box = np.zeros(differs.shape, bool)
        if len(ys):
            box[ys.min() : ys.max() + 1, xs.min() : xs.max() + 1] = True
        np.testing.assert_array_equal(other, np.where(box, partner, one))


def test_mixed_clips_do_not_depend_on_threads_or_ranks(folder: Path) -> None:
    steps = [T.RandomVideoClips(4), WHOLE, T.CutMix(num_classes=2, group=4, uint8=True)]
    one = clips_of(folder, steps, threads=1)
    assert (clips_of(folder, steps, threads=3) == one).all()
    ranks = [batches(folder, steps, batch_size=4, shard=(rank, 2))[0]["video"] for rank in range(2)]
    whole = batches(folder, steps, batch_size=8)[0]["video"]
    np.testing.assert_array_equal(np.concatenate(ranks), whole)


def test_clips_of_several_sizes_are_not_mixed(folder: Path) -> None:
    steps = [T.RandomVideoClips(4), T.MixUp(num_classes=2, group=4, uint8=True)]
    with pytest.raises(hr.ConfigError, match="HR0130"):
        hr.Loader(hr.open(folder), steps, batch_size=4, ragged="list")

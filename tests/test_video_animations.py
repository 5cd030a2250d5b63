# SPDX-License-Identifier: Apache-2.0
"""GIF and animated WebP as videos: each frame equals Pillow's in RGB, from any starting frame."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, features

import headrace as hr
from headrace import transforms as T

WIDTH, HEIGHT, FRAMES = 37, 29, 9


def drawings(seed: int, mode: str = "RGBA") -> list[Image.Image]:
    """Frames that share most of their pixels, so that writers store parts of them."""
    random = np.random.default_rng(seed)
    canvas = random.integers(0, 256, (HEIGHT, WIDTH, 4), dtype=np.uint8)
    canvas[..., 3] = 255
    frames = []
    for _ in range(FRAMES):
        x, y = random.integers(0, WIDTH - 9), random.integers(0, HEIGHT - 9)
        canvas[y : y + 9, x : x + 9, :3] = random.integers(0, 256, 3)
        canvas[y : y + 4, x : x + 4, 3] = random.integers(0, 256)
        frames.append(Image.fromarray(canvas.copy()).convert(mode))
    return frames


def saved(frames: list[Image.Image], format: str, **options: Any) -> bytes:
    out = io.BytesIO()
    frames[0].save(out, format, save_all=True, append_images=frames[1:], **options)
    return out.getvalue()


def by_pillow(content: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as picture:
        frames = []
        for number in range(picture.n_frames):
            picture.seek(number)
            frames.append(np.asarray(picture.convert("RGB")).transpose(2, 0, 1))
    return np.stack(frames)


def clips(path: Path, records: int, **options: Any) -> np.ndarray:
    loader = hr.Loader(
        hr.records(video=[str(path)] * records, kinds={"video": "video"}),
        [T.RandomVideoClips(**options), T.CenterCrop((HEIGHT, WIDTH))],
        batch_size=records,
        shuffle=False,
        threads=1,
    )
    return np.array(next(iter(loader))["video"])


CONTENTS = {
    "gif": lambda: saved(drawings(1, "P"), "GIF", duration=[30, 50] * 4 + [20], disposal=1),
    "gif, to the background": lambda: saved(drawings(2), "GIF", duration=40, disposal=2),
    "gif, as it was": lambda: saved(drawings(3), "GIF", duration=40, disposal=[1, 3, 3] * 3),
    "gif, optimized": lambda: saved(drawings(4, "RGB"), "GIF", duration=40, optimize=True),
    "webp, lossless": lambda: saved(drawings(5), "WEBP", duration=40, lossless=True),
    "webp, lossy": lambda: saved(drawings(6), "WEBP", duration=40, quality=60, kmin=3, kmax=5),
    "webp, mixed": lambda: saved(drawings(7), "WEBP", duration=40, allow_mixed=True),
    "webp, no alpha": lambda: saved(drawings(8, "RGB"), "WEBP", duration=40, minimize_size=True),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_all_frames_equal_pillows(tmp_path: Path, name: str) -> None:
    if name.startswith("webp") and not features.check("webp"):
        pytest.skip("Pillow has no WebP here")
    content = CONTENTS[name]()
    path = tmp_path / "animation"
    path.write_bytes(content)
    want = by_pillow(content)
    assert len(want) == FRAMES
    assert np.array_equal(clips(path, 1, num_frames=FRAMES)[0], want)


@pytest.mark.parametrize("name", ["gif, as it was", "webp, lossy"])
def test_a_frame_decoded_alone_is_the_same(tmp_path: Path, name: str) -> None:
    content = CONTENTS[name]()
    path = tmp_path / "animation"
    path.write_bytes(content)
    want = by_pillow(content)
    seen = set()
    for frame in clips(path, 60, num_frames=1)[:, 0]:
        same = [number for number in range(FRAMES) if np.array_equal(frame, want[number])]
        assert same
        seen.update(same)
    assert len(seen) == FRAMES


def test_a_gif_in_a_folder_stays_an_image(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.gif").write_bytes(CONTENTS["gif"]())
    loader = hr.Loader(hr.open(tmp_path), [T.Resize((8, 8))], batch_size=1, threads=1)
    assert next(iter(loader))["image"].shape[:2] == (1, 3)


def test_a_broken_frame_is_an_error_of_its_record(tmp_path: Path) -> None:
    content = CONTENTS["gif"]()
    path = tmp_path / "cut.gif"
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(hr.Error, match="HR0346"):
        clips(path, 1, num_frames=FRAMES)

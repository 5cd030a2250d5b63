# SPDX-License-Identifier: Apache-2.0
"""show() of video and audio clips makes a page that plays them, readable by other software."""

from __future__ import annotations

import base64
import io
import re
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import videos
from headrace.drawing import player
from headrace.drawing.png import animated_png
from PIL import Image

import headrace as hr
from headrace import transforms as T

RATE = 16000


def frames(count: int = 5, side: int = 24) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(1)
    return list(random.integers(0, 256, (count, 3, side, side + 3), dtype=np.uint8))


def inside(html: str, kind: str) -> list[bytes]:
    """The page's embedded files of that kind."""
    return [base64.b64decode(data) for data in re.findall(rf"data:{kind};base64,([^\"]+)", html)]


def test_an_animated_png_has_all_frames_and_their_times() -> None:
    shown, seconds = frames(), [0.04, 0.1, 0.5, 0.04, 70.0]
    picture = Image.open(io.BytesIO(animated_png(shown, seconds)))
    assert getattr(picture, "n_frames", 1) == len(shown)
    for number, frame in enumerate(shown):
        picture.seek(number)
        np.testing.assert_array_equal(np.asarray(picture.convert("RGB")).transpose(2, 0, 1), frame)
        assert picture.info["duration"] == min(1000 * seconds[number], 65535)
    with pytest.raises(ValueError, match="the same shape"):
        animated_png([shown[0], shown[1][:, 1:]], [1, 1])


@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize("channels", [1, 2])
def test_audio_in_the_page_equals_the_clip(dtype: str, channels: int) -> None:
    random = np.random.default_rng(2)
    values = random.integers(-32768, 32768, (channels, 500)).astype(np.int16)
    samples = values if dtype == "int16" else (values / np.float32(32768)).astype(np.float32)
    with wave.open(io.BytesIO(player.wav_from_samples(samples, RATE))) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (
            channels,
            2,
            RATE,
        )
        read = np.frombuffer(file.readframes(1000), "<i2").reshape(-1, channels).T
    np.testing.assert_array_equal(read, values)


def test_audio_clips_without_a_rate_or_samples_have_no_player() -> None:
    assert player.audio_element(np.zeros((1, 100), np.float32), 0) == ""
    assert player.audio_element(np.zeros((1, 0), np.float32), RATE) == ""


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        (None, [0.1, 0.1, 0.1]),
        ([1.0, 1.04, 1.24], [0.04, 0.2, 0.12]),
        ([0.0, 0.5, 0.5], [0.5, 0.5, 0.5]),  # the last one repeated
        ([0.0, 0.5, 0.0], [0.5, 0.5, 0.5]),  # wrapped
    ],
)
def test_frames_are_shown_until_the_next_one(times: Any, seconds: list[float]) -> None:
    shown = None if times is None else np.array(times)
    np.testing.assert_allclose(player.seconds_of(3, shown), seconds)


def test_show_of_audio_is_a_page_that_plays_it(tmp_path: Path) -> None:
    folder = tmp_path / "sounds"
    folder.mkdir()
    tone = (np.sin(np.arange(RATE) * 0.2) * 20000).astype("<i2")
    for number in range(2):
        with wave.open(str(folder / f"{number}.wav"), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            file.writeframes(tone.tobytes())
    loader = hr.Loader(hr.open(folder), [T.CenterClip(4000)], batch_size=2)
    grid = loader.show(2)
    html = grid.save(tmp_path / "page.html").read_text()
    sounds = inside(html, "audio/wav")
    assert len(sounds) == 2 and html.count("<audio controls") == 2
    with wave.open(io.BytesIO(sounds[0])) as file:
        assert (file.getframerate(), file.getnframes()) == (RATE, 4000)
    assert inside(html, "image/png")[0][:4] == b"\x89PNG"
    assert grid._repr_html_() in html  # type: ignore[operator]
    assert grid.save(tmp_path / "page.png").read_bytes()[:4] == b"\x89PNG"


def test_show_of_images_stays_an_image(tmp_path: Path) -> None:
    source = hr.open([{"image": frame} for frame in frames(2)])
    grid = hr.Loader(source, batch_size=2).show(2)
    assert grid._repr_html_() is None
    (picture,) = inside(grid.save(tmp_path / "it.html").read_text(), "image/png")
    assert Image.open(io.BytesIO(picture)).size == grid.pixels.shape[:0:-1]


@pytest.mark.skipif(bool(videos.missing_decoder()), reason="no headrace-av")
@pytest.mark.parametrize("pillow", [True, False], ids=["with Pillow", "without"])
def test_show_of_clips_is_a_page_that_plays_them(
    tmp_path: Path, pillow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("av")
    if not pillow:
        monkeypatch.setattr(player, "_webp", lambda *_: None)
    folder = tmp_path / "videos"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.mp4").write_bytes(videos.h264(30, seed=number))
    steps = [
        T.RandomVideoClips(6, stride=2, times=True),
        T.CenterCrop((48, 64)),
        *hr.presets.normalized(),
    ]
    loader = hr.Loader(hr.open(folder), steps, batch_size=2, seed=1)
    html = loader.show(3).save(tmp_path / "page.html").read_text()
    clips = inside(html, "image/webp" if pillow else "image/png")
    assert len(clips) == 3
    plain = hr.Loader(hr.open(folder), steps[:2], batch_size=2, seed=1)
    first = next(iter(plain))["video"][0]
    picture = Image.open(io.BytesIO(clips[0]))
    assert getattr(picture, "n_frames", 1) == 6
    for number in range(6):
        picture.seek(number)
        seen = np.asarray(picture.convert("RGB")).transpose(2, 0, 1).astype(int)
        off = np.abs(seen - first[number])
        assert off.mean() < (12 if pillow else 1), "as training has it, but for the normalization"
        assert picture.info["duration"] == 80, "25 frames a second, every second one"
    around = re.sub(r"base64,[^\"]+", "", html)  # in which any word may occur by chance
    assert "<script" not in around and "http" not in around

# SPDX-License-Identifier: Apache-2.0
"""Promise: a first-time user of videos learns which files are read, and which are left out."""

from __future__ import annotations

from pathlib import Path

import audio_files
import numpy as np
import pytest
import videos
from PIL import Image

import headrace as hr
from headrace import transforms as T

needs_decoder = pytest.mark.skipif(bool(videos.missing_decoder()), reason=videos.missing_decoder())


def folder_of(root: Path, **files: bytes) -> Path:
    """Files named `class__name__suffix`."""
    for name, content in files.items():
        path = root / "/".join(name.rsplit("__", 1)[0].split("__"))
        path = path.with_suffix("." + name.rsplit("__", 1)[1])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def test_a_folder_with_one_image_warns_that_its_audio_is_skipped(tmp_path: Path) -> None:
    wav = audio_files.wav_of(audio_files.waves(100))
    folder = folder_of(tmp_path, a__x__wav=wav, a__y__wav=wav)
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(folder / "a" / "cover.png")
    source = hr.open(folder)
    assert len(source) == 1
    assert "2 audio clips and videos skipped, since there are images" in repr(source)
    folder_of(folder, b__z__wav=wav)
    with pytest.raises(hr.ConfigError, match=r"HR0407.*no image in 'b' .*3 audio clips and videos"):
        hr.open(folder)


@pytest.mark.parametrize(("suffix", "field"), [("mp4", "video"), ("wav", "audio")])
def test_a_single_file_is_refused_with_a_hint_to_make_a_dataset(
    tmp_path: Path, suffix: str, field: str
) -> None:
    path = tmp_path / f"one.{suffix}"
    path.write_bytes(b"nothing")
    with pytest.raises(hr.ConfigError, match=rf"hr\.records\({field}=\["):
        hr.open(path)


def test_audio_of_unequal_length_gets_a_hint_at_audio_steps(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a__x__wav=audio_files.wav_of(audio_files.waves(100)))
    with pytest.raises(hr.ConfigError, match=r"PadOrTrim"):
        hr.Loader(folder, batch_size=1)


@needs_decoder
def test_an_image_step_on_videos_gets_a_hint_to_select_frames_first(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a__x__mp4=videos.h264(8))
    with pytest.raises(hr.ConfigError, match=r"RandomVideoClips\(num_frames=16\)"):
        hr.Loader(folder, [T.RandomResizedCrop(16)], batch_size=1)


@needs_decoder
def test_a_trace_shows_the_frames_of_clips(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a__x__mp4=videos.h264(8))
    with hr.Loader(folder, [T.CenterVideoClip(4), T.Resize((32, 32))], batch_size=1) as loader:
        traced = loader.trace(0)
        assert traced.images.pixels.shape[0] == 3
        assert "bytes" in repr(traced[0]) and len(repr(traced[0])) < 300
        assert "pack" not in loader.bottleneck()


def test_a_trace_without_images_says_so() -> None:
    source = hr.records(number=np.arange(3))
    with (
        hr.Loader(source, batch_size=1) as loader,
        pytest.raises(ValueError, match="no transform of this record has a field to show"),
    ):
        _ = loader.trace(0).images


@needs_decoder
def test_the_doctor_names_the_slowest_videos(tmp_path: Path) -> None:
    from headrace.insight.probes.ours import slowest_records

    folder = folder_of(tmp_path, a__x__mp4=videos.h264(8), a__y__mp4=videos.h264(9))
    steps = [T.CenterVideoClip(4), T.Resize((32, 32))]
    with hr.Loader(folder, steps, batch_size=1) as loader:
        assert len(slowest_records(loader, 5.0)) == 2

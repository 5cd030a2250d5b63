# SPDX-License-Identifier: Apache-2.0
"""AAC in MP4 decodes to FFmpeg's samples, with the encoded length."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audio_files import int16_waves, wav_of

import headrace as hr
from headrace import _core
from headrace import transforms as T

pytestmark = pytest.mark.skipif(not shutil.which("ffmpeg"), reason="no ffmpeg")


def encoded(folder: Path, frames: int, channels: int, rate: int, *options: str) -> bytes:
    wav, m4a = folder / "in.wav", folder / "out.m4a"
    wav.write_bytes(wav_of(int16_waves(frames, channels), rate))
    command = ["ffmpeg", "-v", "error", "-y", "-i", wav, "-c:a", "aac", *options, m4a]
    subprocess.run(command, check=True)
    return m4a.read_bytes()


def decoded(m4a: bytes) -> tuple[np.ndarray[Any, Any], int]:
    samples, rate = _core.decode_audio(m4a)
    return np.asarray(samples), rate


def decoded_by_ffmpeg(folder: Path, m4a: bytes, channels: int) -> np.ndarray[Any, Any]:
    file = folder / "again.m4a"
    file.write_bytes(m4a)
    command = ["ffmpeg", "-v", "error", "-i", file, "-f", "f32le", "-"]
    raw = subprocess.run(command, check=True, capture_output=True).stdout
    return np.frombuffer(raw, np.float32).reshape(-1, channels).T


@pytest.mark.parametrize(
    ("frames", "channels", "rate"),
    [(1, 1, 16000), (1000, 1, 8000), (1024, 2, 44100), (44100, 2, 44100), (100001, 1, 16000),
     (50000, 6, 48000)],
)  # fmt: skip
def test_audio_has_the_encoded_length_and_ffmpegs_samples(
    tmp_path: Path, frames: int, channels: int, rate: int
) -> None:
    m4a = encoded(tmp_path, frames, channels, rate)
    samples, actual_rate = decoded(m4a)
    assert (samples.shape, actual_rate) == ((channels, frames), rate)
    expected = decoded_by_ffmpeg(tmp_path, m4a, channels)
    assert expected.shape[1] >= frames  # it does not trim the padding of the last packet
    np.testing.assert_allclose(samples, expected[:, :frames], atol=1e-5)


def distance(part: np.ndarray[Any, Any], whole: np.ndarray[Any, Any]) -> float:
    """The largest difference between a clip and the most similar part of the whole."""
    frames = part.shape[1]
    windows = np.lib.stride_tricks.sliding_window_view(whole[0], frames)
    begin = int(np.abs(windows[:, ::50] - part[0, ::50]).mean(1).argmin())
    return float(np.abs(whole[:, begin : begin + frames] - part).max())


def folder_of_sounds(tmp_path: Path, *options: str) -> Path:
    folder = tmp_path / "sounds"
    folder.mkdir()
    for number in range(4):
        m4a = encoded(tmp_path, 30000 + number, 1, 16000, *options)
        (folder / f"{number}.m4a").write_bytes(m4a)
    return folder


def clips(folder: Path, seed: int, threads: int) -> np.ndarray[Any, Any]:
    loader = hr.Loader(
        hr.open(folder), [T.RandomClip(4000)], batch_size=4, shuffle=False, seed=seed,
        threads=threads,
    )  # fmt: skip
    return np.asarray(next(iter(loader))["audio"])


def test_a_random_clip_is_a_slice_of_the_whole(tmp_path: Path) -> None:
    folder = folder_of_sounds(tmp_path, "-aac_pns", "0")
    src = hr.open(folder)
    for seed in range(4):
        for number, part in enumerate(clips(folder, seed, 2)):
            assert distance(part, src[number]["audio"]) == 0


def test_noise_substitution_is_deterministic(tmp_path: Path) -> None:
    # It is drawn from where decoding begins, so it differs from the whole's.
    folder = folder_of_sounds(tmp_path, "-b:a", "24k")
    for seed in range(4):
        expected = clips(folder, seed, 1)
        np.testing.assert_array_equal(clips(folder, seed, 2), expected)


def test_truncated_or_damaged_files_are_errors_or_have_the_stated_length(tmp_path: Path) -> None:
    m4a = encoded(tmp_path, 20000, 1, 16000, "-movflags", "+faststart")
    draws = random.Random(2)
    refused = 0
    for part in range(0, 64):
        with pytest.raises(hr.Error, match="HR035"):
            _core.decode_audio(m4a[: len(m4a) * part // 64])
    for _ in range(400):
        damaged = bytearray(m4a)
        for _ in range(3):
            damaged[draws.randrange(len(m4a))] = draws.randrange(256)
        try:
            samples, _ = decoded(bytes(damaged))
        except hr.Error as error:
            assert error.code.startswith("HR035"), error
            refused += 1
        else:
            assert samples.ndim == 2
    assert refused > 0
    assert decoded(m4a)[0].shape == (1, 20000)


def test_unsupported_forms_are_refused_and_named(tmp_path: Path) -> None:
    m4a = encoded(tmp_path, 20000, 1, 16000)
    file, adts = tmp_path / "in.m4a", tmp_path / "out.aac"
    file.write_bytes(m4a)
    subprocess.run(["ffmpeg", "-v", "error", "-i", file, "-c", "copy", adts], check=True)
    with pytest.raises(hr.UnsupportedError, match=r"HR0352.*raw ADTS stream"):
        _core.decode_audio(adts.read_bytes())
    alac = tmp_path / "alac.m4a"
    subprocess.run(["ffmpeg", "-v", "error", "-i", file, "-c:a", "alac", alac], check=True)
    with pytest.raises(hr.UnsupportedError, match=r"HR0352.*alac"):
        _core.decode_audio(alac.read_bytes())


def locked_in() -> dict[str, str]:
    """For each process that decodes for this one, whether the kernel sandboxes it: 0 or 2."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (entry / "status").exists():
            status = (entry / "status").read_text()
            if "headrace-av" in status and f"PPid:\t{os.getpid()}\n" in status:
                found[entry.name] = status.split("Seccomp:\t")[1].split("\n")[0]
    return found


def test_noise_files_are_decoded_by_the_loaders_processes(tmp_path: Path) -> None:
    noises = hr.open(folder_of_sounds(tmp_path))
    speech = hr.records(sound=np.ones((4, 1, 400), np.float32), kinds={"sound": "audio"})
    wav = tmp_path / "one"
    wav.mkdir()
    (wav / "it.wav").write_bytes(wav_of(int16_waves(400, 1), 16000))
    known = T.Resample(16000, 16000)  # an array has no rate
    for source, first in ((speech, known), (hr.open(wav), T.PadOrTrim(400))):
        steps = [first, T.AddNoise(3.0, source=noises)]
        others = locked_in()  # of loaders left by earlier tests
        loader = hr.Loader(source, steps, batch_size=1, threads=1, isolate=False)
        next(iter(loader))
        processes = locked_in()  # another one may serve this loader, too
        assert {held for name, held in processes.items() if name not in others} <= {"0"}
        assert "0" in processes.values()
        loader.close()

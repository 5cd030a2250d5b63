# SPDX-License-Identifier: Apache-2.0
"""A clip of long audio only reads its part of the file, and equals a clip of the whole file."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import audio_files
import numpy as np
import pytest
import video_sounds
import videos

import headrace as hr
from headrace import transforms as T

MIB = 1 << 20
HOLE = 512 * MIB  # zeros, which take no disk space
TAG = 9 * MIB  # more than the limit for reading whole files
STEPS = [T.RandomClip(4000)]
RATE = 48000  # Opus only supports this one


def put(path: Path, head: bytes, zeros: int, rest: bytes) -> None:
    with path.open("wb") as file:
        file.write(head)
        file.seek(zeros, os.SEEK_CUR)
        file.write(rest)
        file.truncate(len(head) + zeros + len(rest))


def wav_with_hole(path: Path, data: bytes) -> None:
    """An unused chunk before the samples."""
    at = data.index(b"data")
    put(path, data[:at] + struct.pack("<4sI", b"JUNK", HOLE), HOLE, data[at:])


def with_tag(path: Path, data: bytes) -> None:
    """An unused tag before the audio."""
    size = bytes(TAG >> shift & 0x7F for shift in (21, 14, 7, 0))
    put(path, b"ID3\x04\x00\x00" + size, TAG, data)


def mp4_with_hole(path: Path, data: bytes) -> None:
    """An unused box at the end."""
    put(path, data + struct.pack(">I4s", HOLE, b"free"), HOLE - 8, b"")


def matroska_with_hole(path: Path, data: bytes, zeros: int = HOLE) -> None:
    """An unused element at the end of a segment of unknown size."""
    at = data.index(b"\x18\x53\x80\x67")
    live = data[: at + 4] + b"\x01" + b"\xff" * 7 + data[at + 12 :]
    put(path, live + b"\xec\x01" + (zeros - 9).to_bytes(7, "big"), zeros - 9, b"")


WITH_HOLE = {
    "wav": wav_with_hole,
    "flac": with_tag,
    "mp3": with_tag,
    "m4a": mp4_with_hole,
    "mka": matroska_with_hole,
}


def made(kind: str, folder: Path, seconds: float = 1.0) -> bytes:
    wave = audio_files.int16_waves(int(seconds * RATE), 2)
    if kind == "wav":
        return audio_files.wav_of(wave, RATE)
    if kind in ("flac", "mp3"):
        pytest.importorskip("soundfile")
        return audio_files.encoded(wave, RATE, format=kind.upper())
    if not shutil.which("ffmpeg"):
        pytest.skip("no ffmpeg")
    source, path = folder / "made.wav", folder / f"made.{kind}"
    source.write_bytes(audio_files.wav_of(wave, RATE))
    codec = {"m4a": "aac", "mka": "libopus"}[kind]
    command = ["ffmpeg", "-v", "error", "-y", "-i", source, "-c:a", codec, path]
    subprocess.run(command, check=True)
    return path.read_bytes()


def bytes_read() -> int:
    """Bytes read by this process so far, from files and pipes."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def clips(source: Any, **options: Any) -> np.ndarray[Any, Any]:
    loader = hr.Loader(source, STEPS, batch_size=1, seed=5, **options)
    return np.concatenate([np.asarray(batch["audio"]) for batch in loader])


def in_memory(data: bytes) -> hr.Source:
    return hr.open([{"audio": data}], kinds={"audio": "audio"})


@pytest.mark.parametrize("kind", WITH_HOLE)
def test_a_clip_of_a_large_file_equals_that_of_its_bytes_in_memory(
    tmp_path: Path, kind: str
) -> None:
    data = made(kind, tmp_path)
    folder = tmp_path / "large"
    folder.mkdir()
    WITH_HOLE[kind](folder / f"it.{kind}", data)
    source = hr.open(folder)
    before = bytes_read()
    got = clips(source, memory_limit="96 MiB")
    if kind != "mp3":  # whose library reads past a tag
        assert bytes_read() - before < 4 * MIB
    np.testing.assert_array_equal(got, clips(in_memory(data)))


@pytest.mark.parametrize("kind", ["VORBIS", "OPUS"])
def test_a_clip_of_a_large_ogg_file_equals_that_of_its_bytes_in_memory(
    tmp_path: Path, kind: str
) -> None:
    soundfile = pytest.importorskip("soundfile")
    noise = np.random.default_rng(1).integers(-20000, 20000, (2, 48000 * 170), np.int16)
    path = tmp_path / "it.ogg"
    with soundfile.SoundFile(path, "w", RATE, 2, kind, format="OGG", compression_level=0.0) as file:
        for begin in range(0, noise.shape[1], RATE):  # Vorbis uses no more stack
            file.write(noise[:, begin : begin + RATE].T)
    data = path.read_bytes()
    assert len(data) > 8 * MIB
    np.testing.assert_array_equal(clips(hr.open(tmp_path)), clips(in_memory(data)))


def test_lengths_of_large_files_are_read_from_their_headers(tmp_path: Path) -> None:
    for number in range(3):
        wav_with_hole(tmp_path / f"{number}.wav", made("wav", tmp_path, 0.5 + number))
    source = hr.open(tmp_path)
    before = bytes_read()
    assert [int(n) for n in source.lengths("audio")] == [24000, 72000, 120000]
    assert bytes_read() - before < MIB


def test_noises_of_large_files_are_read_by_range(tmp_path: Path) -> None:
    data = made("wav", tmp_path)
    folder = tmp_path / "noises"
    folder.mkdir()
    wav_with_hole(folder / "it.wav", data)
    sound = audio_files.wav_of(audio_files.int16_waves(8000, 2), RATE)

    def mixed(noises: hr.Source) -> np.ndarray[Any, Any]:
        steps = [T.RandomClip(4000), T.AddNoise((5, 20), source=noises)]
        loader = hr.Loader(in_memory(sound), steps, batch_size=1, memory_limit="96 MiB")
        batch = next(iter(loader))
        return np.asarray(batch["audio"])

    np.testing.assert_array_equal(mixed(hr.open(folder)), mixed(in_memory(data)))


def test_a_large_file_that_is_truncated_while_open_is_an_error_with_its_name(
    tmp_path: Path,
) -> None:
    data = audio_files.wav_of(audio_files.int16_waves(10 * MIB // 4, 2), RATE)
    path = tmp_path / "it.wav"
    path.write_bytes(data)
    loader = hr.Loader(hr.open(tmp_path), [T.CenterClip(4000)], batch_size=1)
    next(iter(loader))
    os.truncate(path, 9 * MIB)
    with pytest.raises(hr.DataError, match=r"(?s)HR0351.*it\.wav"):
        next(iter(loader))


@pytest.mark.parametrize("container", ["mp4", "matroska"])
def test_the_audio_of_a_video_clip_is_read_by_range_too(tmp_path: Path, container: str) -> None:
    pytest.importorskip("av", reason="av makes the videos")
    if missing := videos.missing_decoder():
        pytest.skip(missing)
    if container == "mp4":
        data = video_sounds.film(2.0)
    else:
        data = video_sounds.film(2.0, container="matroska", sound="libopus")
    folder = tmp_path / "large"
    folder.mkdir()
    if container == "mp4":
        mp4_with_hole(folder / "it.mp4", data)
    else:  # the memory reserved for audio grows with the bytes that are not pictures
        matroska_with_hole(folder / "it.mkv", data, 32 * MIB)
    steps = [
        T.RandomVideoClips(4, fps=8.0, audio=RATE, audio_channels=1, missing_audio="silence"),
        T.CenterCrop((16, 64)),
    ]

    def heard(source: hr.Source, **options: Any) -> np.ndarray[Any, Any]:
        batch = next(iter(hr.Loader(source, steps, batch_size=1, seed=3, **options)))
        return np.asarray(batch["video_audio"])

    source = hr.open(folder)
    before = bytes_read()
    got = heard(source, memory_limit="600 MiB")
    assert bytes_read() - before < 8 * MIB
    expected = heard(hr.open([{"video": data}], kinds={"video": "video"}))
    np.testing.assert_array_equal(got, expected)
    assert np.abs(got).max() > 0.05

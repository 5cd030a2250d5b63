# SPDX-License-Identifier: Apache-2.0
"""Audio has exactly the samples of its file: with unstated lengths, tags and other files after it,
and encoder padding."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import audio_files
import numpy as np
import pytest

import headrace as hr
from headrace import _core
from headrace import transforms as T

Array = np.ndarray[Any, Any]

needs_ffmpeg = pytest.mark.skipif(not shutil.which("ffmpeg"), reason="ffmpeg makes the files")


def samples_of(data: bytes) -> Array:
    return np.asarray(_core.decode_audio(data)[0])


def ffmpeg(*arguments: str, into: str = "-f f32le -", data: bytes | None = None) -> bytes:
    command = ["ffmpeg", "-v", "error", "-y", *(" ".join(arguments) + " " + into).split()]
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


def ffmpegs(path: Path, channels: int = 1) -> Array:
    """(channels, frames) as decoded by ffmpeg's command line."""
    raw = ffmpeg("-i", str(path), into=f"-map 0:a -ac {channels} -f f32le -")
    return np.frombuffer(raw, np.float32).reshape(-1, channels).T


# WAV


WAVE = audio_files.int16_waves(8000)
KILLED = {"data": 0, "riff": 0}
ENDLESS = {"data": 0xFFFFFFFF, "riff": 0xFFFFFFFF}


def wav(data: int, riff: int, behind: bytes = b"", samples: Array = WAVE) -> bytes:
    form = struct.pack("<HHIIHH", 1, 1, 16000, 32000, 2, 16)
    head = b"RIFF" + struct.pack("<I", riff) + b"WAVEfmt " + struct.pack("<I", 16) + form
    return head + b"data" + struct.pack("<I", data) + samples.tobytes() + behind


def rf64(data: int, riff: int = 0, name: bytes = b"RF64") -> bytes:
    form = struct.pack("<HHIIHH", 1, 1, 16000, 32000, 2, 16)
    sizes = b"ds64" + struct.pack("<IQQQI", 28, riff, data, 0, 0)
    head = name + b"\xff" * 4 + b"WAVE" + sizes + b"fmt " + struct.pack("<I", 16) + form
    return head + b"data" + b"\xff" * 4 + WAVE.tobytes()


@pytest.mark.parametrize(
    "data",
    [
        wav(**KILLED),
        wav(data=0, riff=36),
        wav(**ENDLESS),
        wav(data=0xFFFFFFFF, riff=0),
        wav(**KILLED, behind=b"\x07"),  # half of a frame
        rf64(0),
        rf64(2**64 - 1, 2**64 - 1),
        rf64(0, name=b"BW64"),
        rf64(16000),
    ],
    ids=["killed", "no data", "pipe", "no riff", "half", "rf64", "rf64 pipe", "bw64", "whole"],
)
@needs_ffmpeg
def test_a_recording_without_stored_lengths_is_complete(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.wav").write_bytes(data)
    np.testing.assert_array_equal(samples_of(data), WAVE / np.float32(32768))
    if data.startswith(b"RIFF"):  # for RF64 it does not check such lengths
        np.testing.assert_array_equal(ffmpegs(tmp_path / "a.wav"), WAVE / np.float32(32768))


def test_silence_without_a_stored_length_has_its_actual_length() -> None:
    silence = np.zeros((1, 500), np.int16)
    assert samples_of(wav(**KILLED, samples=silence)).shape == (1, 500)


def test_empty_audio_followed_by_chunks_is_empty() -> None:
    pytest.importorskip("soundfile")
    none = WAVE[:, :0]
    for behind in (b"", b"LIST" + struct.pack("<I", 4) + b"INFO", b"id3 \x01\0\0\0x\0"):
        data = wav(0, 36 + len(behind), behind, none)
        assert samples_of(data).shape == audio_files.decoded(data)[0].shape == (1, 0)


# FLAC and MP3


APE = b"APETAGEX" + struct.pack("<IIII", 2000, 43, 1, 0xA0000000) + bytes(8)
APE += struct.pack("<II", 11, 0) + b"Title\0a title is it"[:17]
APE += b"APETAGEX" + struct.pack("<IIII", 2000, 43, 1, 0x80000000) + bytes(8)
APE = APE.replace(struct.pack("<II", 2000, 43), struct.pack("<II", 2000, len(APE) - 32))
ID3 = b"TAG" + b"a title".ljust(30, b"\0") + bytes(95)
BEHIND = {
    "id3": ID3,
    "ape": APE,
    "both": APE + ID3,
    "zeros": bytes(64),
    "all": bytes(9) + APE + ID3,
}


@pytest.mark.parametrize("format", ["FLAC", "MP3"])
@pytest.mark.parametrize("behind", BEHIND)
def test_tags_after_audio_are_not_audio(format: str, behind: str) -> None:
    pytest.importorskip("soundfile")
    data = audio_files.encoded(audio_files.waves(9000), 16000, format=format)
    want = samples_of(data)
    np.testing.assert_array_equal(samples_of(data + BEHIND[behind]), want)
    if format == "FLAC":
        np.testing.assert_array_equal(audio_files.decoded(data + BEHIND[behind])[0], want)


@pytest.mark.parametrize("behind", BEHIND)
def test_tags_after_a_flac_without_a_length(behind: str) -> None:
    pytest.importorskip("soundfile")
    data = bytearray(audio_files.encoded(audio_files.waves(20000), 16000, format="FLAC"))
    want = samples_of(bytes(data))
    data[21:26] = bytes([data[21] & 0xF0, 0, 0, 0, 0])
    np.testing.assert_array_equal(samples_of(bytes(data) + BEHIND[behind]), want)
    for damaged in (data[:-5] + BEHIND[behind], data + b"other bytes" + BEHIND[behind]):
        with pytest.raises(hr.DataError, match=r"HR035[01]"):
            samples_of(bytes(damaged))


def test_a_flac_with_more_frames_than_declared_is_an_error() -> None:
    pytest.importorskip("soundfile")
    data = audio_files.encoded(audio_files.waves(9000), 16000, format="FLAC")
    want = samples_of(data)
    np.testing.assert_array_equal(samples_of(data + b"\xff\xf8 no frame \xff\xf8\xc9"), want)
    with pytest.raises(hr.DataError, match="HR0350"):
        samples_of(data + data)
    short = bytearray(data)
    short[22:26] = struct.pack(">I", 4096)  # of 9000
    with pytest.raises(hr.DataError, match=r"HR0350.*more than the 4096 frames"):
        samples_of(bytes(short))


@pytest.mark.parametrize("between", [b"", ID3, b"ID3\4\0\0\0\0\0\x14" + bytes(20)], ids=range(3))
def test_concatenated_mp3s_are_an_error(between: bytes) -> None:
    pytest.importorskip("soundfile")
    one = audio_files.encoded(audio_files.int16_waves(64000), 16000, format="MP3")
    two = audio_files.encoded(audio_files.int16_waves(8000, seed=3), 16000, format="MP3")
    assert b"Info" in one[:64] or b"Xing" in one[:64]
    for data in (one + between + two, two + between + one):
        with pytest.raises(hr.Error, match=r"HR0352.*several"):
            _core.audio_header(data)


# Matroska


@needs_ffmpeg
@pytest.mark.parametrize(
    "how",
    [
        "-ar 44100 -c:a libmp3lame",
        "-ar 16000 -c:a libmp3lame -b:a 24k",
        "-ar 48000 -c:a libopus",
        "-ar 44100 -c:a aac",
        "-ar 44100 -c:a flac",
        "-ar 44100 -c:a libvorbis",
    ],
    ids=lambda how: how.split()[3],
)
@pytest.mark.parametrize("seconds", [1.0, 1.2345])
def test_audio_in_matroska_ends_where_ffmpeg_ends_it(
    tmp_path: Path, how: str, seconds: float
) -> None:
    rate = int(how.split()[1])
    path = tmp_path / "a.mka"
    source = f"-f lavfi -i sine=frequency=440:sample_rate={rate}:duration={seconds}"
    ffmpeg(source, how, into=str(path))
    want = ffmpegs(path)
    got = samples_of(path.read_bytes())
    if "aac" in how or "vorbis" in how:  # nothing marks their end
        assert got.shape[1] >= want.shape[1]
        got = got[:, : want.shape[1]]
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, atol=2e-4 if "opus" in how else 1e-5)


# Opus


@needs_ffmpeg
@pytest.mark.parametrize("how", ["12k -application voip", "20k -application audio", "96k"])
@pytest.mark.parametrize("channels", [1, 2])
def test_a_window_of_opus_is_the_slice_of_the_whole(
    tmp_path: Path, how: str, channels: int
) -> None:
    speech = audio_files.waves(10 * 48000, channels, 48000) * np.abs(
        np.sin(np.arange(480000) / 9000)
    )
    (tmp_path / "in.wav").write_bytes(audio_files.wav_of(speech.astype(np.float32), 48000))
    ffmpeg(f"-i {tmp_path}/in.wav -c:a libopus -b:a {how}", into=f"{tmp_path}/a.opus")
    whole = samples_of((tmp_path / "a.opus").read_bytes())
    for count in (1000, 48000, 240000, 400000):
        loader = hr.Loader(
            hr.records(audio=[tmp_path / "a.opus"]), [T.CenterClip(count)], batch_size=1
        )
        clip = np.asarray(next(iter(loader)).audio[0])
        begin = (whole.shape[1] - count) // 2
        np.testing.assert_allclose(clip, whole[:, begin : begin + count], atol=1e-5)


@needs_ffmpeg
def test_a_window_after_a_minute_of_silk_is_close_to_the_slice(tmp_path: Path) -> None:
    speech = audio_files.waves(140 * 16000) * np.abs(np.sin(np.arange(140 * 16000) / 3000))
    (tmp_path / "in.wav").write_bytes(audio_files.wav_of(speech.astype(np.float32)))
    ffmpeg(f"-i {tmp_path}/in.wav -c:a libopus -b:a 12k", into=f"{tmp_path}/a.opus")
    whole = samples_of((tmp_path / "a.opus").read_bytes())
    loader = hr.Loader(hr.records(audio=[tmp_path / "a.opus"]), [T.CenterClip(48000)], batch_size=1)
    clip = np.asarray(next(iter(loader)).audio[0])
    begin = (whole.shape[1] - 48000) // 2
    assert begin > 61 * 48000
    np.testing.assert_allclose(clip, whole[:, begin : begin + 48000], atol=1e-2)

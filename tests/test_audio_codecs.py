# SPDX-License-Identifier: Apache-2.0
"""Audio clips decode as with libsndfile, whole and in windows; damage is an error."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import audio_files
import numpy as np
import pytest

import headrace as hr
from headrace import _core
from headrace import transforms as T

LOSSLESS = [
    {"format": "WAV", "subtype": subtype}
    for subtype in ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW")
] + [
    {"format": "WAVEX", "subtype": "PCM_24"},
    {"format": "RF64", "subtype": "PCM_16"},
    {"format": "FLAC", "subtype": "PCM_S8"},
    {"format": "FLAC", "subtype": "PCM_16"},
    {"format": "FLAC", "subtype": "PCM_24"},
]
LOSSY = [
    {"format": "OGG", "subtype": "VORBIS"},
    {"format": "OGG", "subtype": "OPUS"},
    {"format": "MP3", "subtype": "MPEG_LAYER_III"},
]


def name(how: dict[str, str]) -> str:
    return "-".join(how.values())


def samples_of(data: bytes) -> tuple[np.ndarray[Any, Any], int]:
    samples, rate = _core.decode_audio(data)
    return np.asarray(samples), rate


@pytest.mark.parametrize("how", LOSSLESS, ids=name)
@pytest.mark.parametrize("channels", [1, 2, 6])
@pytest.mark.parametrize("frames", [1, 7, 5000])
def test_lossless_audio_equals_libsndfiles_bit_for_bit(
    how: dict[str, str], channels: int, frames: int
) -> None:
    pytest.importorskip("soundfile")
    data = audio_files.encoded(audio_files.waves(frames, channels), 44100, **how)
    expected, rate = audio_files.decoded(data)
    actual, actual_rate = samples_of(data)
    assert actual_rate == rate == 44100
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("how", LOSSY, ids=name)
@pytest.mark.parametrize("channels", [1, 2])
def test_lossy_audio_equals_libsndfiles_within_a_bound(how: dict[str, str], channels: int) -> None:
    pytest.importorskip("soundfile")
    data = audio_files.encoded(audio_files.waves(48000, channels, 48000), 48000, **how)
    expected, rate = audio_files.decoded(data)
    actual, actual_rate = samples_of(data)
    assert (actual.shape, actual_rate) == (expected.shape, rate)
    bound = 5e-4 if how["subtype"] == "OPUS" else 1e-5
    np.testing.assert_allclose(actual, expected, atol=bound)


def test_eight_bit_samples_are_fractions_of_128() -> None:
    actual, rate = samples_of(audio_files.wav(bytes(range(256)), 1, 8))
    assert rate == audio_files.RATE
    np.testing.assert_array_equal(actual[0], (np.arange(256) - 128).astype(np.float32) / 128)


@pytest.mark.parametrize("how", LOSSLESS + LOSSY, ids=name)
@pytest.mark.parametrize("channels", [1, 2])
def test_a_random_clip_is_a_slice_of_the_whole(
    how: dict[str, str], channels: int, tmp_path: Path
) -> None:
    pytest.importorskip("soundfile")
    frames, clip = 60000, 4000
    for number in range(6):
        data = audio_files.encoded(audio_files.waves(frames, channels, 48000, number), 48000, **how)
        (tmp_path / f"{number}.wav").write_bytes(data)
    src = hr.open(tmp_path)
    seen = set()
    for seed in range(4):
        loader = hr.Loader(
            src, [T.RandomClip(clip)], batch_size=6, shuffle=False, seed=seed, threads=2
        )
        for number, part in enumerate(next(iter(loader))["audio"]):
            whole = src[number]["audio"]
            assert part.shape == (channels, clip)
            begin = place_of(part, whole, 0 if how in LOSSLESS else 1e-5)
            seen.add(begin)
    assert len(seen) > 15


def place_of(part: np.ndarray[Any, Any], whole: np.ndarray[Any, Any], bound: float) -> int:
    """The position of a clip in the whole; fails if it is not a slice of it."""
    first = np.abs(whole[0, : whole.shape[1] - part.shape[1] + 1] - part[0, 0])
    for begin in np.argsort(first, kind="stable")[:2000]:
        if first[begin] > bound:
            break
        there = whole[:, begin : begin + part.shape[1]]
        if np.abs(there - part).max() <= bound:
            return int(begin)
    raise AssertionError("the clip is not a slice of the audio")


def test_a_header_that_declares_too_much_allocates_nothing() -> None:
    pytest.importorskip("soundfile")
    flac = bytearray(audio_files.encoded(audio_files.waves(1000), 16000, format="FLAC"))
    flac[21] |= 15  # 2^36 frames
    flac[22:26] = b"\xff" * 4
    with pytest.raises(hr.DataError, match=r"HR0350.*declares"):
        _core.decode_audio(bytes(flac))
    wav = bytearray(audio_files.wav_of(audio_files.int16_waves(1000)))
    place = wav.index(b"data") + 4
    wav[place : place + 4] = struct.pack("<I", 2**31)
    with pytest.raises(hr.DataError, match=r"HR0351.*1000 of the 1073741824 frames"):
        _core.decode_audio(bytes(wav))


def test_a_wav_from_a_pipe_is_read_to_its_end() -> None:
    samples = audio_files.int16_waves(1000, 2)
    wav = bytearray(audio_files.wav_of(samples))
    place = wav.index(b"data") + 4
    wav[place : place + 4] = b"\xff" * 4
    actual, _ = samples_of(bytes(wav))
    np.testing.assert_array_equal(actual, samples.astype(np.float32) / 32768)


@pytest.mark.parametrize("how", [{"format": "WAV"}, {"format": "FLAC"}, *LOSSY], ids=name)
def test_truncated_audio_is_an_error_or_shorter_but_never_different(
    how: dict[str, str],
) -> None:
    pytest.importorskip("soundfile")
    data = audio_files.encoded(audio_files.waves(30000, 1, 48000), 48000, **how)
    whole, _ = samples_of(data)
    refused = 0
    for part in range(64):
        try:
            actual, _ = samples_of(data[: len(data) * part // 64])
        except hr.DataError as error:
            assert error.code.startswith("HR035")
            refused += 1
        else:
            assert how["format"] in ("OGG", "MP3")  # their length is at the end
            assert actual.shape[1] < whole.shape[1]
    assert refused >= (64 if how["format"] in ("WAV", "FLAC") else 1)


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
def test_damage_in_an_ogg_file_is_an_error_wherever_it_is(subtype: str) -> None:
    pytest.importorskip("soundfile")
    data = audio_files.encoded(
        audio_files.waves(30000, 1, 48000), 48000, format="OGG", subtype=subtype
    )
    for place in range(0, len(data), len(data) // 97):
        damaged = bytearray(data)
        damaged[place] ^= 1
        with pytest.raises(hr.Error, match="HR035"):
            _core.decode_audio(bytes(damaged))
    with pytest.raises(hr.UnsupportedError, match=r"HR0352.*several streams"):
        _core.decode_audio(data + data)
    last_page = data.rindex(b"OggS")
    pages = [i for i in range(len(data)) if data.startswith(b"OggS", i)]
    without_one = data[: pages[2]] + data[pages[3] :] if len(pages) > 3 else data[:last_page]
    if len(pages) > 3:
        with pytest.raises(hr.DataError, match=r"HR0351.*lacks pages"):
            _core.decode_audio(without_one)


def test_unsupported_files_are_refused_with_the_reason_and_a_hint() -> None:
    adpcm = audio_files.wav(b"\0" * 64, 1, 8, tag=2)
    with pytest.raises(hr.Error, match=r"HR0352.*ADPCM"):
        _core.decode_audio(adpcm)
    aac = b"\xff\xf1\x50\x80\x01\x7f\xfc" + b"\0" * 32
    with pytest.raises(hr.Error, match=r"HR0352 (.|\n)*ffmpeg -i in.m4a out.flac"):
        _core.decode_audio(aac)
    for name, first in (("FLAC in Ogg", b"\x7fFLAC\1\0\0\1fLaC"), ("Speex", b"Speex   1.2rc1")):
        page = b"OggS\0\2" + bytes(20) + bytes([1, 60]) + first.ljust(60, b"\0")
        with pytest.raises(hr.Error, match=rf"HR0352.*this {name} file(.|\n)*ffmpeg"):
            _core.decode_audio(page)
    with pytest.raises(hr.DataError, match=r"HR0354.*they begin with 3c 68"):
        _core.decode_audio(b"<html>")


def test_a_source_of_unsupported_files_says_why_and_not_that_they_are_damaged() -> None:
    adpcm = {"audio": audio_files.wav(b"\0" * 64, 1, 8, tag=2)}
    with pytest.raises(hr.UnsupportedError, match=r"HR0352.*\n?.*audio.*record 0.*ADPCM"):
        hr.Loader(hr.open([adpcm], kinds={"audio": "audio"}), batch_size=1)
    damaged = {"audio": b"RIFF" + bytes(40)}
    with pytest.raises(hr.DataError, match=r"HR0357.*record 0"):
        hr.Loader(hr.open([damaged], kinds={"audio": "audio"}), batch_size=1)


def found(folder: str) -> list[Path]:
    root = os.environ.get("HEADRACE_TEST_DATA")
    if not root:
        pytest.skip("HEADRACE_TEST_DATA names no folder")
    return sorted(path for path in (Path(root) / folder).rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("folder", "bound"), [("wav", 0), ("flac", 0), ("mp3", 1e-5), ("ogg", 1e-5)]
)
def test_real_files_are_decoded_as_by_libsndfile(folder: str, bound: float) -> None:
    pytest.importorskip("soundfile")
    compared = 0
    for path in found(f"audio/{folder}"):
        try:
            expected, rate = audio_files.decoded(path.read_bytes())
        except Exception:
            continue  # libsndfile rejects it
        actual, actual_rate = samples_of(path.read_bytes())
        assert actual_rate == rate, path
        np.testing.assert_allclose(actual, expected, rtol=0, atol=bound, err_msg=str(path))
        compared += 1
    assert compared > 0


def test_real_damaged_files_are_errors_or_what_libsndfile_reads() -> None:
    pytest.importorskip("soundfile")
    for path in found("corrupt/audio"):
        data = path.read_bytes()
        for part in range(1, 17):
            try:
                actual, _ = samples_of(data[: len(data) * part // 16])
            except hr.Error as error:
                assert error.code.startswith("HR035"), path
                continue
            expected, _ = audio_files.decoded(data[: len(data) * part // 16])
            np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5, err_msg=str(path))

# SPDX-License-Identifier: Apache-2.0
"""Rare, odd and hostile audio files are read as by libsndfile, or are clear errors."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path
from typing import Any

import audio_files
import numpy as np
import pytest

import headrace as hr
from headrace import _core
from headrace import transforms as T

Array = np.ndarray[Any, Any]


def samples_of(data: bytes) -> tuple[Array, int]:
    samples, rate = _core.decode_audio(data)
    return np.asarray(samples), rate


def extensible(samples: Array, tag: int, valid_bits: int, mask: int = 0) -> bytes:
    """(channels, frames) as WAVE_FORMAT_EXTENSIBLE, by its definition."""
    channels, bits = len(samples), 8 * samples.dtype.itemsize
    stored = np.ascontiguousarray(samples.T).tobytes()
    guid = struct.pack("<H", tag) + bytes.fromhex("000000001000800000aa00389b71")
    frame = channels * bits // 8
    form = struct.pack("<HHIIHH", 0xFFFE, channels, 16000, 16000 * frame, frame, bits)
    form += struct.pack("<HHI", 22, valid_bits, mask) + guid
    chunks = b"fmt " + struct.pack("<I", len(form)) + form
    chunks += b"data" + struct.pack("<I", len(stored)) + stored + b"\0" * (len(stored) % 2)
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


@pytest.mark.parametrize("channels", [1, 3, 32, 64])
@pytest.mark.parametrize("kind", ["u1", "<i2", "<i4", "<f4", "<f8"])
def test_extensible_wavs_of_many_channels_are_read(channels: int, kind: str) -> None:
    dtype = np.dtype(kind)
    waves = audio_files.waves(77, channels)
    if dtype.kind == "f":
        stored, tag, want = waves.astype(dtype), 3, waves.astype(dtype).astype(np.float32)
    else:
        full = 2.0 ** (8 * dtype.itemsize - 1)
        stored = (waves * (full - 1) + (full if dtype.kind == "u" else 0)).astype(dtype)
        want = ((stored.astype(np.float64) - (full if dtype.kind == "u" else 0)) / full).astype(
            np.float32
        )
        tag = 1
    got, rate = samples_of(extensible(stored, tag, 8 * dtype.itemsize))
    assert rate == 16000
    np.testing.assert_array_equal(got, want)


def test_too_many_channels_are_refused_with_a_hint() -> None:
    with pytest.raises(hr.Error, match=r"HR0352.*65 channels(.|\n)*convert it to fewer"):
        samples_of(extensible(np.zeros((65, 3), np.int16), 1, 16))


@pytest.mark.parametrize("rate", [1, 7, 8001, 11025, 44099, 192000, 768000])
def test_unusual_sample_rates_are_read(rate: int) -> None:
    wave = audio_files.int16_waves(1000)
    got, found = samples_of(audio_files.wav_of(wave, rate))
    assert found == rate
    np.testing.assert_array_equal(got, wave / np.float32(32768))


@pytest.mark.parametrize("rate", [0, 768001, 2**30])
def test_sample_rates_that_are_zero_or_too_high_are_refused(rate: int) -> None:
    with pytest.raises(hr.Error, match=r"HR035[02].*Hz"):
        samples_of(audio_files.wav_of(audio_files.int16_waves(10), rate))


@pytest.mark.parametrize("format", ["WAV", "RF64", "FLAC", "OGG", "MP3"])
@pytest.mark.parametrize("frames", [0, 1])
def test_empty_audio_and_a_single_frame(tmp_path: Path, format: str, frames: int) -> None:
    pytest.importorskip("soundfile")
    data = audio_files.encoded(audio_files.waves(frames, 2), 16000, format=format)
    try:
        want, rate = audio_files.decoded(data)
    except RuntimeError:  # libsndfile does not read its own empty file
        want, rate = np.zeros((2, 0), np.float32), 16000
    try:
        got, found = samples_of(data)
    except hr.DataError as error:
        assert frames == 0 and "HR035" in str(error) and "help" in str(error)
        return
    assert found == rate and got.shape == want.shape
    np.testing.assert_allclose(got, want, atol=1e-5)
    (tmp_path / "a.wav").write_bytes(data)  # of any format: it is recognized by its bytes
    steps = [T.PadOrTrim(50), T.MelSpectrogram(16000, n_fft=32, n_mels=4)]
    batch = next(iter(hr.Loader(hr.open(tmp_path), steps, batch_size=1)))
    assert np.isfinite(batch.audio).all()
    with pytest.raises(hr.DataError, match=r"HR0540(.|\n)*pad_if_needed"):
        next(iter(hr.Loader(hr.open(tmp_path), [T.RandomClip(50)], batch_size=1)))


def test_nans_are_delivered_but_not_converted_to_integers(tmp_path: Path) -> None:
    odd = np.array([[0.5, np.nan, np.inf, -np.inf, 1e38, -0.0, 1e-42, -3]], np.float32)
    for stored in (odd, odd.astype(np.float64)):
        got, _ = samples_of(audio_files.wav_of(stored))
        np.testing.assert_array_equal(got.view(np.uint32), odd.view(np.uint32))
    (tmp_path / "a.wav").write_bytes(audio_files.wav_of(odd))
    steps = [T.ToDtype("int16", scale=True, fields="audio")]
    with pytest.raises(hr.DataError, match=r"HR0545.*NaN, which int16 cannot represent"):
        next(iter(hr.Loader(hr.open(tmp_path), steps, batch_size=1, ragged="list")))
    doubles = np.array([[1e300, -1e300, 1e-300]])
    got, _ = samples_of(audio_files.wav_of(doubles))
    np.testing.assert_array_equal(got, [[np.inf, -np.inf, 0]])


@pytest.mark.parametrize("format", ["MP3", "FLAC"])
def test_a_tag_of_ten_megabytes_before_the_audio(tmp_path: Path, format: str) -> None:
    pytest.importorskip("soundfile")
    data = audio_files.encoded(audio_files.waves(16000), 16000, format=format)
    want, _ = audio_files.decoded(data)
    size = 10 << 20
    lengths = bytes(size >> shift & 0x7F for shift in (21, 14, 7, 0))
    cover = b"ID3\x04\x00\x00" + lengths + b"\xff\xfb\x90\x64" * (size // 4)
    small = b"ID3\x03\x00\x00\x00\x00\x00\x10" + b"\0" * 16
    for tags in (cover, small, small + cover, small * 5):
        got, _ = samples_of(tags + data)
        np.testing.assert_allclose(got, want, atol=1e-5)
    (tmp_path / f"a.{format.lower()}").write_bytes(cover + data)
    (tmp_path / "b").write_bytes(cover + data)  # a name without information
    source = hr.open(tmp_path)
    batch = next(iter(hr.Loader(source, [T.CenterClip(4000)], batch_size=len(source))))
    np.testing.assert_allclose(batch.audio[0], want[:, 6000:10000], atol=1e-5)
    with pytest.raises(hr.DataError, match=r"HR035\d"):
        samples_of(cover)
    with pytest.raises(hr.DataError, match=r"HR035\d"):
        samples_of(cover[:1000])


def test_a_vbr_mp3_without_a_table_has_its_full_length() -> None:
    soundfile = pytest.importorskip("soundfile")
    waves = audio_files.waves(80000, rate=16000)
    waves[:, :30000] *= 1e-3
    how = {"format": "MP3", "bitrate_mode": "VARIABLE", "compression_level": 0.3}
    try:
        data = audio_files.encoded(waves, 16000, **how)
    except TypeError:
        pytest.skip(f"soundfile {soundfile.__version__} writes no varying bit rates")
    at = max(data.find(b"Xing"), data.find(b"Info"))
    assert 0 < at < 200
    second = data.find(data[:2], at)  # the frame after the one with the table
    got, _ = samples_of(data[second:])
    want, _ = audio_files.decoded(data[second:])
    assert abs(got.shape[1] - 80000) < 4 * 1152
    frames = min(got.shape[1], want.shape[1])
    np.testing.assert_allclose(got[:, :frames], want[:, :frames], atol=1e-5)
    with_table, _ = samples_of(data)
    assert with_table.shape == (1, 80000)


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
def test_chained_ogg_files_are_refused_and_named(subtype: str) -> None:
    pytest.importorskip("soundfile")
    one = audio_files.encoded(audio_files.waves(9000), 48000, format="OGG", subtype=subtype)
    two = audio_files.encoded(audio_files.waves(4000, seed=2), 48000, format="OGG", subtype=subtype)
    with pytest.raises(hr.Error, match=r"HR0352.*several streams(.|\n)*ffmpeg"):
        samples_of(one + two)


def without_total(flac: bytes) -> bytes:
    """The number of samples in STREAMINFO has 36 bits; 0 means unknown."""
    data = bytearray(flac)
    data[21] &= 0xF0
    data[22:26] = bytes(4)
    return bytes(data)


def test_a_flac_without_a_length(tmp_path: Path) -> None:
    pytest.importorskip("soundfile")
    data = without_total(audio_files.encoded(audio_files.waves(20000, 2), 16000, format="FLAC"))
    want, _ = audio_files.decoded(
        audio_files.encoded(audio_files.waves(20000, 2), 16000, format="FLAC")
    )
    got, _ = samples_of(data)
    np.testing.assert_array_equal(got, want)
    (tmp_path / "a.flac").write_bytes(data)
    batch = next(iter(hr.Loader(hr.open(tmp_path), [T.CenterClip(3000)], batch_size=1)))
    np.testing.assert_array_equal(batch.audio[0], want[:, 8500:11500])
    for end in (len(data) // 2, len(data) - 3):
        with pytest.raises(hr.DataError, match=r"HR035[01]"):
            samples_of(data[:end])


def test_chunks_with_wrong_lengths_allocate_nothing() -> None:
    good = audio_files.wav_of(audio_files.int16_waves(300))
    tracemalloc.start()
    for at in range(0, 60, 2):
        for number in (0, 1, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF):
            data = bytearray(good)
            data[at : at + 4] = struct.pack("<I", number)
            try:
                got, _ = samples_of(bytes(data))
                assert got.size <= 2 * len(data)
            except hr.Error as error:
                assert "HR035" in str(error)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_chunks_after_an_odd_number_of_audio_bytes_are_skipped() -> None:
    wave = np.arange(33, dtype=np.uint8)[None]
    data = audio_files.wav(wave.tobytes(), 1, 8) + b"id3 " + struct.pack("<I", 4) + b"tail"
    got, _ = samples_of(data)
    np.testing.assert_array_equal(got, (wave.astype(np.float32) - 128) / 128)


EACH = {
    "resample": [T.Resample(new_freq=8000)],
    "speed": [T.Speed(16000, 1.1)],
    "trim": [T.TrimSilence()],
    "mono": [T.Mono(), T.Vol(2.0), T.Fade(3, 3), T.Preemphasis()],
    "mel": [T.MelSpectrogram(16000, n_mels=8), T.AmplitudeToDB(top_db=80.0)],
    "mfcc": [T.MFCC(16000, n_mfcc=5, n_mels=8)],
    "kaldi": [T.Mono(), T.KaldiFbank(num_mel_bins=9)],
}


@pytest.mark.parametrize("case", EACH)
@pytest.mark.parametrize("frames", [0, 1, 2, 399, 400])
@pytest.mark.parametrize("channels", [1, 32])
def test_steps_on_unusual_audio_give_numbers_or_errors_with_a_hint(
    tmp_path: Path, case: str, frames: int, channels: int
) -> None:
    wave = audio_files.waves(frames, channels).astype(np.float32)
    (tmp_path / "a.wav").write_bytes(audio_files.wav_of(wave))
    loader = hr.Loader(hr.open(tmp_path), EACH[case], batch_size=1, ragged="list")
    try:
        made = np.asarray(next(iter(loader)).audio[0])
    except hr.DataError as error:
        assert "HR054" in str(error) and frames < 400, error
        return
    assert made.ndim in (2, 3) and np.isfinite(made).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("case", EACH)
def test_nans_stay_in_their_record(tmp_path: Path, case: str, value: float) -> None:
    waves = audio_files.waves(4000, 2).astype(np.float32)
    for number in range(3):
        each = waves.copy()
        if number == 1:
            each[0, 1999] = value
        (tmp_path / f"{number}.wav").write_bytes(audio_files.wav_of(each))
    how: dict[str, Any] = {"ragged": "list", "on_error": "skip", "shuffle": False}
    batch = next(iter(hr.Loader(hr.open(tmp_path), EACH[case], batch_size=3, **how)))
    made = [np.asarray(each) for each in batch.audio]
    np.testing.assert_array_equal(made[0], made[-1])
    assert np.isfinite(made[0]).all() and len(made) >= 2


def test_a_truncated_mp3_is_an_error_if_its_tag_has_the_length() -> None:
    pytest.importorskip("soundfile")
    data = audio_files.encoded(audio_files.int16_waves(64000, 1), 16000, format="MP3")
    assert b"Info" in data[:64] or b"Xing" in data[:64]
    assert hr.open([{"audio": data}], kinds={"audio": "audio"}).lengths("audio")[0] >= 64000
    for share in (0.3, 0.5, 0.9):
        with pytest.raises(hr.Error, match="HR0351"):
            _core.audio_header(data[: int(len(data) * share)])

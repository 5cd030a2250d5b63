# SPDX-License-Identifier: Apache-2.0
"""Spectra, mel filters, coefficients and sample rates equal their definitions in float64, with the
same bytes at every SIMD level, and their lengths are known before a record is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import printed_at_each_simd_level
from sound_definitions import (
    assert_powers_close,
    decibels,
    frames_of,
    hann,
    kaldi_fbank,
    mel_filters,
    noises,
    powers,
    summed,
    through,
)

import headrace as hr
from headrace import transforms as T

MODES = {"reflect": "reflect", "constant": "constant", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("n_fft", [8, 15, 400, 512, 882])
@pytest.mark.parametrize("pad_mode", MODES)
def test_a_spectrogram_follows_its_definition(n_fft: int, pad_mode: str) -> None:
    x, hop = noises(2, 2, 2500), n_fft // 3
    got = through(x, T.Spectrogram(n_fft, hop_length=hop, pad_mode=pad_mode))
    want = powers(frames_of(x, n_fft, hop, hann(n_fft), mode=MODES[pad_mode]))
    assert_powers_close(got, want)


def test_a_spectrograms_parameters_equal_torchaudios() -> None:
    x = noises(1, 1, 3000)
    got = through(x, T.Spectrogram(512, 400, 160, pad=30, power=1, normalized=True))
    spectra = powers(frames_of(np.pad(x, ((0, 0), (0, 0), (30, 30))), 512, 160, hann(400)))
    assert_powers_close(got, np.sqrt(spectra / (hann(400) ** 2).sum()))
    got = through(x, T.Spectrogram(400, window_fn="hamming_window", center=False))
    window = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(400) / 400)
    assert_powers_close(got, powers(frames_of(x, 400, 200, window, center=False)))
    with pytest.raises(hr.ConfigError, match=r"HR0510.*power must be 1 or 2 \(got 1.5\)"):
        through(x, T.Spectrogram(power=1.5))


@pytest.mark.parametrize("slaney", [False, True])
def test_mel_spectra_are_filters_over_spectra(slaney: bool) -> None:
    x = noises(3, 2, 5000)
    how: dict[str, Any] = {"mel_scale": "slaney", "norm": "slaney"} if slaney else {}
    got = through(x, T.MelSpectrogram(16000, 512, 400, 160, 20, 7600, n_mels=40, **how))
    filters = mel_filters(40, 257, 16000, 20, 7600, slaney, slaney)
    # torchaudio's filters are computed in float32, with an error of 3e-5; librosa's are not.
    bound = 1e-5 if slaney else 5e-5
    assert_powers_close(got, summed(filters, powers(frames_of(x, 512, 160, hann(400)))), bound)
    in_two = through(
        x,
        T.Spectrogram(512, 400, 160),
        T.MelScale(40, 16000, 20, 7600, 257, **how),
    )
    np.testing.assert_array_equal(in_two, got)


def test_decibels_are_logarithms_with_a_floor() -> None:
    x = (np.random.default_rng(1).random((4, 2, 9, 50)) ** 20).astype(np.float32)
    x[0, 0, 0, 0] = 0
    for stype, multiplier in (("power", 10), ("magnitude", 20)):
        for top in (None, 80.0, 3.0):
            got = through(x, T.AmplitudeToDB(stype, top))
            want = np.stack([decibels(each, multiplier, top) for each in x.astype(np.float64)])
            assert np.abs(got - want).max() < 5e-5


@pytest.mark.parametrize("log_mels", [False, True])
def test_coefficients_are_a_cosine_transform(log_mels: bool) -> None:
    x = noises(2, 2, 6000)
    got = through(x, T.MFCC(n_mfcc=13, log_mels=log_mels, n_fft=512, n_mels=40))
    filters = mel_filters(40, 257, 16000, 0, 8000, False, False)
    mel = summed(filters, powers(frames_of(x, 512, 256, hann(512))))
    logs = np.log(mel + 1e-6) if log_mels else decibels(mel, top=80)
    k, n = np.arange(13)[:, None], np.arange(40)
    cosines = np.cos(np.pi / 40 * (n + 0.5) * k) * np.sqrt(2 / 40)
    cosines[0] *= np.sqrt(0.5)
    assert np.abs(got - np.einsum("kn,...nt->...kt", cosines, logs)).max() < 1e-3
    with pytest.raises(
        hr.ConfigError, match=r"HR0510.*n_mfcc is 41, but there are only 40 filters"
    ):
        through(x, T.MFCC(n_mfcc=41, n_mels=40))


@pytest.mark.parametrize("log_lf", [False, True])
def test_linear_coefficients_are_a_cosine_transform_of_equally_spaced_filters(
    log_lf: bool,
) -> None:
    x = noises(2, 2, 6000)
    got = through(x, T.LFCC(n_filter=20, n_lfcc=7, log_lf=log_lf, f_min=100, n_fft=512))
    points, bins = np.linspace(100, 8000, 22), np.linspace(0, 8000, 257)
    filters = [np.interp(bins, points[m : m + 3], [0, 1, 0]) for m in range(20)]
    bands = summed(np.array(filters).T, powers(frames_of(x, 512, 256, hann(512))))
    logs = np.log(bands + 1e-6) if log_lf else decibels(bands, top=80)
    k, n = np.arange(7)[:, None], np.arange(20)
    cosines = np.cos(np.pi / 20 * (n + 0.5) * k) * np.sqrt(2 / 20)
    cosines[0] *= np.sqrt(0.5)
    assert np.abs(got - np.einsum("kn,...nt->...kt", cosines, logs)).max() < 1e-3


@pytest.mark.parametrize("how", [{}, {"snip_edges": False}, {"use_energy": True}])
def test_filter_banks_equal_kaldis(how: dict[str, bool]) -> None:
    x = noises(2, 1, 4000) * 30000
    got = through(x, T.KaldiFbank(num_mel_bins=40, **how))
    for record, row in zip(x, got, strict=True):
        want = kaldi_fbank(record[0], 40, how.get("snip_edges", True), **how)
        assert row.shape == want.shape
        assert np.abs(row - want).max() < 1e-3


def test_whispers_input_equals_that_of_transformers() -> None:
    x = noises(2, 1, 40000)
    got = through(x, T.WhisperLogMel(chunk_length=3))
    padded = np.pad(x[:, 0], ((0, 0), (0, 8000)))
    mel = summed(
        mel_filters(80, 201, 16000, 0, 8000, True, True),
        powers(frames_of(padded, 400, 160, hann(400))),
    )[..., :-1]
    logs = np.log10(np.maximum(mel, 1e-10))
    floored = np.maximum(logs, logs.max(axis=(1, 2), keepdims=True) - 8)
    assert got.shape == (2, 80, 300)
    assert np.abs(got - (floored + 4) / 4).max() < 1e-4
    with pytest.raises(hr.ConfigError, match=r"HR0510.*48000 of chunk_length: truncation=True"):
        through(noises(1, 1, 48001), T.WhisperLogMel(chunk_length=3))
    cut = through(noises(1, 1, 48001), T.WhisperLogMel(chunk_length=3, truncation=True))
    assert cut.shape == (1, 80, 300)
    assert through(x, T.WhisperLogMel(chunk_length=None)).shape == (2, 80, 250)


@pytest.mark.parametrize(
    "rates", [(44100, 16000), (48000, 16000), (16000, 22050), (8000, 16000), (3, 2)]
)
@pytest.mark.parametrize("window", ["hann", "kaiser"])
def test_resampling_is_a_windowed_sinc(rates: tuple[int, int], window: str) -> None:
    x = noises(1, 2, 1200)
    got = through(x, T.Resample(*rates, f"sinc_interp_{window}"))[0]
    divisor = np.gcd(*rates)
    old, new = rates[0] // divisor, rates[1] // divisor
    base = min(old, new) * 0.99
    outputs = -(-1200 * new // old)
    t = (np.arange(1200) / old - np.arange(outputs)[:, None] / new) * base
    if window == "hann":
        shape = np.cos(t * np.pi / 12) ** 2
    else:
        beta = 14.769656459379492
        shape = np.i0(beta * np.sqrt(np.maximum(1 - (t / 6) ** 2, 0))) / np.i0(beta)
    kernel = np.where(np.abs(t) < 6, np.sinc(t) * shape, 0) * base / old
    want = x[0].astype(np.float64) @ kernel.T
    assert got.shape == want.shape
    assert np.abs(got - want).max() < 1e-6 * np.abs(want).max() + 1e-7


def test_speeding_up_audio_is_resampling() -> None:
    x = noises(40, 1, 2000)
    faster = through(x, T.Speed(16000, 1.1))
    np.testing.assert_array_equal(faster, through(x, T.Resample(17600, 16000)))
    loader = hr.Loader(
        hr.records(sound=x, kinds={"sound": "audio"}),
        [T.SpeedPerturbation(16000, [0.9, 1.0, 1.1])],
        batch_size=40,
        ragged="list",
    )  # fmt: skip
    made = list(next(iter(loader)).sound)
    lengths = [sound.shape[-1] for sound in made]
    counts = [lengths.count(length) for length in (2223, 2000, 1819)]
    assert sum(counts) == 40 and min(counts) > 5
    for at in range(40):
        if lengths[at] == 1819:
            np.testing.assert_array_equal(np.asarray(made[at]), faster[at])


def stretches(masked: np.ndarray[Any, Any], axis: int) -> list[tuple[int, int]]:
    """Where each channel of each record is masked: begin and width."""
    out = []
    for record in masked:
        for channel in record:
            zero = np.flatnonzero((channel == 0).all(axis=1 - axis))
            if len(zero):
                assert zero[-1] - zero[0] + 1 == len(zero), "one stretch"
            out.append((int(zero[0]) if len(zero) else -1, len(zero)))
    return out


@pytest.mark.parametrize("axis", [0, 1])
def test_masks_have_torchaudios_distribution(axis: int) -> None:
    x = np.ones((4000, 2, 30, 50), np.float32)
    step = [T.FrequencyMasking(8), T.TimeMasking(12)][axis]
    extent, most = x.shape[2 + axis], (8, 12)[axis]
    both = stretches(through(x, step), axis)
    assert both[0::2] == both[1::2], "one mask for the channels"
    widths = np.array([width for _, width in both[0::2]])
    shares = np.bincount(widths, minlength=most) / len(widths)
    assert len(shares) == most and np.abs(shares - 1 / most).max() < 0.02
    rng = np.random.default_rng(5)
    width = rng.random(200000) * most
    begin = (rng.random(200000) * (extent - width)).astype(int)
    for limit in range(5, extent, 7):
        kept = [place for place, count in both[0::2] if count]
        wanted = begin[width.astype(int) > 0]
        assert abs(np.mean(np.array(kept) < limit) - np.mean(wanted < limit)) < 0.03
    apart = [T.FrequencyMasking(8, iid_masks=True), T.TimeMasking(12, iid_masks=True)][axis]
    each = stretches(through(x[:400], apart), axis)
    assert each[0::2] != each[1::2]


def test_a_time_mask_is_limited_to_its_fraction() -> None:
    x = np.ones((300, 1, 3, 40), np.float32)
    widths = [width for _, width in stretches(through(x, T.TimeMasking(30, p=0.2)), 1)]
    assert max(widths) == 7 and min(widths) == 0


def test_known_lengths_give_known_shapes() -> None:
    x = noises(2, 1, 16000)
    steps = [T.MelSpectrogram(hop_length=160, n_mels=80)]
    loader = hr.Loader(hr.records(sound=x, kinds={"sound": "audio"}), steps, batch_size=2)
    assert "float32 (1, 80, 101)" in str(loader.plan())
    for step, shape in (
        (T.Spectrogram(center=False), (1, 201, 79)),
        (T.Resample(16000, 44100), (1, 44100)),
        (T.KaldiFbank(), (98, 23)),
        (T.MFCC(), (1, 40, 81)),
    ):
        assert through(x, step).shape[1:] == shape


def test_audio_clips_that_a_step_cannot_take_are_refused() -> None:
    short = noises(1, 1, 200)
    with pytest.raises(hr.ConfigError, match=r"HR0510.*200 frames, but 200 are mirrored"):
        through(short, T.Spectrogram())
    with pytest.raises(hr.ConfigError, match=r"HR0510.*fewer than the 400 of a transform"):
        through(short, T.Spectrogram(center=False))
    with pytest.raises(hr.ConfigError, match=r"HR0510.*2 channels: channel=0"):
        through(noises(1, 2, 2000), T.KaldiFbank())
    with pytest.raises(hr.ConfigError, match=r"HR0510.*201 bins, but n_stft is 257"):
        through(noises(1, 1, 2000), T.Spectrogram(), T.MelScale(n_stft=257))
    with pytest.raises(hr.ConfigError, match=r"HR0510.*works on float32 spectrograms"):
        through(noises(1, 1, 2000), T.AmplitudeToDB(fields=["sound"]))
    with pytest.raises(hr.ConfigError, match=r"HR0510.*f_min must be below f_max"):
        through(noises(1, 1, 2000), T.MelSpectrogram(f_min=9000))
    with pytest.raises(hr.ConfigError, match=r"HR0510.*no large common divisor"):
        through(short, T.Resample(999983, 999979))


def test_tensors_next_to_a_spectrogram_are_unchanged() -> None:
    spectra = np.random.default_rng(1).random((4, 1, 5, 7), dtype=np.float32)
    numbers = np.arange(4, dtype=np.float32)
    source = hr.records(spectrum=spectra, gain=numbers, vector=np.ones((4, 3), np.float32))
    steps = [T.AmplitudeToDB(), T.TimeMasking(2)]
    batch = next(iter(hr.Loader(source, steps, batch_size=4, shuffle=False)))
    np.testing.assert_array_equal(batch.gain, numbers)
    np.testing.assert_array_equal(batch.vector, np.ones((4, 3)))
    assert (np.asarray(batch.spectrum) <= 0).all()
    with pytest.raises(hr.ConfigError, match=r"HR0510.*works on float32 spectrograms"):
        hr.Loader(source, [T.AmplitudeToDB(fields=["gain"])], batch_size=4)
    with pytest.raises(hr.ConfigError, match=r"HR0510.*works on float32 spectrograms"):
        hr.Loader(hr.records(gain=numbers), [T.AmplitudeToDB()], batch_size=4)


def sound_files(root: Path, rates: list[int]) -> Path:
    soundfile = pytest.importorskip("soundfile")
    (root / "a").mkdir(parents=True)
    for number, rate in enumerate(rates):
        wave = noises(1, rate, seed=number)
        soundfile.write(root / "a" / f"{number}.wav", wave.T, rate, "FLOAT")
    return root


def test_the_rate_of_a_file_is_checked_and_used(tmp_path: Path) -> None:
    source = hr.open(sound_files(tmp_path, [44100, 16000, 8000, 16000]))
    steps = [T.Resample(new_freq=16000), T.MelSpectrogram(n_mels=80)]
    mels = next(iter(hr.Loader(source, steps, batch_size=4, ragged="pad"))).audio
    assert np.asarray(mels).shape == (4, 1, 80, 81)
    for at, rate in enumerate([44100, 16000, 8000]):
        alone = through(noises(1, 1, rate, seed=at), T.Resample(rate, 16000), steps[1])
        np.testing.assert_array_equal(np.asarray(mels)[at], alone[0])
    with pytest.raises(hr.ConfigError, match=r"HR0510.*44100 Hz.*Resample\(new_freq=16000\)"):
        hr.Loader(source, [T.MelSpectrogram()], batch_size=1)
    with pytest.raises(hr.ConfigError, match=r"HR0510.*44100 Hz, but orig_freq is 48000"):
        hr.Loader(source, [T.Resample(48000)], batch_size=1)
    without = hr.records(audio=noises(1, 1, 900), kinds={"audio": "audio"})
    with pytest.raises(hr.DataError, match=r"HR0545.*no known sample rate: set orig_freq="):
        next(iter(hr.Loader(without, [T.Resample(new_freq=8000)], batch_size=1, ragged="list")))


def mixed(sound: np.ndarray[Any, Any], noise: np.ndarray[Any, Any], snr: Any, **how: Any) -> Any:
    source = hr.records(sound=sound, noise=noise, kinds={"sound": "audio", "noise": "audio"})
    steps = [T.AddNoise(snr, fields=["sound", "noise"], **how)]
    batch = next(iter(hr.Loader(source, steps, batch_size=len(sound), fields=["sound"])))
    return np.asarray(batch.sound)


def test_noise_is_added_at_its_ratio() -> None:
    sound, noise = noises(3, 2, 4000), noises(3, 2, 4000, seed=1)
    added = mixed(sound, noise, 7.0).astype(np.float64) - sound
    energy = (sound.astype(np.float64) ** 2).sum(axis=-1)
    ratio = 10 * np.log10(energy / (added**2).sum(axis=-1))
    assert np.abs(ratio - 7).max() < 1e-3
    share = added / noise
    assert np.abs(share / share[..., 5:6] - 1).max() < 1e-2, "the noise itself, scaled"
    short = noises(200, 1, 100, seed=2)
    with pytest.raises(
        hr.DataError, match=r"HR0545.*500 frames, but its noise 100: use repeat=True"
    ):
        mixed(np.repeat(noises(1, 2, 500), 200, axis=0), short, (0.0, 20.0))
    again = mixed(np.repeat(noises(1, 2, 500), 200, axis=0), short, (0.0, 20.0), repeat=True)
    added = again - np.repeat(noises(1, 2, 500), 200, axis=0)
    assert np.abs(added[..., :400] - added[..., 100:]).max() < 1e-5, "repeated"
    energy = (noises(1, 2, 500)[0, 0].astype(np.float64) ** 2).sum()
    ratios = 10 * np.log10(energy / (added[:, 0].astype(np.float64) ** 2).sum(axis=-1))
    assert ratios.min() > -0.01 and ratios.max() < 20.01 and 8 < ratios.mean() < 12
    silent = mixed(sound, np.zeros_like(noise), 7.0)
    np.testing.assert_array_equal(silent, sound)


def test_noise_that_does_not_fit_is_refused() -> None:
    sound = noises(1, 2, 400)
    with pytest.raises(hr.DataError, match=r"HR0545.*2 channels, but its noise 3"):
        mixed(sound, noises(1, 3, 400), 3.0)
    source = hr.records(sound=sound, kinds={"sound": "audio"})
    with pytest.raises(hr.ConfigError, match=r"HR0136.*combines 2 fields, but it was given"):
        hr.Loader(source, [T.AddNoise(3.0, fields=["sound"])], batch_size=1)


PRINTED = """
import hashlib
import numpy as np
import sys
sys.path.insert(0, sys.argv[1])
from sound_definitions import noises, through
from headrace import transforms as T
x = noises(3, 1, 9000)
for steps in (
    [T.MelSpectrogram(), T.AmplitudeToDB(top_db=80.0), T.TimeMasking(9), T.FrequencyMasking(9)],
    [T.MFCC(n_fft=882, win_length=500)], [T.KaldiFbank(use_energy=True)],
    [T.WhisperLogMel(chunk_length=1)], [T.Resample(44100, 16000)], [T.Speed(16000, 0.9)],
    [T.Spectrogram(401, power=1)],
):
    digest = hashlib.sha256(through(x, *steps).tobytes()).hexdigest()
    print(type(steps[0]).__name__, digest)
"""


def test_all_levels_give_the_same_bytes() -> None:
    assert len(printed_at_each_simd_level(PRINTED, Path(__file__).parent)) == 7


def test_scalars_next_to_a_spectrogram_are_unchanged() -> None:
    source = hr.records(sound=np.ones((2, 1, 900), "f4"), score=np.array([1.5, 2.5], "f4"))
    source = source.with_kinds({"sound": "audio"})
    (batch,) = hr.Loader(source, [T.Spectrogram(256), T.AmplitudeToDB()], batch_size=2)
    assert np.asarray(batch.sound).ndim == 4 and np.asarray(batch.score).tolist() == [1.5, 2.5]

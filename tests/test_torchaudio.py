# SPDX-License-Identifier: Apache-2.0
"""Operators on audio clips give torchaudio's, kaldi-native-fbank's and transformers' numbers.

These need packages that the tests do not install: torchaudio 2.11.0 (its wheel's compiled files
need CUDA; without torchaudio/lib/*.so everything compared here works), kaldi-native-fbank,
transformers, librosa. Tests that need none of them are in test_spectral.py."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sound_definitions import assert_powers_close, noises, through

from headrace import transforms as T

torch = pytest.importorskip("torch")
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def A() -> Any:  # the usual call of torchaudio.transforms
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torchaudio.transforms", exc_type=ImportError)


def theirs(transform: Any, sounds: Array) -> Array:
    """Record by record: torchaudio clips at the batch's maximum, which differs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.stack([transform(torch.from_numpy(sound)) for sound in sounds]).numpy()


SPECTRA: list[dict[str, Any]] = [
    {},
    {"n_fft": 512, "win_length": 400, "hop_length": 160},
    {"n_fft": 1024, "power": 1.0, "normalized": True},
    {"n_fft": 401, "pad": 11, "center": False},
    {"pad_mode": "constant"},
]


@pytest.mark.parametrize("how", SPECTRA)
def test_spectrograms_equal_torchaudios(A: Any, how: dict[str, Any]) -> None:
    x = noises(3, 2, 8000)
    assert_powers_close(through(x, T.Spectrogram(**how)), theirs(A.Spectrogram(**how), x))


MELS: list[dict[str, Any]] = [
    {},
    {"n_fft": 400, "hop_length": 160, "n_mels": 80},
    {"n_fft": 1024, "hop_length": 256, "n_mels": 80, "norm": "slaney", "mel_scale": "slaney"},
    {"n_fft": 512, "f_min": 20.0, "f_max": 7600.0, "n_mels": 40},
    {"sample_rate": 22050, "n_fft": 2048, "hop_length": 512, "n_mels": 128, "power": 1.0},
]


@pytest.mark.parametrize("how", MELS)
def test_mel_spectrograms_equal_torchaudios(A: Any, how: dict[str, Any]) -> None:
    x = noises(3, 2, 8000)
    want = theirs(A.MelSpectrogram(**how), x)
    # Its float32 filters differ from librosa's by this much.
    bound = 5e-5 if "norm" in how else 1e-5
    assert_powers_close(through(x, T.MelSpectrogram(**how)), want, bound)


@pytest.mark.parametrize("bins", [201, 257, 513])
def test_filters_of_htks_scale_are_the_same_numbers(A: Any, bins: int) -> None:
    identity = np.eye(bins, dtype=np.float32)[None, None]
    got, want = (
        through(identity, T.MelScale(128, n_stft=bins)),
        theirs(A.MelScale(128, n_stft=bins), identity),
    )
    np.testing.assert_allclose(got, want, atol=2e-6)


@pytest.mark.parametrize("how", [{"stype": "magnitude"}, {"top_db": 80.0}, {"top_db": 20.0}])
def test_decibels_equal_torchaudios(A: Any, how: dict[str, Any]) -> None:
    x = theirs(A.MelSpectrogram(n_mels=80), noises(3, 2, 8000))
    np.testing.assert_allclose(
        through(x, T.AmplitudeToDB(**how)), theirs(A.AmplitudeToDB(**how), x), atol=1e-4
    )


@pytest.mark.parametrize("how", [{}, {"n_mfcc": 13, "log_mels": True}, {"norm": None}])
def test_mel_coefficients_equal_torchaudios(A: Any, how: dict[str, Any]) -> None:
    x = noises(3, 2, 8000)
    mel = {"n_fft": 512, "n_mels": 64, "hop_length": 160}
    got, want = through(x, T.MFCC(**how, **mel)), theirs(A.MFCC(**how, melkwargs=mel), x)
    assert np.abs(got - want).max() < (1e-3 if "norm" not in how else 2e-2)


@pytest.mark.parametrize("how", [{}, {"n_lfcc": 13, "log_lf": True}, {"f_min": 100, "f_max": 6000}])
def test_linear_coefficients_equal_torchaudios(A: Any, how: dict[str, Any]) -> None:
    x = noises(3, 2, 8000)
    frames = {"n_fft": 512, "hop_length": 160}
    got, want = through(x, T.LFCC(**how, **frames)), theirs(A.LFCC(**how, speckwargs=frames), x)
    assert np.abs(got - want).max() < 2e-3


@pytest.mark.parametrize(
    "how",
    [
        {"orig_freq": 44100, "new_freq": 16000},
        {"orig_freq": 48000, "new_freq": 16000},
        {"orig_freq": 16000, "new_freq": 44100},
        {"orig_freq": 44100, "new_freq": 16000, "resampling_method": "sinc_interp_kaiser"},
        {"orig_freq": 3, "new_freq": 2, "lowpass_filter_width": 32, "rolloff": 0.9},
        {"orig_freq": 8, "new_freq": 5, "resampling_method": "sinc_interp_kaiser", "beta": 8.5},
    ],
)
def test_resampling_equals_torchaudios(A: Any, how: dict[str, Any]) -> None:
    x = noises(2, 2, 6000)
    got, want = through(x, T.Resample(**how)), theirs(A.Resample(**how), x)
    assert got.shape == want.shape
    assert np.abs(got - want).max() < 1e-5 * np.abs(want).max()


def test_speed_changes_equal_torchaudios(A: Any) -> None:
    x = noises(2, 1, 6000)
    want = theirs(lambda sound: A.Speed(16000, 0.9)(sound)[0], x)
    assert np.abs(through(x, T.Speed(16000, 0.9)) - want).max() < 1e-5


def test_noise_at_a_ratio_equals_torchaudios(A: Any) -> None:
    import headrace as hr

    sound, noise = noises(2, 1, 3000), noises(2, 1, 3000, seed=1)
    source = hr.records(sound=sound, noise=noise, kinds={"sound": "audio", "noise": "audio"})
    steps = [T.AddNoise(5.0, fields=["sound", "noise"])]
    got = np.asarray(next(iter(hr.Loader(source, steps, batch_size=2))).sound)
    want = A.AddNoise()(torch.from_numpy(sound), torch.from_numpy(noise), torch.tensor([[5.0]]))
    assert np.abs(got - want.numpy()).max() < 1e-6


KALDI: list[dict[str, Any]] = [
    {},
    {"num_mel_bins": 80},
    {"snip_edges": False, "subtract_mean": True},
    {"use_energy": True, "htk_compat": True, "raw_energy": False, "energy_floor": 0.0},
    {"use_power": False, "round_to_power_of_two": False, "window_type": "hamming"},
    {"window_type": "blackman", "frame_length": 20.0, "frame_shift": 7.5, "high_freq": -300.0},
    {"remove_dc_offset": False, "preemphasis_coefficient": 0.0, "window_type": "rectangular"},
]


@pytest.mark.parametrize("how", KALDI)
def test_filter_banks_equal_those_of_kaldi_native_fbank(A: Any, how: dict[str, Any]) -> None:
    from torchaudio.compliance import kaldi

    x = noises(2, 1, 8000) * 30000
    got, want = through(x, T.KaldiFbank(**how)), theirs(lambda s: kaldi.fbank(s, **how), x)
    assert got.shape == want.shape
    assert np.abs(got - want).max() < 1e-3


def test_filter_banks_equal_those_of_kaldis_program() -> None:
    knf = pytest.importorskip("kaldi_native_fbank")
    options = knf.FbankOptions()
    options.frame_opts.dither = 0
    options.mel_opts.num_bins = 80
    x = noises(1, 1, 8000) * 30000
    program = knf.OnlineFbank(options)
    program.accept_waveform(16000, x[0, 0].tolist())
    program.input_finished()
    want = np.stack([program.get_frame(i) for i in range(program.num_frames_ready)])
    got = through(x, T.KaldiFbank(num_mel_bins=80))[0]
    assert got.shape == want.shape
    assert np.abs(got - want).max() < 1e-3


@pytest.mark.parametrize("n_mels", [80, 128])
def test_whisper_features_equal_those_of_transformers(n_mels: int) -> None:
    transformers = pytest.importorskip("transformers")
    x = noises(2, 1, 40000)
    extract = transformers.WhisperFeatureExtractor(feature_size=n_mels)
    want = extract(list(x[:, 0]), sampling_rate=16000, return_tensors="np").input_features
    got = through(x, T.WhisperLogMel(n_mels))
    assert got.shape == want.shape == (2, n_mels, 3000)
    assert np.abs(got - want).max() < 1e-4


def test_mel_spectrograms_equal_librosas() -> None:
    librosa = pytest.importorskip("librosa")
    x = noises(2, 1, 30000)
    want = np.stack(
        [
            librosa.feature.melspectrogram(
                y=sound[0], sr=22050, n_fft=2048, hop_length=512, n_mels=128
            )
            for sound in x
        ]
    )[:, None]
    step = T.MelSpectrogram(
        22050, 2048, hop_length=512, n_mels=128, norm="slaney", mel_scale="slaney",
        pad_mode="constant",
    )  # fmt: skip
    assert_powers_close(through(x, step), want, 1e-4)

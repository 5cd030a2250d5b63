# SPDX-License-Identifier: Apache-2.0
"""Transforms of waveforms equal torchaudio's, for every file type and length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import audio_files
import numpy as np
import pytest

import headrace as hr
from headrace import transforms as T

torch = pytest.importorskip("torch")


def torchaudio() -> Any:
    """Some of its wheels only have CUDA libraries, and fail to load without CUDA."""
    try:
        import torchaudio.transforms
    except (ImportError, OSError) as error:
        pytest.skip(f"torchaudio cannot be imported: {error}")
    return torchaudio.transforms


@pytest.fixture(params=[1, 2])
def samples(request: pytest.FixtureRequest) -> Any:
    return audio_files.waves(5003, request.param).astype(np.float32)


def through(samples: Any, tmp_path: Path, *steps: Any) -> Any:
    (tmp_path / "a.wav").write_bytes(audio_files.wav_of(samples))
    loader = hr.Loader(hr.open(tmp_path), list(steps), batch_size=1, ragged="list")
    return next(iter(loader))["audio"][0]


@pytest.mark.parametrize(
    ("gain", "gain_type"),
    [
        (0.5, "amplitude"),
        (3.0, "amplitude"),
        (0.3, "power"),
        (4.0, "power"),
        (-6.5, "db"),
        (9, "db"),
    ],
)
def test_vol_equals_torchaudios_bit_for_bit(
    samples: Any, tmp_path: Path, gain: float, gain_type: str
) -> None:
    expected = torchaudio().Vol(gain, gain_type)(torch.from_numpy(samples))
    actual = through(samples, tmp_path, T.Vol(gain, gain_type))
    np.testing.assert_array_equal(actual, expected.numpy())


@pytest.mark.parametrize(
    "shape", ["linear", "exponential", "logarithmic", "quarter_sine", "half_sine"]
)
@pytest.mark.parametrize(("fade_in", "fade_out"), [(0, 1), (1, 0), (400, 801), (3000, 4000)])
def test_fade_equals_torchaudios(
    samples: Any, tmp_path: Path, shape: str, fade_in: int, fade_out: int
) -> None:
    expected = torchaudio().Fade(fade_in, fade_out, shape)(torch.from_numpy(samples))
    actual = through(samples, tmp_path, T.Fade(fade_in, fade_out, shape))
    np.testing.assert_allclose(actual, expected.numpy(), atol=1e-6)


def test_fade_of_a_shorter_clip_is_an_error(samples: Any, tmp_path: Path) -> None:
    with pytest.raises(hr.DataError, match=r"HR0541.*5003 frames, but the fades have 6000"):
        through(samples, tmp_path, T.Fade(6000))


@pytest.mark.parametrize("coeff", [0.97, 0.5, 1.0])
def test_preemphasis_equals_torchaudios_bit_for_bit(
    samples: Any, tmp_path: Path, coeff: float
) -> None:
    expected = torchaudio().Preemphasis(coeff)(torch.from_numpy(samples))
    actual = through(samples, tmp_path, T.Preemphasis(coeff))
    np.testing.assert_array_equal(actual, expected.numpy())


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7])
def test_mono_equals_torchs_mean(tmp_path: Path, channels: int) -> None:
    samples = audio_files.waves(5003, channels).astype(np.float32)
    expected = torch.from_numpy(samples).mean(0, keepdim=True).numpy()
    actual = through(samples, tmp_path, T.Mono())
    np.testing.assert_allclose(actual, expected, rtol=0, atol=0 if channels <= 4 else 1e-6)


@pytest.mark.parametrize("frames", [1, 4000, 5003, 9000])
def test_pad_or_trim_equals_whispers(samples: Any, tmp_path: Path, frames: int) -> None:
    expected = np.pad(samples[:, :frames], ((0, 0), (0, max(0, frames - 5003))))
    np.testing.assert_array_equal(through(samples, tmp_path, T.PadOrTrim(frames)), expected)


@pytest.mark.parametrize("frames", [1, 4000, 4001, 5003, 5004, 9001])
def test_center_clip_takes_the_middle(samples: Any, tmp_path: Path, frames: int) -> None:
    if frames <= 5003:
        begin = (5003 - frames) // 2
        expected = samples[:, begin : begin + frames]
    else:
        before = (frames - 5003) // 2
        expected = np.pad(samples, ((0, 0), (before, frames - 5003 - before)))
    clipped = through(samples, tmp_path, T.CenterClip(frames, pad_if_needed=True))
    np.testing.assert_array_equal(clipped, expected)
    after_samples = through(samples, tmp_path, T.Vol(1.0), T.CenterClip(frames, pad_if_needed=True))
    np.testing.assert_array_equal(after_samples, expected)


def test_a_clip_longer_than_a_fixed_length_is_refused_before_a_thread_starts(
    samples: Any, tmp_path: Path
) -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0510.*clip has 300 frames, but \"audio\" 200"):
        through(samples, tmp_path, T.PadOrTrim(200), T.RandomClip(300))


def loud_part(samples: Any, top_db: float, length: int, hop: int) -> Any:
    """librosa.effects.trim by its definition, in float64: the first frame and one past the last."""
    padded = np.pad(samples.astype(np.float64), ((0, 0), (length // 2, length // 2)))
    starts = range(0, padded.shape[1] - length + 1, hop)
    power = np.array([[np.mean(c[t : t + length] ** 2) for t in starts] for c in padded])
    level = 10 * np.log10(np.maximum(power, 1e-10))
    level -= 10 * np.log10(max(power.max(), 1e-10))
    loud = np.flatnonzero(level.max(0) > -top_db)
    return loud[0] * hop, min((loud[-1] + 1) * hop, samples.shape[1])


QUIET = {
    "both ends": [(0.0, 3000), (0.5, 4000), (0.0, 2500)],
    "faint ends": [(1e-4, 3000), (0.5, 4000), (3e-4, 2500)],
    "a gap": [(0.0, 1000), (0.3, 2000), (0.0, 5000), (0.01, 700), (0.0, 3001)],
    "nothing": [(0.0, 5000)],
    "all of it": [(0.5, 5000)],
    "short": [(0.0, 3), (0.5, 20)],
}


@pytest.mark.parametrize("how", [(60.0, 2048, 512), (20.0, 400, 160), (35.0, 255, 100)])
@pytest.mark.parametrize("case", list(QUIET))
def test_trim_silence_equals_librosas(
    tmp_path: Path, case: str, how: tuple[float, int, int]
) -> None:
    random = np.random.default_rng(3)
    parts = [gain * random.normal(0, 1, (2, frames)) for gain, frames in QUIET[case]]
    samples = np.concatenate(parts, 1).astype(np.float32)
    samples[1] *= 0.1
    begin, end = loud_part(samples, *how)
    actual = through(samples, tmp_path, T.TrimSilence(*how))
    np.testing.assert_array_equal(actual, samples[:, begin:end])
    librosa = pytest.importorskip("librosa")
    trimmed, _ = librosa.effects.trim(
        samples, top_db=how[0], frame_length=how[1], hop_length=how[2]
    )
    np.testing.assert_array_equal(actual, trimmed)

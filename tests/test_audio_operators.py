# SPDX-License-Identifier: Apache-2.0
"""Steps on waveforms give torchaudio's numbers, from every kind of file and at any length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sounds

import headrace as hr
from headrace import transforms as T

torch = pytest.importorskip("torch")


def torchaudio() -> Any:
    """Of its wheels some have libraries for CUDA alone, and fail to load without it."""
    try:
        import torchaudio.transforms
    except (ImportError, OSError) as error:
        pytest.skip(f"torchaudio cannot be imported: {error}")
    return torchaudio.transforms


@pytest.fixture(params=[1, 2])
def samples(request: pytest.FixtureRequest) -> Any:
    return sounds.waves(5003, request.param).astype(np.float32)


def through(samples: Any, tmp_path: Path, *steps: Any) -> Any:
    (tmp_path / "a.wav").write_bytes(sounds.wav_of(samples))
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
def test_vol_is_torchaudios_bit_for_bit(
    samples: Any, tmp_path: Path, gain: float, gain_type: str
) -> None:
    expected = torchaudio().Vol(gain, gain_type)(torch.from_numpy(samples))
    actual = through(samples, tmp_path, T.Vol(gain, gain_type))
    np.testing.assert_array_equal(actual, expected.numpy())


@pytest.mark.parametrize(
    "shape", ["linear", "exponential", "logarithmic", "quarter_sine", "half_sine"]
)
@pytest.mark.parametrize(("fade_in", "fade_out"), [(0, 1), (1, 0), (400, 801), (3000, 4000)])
def test_fade_is_torchaudios(
    samples: Any, tmp_path: Path, shape: str, fade_in: int, fade_out: int
) -> None:
    expected = torchaudio().Fade(fade_in, fade_out, shape)(torch.from_numpy(samples))
    actual = through(samples, tmp_path, T.Fade(fade_in, fade_out, shape))
    np.testing.assert_allclose(actual, expected.numpy(), atol=1e-6)


def test_fade_of_a_shorter_sound_is_an_error(samples: Any, tmp_path: Path) -> None:
    with pytest.raises(hr.DataError, match=r"HR0541.*5003 frames, the fades 6000"):
        through(samples, tmp_path, T.Fade(6000))


@pytest.mark.parametrize("coeff", [0.97, 0.5, 1.0])
def test_preemphasis_is_torchaudios_bit_for_bit(samples: Any, tmp_path: Path, coeff: float) -> None:
    expected = torchaudio().Preemphasis(coeff)(torch.from_numpy(samples))
    actual = through(samples, tmp_path, T.Preemphasis(coeff))
    np.testing.assert_array_equal(actual, expected.numpy())


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7])
def test_mono_is_torchs_mean(tmp_path: Path, channels: int) -> None:
    samples = sounds.waves(5003, channels).astype(np.float32)
    expected = torch.from_numpy(samples).mean(0, keepdim=True).numpy()
    actual = through(samples, tmp_path, T.Mono())
    np.testing.assert_allclose(actual, expected, rtol=0, atol=0 if channels <= 4 else 1e-6)


@pytest.mark.parametrize("frames", [1, 4000, 5003, 9000])
def test_pad_or_trim_is_whispers(samples: Any, tmp_path: Path, frames: int) -> None:
    expected = np.pad(samples[:, :frames], ((0, 0), (0, max(0, frames - 5003))))
    np.testing.assert_array_equal(through(samples, tmp_path, T.PadOrTrim(frames)), expected)


@pytest.mark.parametrize("frames", [1, 4000, 4001, 5003, 5004, 9001])
def test_center_clip_is_the_middle(samples: Any, tmp_path: Path, frames: int) -> None:
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
    with pytest.raises(hr.ConfigError, match=r"HR0510.*clip has 300 frames and \"audio\" 200"):
        through(samples, tmp_path, T.PadOrTrim(200), T.RandomClip(300))

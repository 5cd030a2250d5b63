# SPDX-License-Identifier: Apache-2.0
"""AddNoise with source=: the noise, its segment and its loudness are drawn for each record."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import audio_files
import numpy as np
import pytest
from sound_definitions import through

import headrace as hr
from headrace import transforms as T

Array = np.ndarray[Any, Any]
SPEECH = np.stack([audio_files.waves(400, seed=n) for n in range(60)]).astype(np.float32)


def speech(values: Array = SPEECH) -> hr.Source:
    return hr.records(sound=values, kinds={"sound": "audio"})


def white(count: int, frames: int, channels: int = 1, seed: int = 7) -> Array:
    made = np.random.default_rng(seed).normal(0, 0.2, (count, channels, frames))
    return made.astype(np.float32)


def arrays(values: Array) -> hr.Source:
    return hr.records(noise=values, kinds={"noise": "audio"})


def files(folder: Path, rates: list[int], seconds: float = 0.2, channels: int = 1) -> list[Array]:
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for number, rate in enumerate(rates):
        noise = white(1, int(rate * seconds), channels, seed=number)[0]
        (folder / f"{number}.wav").write_bytes(audio_files.wav_of(noise, rate))
        made.append(noise)
    return made


def speech_files(folder: Path, count: int = 12, frames: int = 400) -> hr.Source:
    folder.mkdir(parents=True)
    for number in range(count):
        wave = audio_files.waves(frames, seed=number).astype(np.float32)
        (folder / f"{number:02}.wav").write_bytes(audio_files.wav_of(wave))
    return hr.open(folder)


def added(step: T.Transform, values: Array = SPEECH, **how: Any) -> Array:
    loader = hr.Loader(speech(values), [step], batch_size=len(values), shuffle=False, **how)
    return np.asarray(next(iter(loader)).sound).astype(np.float64) - values


def drawn(difference: Array, noises: list[Array]) -> tuple[int, int, float]:
    """Of all segments of all noises the one that was added: its noise, position and scale."""
    best = (0.0, 0, 0, 0.0)
    for number, noise in enumerate(noises):
        windows = np.lib.stride_tricks.sliding_window_view(
            noise[0].astype(np.float64), len(difference)
        )
        products = windows @ difference
        match = products**2 / (windows**2).sum(axis=1)
        place = int(match.argmax())
        scale = products[place] / (windows[place] ** 2).sum()
        best = max(best, (float(match[place]), number, place, float(scale)))
    return best[1:]


def test_noise_segment_and_ratio_are_drawn() -> None:
    noises = list(white(5, 1000))
    found = []
    differences = added(T.AddNoise((5.0, 20.0), source=arrays(np.stack(noises))))
    for sound, difference in zip(SPEECH.astype(np.float64), differences, strict=True):
        number, place, scale = drawn(difference[0], noises)
        stretch = noises[number][0, place : place + 400].astype(np.float64)
        assert np.abs(difference[0] - scale * stretch).max() < 1e-6
        ratio = 10 * np.log10((sound**2).sum() / ((scale * stretch) ** 2).sum())
        found.append((number, place, ratio))
    numbers, places, ratios = map(np.array, zip(*found, strict=True))
    assert set(numbers) == set(range(5)) and len(set(places)) > 50
    assert places.min() < 60 and places.max() > 540
    assert ratios.min() > 4.99 and ratios.max() < 20.01 and 10.5 < ratios.mean() < 14.5


def test_values_equal_torchaudios() -> None:
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchaudio.functional", exc_type=ImportError)
    noises = list(white(3, 700))
    for sound, difference in zip(
        SPEECH, added(T.AddNoise(8.0, source=arrays(np.stack(noises)))), strict=True
    ):
        number, place, _ = drawn(difference[0], noises)
        stretch = torch.from_numpy(noises[number][:, place : place + 400])
        want = functional.add_noise(torch.from_numpy(sound), stretch, torch.tensor([8.0]))
        assert np.abs(want.numpy() - sound - difference).max() < 1e-6


def test_nearly_silent_noise_is_treated_as_silence() -> None:
    noise = np.zeros((1, 1, 400), np.float32)
    noise[..., ::2] = 1e-42  # as left by a fade-out
    assert not added(T.AddNoise(0.0, source=arrays(noise))).any()


def test_noise_is_resampled_to_the_rate_of_its_audio(tmp_path: Path) -> None:
    stored = files(tmp_path / "noises", [44100, 16000, 8000, 22050])
    whole = [
        through(noise[None], T.Resample(rate, 16000))[0]
        for noise, rate in zip(stored, [44100, 16000, 8000, 22050], strict=True)
    ]
    source = speech_files(tmp_path / "speech", 40)
    steps = [T.PadOrTrim(400), T.AddNoise(0.0, source=hr.open(tmp_path / "noises"))]
    mixed = next(iter(hr.Loader(source, steps, batch_size=40, shuffle=False))).audio
    seen = set()
    for number in range(40):
        difference = np.asarray(mixed)[number, 0].astype(np.float64) - source[number]["audio"][0]
        which, place, scale = drawn(difference, whole)
        stretch = whole[which][0, place : place + 400]
        assert np.abs(difference - scale * stretch).max() < 1e-6
        seen.add(which)
    assert seen == {0, 1, 2, 3}


def test_short_noise_is_only_repeated_on_request(tmp_path: Path) -> None:
    noises = arrays(white(2, 150))
    with pytest.raises(
        hr.DataError, match=r"HR0545.*400 frames, but its noise 150: use repeat=True"
    ):
        added(T.AddNoise(3.0, source=noises))
    differences = added(T.AddNoise(3.0, source=noises, repeat=True))[:, 0]
    assert np.abs(differences[:, :250] - differences[:, 150:]).max() < 1e-6
    turns = {int(np.abs(each[:150]).argmax()) for each in differences}
    assert len(turns) > 20, "it begins anywhere"
    files(tmp_path / "short", [48000], seconds=0.004)  # 64 frames at 16 kHz
    step = T.AddNoise(3.0, source=hr.open(tmp_path / "short"), repeat=True)
    source = speech_files(tmp_path / "speech", 4)
    loader = hr.Loader(source, [T.PadOrTrim(400), step], batch_size=4, shuffle=False)
    mixed = np.asarray(next(iter(loader)).audio)
    for number in range(4):
        difference = mixed[number, 0] - source[number]["audio"][0]
        assert np.abs(difference[:336] - difference[64:]).max() < 1e-6


def test_noise_channels_match_or_one_applies_to_all() -> None:
    stereo = np.concatenate([SPEECH, SPEECH[::-1]], axis=1)
    one = added(T.AddNoise(6.0, source=arrays(white(1, 400))), stereo)
    shares = one / white(1, 400)
    assert np.abs(shares / shares[..., :1] - 1).max() < 1e-2
    two = white(1, 400, 2)
    own = added(T.AddNoise(6.0, source=arrays(two)), stereo)
    assert np.abs(own / two / (own / two)[..., :1] - 1).max() < 1e-2
    with pytest.raises(hr.DataError, match=r"HR0545.*1 channels, but its noise 2.*mono=True"):
        added(T.AddNoise(6.0, source=arrays(two)))
    mean = two.mean(axis=1, keepdims=True)
    mixed = added(T.AddNoise(6.0, source=arrays(two), mono=True)) / mean
    assert np.abs(mixed / mixed[..., 5:6] - 1).max() < 2e-2


def test_batches_do_not_depend_on_threads_ranks_or_a_resume(tmp_path: Path) -> None:
    files(tmp_path / "noises", [44100, 16000, 8000])
    source = speech_files(tmp_path / "speech")
    steps = [T.RandomClip(300), T.AddNoise((0.0, 9.0), source=hr.open(tmp_path / "noises"))]

    def loader(batch_size: int = 4, **how: Any) -> Any:
        return hr.Loader(source, steps, batch_size=batch_size, shuffle=True, seed=3, **how)

    first = [np.array(batch.audio) for batch in loader()]
    again = loader(threads=3)
    next(iter(again))
    resumed = loader(threads=2)
    resumed.load_state_dict(again.state_dict())
    np.testing.assert_array_equal([np.array(batch.audio) for batch in resumed], first[1:])
    ranks = [[np.array(b.audio) for b in loader(2, shard=(rank, 2))] for rank in (0, 1)]
    np.testing.assert_array_equal(np.concatenate(ranks, axis=1), first)
    epochs = loader()
    two = [[np.array(batch.audio) for batch in epochs] for _ in range(2)]
    np.testing.assert_array_equal(two[0], first)
    assert not np.array_equal(two[1], first)


@pytest.mark.parametrize("form", ["list", "tar", "records", "objects", "pack", "part"])
def test_any_audio_source_works(tmp_path: Path, form: str) -> None:
    stored = files(tmp_path / "noises", [16000] * 3)
    paths = sorted((tmp_path / "noises").iterdir())
    noises: Any = hr.open(tmp_path / "noises")
    wanted = through_noise(noises)
    if form == "list":
        (tmp_path / "noises.txt").write_text("".join(f"{path}\n" for path in paths))
        noises = hr.open(tmp_path / "noises.txt")
    elif form == "tar":
        with tarfile.open(tmp_path / "noises.tar", "w") as tar:
            for path in paths:
                tar.add(path, path.name)
        noises = hr.open(tmp_path / "noises.tar")
    elif form == "records":
        noises = hr.records(audio=[str(path) for path in paths])
    elif form == "objects":
        rows = [{"noise": path.read_bytes(), "name": path.name} for path in paths]
        noises = hr.open(rows, kinds={"noise": "audio"})
    elif form == "pack":
        hr.pack(noises, str(tmp_path / "noises.hrp"))
        noises = hr.open(tmp_path / "noises.hrp")
    else:
        noises = hr.records(audio=[str(path) for path in [*paths, *paths]])[:3]
    assert len(stored) == len(noises)
    np.testing.assert_array_equal(through_noise(noises), wanted)


def through_noise(noises: hr.Source) -> Array:
    source = hr.records(sound=SPEECH, kinds={"sound": "audio"})
    steps = [T.Resample(16000, 16000), T.AddNoise(3.0, source=noises)]
    return np.array(next(iter(hr.Loader(source, steps, batch_size=60, threads=2))).sound)


def test_only_the_segment_of_a_long_noise_is_decoded(tmp_path: Path) -> None:
    pytest.importorskip("soundfile")
    long = np.zeros((1, 30_000_000), np.int16)  # 120 MB as float32
    long[0, ::50] = 999
    (tmp_path / "noises").mkdir()
    data = audio_files.encoded(long, audio_files.RATE, format="FLAC")
    (tmp_path / "noises" / "long.flac").write_bytes(data)
    loader = hr.Loader(
        speech_files(tmp_path / "speech"),
        [T.PadOrTrim(400), T.AddNoise(3.0, source=hr.open(tmp_path / "noises"))],
        batch_size=4,
        memory_limit="80 MiB",
        threads=1,
    )
    assert len(list(loader)) == 3


def test_a_bad_noise_recording_is_named_and_follows_the_policy(tmp_path: Path) -> None:
    files(tmp_path / "noises", [16000] * 3)
    bad = tmp_path / "noises" / "1.wav"
    bad.write_bytes(bad.read_bytes()[:-500])
    source = speech_files(tmp_path / "speech")
    steps = [T.PadOrTrim(400), T.AddNoise(3.0, source=hr.open(tmp_path / "noises"))]

    def batches(on_error: str = "raise") -> list[int]:
        how: dict[str, Any] = {"on_error": on_error, "error_budget": 100}
        loader = hr.Loader(source, steps, batch_size=4, fields=("audio", "id"), **how)
        return [len(batch.id) for batch in loader]

    with pytest.raises(hr.DataError, match=r"HR0351(.|\n)*noises/1\.wav(.|\n)*noise 1 of source="):
        batches()
    assert 0 < sum(batches("skip")) < 12
    assert batches("substitute") == [4, 4, 4]
    bad.unlink()
    with pytest.raises(hr.Error, match=r"noises/1\.wav"):
        batches()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nans_are_refused_because_their_ratio_is_undefined(value: float) -> None:
    noises = white(1, 400)
    noises[0, 0, 17] = value
    with pytest.raises(hr.DataError, match=r"HR0545.*not finite.*(.|\n)*noise 0 of source="):
        added(T.AddNoise(3.0, source=arrays(noises)))
    loud = SPEECH.copy()
    loud[3, 0, 5] = value
    with pytest.raises(hr.DataError, match=r"HR0545.*not finite"):
        added(T.AddNoise(3.0, source=arrays(white(1, 400))), loud)


def test_silent_audio_stays_silent_and_empty_noise_is_an_error() -> None:
    silent = added(T.AddNoise(3.0, source=arrays(np.zeros((1, 1, 400), np.float32))))
    assert not silent.any()
    assert not added(T.AddNoise(3.0, source=arrays(white(1, 400))), np.zeros_like(SPEECH)).any()
    with pytest.raises(hr.DataError, match=r"HR0545.*has no frames"):
        added(T.AddNoise(3.0, source=arrays(np.zeros((1, 1, 0), np.float32)), repeat=True))
    nothing = added(T.AddNoise(3.0, source=arrays(white(1, 40))), SPEECH[:, :, :0])
    assert nothing.shape == (60, 1, 0)


def test_p_is_the_fraction_of_records_with_noise() -> None:
    step = T.RandomApply([T.AddNoise(3.0, source=arrays(white(2, 500)))], p=0.5)
    noisy = added(step).any(axis=(1, 2)).sum()
    assert 15 < noisy < 45


def test_all_audio_of_a_record_gets_the_same_noise() -> None:
    source = hr.records(a=SPEECH, b=SPEECH, kinds={"a": "audio", "b": "audio"})
    step = T.AddNoise((0.0, 20.0), source=arrays(white(5, 900)))
    batch = next(iter(hr.Loader(source, [step], batch_size=9)))
    np.testing.assert_array_equal(batch.a, batch.b)
    alone = [T.AddNoise(3.0, source=arrays(white(5, 900)), fields="a")]
    batch = next(iter(hr.Loader(source, alone, batch_size=9)))
    assert not np.array_equal(batch.a, batch.b)


def test_an_object_that_is_not_a_noise_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0103.*source must be a source.*\"noises/\""):
        T.AddNoise(3.0, source="noises/")
    with pytest.raises(hr.ConfigError, match=r"HR0105.*source is given a dict"):
        T.AddNoise(3.0, source={})
    plain = hr.records(number=np.arange(3))
    with pytest.raises(hr.ConfigError, match=r"HR0510.*source= has no audio clips"):
        added(T.AddNoise(3.0, source=plain))
    both = hr.records(a=SPEECH, b=SPEECH, kinds={"a": "audio", "b": "audio"})
    with pytest.raises(hr.ConfigError, match=r"HR0510.*several audio fields, \"a\", \"b\""):
        added(T.AddNoise(3.0, source=both))
    files(tmp_path / "noises", [16000])
    of_files = hr.open(tmp_path / "noises")
    with pytest.raises(hr.DataError, match=r"HR0545.*known sample rates.*Resample\(orig_freq"):
        added(T.AddNoise(3.0, source=of_files))
    assert "source=<Source folder" in repr(T.AddNoise(3.0, source=of_files))

# SPDX-License-Identifier: Apache-2.0
"""A clip's audio covers the time range of its frames: both encode the time."""

from __future__ import annotations

import hashlib
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import video_sounds
import videos
from video_sounds import film, number_of, off_by

import headrace as hr
from headrace import _core
from headrace import transforms as T

pytest.importorskip("av", reason="av makes the videos")
if MISSING := videos.missing_decoder():
    pytest.skip(MISSING, allow_module_level=True)

RATE = 48000


def one(tmp_path: Path, data: bytes, suffix: str = "mp4") -> hr.Source:
    (tmp_path / f"it.{suffix}").write_bytes(data)
    return hr.open(tmp_path)


def batches(source: hr.Source, *steps: Any, **options: Any) -> list[Any]:
    options = {"batch_size": 1, "shuffle": False, **options}
    return list(hr.Loader(source, [*steps], **options))


def seen_and_heard(source: hr.Source, step: Any, **options: Any) -> tuple[float, Any, Any]:
    """The second at which the clip's first frame is shown, its frames' numbers, and its audio."""
    batch = batches(source, step, T.CenterCrop((16, 128)), T.Mono(), **options)[0]
    numbers = [number_of(frame) for frame in np.asarray(batch.video)[0]]
    return float(np.asarray(batch.video_times)[0][0]), numbers, np.asarray(batch.video_audio)[0, 0]


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"rate": 44100},
        {"rate": 44100, "channels": 2},
        {"fps": 30, "rate": 22050},
        # The AAC stream has 1024 priming samples, and MP4 stores a track's start in milliseconds.
        {"late": 0.3 + 1024 / 48000},
        {"late": 0.3 + 1024 / 44100, "rate": 44100},
        {"pictures_late": 0.2},
        {"lasts": 5.0},
        {"container": "mov"},
        {"options": {"movflags": "faststart"}},
        {"container": "matroska", "sound": "libopus"},
        {"container": "matroska", "sound": "aac"},
        {"container": "matroska", "sound": "flac", "rate": 44100},
        {"container": "matroska", "sound": "pcm_s16le", "channels": 2},
        {"container": "matroska", "sound": "libmp3lame"},
        {"container": "matroska", "sound": "libmp3lame", "rate": 44100, "late": 0.3},
        {"container": "webm", "sound": "vorbis", "channels": 2},
        {"container": "webm", "sound": "libopus"},
    ],
    ids=lambda how: "-".join(f"{key}={value}" for key, value in how.items()) or "plain",
)
def test_the_audio_of_a_clip_matches_its_frames_in_time(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    rate = how.get("rate", RATE)
    source = one(tmp_path, film(**how))
    step = T.RandomVideoClips(8, stride=3, audio=rate, times=True)
    for seed in range(4):
        # Clips that begin before late audio starts are silent and are not requested here.
        begin, numbers, sound = 0.0, [0], np.zeros(0)
        for attempt in range(50):
            try:
                begin, numbers, sound = seen_and_heard(
                    source, step, seed=seed + 100 * attempt, ragged="pad"
                )
                break
            except hr.Error as error:
                assert "HR0549" in str(error)
        fps = how.get("fps", 25)
        assert begin == pytest.approx(numbers[0] / fps + how.get("pictures_late", 0.0), abs=1e-3)
        assert numbers == list(range(numbers[0], numbers[0] + 24, 3))
        assert len(sound) == pytest.approx(22 / fps * rate, abs=2)
        # Matroska's clock has a resolution of milliseconds.
        coarse = 0.5e-3 if how.get("container") in ("matroska", "webm") else 0.0
        assert abs(off_by(sound, begin, rate)) <= 0.51 / rate + 2 * coarse


@pytest.mark.skipif(not shutil.which("ffmpeg"), reason="ffmpeg encodes and cuts")
@pytest.mark.parametrize("cut", ["", "-ss 0.9"])
@pytest.mark.parametrize("rate", [48000, 44100])
def test_the_first_vorbis_packet_gives_no_samples(tmp_path: Path, cut: str, rate: int) -> None:
    (tmp_path / "a.mkv").write_bytes(film(container="matroska", sound="pcm_s16le", rate=rate))
    for how, made in (
        (["-i", "a.mkv", "-c:v", "copy", "-c:a", "libvorbis", "-q:a", "8"], "b.mkv"),
        ([*cut.split(), "-i", "b.mkv", "-c", "copy"], "it/it.mkv"),
    ):
        (tmp_path / "it").mkdir(exist_ok=True)
        subprocess.run(["ffmpeg", "-v", "error", *how, made], cwd=tmp_path, check=True)
    source = hr.open(tmp_path / "it")
    step = T.RandomVideoClips(8, stride=3, audio=rate, times=True, missing_audio="silence")
    late = []
    for seed in range(12):
        _, numbers, sound = seen_and_heard(source, step, seed=seed, ragged="pad")
        late.append(off_by(sound[rate // 5 :], numbers[0] / 25 + 0.2, rate))
    assert abs(np.mean(late)) < 1.1e-3  # Matroska's clock has a resolution of milliseconds


@pytest.mark.parametrize("wanted", [16000, 22050, 44100, 96000])
def test_audio_at_another_rate_is_the_same_signal(tmp_path: Path, wanted: int) -> None:
    source = one(tmp_path, film(rate=44100))
    step = T.CenterVideoClip(16, fps=10.0, audio=wanted, times=True)
    batch = batches(source, step, T.CenterCrop((16, 128)), T.Mono())[0]
    sound = np.asarray(batch.video_audio)
    assert sound.shape == (1, 1, int(1.6 * wanted))
    begin = (4.0 - 1.6) / 2
    assert abs(off_by(sound[0, 0], begin, wanted)) <= 0.51 / 44100
    numbers = [number_of(frame) for frame in np.asarray(batch.video)[0]]
    assert numbers == [int((begin + i / 10) * 25 + 1e-6) for i in range(16)]


def test_audio_at_another_rate_equals_resampling_the_whole_track(tmp_path: Path) -> None:
    (tmp_path / "it.mp4").write_bytes(film(rate=44100))
    files = [str(tmp_path / "it.mp4")]
    source = hr.records(video=files, t=np.array([2.0]))
    step = T.VideoClipAt(20, time="t", fps=20.0, audio=16000)
    sound = batches(source, step, T.CenterCrop((16, 128)), T.Mono())[0].video_audio
    steps = [T.CenterClip(4 * 44100), T.Resample(44100, 16000)]
    whole = batches(hr.records(audio=files, kinds={"audio": "audio"}), *steps)[0]
    expected = np.asarray(whole.audio)[0, 0, 24000:40000]  # 1.5 s is a whole number of samples at
    # both rates
    assert np.abs(np.asarray(sound)[0, 0] - expected).max() < 1e-6


def test_each_of_several_clips_has_its_audio(tmp_path: Path) -> None:
    source = one(tmp_path, film(seconds=6.0))
    step = T.UniformVideoClips(8, num_clips=3, fps=8.0, audio=16000, times=True)
    batch = batches(source, step, T.CenterCrop((16, 128)), T.Mono())[0]
    sounds, times = np.asarray(batch.video_audio), np.asarray(batch.video_times)
    assert sounds.shape == (1, 3, 1, 16000)
    assert np.asarray(batch.video).shape == (1, 3, 8, 3, 16, 128)
    for clip, begin in enumerate([0.0, 2.5, 5.0]):
        assert abs(off_by(sounds[0, clip, 0], begin, 16000)) <= 0.51 / 48000
        assert times[0, clip, 0] == pytest.approx(begin, abs=0.041)


def test_features_of_several_audio_clips_are_one_field(tmp_path: Path) -> None:
    source = one(tmp_path, film(seconds=6.0))
    steps = [
        T.UniformVideoClips(8, num_clips=3, fps=8.0, audio=16000),
        T.Resize((16, 16)),
        T.Mono(),
        T.MelSpectrogram(16000, n_fft=400, hop_length=160, n_mels=40),
        T.AmplitudeToDB(),
    ]
    batch = batches(source, *steps)[0]
    mel = np.asarray(batch.video_audio)
    assert mel.shape == (1, 3, 1, 40, 101)
    alone = batches(source, *steps, fields=["video_audio"])[0]
    assert np.array_equal(np.asarray(alone.video_audio), mel)
    assert not np.array_equal(mel[0, 0], mel[0, 1])


@pytest.mark.parametrize("how", [{"stride": 2}, {"fps": 5.0}], ids=["stride", "fps"])
def test_variable_frame_rates_do_not_shift_audio(tmp_path: Path, how: dict[str, Any]) -> None:
    random = np.random.default_rng(3)
    times = np.cumsum(random.integers(20, 90, 80))
    times -= times[0]
    (tmp_path / "it.mp4").write_bytes(film(times=times.tolist(), seconds=times[-1] / 1000))
    source = hr.records(video=[str(tmp_path / "it.mp4")], t=np.array([2.0]))
    step = T.VideoClipAt(6, time="t", audio=RATE, times=True, **how)
    begin, numbers, sound = seen_and_heard(source, step, ragged="pad")
    assert begin == pytest.approx(times[numbers[0]] / 1000, abs=1e-3)
    if "fps" in how:  # from 0.6 s before that time on, for any frame shown then
        begin = 2.0 - 6 / 5 / 2
        seen = begin + np.arange(6) / 5
        assert numbers == (np.searchsorted(times / 1000, seen, side="right") - 1).tolist()
        assert len(sound) == 6 * RATE // 5
    else:
        assert len(sound) == pytest.approx((times[numbers[-1] + 1] / 1000 - begin) * RATE, abs=2)
    assert abs(off_by(sound, begin, RATE)) <= 0.51 / RATE


def test_late_audio_is_padded_with_silence_or_an_error(tmp_path: Path) -> None:
    source = one(tmp_path, film(late=0.98 + 1024 / 48000))
    clip = {"fps": 4.0, "audio": 16000}
    step = T.UniformVideoClips(8, num_clips=2, **clip)  # 0 to 2 s, 2 to 4 s
    with pytest.raises(hr.Error, match=r"HR0549(.|\n)*from 0 s(.|\n)*missing_audio=\"silence\""):
        batches(source, step, T.Resize((16, 16)), T.Mono())
    step = T.UniformVideoClips(8, num_clips=2, **clip, missing_audio="silence")
    sound = np.asarray(batches(source, step, T.Resize((16, 16)), T.Mono())[0].video_audio)[0, :, 0]
    assert np.abs(sound[0, :15600]).max() < 0.02
    assert abs(off_by(sound[0, 16400:], 1.025, 16000)) <= 0.51 / 48000
    assert abs(off_by(sound[1], 2.0, 16000)) <= 0.51 / 48000


def test_audio_that_ends_early_is_padded_with_silence_or_an_error(tmp_path: Path) -> None:
    source = one(tmp_path, film(lasts=3.0))
    clip = {"fps": 4.0, "audio": 16000}
    step = T.UniformVideoClips(8, num_clips=2, **clip)
    with pytest.raises(hr.Error, match=r"HR0549(.|\n)*to 3 s"):
        batches(source, step, T.Resize((16, 16)), T.Mono())
    step = T.UniformVideoClips(8, num_clips=2, **clip, missing_audio="silence")
    sound = np.asarray(batches(source, step, T.Resize((16, 16)), T.Mono())[0].video_audio)[0, :, 0]
    assert abs(off_by(sound[1, :15500], 2.0, 16000)) <= 0.51 / 48000
    assert np.abs(sound[1, 16500:]).max() < 0.02


def test_a_video_without_audio_is_an_error_or_silence(tmp_path: Path) -> None:
    source = one(tmp_path, film(sound=None))
    step = T.CenterVideoClip(8, fps=8.0, audio=16000)
    with pytest.raises(hr.Error, match=r"HR0549(.|\n)*no audio"):
        batches(source, step, T.Resize((16, 16)), T.Mono())
    step = T.CenterVideoClip(8, fps=8.0, audio=16000, audio_channels=2, missing_audio="silence")
    sound = np.asarray(batches(source, step, T.Resize((16, 16)))[0].video_audio)
    assert sound.shape == (1, 2, 16000)
    assert not sound.any()


def test_audio_in_avi_is_refused_by_name_and_missing_audio_is_silence(tmp_path: Path) -> None:
    step = T.CenterVideoClip(8, fps=8.0, audio=16000, missing_audio="silence")
    for sound in (None, "pcm_s16le"):
        data = film(container="avi", video="mpeg4", sound=sound)
        source = one(tmp_path, data, "avi")
        if sound:
            with pytest.raises(hr.Error, match=r"HR0352(.|\n)*AVI(.|\n)*genpts"):
                batches(source, step, T.CenterCrop((16, 128)), T.Mono())
        else:
            batch = batches(source, step, T.CenterCrop((16, 128)), T.Mono())[0]
            assert not np.asarray(batch.video_audio).any()


def with_a_packet_twice_as_long(data: bytes, ends_earlier: int = 60) -> bytes:
    """The 41st packet of the audio, and the edit list ends this many milliseconds earlier."""
    sound = data.index(b"soun")
    times = data.index(b"stts", sound)
    count, duration = struct.unpack(">II", data[times + 12 : times + 20])
    assert duration == 1024 and data[times + 11] == 2  # the last one is shorter
    last = data[times + 20 : times + 28]
    rows = struct.pack(">IIIIII", 40, 1024, 1, 2048, count - 41, 1024) + last
    # Later data moves: the enclosing boxes change, but no packet offset, because packets come
    # before all tables.
    more = len(rows) - 16
    out = data[: times + 8] + struct.pack(">I", 4) + rows + data[times + 28 :]
    for name in (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stts"):
        at = times if name == b"stts" else data.rindex(name, 0, times)
        size = struct.unpack(">I", out[at - 4 : at])[0]
        out = out[: at - 4] + struct.pack(">I", size + more) + out[at:]
    edits = out.rindex(b"elst", 0, sound)
    length = struct.unpack(">I", out[edits + 12 : edits + 16])[0]
    return out[: edits + 12] + struct.pack(">I", length - ends_earlier) + out[edits + 16 :]


@pytest.mark.parametrize("ends_earlier", [60, 0])
def test_a_gap_in_the_audio_is_an_error_not_a_shift(tmp_path: Path, ends_earlier: int) -> None:
    source = one(tmp_path, with_a_packet_twice_as_long(film(), ends_earlier))
    step = T.CenterVideoClip(8, fps=8.0, audio=RATE, missing_audio="silence")
    with pytest.raises(hr.Error, match=r"HR0352(.|\n)*gaps in its audio: packet 41"):
        batches(source, step, T.CenterCrop((16, 128)), T.Mono())


def test_a_clip_that_ends_with_the_audio_has_its_last_sample(tmp_path: Path) -> None:
    source = one(tmp_path, film(rate=44100, fps=30))
    step = T.UniformVideoClips(10, num_clips=7, fps=7.0, audio=44100)
    sound = np.asarray(batches(source, step, T.Resize((16, 16)), T.Mono())[0].video_audio)[0]
    assert sound.shape == (7, 1, 63000)
    assert abs(off_by(sound[6, 0], 4.0 - 10 / 7, 44100)) <= 1.01 / 44100


def test_channels_are_selected_mixed_or_refused(tmp_path: Path) -> None:
    source = one(tmp_path, film(channels=2))
    step = T.CenterVideoClip(8, fps=8.0, audio=RATE)
    with pytest.raises(hr.Error, match=r"HR0114(.|\n)*Mono"):
        batches(source, step, T.Resize((16, 16)))
    step = T.CenterVideoClip(8, fps=8.0, audio=RATE, audio_channels=2)
    assert np.asarray(batches(source, step, T.Resize((16, 16)))[0].video_audio).shape == (
        1,
        2,
        RATE,
    )
    step = T.CenterVideoClip(8, fps=8.0, audio=RATE, audio_channels=1)
    with pytest.raises(hr.Error, match="HR0741"):
        batches(source, step, T.Resize((16, 16)))


def test_clips_by_stride_are_as_long_as_their_frames(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(film())
    (tmp_path / "b.mp4").write_bytes(film(fps=10))
    step = T.CenterVideoClip(8, audio=16000, audio_channels=1)
    source = hr.open(tmp_path)
    with pytest.raises(hr.Error, match=r"HR0114(.|\n)*fps="):
        batches(source, step, T.Resize((16, 16)))
    batch = batches(
        source, step, T.Resize((16, 16)), T.Mono(), batch_size=2, ragged="pad", threads=1
    )[0]
    assert np.asarray(batch.video_audio_lengths).ravel().tolist() == [8 * 640, 8 * 1600]
    batch = batches(source, step, T.Resize((16, 16)), T.Mono(), T.PadOrTrim(9000), batch_size=2)[0]
    assert np.asarray(batch.video_audio).shape == (2, 1, 9000)
    with pytest.raises(hr.Error, match=r"HR0373(.|\n)*PadOrTrim"):
        batches(
            source,
            T.UniformVideoClips(8, num_clips=2, audio=16000, audio_channels=1),
            T.Resize((16, 16)),
            T.Mono(),
            ragged="pad",
        )


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"audio": 16000, "policy": "wrap"}, "wrap"),
        ({"missing_audio": "silence"}, "audio="),
        ({"audio_channels": 1}, "audio="),
        ({"audio": 1, "fps": 100.0}, "sample"),
    ],
)
def test_invalid_arguments_are_refused(tmp_path: Path, how: dict[str, Any], says: str) -> None:
    source = one(tmp_path, film())
    with pytest.raises(hr.Error, match=says):
        hr.Loader(source, [T.CenterVideoClip(8, **how), T.Resize((16, 16))])


def test_branches_have_their_own_clips_and_audio(tmp_path: Path) -> None:
    source = one(tmp_path, film())
    steps = [
        T.Fork(
            "video",
            slow=[T.CenterVideoClip(4, fps=4.0, audio=16000), T.Resize((16, 16))],
            fast=[T.CenterVideoClip(8, fps=16.0, audio=8000), T.Resize((16, 16))],
        ),
        T.Mono(),
    ]
    batch = batches(source, *steps)[0]
    assert np.asarray(batch.slow_audio).shape == (1, 1, 16000)
    assert np.asarray(batch.fast_audio).shape == (1, 1, 4000)


def test_threads_ranks_and_a_resume_change_no_byte(tmp_path: Path) -> None:
    for number in range(8):
        data = film(seconds=2.0 + 0.2 * number, rate=44100 if number % 2 else 48000)
        (tmp_path / f"{number}.mp4").write_bytes(data)
    source = hr.open(tmp_path)
    steps = [
        T.RandomVideoClips(6, num_clips=2, fps=6.0, audio=16000, missing_audio="silence"),
        T.RandomCrop((16, 64)),
        T.Mono(),
    ]

    def rows(**how: Any) -> list[str]:
        options = {"batch_size": 4, "seed": 5, "shuffle": True, **how}
        out = []
        for batch in hr.Loader(source, steps, **options):
            for video, sound in zip(
                np.asarray(batch.video), np.asarray(batch.video_audio), strict=True
            ):
                out.append(hashlib.sha256(video.tobytes() + sound.tobytes()).hexdigest())
        return out

    expected = rows(threads=1)
    assert len(expected) == 8
    assert rows(threads=3) == expected
    ranks = [rows(batch_size=None, global_batch_size=4, shard=(rank, 2)) for rank in range(2)]
    assert ranks[0][:4] == expected[:2] + expected[4:6]
    assert ranks[1][:4] == expected[2:4] + expected[6:8]
    loader = hr.Loader(source, steps, batch_size=4, seed=5, shuffle=True, threads=2)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    again = hr.Loader(source, steps, batch_size=4, seed=5, shuffle=True, threads=1)
    again.load_state_dict(state)
    rest = []
    for batch in again:
        for video, sound in zip(
            np.asarray(batch.video), np.asarray(batch.video_audio), strict=True
        ):
            rest.append(hashlib.sha256(video.tobytes() + sound.tobytes()).hexdigest())
    assert rest == expected[4:]


def test_a_field_with_the_name_of_the_audio_is_refused(tmp_path: Path) -> None:
    (tmp_path / "it.mp4").write_bytes(film())
    source = hr.records(video=[str(tmp_path / "it.mp4")], video_audio=np.array([2.0]))
    with pytest.raises(hr.Error, match=r"HR0373(.|\n)*video_audio(.|\n)*already"):
        batches(source, T.CenterVideoClip(8, fps=8.0, audio=16000), T.Resize((16, 16)))


def test_the_tests_clock_detects_audio_that_is_a_sample_late() -> None:
    """Tests the tests' own clock: an audio clip that is a sample late is detected."""
    times = 1.0 + np.arange(16000) / 16000
    late = off_by(video_sounds.heard(times - 1 / 48000), 1.0, 16000)
    assert late == pytest.approx(1 / 48000, abs=1e-7)


def with_a_block_of_unknown_size(data: bytes) -> bytes:
    """The Matroska file, with an unknown size for the fifth block of its first cluster."""

    def size_at(at: int) -> tuple[int, int]:  # its bytes, and their meaning
        count = 9 - data[at].bit_length()
        return count, int.from_bytes(data[at : at + count], "big") & ((1 << 7 * count) - 1)

    at = data.index(bytes.fromhex("1f43b675")) + 4
    at += size_at(at)[0]
    blocks = 0
    while True:  # ids in clusters take one byte
        count, size = size_at(at + 1)
        blocks += data[at] in (0xA0, 0xA3)
        if blocks == 5:
            unknown = ((1 << 7 * count + 1) - 1).to_bytes(count, "big")
            return data[: at + 1] + unknown + data[at + 1 + count :]
        at += 1 + count + size


def test_a_block_of_unknown_size_does_not_swallow_the_rest() -> None:
    data = film(2.0, container="matroska", sound="libopus")
    assert np.asarray(_core.decode_audio(data)[0]).shape[1] > RATE
    with pytest.raises(hr.DataError, match="unknown size of the element at byte"):
        _core.decode_audio(with_a_block_of_unknown_size(data))

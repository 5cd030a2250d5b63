# SPDX-License-Identifier: Apache-2.0
"""Audio clips go from every source into a batch, as (channels, frames) of float32."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import audio_files
import numpy as np
import pytest
from PIL import Image

import headrace as hr
from headrace import _core
from headrace import transforms as T

FRAMES = [1200, 900, 1500, 1000, 1100, 950]


@pytest.fixture
def stored() -> list[Any]:
    return [audio_files.int16_waves(frames, seed=n) for n, frames in enumerate(FRAMES)]


@pytest.fixture
def folder(tmp_path: Path, stored: list[Any]) -> Path:
    """no/0.wav, no/1.wav, no/2.wav, yes/3.wav, ..."""
    root = tmp_path / "speech"
    for number, samples in enumerate(stored):
        place = root / ("no" if number < 3 else "yes")
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.wav").write_bytes(audio_files.wav_of(samples))
    (root / "LICENSE").write_text("made up\n")
    return root


def save_picture(path: Path) -> None:
    Image.fromarray(np.arange(300, dtype=np.uint8).reshape(10, 10, 3) % 251).save(path)


def floats(samples: Any) -> Any:
    return samples.astype(np.float32) / 32768


def test_an_audio_folder_has_classes_and_waveforms(folder: Path, stored: list[Any]) -> None:
    src = hr.open(folder)
    assert src.classes == ["no", "yes"]
    assert [field.name for field in src.schema] == ["audio", "label"]
    assert "audio" in repr(src)
    for number, samples in enumerate(stored):
        record = src[number]
        np.testing.assert_array_equal(record["audio"], floats(samples))
        assert record["audio_rate"] == audio_files.RATE
        assert record["label"] == (0 if number < 3 else 1)


def test_a_folder_that_also_has_images_is_an_image_folder(folder: Path) -> None:
    save_picture(folder / "yes" / "cover.png")
    save_picture(folder / "no" / "cover.png")
    assert [field.name for field in hr.open(folder).schema] == ["image", "label"]


@pytest.mark.parametrize("threads", [1, 3])
def test_padded_batches_have_lengths_and_a_mask(
    folder: Path, stored: list[Any], threads: int
) -> None:
    loader = hr.Loader(hr.open(folder), batch_size=3, shuffle=False, ragged="pad", threads=threads)
    seen = 0
    for batch in loader:
        lengths = batch["audio_lengths"]
        assert batch["audio"].shape == (3, 1, lengths.max())
        for row in range(3):
            samples = floats(stored[seen])
            assert lengths[row] == samples.shape[1]
            np.testing.assert_array_equal(batch["audio"][row, :, : lengths[row]], samples)
            assert not batch["audio"][row, :, lengths[row] :].any()
            assert batch["audio_mask"][row].sum() == lengths[row]
            seen += 1
    assert seen == len(stored)


def test_lists_have_each_clip_unchanged(folder: Path, stored: list[Any]) -> None:
    batch = next(iter(hr.Loader(hr.open(folder), batch_size=6, shuffle=False, ragged="list")))
    for actual, samples in zip(batch["audio"], stored, strict=True):
        np.testing.assert_array_equal(actual, floats(samples))


def test_the_plan_says_that_no_step_fixes_the_length(folder: Path) -> None:
    with pytest.raises(hr.ConfigError, match=r'HR0114.*"audio" is float32 \(1, \?\)'):
        hr.Loader(hr.open(folder), batch_size=2)


def test_clips_of_fixed_length_are_one_tensor(folder: Path, stored: list[Any]) -> None:
    loader = hr.Loader(hr.open(folder), [T.PadOrTrim(1100)], batch_size=6, shuffle=False)
    batch = next(iter(loader))
    assert batch["audio"].shape == (6, 1, 1100)
    for actual, samples in zip(batch["audio"], stored, strict=True):
        expected = np.zeros((1, 1100), np.float32)
        expected[:, : samples.shape[1]] = floats(samples)[:, :1100]
        np.testing.assert_array_equal(actual, expected)


def test_a_clip_that_is_too_short_follows_the_error_policy(folder: Path) -> None:
    loader = hr.Loader(hr.open(folder), [T.CenterClip(1000)], batch_size=3, shuffle=False)
    with pytest.raises(hr.DataError, match=r"HR0540(.|\n)*900 frames(.|\n)*1.wav"):
        list(loader)
    skipping = hr.Loader(
        hr.open(folder), [T.CenterClip(1000)], batch_size=3, shuffle=False, on_error="skip"
    )
    assert sum(len(batch["audio"]) for batch in skipping) == 4


def test_audio_clips_of_another_rate_or_channels_are_refused(folder: Path) -> None:
    (folder / "yes" / "4.wav").write_bytes(audio_files.wav_of(audio_files.int16_waves(1000), 8000))
    with pytest.raises(hr.DataError, match=r"HR0356(.|\n)*8000 Hz, but the first record has 16000"):
        list(hr.Loader(hr.open(folder), batch_size=6, ragged="pad"))
    (folder / "yes" / "4.wav").write_bytes(audio_files.wav_of(audio_files.int16_waves(1000, 2)))
    with pytest.raises(hr.DataError, match=r"HR0741(.|\n)*\(2, 1000\)"):
        list(hr.Loader(hr.open(folder), batch_size=6, ragged="pad"))
    with pytest.raises(hr.DataError, match=r"HR0741(.|\n)*\(2, 500\)"):  # the same number of bytes
        list(hr.Loader(hr.open(folder), [T.PadOrTrim(500)], batch_size=6))
    mixed = hr.Loader(hr.open(folder), [T.Mono(), T.PadOrTrim(500)], batch_size=6)
    assert next(iter(mixed))["audio"].shape == (6, 1, 500)


def test_tar_files_lists_tables_and_columns_may_contain_audio(
    folder: Path, stored: list[Any], tmp_path: Path
) -> None:
    files = sorted(folder.rglob("*.wav"), key=lambda path: path.name)
    shard = tmp_path / "a.tar"
    with tarfile.open(shard, "w") as tar:
        for number, path in enumerate(files):
            for suffix, data in (("wav", path.read_bytes()), ("cls", b"1")):
                info = tarfile.TarInfo(f"{number:04}.{suffix}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    listed = tmp_path / "list.txt"
    listed.write_text("".join(f"{path} 1\n" for path in files))
    table = tmp_path / "table.csv"
    table.write_text("sound,label\n" + "".join(f"{path},1\n" for path in files))
    sources = [
        hr.open(shard),
        hr.open(listed),
        hr.open(table),
        hr.records(audio=[str(path) for path in files], label=[1] * 6),
    ]
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"bytes": path.read_bytes(), "path": path.name} for path in files]
    parquet.write_table(pyarrow.table({"audio": rows, "label": [1] * 6}), tmp_path / "a.parquet")
    sources.append(hr.open(tmp_path / "a.parquet"))
    for src in sources:
        batch = next(iter(hr.Loader(src, batch_size=6, shuffle=False, ragged="list")))
        assert batch["label"].tolist() == [1] * 6
        for actual, samples in zip(batch["audio"], stored, strict=True):
            np.testing.assert_array_equal(actual, floats(samples))


def test_arrays_in_memory_can_be_declared_audio(stored: list[Any]) -> None:
    array = np.stack([floats(samples)[:, :900] for samples in stored])
    src = hr.records(audio=array)
    assert str(src.schema[0].kind) == "audio"
    batch = next(iter(hr.Loader(src, [T.CenterClip(500)], batch_size=6, shuffle=False)))
    np.testing.assert_array_equal(batch["audio"], array[:, :, 200:700])


@pytest.mark.parametrize("to", ["tar", "pack"])
def test_converted_and_packed_audio_is_the_same(folder: Path, tmp_path: Path, to: str) -> None:
    src = hr.open(folder)
    target = tmp_path / ("out.tar" if to == "tar" else "out.hrp")
    if to == "tar":
        hr.convert(src, target, "tar")
    else:
        hr.pack(src, target)
    again = hr.open(target)
    assert len(again) == len(src)
    for number in range(len(src)):
        np.testing.assert_array_equal(again[number]["audio"], src[number]["audio"])
        assert again[number]["audio_rate"] == audio_files.RATE
        assert again[number]["label"] == src[number]["label"]


def test_a_python_function_gets_the_samples(folder: Path, stored: list[Any]) -> None:
    def louder(audio: Any) -> Any:
        return audio * np.float32(2)

    steps = [T.Python(louder, fields="audio"), T.PadOrTrim(500)]
    batch = next(iter(hr.Loader(hr.open(folder), steps, batch_size=6, shuffle=False)))
    for actual, samples in zip(batch["audio"], stored, strict=True):
        np.testing.assert_array_equal(actual, 2 * floats(samples)[:, :500])


def test_views_of_a_fork_are_cropped_independently(folder: Path, stored: list[Any]) -> None:
    fork = T.Fork("audio", one=[T.RandomClip(400)], two=[T.RandomClip(400), T.Vol(0.5)])
    batch = next(iter(hr.Loader(hr.open(folder), [fork], batch_size=6, shuffle=False)))
    assert batch["one"].shape == batch["two"].shape == (6, 1, 400)
    assert np.abs(batch["one"]).max() > np.abs(batch["two"]).max()


def test_batches_do_not_depend_on_threads_or_a_resume(folder: Path) -> None:
    def batches(threads: int, resume_at: int = 0) -> list[Any]:
        steps = [T.RandomClip(300), T.Fade(10, 20)]
        loader = hr.Loader(hr.open(folder), steps, batch_size=2, seed=5, threads=threads)
        if not resume_at:
            return [batch["audio"].copy() for batch in loader]
        source = iter(loader)
        before = [next(source)["audio"].copy() for _ in range(resume_at)]
        state = loader.state_dict()
        other = hr.Loader(hr.open(folder), steps, batch_size=2, seed=5, threads=threads)
        other.load_state_dict(state)
        return before + [batch["audio"].copy() for batch in other]

    first = batches(1)
    assert len(first) == 3
    for other in (batches(3), batches(2, resume_at=1)):
        for a, b in zip(first, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_record_may_have_audio_and_an_image(folder: Path, stored: list[Any]) -> None:
    files = sorted(folder.rglob("*.wav"), key=lambda path: path.name)
    picture = folder / "cover.png"
    save_picture(picture)
    src = hr.records(image=[str(picture)] * 6, audio=[str(path) for path in files])
    steps = [T.Resize((8, 8)), T.ToDtype("float32", scale=True), T.PadOrTrim(700)]
    batch = next(iter(hr.Loader(src, steps, batch_size=6, shuffle=False)))
    assert batch["image"].shape == (6, 3, 8, 8)
    np.testing.assert_array_equal(batch["audio"][3], floats(stored[3])[:, :700])


def test_only_the_needed_part_of_long_audio_is_decoded(tmp_path: Path) -> None:
    pytest.importorskip("soundfile")
    long = np.zeros((1, 30_000_000), np.int16)  # 120 MB as float32
    long[0, ::1000] = np.arange(30_000)
    (tmp_path / "long.flac").write_bytes(audio_files.encoded(long, audio_files.RATE, format="FLAC"))
    loader = hr.Loader(
        hr.open(tmp_path), [T.RandomClip(16000)], batch_size=1, memory_limit="220 MiB", threads=1
    )
    clip = next(iter(loader))["audio"][0]
    assert clip.shape == (1, 16000) and np.count_nonzero(clip) >= 15
    whole = hr.Loader(
        hr.open(tmp_path), batch_size=1, memory_limit="220 MiB", threads=1, ragged="list"
    )
    with pytest.raises(hr.ResourceLimitError, match="HR0707"):
        next(iter(whole))


def test_buckets_hold_clips_of_similar_length_in_a_resumable_order(folder: Path) -> None:
    src = hr.open(folder)
    assert src.lengths("audio").tolist() == FRAMES
    order = hr.sampling.buckets("audio", batch_size=2, pool=3)

    def loader(batch_size: int = 2, **how: Any) -> Any:
        return hr.Loader(src, batch_size=batch_size, sampler=order, ragged="pad", seed=7, **how)

    batches = [sorted(batch["audio_lengths"].tolist()) for batch in loader()]
    assert sorted(batches) == [[900, 950], [1000, 1100], [1200, 1500]]
    first = loader()
    next(iter(first))
    again = loader(threads=3)
    again.load_state_dict(first.state_dict())
    assert [sorted(batch["audio_lengths"].tolist()) for batch in again] == batches[1:]
    slices = [loader(batch_size=1, shard=(rank, 2)) for rank in (0, 1)]
    ranks = [[batch["audio_lengths"].tolist() for batch in each] for each in slices]
    assert [sorted(a + b) for a, b in zip(*ranks, strict=True)] == batches
    with pytest.raises(hr.ConfigError, match=r"HR0150(.|\n)*one number per record"):
        hr.Loader(src, batch_size=2, sampler=hr.sampling.buckets([1, 2], 2), ragged="pad")


def test_int16_equals_the_values_in_the_file(folder: Path, stored: list[Any]) -> None:
    steps = [T.PadOrTrim(900), T.ToDtype("int16", scale=True, fields="audio")]
    batch = next(iter(hr.Loader(hr.open(folder), steps, batch_size=6, shuffle=False)))
    assert batch["audio"].dtype == np.int16
    for actual, samples in zip(batch["audio"], stored, strict=True):
        np.testing.assert_array_equal(actual, samples[:, :900])


def test_int16_saturates_beyond_full_scale(tmp_path: Path) -> None:
    loud = np.array([[1.5, 1, 0.99999, -1, -1.5, 0.5 / 32768, 1.5 / 32768, np.inf]], np.float32)
    (tmp_path / "a.wav").write_bytes(audio_files.wav_of(loud))
    steps = [T.ToDtype("int16", scale=True, fields="audio")]
    batch = next(iter(hr.Loader(hr.open(tmp_path), steps, batch_size=1, ragged="list")))
    assert batch["audio"][0].tolist() == [[32767, 32767, 32767, -32768, -32768, 0, 2, 32767]]


def test_show_draws_waveforms(folder: Path, tmp_path: Path) -> None:
    grid = hr.Loader(hr.open(folder), batch_size=2, ragged="pad").show(4)
    assert grid.pixels.shape[0] == 3 and grid.pixels.std() > 10
    assert grid.save(tmp_path / "grid.png").stat().st_size > 1000


def test_a_folder_of_audio_is_written_as_one(folder: Path, tmp_path: Path) -> None:
    src = hr.open(folder)
    hr.convert(src, tmp_path / "again", "folder")
    again = hr.open(tmp_path / "again")
    assert again.classes == src.classes
    for number in range(len(src)):
        np.testing.assert_array_equal(again[number]["audio"], src[number]["audio"])


def test_decoding_is_counted(folder: Path) -> None:
    loader = hr.Loader(hr.open(folder), [T.PadOrTrim(500)], batch_size=6)
    assert len(list(loader)) == 1
    assert loader.stats()["stages"]["decode"] > 0


PREDICTED = {
    "waveforms": [],
    "resampled": [T.Resample(16000, 11025), T.Vol(0.5), T.Mono()],
    "own rate": [T.Resample(new_freq=8000)],
    "speeds": [T.SpeedPerturbation(16000, [0.9, 1.0, 1.1]), T.MelSpectrogram(16000, n_mels=20)],
    "maybe": [T.RandomApply([T.Speed(16000, 1.3)], p=0.5), T.Fade(100, 50)],
    "one of": [T.RandomChoice([[T.Resample(16000, 8000)], [T.Preemphasis()]])],
    "rows": [T.KaldiFbank(num_mel_bins=10)],
    "int16": [T.ToDtype("int16", scale=True, fields="audio")],
}


@pytest.mark.parametrize("case", list(PREDICTED))
@pytest.mark.parametrize("ragged", ["pad", "packed"])
def test_batches_are_the_same_whether_lengths_were_predicted_or_not(
    folder: Path, case: str, ragged: str
) -> None:
    def loader(threads: int = 1) -> Any:
        how = {"ragged": ragged, "shuffle": True, "seed": 3, "threads": threads}
        if ragged == "pad" and case == "waveforms":
            how |= {"pad_value": {"audio": -0.25}, "pad_to_multiple_of": 64}
        return hr.Loader(src, PREDICTED[case], batch_size=2, **how)

    src = hr.open(folder)
    before = loader()
    expected = [batch._asdict() for batch in before]
    assert before.stats()["predicted"] == 0
    src.lengths("audio")
    for threads in (1, 3):
        again = loader(threads)
        batches = [batch._asdict() for batch in again]
        for got, wanted in zip(batches, expected, strict=True):
            np.testing.assert_equal(got, wanted)
        assert again.stats()["predicted"] == 3


PACKED: dict[str, tuple[list[Any], int]] = {  # steps, and the axis whose size they leave unknown
    "waveforms": ([], 1),
    "spectrograms": ([T.MelSpectrogram(16000, n_fft=64, n_mels=8)], 2),
    "rows": ([T.KaldiFbank(num_mel_bins=10, channel=0)], 0),
}


def stereo_files(root: Path) -> hr.Source:
    root.mkdir()
    for number, frames in enumerate((900, 0, 1200, 401, 1100)):
        wave = audio_files.int16_waves(frames, 2, seed=number)
        (root / f"{number}.wav").write_bytes(audio_files.wav_of(wave))
    return hr.open(root)


@pytest.mark.parametrize("predicted", [False, True])
@pytest.mark.parametrize("case", list(PACKED))
def test_audio_clips_are_packed_along_their_frames(
    tmp_path: Path, case: str, predicted: bool
) -> None:
    src = stereo_files(tmp_path / "stereo")
    steps, axis = PACKED[case]
    if predicted:
        src.lengths("audio")

    def loader(ragged: str, **how: Any) -> Any:
        how = {"batch_size": 3, "shuffle": False, "on_error": "skip", **how}
        return hr.Loader(src, steps, ragged=ragged, fields=("audio", "id"), **how)

    apart = [np.asarray(each) for batch in loader("list") for each in batch.audio]
    together = []
    for batch in loader("packed"):
        offsets = np.asarray(batch.audio_offsets)
        assert offsets[0] == 0 and offsets[-1] == batch.audio.shape[axis]
        assert len(offsets) == len(batch.id) + 1
        together += [target["audio"] for target in batch.per_record()]
    assert len(together) == len(apart) == (5 if case == "waveforms" else 4)
    for mine, theirs in zip(together, apart, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    torch = pytest.importorskip("torch")
    view = loader("packed", threads=2).torch(batch="dict")
    together = [part["audio"] for batch in view for part in view.per_record(batch, "audio")]
    for mine, theirs in zip(together, apart, strict=True):
        assert isinstance(mine, torch.Tensor)
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_devices_get_the_same_packed_audio_clips(tmp_path: Path, devices: int) -> None:
    src = stereo_files(tmp_path / "stereo")
    loader = hr.Loader(src, batch_size=4, shuffle=False, ragged="packed", fields=("audio",))
    got = []
    for parts in loader.torch([_core.simulated_device(seed) for seed in range(devices)]):
        got += [target["audio"] for part in parts for target in part.per_record()]
    for number, mine in enumerate(got):
        np.testing.assert_array_equal(mine, src[number]["audio"])
    assert len(got) == 5


@pytest.mark.parametrize("on_error", ["skip", "substitute"])
@pytest.mark.parametrize("ragged", ["pad", "packed"])
def test_a_wrong_prediction_changes_nothing(
    folder: Path, stored: list[Any], ragged: str, on_error: str
) -> None:
    src = hr.open(folder)

    def batches() -> tuple[list[Any], int]:
        steps = [T.MelSpectrogram(16000, n_fft=64, n_mels=8)] if ragged == "pad" else []
        how = {"shuffle": True, "seed": 5, "on_error": on_error, "threads": 2}
        loader = hr.Loader(src, steps, batch_size=3, ragged=ragged, **how)
        return [batch._asdict() for batch in loader], loader.stats()["predicted"]

    src.lengths("audio")
    longer = audio_files.int16_waves(1700, seed=9)
    (folder / "no" / "1.wav").write_bytes(audio_files.wav_of(longer))  # the file was shorter
    (folder / "yes" / "3.wav").write_bytes(audio_files.wav_of(stored[3])[:-300])  # bad from now on
    predicted, count = batches()
    assert count < 2
    moved = folder.rename(folder.with_name("moved"))  # about which nothing is known
    src = hr.open(moved)
    unpredicted, none = batches()
    assert none == 0
    np.testing.assert_equal(predicted, unpredicted)
    rows = sum(len(batch["label"]) for batch in predicted)
    assert rows == (5 if on_error == "skip" else 6)


def test_a_budget_in_seconds_limits_the_clips_of_a_batch(folder: Path) -> None:
    src = hr.open(folder)
    np.testing.assert_allclose(src.durations("audio"), np.array(FRAMES) / audio_files.RATE)

    def loader(**how: Any) -> Any:
        order = hr.sampling.budget("audio", total=2400 / audio_files.RATE)
        return hr.Loader(src, sampler=order, ragged="pad", seed=2, fields=("audio", "id"), **how)

    batches = [batch for batch in loader()]
    assert len(loader()) == len(batches) and loader().batch_size == max(map(len_of, batches))
    assert sorted(n for batch in batches for n in batch.id.tolist()) == list(range(6))
    for batch in batches:
        assert batch.audio.shape[0] * batch.audio.shape[2] <= 2400
    again = loader(threads=3)
    next(iter(again))
    resumed = loader(threads=2)
    resumed.load_state_dict(again.state_dict())
    for got, wanted in zip(resumed, batches[1:], strict=True):
        np.testing.assert_array_equal(got.audio, wanted.audio)
    with pytest.raises(hr.ConfigError, match=r"HR0710.*sampler sets the number of records"):
        loader(batch_size=2)
    for last_batch in ("drop", "pad"):
        with pytest.raises(hr.ConfigError, match=r"HR0710.*last_batch has no effect"):
            loader(last_batch=last_batch)
    with pytest.raises(hr.ConfigError, match=r"HR0721.*smallest batch has 1 records for 2 ranks"):
        loader(shard=(0, 2))
    with pytest.raises(hr.ConfigError, match=r"HR0725.*record 2 has a length of 0\.\d+, .* 0\.05"):
        hr.Loader(src, sampler=hr.sampling.budget("audio", 0.05), ragged="pad")
    for total in (float("inf"), float("nan"), 0, -1, True, "4", None):
        with pytest.raises(hr.ConfigError, match=r"\[budget\] total must be "):
            hr.sampling.budget("audio", total)  # type: ignore[arg-type]
    everything = hr.Loader(src, sampler=hr.sampling.budget("audio", 1e30), ragged="pad")
    assert len(everything) == 1


def len_of(batch: Any) -> int:
    return len(batch.id)


@pytest.mark.parametrize("world", [1, 2, 3])
def test_a_budget_of_tokens_is_the_same_on_any_number_of_ranks(world: int) -> None:
    random = np.random.default_rng(4)
    lengths = random.integers(1, 60, 200)
    src = hr.records(number=np.arange(200), length=lengths)

    def batches(rank: int, world: int) -> list[Any]:
        order = hr.sampling.budget("length", total=400)
        loader = hr.Loader(src, sampler=order, seed=5, shard=(rank, world))
        return [batch.number.tolist() for batch in loader]

    alone = batches(0, 1)
    assert sorted(n for each in alone for n in each) == list(range(200))
    assert max(len(each) * max(lengths[each]) for each in alone) <= 400
    slices = [batches(rank, world) for rank in range(world)]
    assert [[n for part in each for n in part] for each in zip(*slices, strict=True)] == alone

# SPDX-License-Identifier: Apache-2.0
"""on_error=: the effect of a bad record, on other rows too, and after a resume."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

import headrace as hr
from headrace import transforms as T

RECORDS, BATCH = 60, 4
BAD = (5, 6, 7, 20, 33, 59)  # 5, 6, 7: most of a batch in sequential order
AUGMENT = [T.RandomCrop(12), T.RandomHorizontalFlip(), T.ToDtype("float32", scale=True)]
FIELDS = ("image", "label", "id", "key")


class Folders(NamedTuple):
    damaged: Path
    sound: Path


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """The same images twice; in one of the folders, BAD are truncated in their header."""
    roots = Folders(tmp_path_factory.mktemp("damaged"), tmp_path_factory.mktemp("sound"))
    rng = np.random.default_rng(3)
    for number in range(RECORDS):
        pixels = rng.integers(0, 256, (20, 18, 3), dtype=np.uint8)
        for root in roots:
            folder = root / f"class{number // 20}"
            folder.mkdir(exist_ok=True)
            path = folder / f"{number:02}.png"
            Image.fromarray(pixels).save(path)
            if root == roots.damaged and number in BAD:
                path.write_bytes(path.read_bytes()[:20])
    return roots


def loader(root: Path, on_error: str = "substitute", **options: Any) -> hr.Loader:
    given: dict[str, Any] = {
        "batch_size": BATCH,
        "shuffle": True,
        "seed": 5,
        "fields": FIELDS,
        "error_budget": 100,
        **options,
    }
    return hr.Loader(root, AUGMENT, on_error=on_error, **given)


class Row(NamedTuple):
    image: bytes
    label: int
    id: int
    key: str  # below the root folder


def rows_of(batch: Any) -> list[Row]:
    return [
        Row(image.tobytes(), int(label), int(id_), key[-13:])
        for image, label, id_, key in zip(*batch, strict=True)
    ]


def epoch(source: hr.Loader) -> list[list[Row]]:
    return [rows_of(batch) for batch in source]


def test_the_error_is_raised_at_the_batch_of_the_record(folders: Folders) -> None:
    expected = epoch(loader(folders.sound, seed=6))
    failing = loader(folders.damaged, "raise", seed=6)
    first_bad = next(k for k, batch in enumerate(expected) if any(row.id in BAD for row in batch))
    assert first_bad > 0
    iteration = iter(failing)
    assert [rows_of(next(iteration)) for _ in range(first_bad)] == expected[:first_bad]
    record = next(row.id for row in expected[first_bad] if row.id in BAD)
    for _ in range(2):  # the batch was not received, so it is tried again
        with pytest.raises(hr.DataError) as caught:
            next(iteration)
        assert caught.value.where.record == record
        assert failing.state_dict()["batch"] == first_bad
    assert failing.quarantine == []


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("world", [1, 2])
def test_substitutes_shift_no_other_rows(folders: Folders, shuffle: bool, world: int) -> None:
    whole = epoch(loader(folders.damaged, shuffle=shuffle))
    for rank in range(world):
        options: dict[str, Any] = {
            "shuffle": shuffle,
            "batch_size": None,
            "global_batch_size": BATCH,
            "shard": (rank, world),
        }
        sound = epoch(loader(folders.sound, **options))
        got = epoch(loader(folders.damaged, **options))
        mine = slice(rank * BATCH // world, (rank + 1) * BATCH // world)
        assert got == [batch[mine] for batch in whole]  # the ranks agree on the substitutes
        assert [len(batch) for batch in got] == [len(batch) for batch in sound]
        for row, expected in zip(chain(*got), chain(*sound), strict=True):
            if expected.id not in BAD:
                assert row == expected
            else:
                assert row.id not in BAD
                assert row.key == f"class{row.label}/{row.id:02}.png" and row.label == row.id // 20


def test_substitutes_are_redrawn_in_each_epoch(folders: Folders) -> None:
    source = loader(folders.damaged, shuffle=False)
    chosen = [[row.id for batch in epoch(source) for row in batch] for _ in range(3)]
    assert len({tuple(ids[bad] for bad in BAD) for ids in chosen}) == 3
    assert {entry["epoch"] for entry in source.quarantine} == {0, 1, 2}
    assert [e["record"] for e in source.quarantine if e["epoch"] == 1] == list(BAD)


def test_skip_shortens_the_batch_and_keeps_the_order(folders: Folders) -> None:
    sound = epoch(loader(folders.sound))
    got = epoch(loader(folders.damaged, "skip"))
    assert got == [[row for row in batch if row.id not in BAD] for batch in sound]
    assert {len(batch) for batch in got} > {BATCH}


def test_a_batch_of_only_bad_records_is_skipped(folders: Folders) -> None:
    source = loader(folders.damaged, "skip", batch_size=1, shuffle=False)
    got = [row.id for batch in epoch(source) for row in batch]
    assert got == [number for number in range(RECORDS) if number not in BAD]
    assert len(source) == RECORDS


def test_skip_is_refused_with_several_ranks(folders: Folders) -> None:
    with pytest.raises(
        hr.ConfigError, match="all ranks must have the same number of records"
    ) as caught:
        loader(folders.damaged, "skip", shard=(0, 2))
    assert "substitute" in caught.value.hint


@pytest.mark.parametrize("policy", ["substitute", "skip"])
def test_resume_is_exact_at_every_step(folders: Folders, policy: str) -> None:
    whole = loader(folders.damaged, policy)
    epoch(whole)
    expected = epoch(whole)  # the second one
    entries = [entry for entry in whole.quarantine if entry["epoch"] == 1]
    source = loader(folders.damaged, policy)
    source.set_epoch(1)
    iteration: Iterator[Any] = iter(source)
    for step in range(len(expected) + 1):
        state = json.loads(json.dumps(source.state_dict()))
        resumed = loader(folders.damaged, policy, threads=1 + step % 3)
        resumed.load_state_dict(state)
        assert epoch(resumed) == expected[step:]
        found = [*source.quarantine, *resumed.quarantine]
        assert [e["position"] for e in found] == [e["position"] for e in entries]
        if step < len(expected):
            next(iteration)


@pytest.mark.parametrize("policy", ["substitute", "skip"])
def test_an_error_budget_as_a_count_ends_the_run_at_its_batch(
    folders: Folders, policy: str
) -> None:
    for budget in range(len(BAD) + 1):
        source = loader(folders.damaged, policy, shuffle=False, error_budget=budget)
        iteration = iter(source)
        if budget == len(BAD):
            assert len(list(iteration)) == len(source)  # as many as the budget tolerates
            continue
        for _ in range(BAD[budget] // BATCH):
            next(iteration)
        with pytest.raises(hr.DataError, match="records of this epoch are bad") as caught:
            next(iteration)
        assert caught.value.code == "HR0731"
        assert f"the budget is {budget}" in str(caught.value)
        assert "headrace scan" in caught.value.hint and ".png" in caught.value.note


def test_the_count_of_bad_records_restarts_with_each_epoch(folders: Folders) -> None:
    source = loader(folders.damaged, error_budget=len(BAD))
    for _ in range(3):
        epoch(source)
    assert source.stats().bad_records == 3 * len(BAD)


def test_the_count_of_bad_records_continues_after_a_resume(folders: Folders) -> None:
    first = loader(folders.damaged, shuffle=False)
    iteration = iter(first)
    for _ in range(3):  # records 5, 6, 7 follow it
        next(iteration)
    state = first.state_dict()
    assert state["bad_records"] == 3
    second = loader(folders.damaged, shuffle=False, error_budget=4)
    second.load_state_dict(state)
    with pytest.raises(hr.DataError, match="5 of 36 records"):
        epoch(second)


def test_an_error_budget_as_a_fraction_applies_after_a_thousand_records(folders: Folders) -> None:
    # Every tenth record is bad from record 0 on.
    order = [0 if i % 10 else BAD[0] for i in range(2000)]
    many = hr.subset(hr.open(folders.damaged), order)
    options: dict[str, Any] = {"batch_size": 100, "on_error": "substitute"}
    tolerant = hr.Loader(many, AUGMENT, error_budget=0.1, **options)
    assert sum(1 for _ in tolerant) == 20
    strict = hr.Loader(many, AUGMENT, error_budget=0.099, **options)
    iteration = iter(strict)
    for _ in range(9):
        next(iteration)
    with pytest.raises(hr.DataError, match=r"100 of 1000 records.*fraction is 0\.099"):
        next(iteration)


def test_an_exhausted_budget_lists_each_record_once(folders: Folders, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    source = loader(folders.damaged, shuffle=False, error_budget=2, quarantine=path)
    iteration = iter(source)
    next(iteration)
    for _ in range(3):  # the batch is tried again
        with pytest.raises(hr.DataError):
            next(iteration)
    assert [entry["record"] for entry in source.quarantine] == [5, 6, 7]
    assert len(path.read_text().splitlines()) == 3


def test_the_quarantine_file_is_lines_of_json(folders: Folders, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"of": "an earlier run"}\n')
    source = loader(folders.damaged, quarantine=path)
    epoch(source)
    first, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert first == {"of": "an earlier run"}  # appended to
    assert lines == source.quarantine
    assert sorted(entry["record"] for entry in lines) == list(BAD)
    assert [entry["position"] for entry in lines] == sorted(e["position"] for e in lines)
    for entry in lines:
        number = entry["record"]
        assert entry["key"] == entry["file"] == source.source.key(number)
        assert entry["key"].endswith(f"class{number // 20}/{number:02}.png")
        assert entry["code"] == "HR0331" and entry["offset"] == 20 and "too early" in entry["what"]


@pytest.mark.filterwarnings("error")
def test_a_quarantine_on_a_full_disk_has_whole_lines_and_a_warning(
    folders: Folders, tmp_path: Path
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("what is there\n" * 10)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A limit on file size, which fails like a full disk. One line fits, and a part of the second.
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, before[1]))
    try:
        filling = loader(folders.damaged, "skip", quarantine=path, shuffle=False)
        with pytest.warns(hr.Warning, match=r"bad\.jsonl: File too large; it may lack bad records"):
            assert sum(map(len, epoch(filling))) == RECORDS - len(BAD)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [entry["record"] for entry in filling.quarantine] == list(BAD)
    written = path.read_text()
    assert written.endswith("}\n") and len(written) > 140
    assert [json.loads(line)["record"] for line in written.splitlines()[10:]] == list(
        BAD[: len(written.splitlines()) - 10]
    )


def test_a_quarantine_that_cannot_be_written_is_refused_at_once(
    folders: Folders, tmp_path: Path
) -> None:
    with pytest.raises(hr.ConfigError, match=r"nowhere/bad\.jsonl: No such file") as caught:
        loader(folders.damaged, quarantine=tmp_path / "nowhere" / "bad.jsonl")
    assert caught.value.code == "HR0730"


def test_no_substitute_is_drawn_if_everything_is_bad(folders: Folders) -> None:
    source = hr.subset(hr.open(folders.damaged), list(BAD))
    with pytest.raises(hr.DataError, match="100 substitutes were bad as well"):
        list(hr.Loader(source, AUGMENT, batch_size=2, on_error="substitute"))


def test_an_exception_in_a_python_step_is_a_bad_record(folders: Folders) -> None:
    def picky(image: Any, label: Any) -> Any:
        if label == 1:
            raise ValueError("not this class")
        return {"image": image}

    source = hr.Loader(
        folders.sound,
        [T.Resize((8, 8)), picky],
        batch_size=BATCH,
        on_error="substitute",
        error_budget=20,
        fields=FIELDS,
    )
    got = [row for batch in epoch(source) for row in batch]
    assert len(got) == RECORDS and {row.label for row in got} == {0, 2}
    kept = [position for position, row in enumerate(got) if row.id == position]
    assert kept == [*range(20), *range(40, 60)]
    assert [entry["record"] for entry in source.quarantine] == list(range(20, 40))
    assert all("not this class" in entry["what"] for entry in source.quarantine)
    for k in range(len(source)):  # replayed batches draw the same substitutes
        assert rows_of(source.batch(0, k)) == got[k * BATCH : (k + 1) * BATCH]


@pytest.mark.parametrize("policy", ["substitute", "skip"])
def test_an_outage_ends_the_run_and_is_not_counted(folders: Folders, policy: str) -> None:
    source = loader(folders.sound, policy, threads=1)
    iteration = iter(source)
    next(iteration)
    source.set_epoch(0)  # nothing is read ahead any longer
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # no file can be opened
    try:
        with pytest.raises(hr.StorageError, match="Too many open files") as caught:
            list(source)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert caught.value.code == "HR0207" and isinstance(caught.value, OSError)
    assert source.quarantine == [] and source.stats().bad_records == 0
    assert len(list(source)) == len(source)  # and it continues after the outage


def raises_by_chance(image: Any, rng: Any) -> Any:
    if rng.random() < 0.4:
        raise ValueError("not this time")
    return image


@pytest.mark.parametrize("threads", [1, 3])
def test_a_substitute_has_separate_random_draws_in_python(folders: Folders, threads: int) -> None:
    """A step that raises depending on its draws would raise for every substitute of that
    position."""
    options: dict[str, Any] = {"batch_size": BATCH, "on_error": "substitute", "error_budget": 36}
    source = hr.open(folders.sound)
    steps = [*AUGMENT, raises_by_chance]
    with hr.Loader(source, steps, threads=threads, seed=1, **options) as one:
        epochs = [[np.asarray(batch.image) for batch in one] for _ in range(2)]
        assert 5 < one.stats().bad_records / 2 < 30
    with hr.Loader(source, steps, threads=2, seed=1, **options) as other:
        again = [[np.asarray(batch.image) for batch in other] for _ in range(2)]
        alone = [other.batch(0, index).image for index in range(len(other))]
    for mine, theirs in zip(epochs, again, strict=True):
        np.testing.assert_array_equal(np.concatenate(mine), np.concatenate(theirs))
    np.testing.assert_array_equal(np.concatenate(epochs[0]), np.concatenate(alone))

# SPDX-License-Identifier: Apache-2.0
"""Bad data follows the policy; misuse is rejected before anything runs; messages say what to do."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Numbers, files_of
from PIL import Image

import headrace as hr
from headrace import _core
from headrace import transforms as T

SMALL = [T.Resize((8, 8))]


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """20 images; number 7 is not an image, and number 13 is truncated in its header."""
    folder = tmp_path / "data" / "only"
    folder.mkdir(parents=True)
    for number in range(20):
        pixels = np.full((10, 10, 3), number, np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02}.png")
    (folder / "07.png").write_bytes(b"this is not a picture, and never was one")
    (folder / "13.png").write_bytes((folder / "13.png").read_bytes()[:20])
    return tmp_path / "data"


def values(loader: hr.Loader) -> list[int]:
    return [int(image[0, 0, 0]) for batch in loader for image in batch.image]


def test_the_default_raises_with_code_location_and_hint(damaged: Path) -> None:
    with pytest.raises(hr.DataError) as caught:
        list(hr.Loader(damaged, SMALL, batch_size=4))
    error = caught.value
    assert error.code in _core.error_codes()
    assert error.where.file.endswith("07.png") and error.where.record == 7
    first, *rest = str(error).splitlines()
    assert first.startswith(error.code) and any("07.png" in line for line in rest)
    assert isinstance(error, hr.Error) and isinstance(error, ValueError)


def test_batches_before_a_bad_record_are_delivered(damaged: Path) -> None:
    iteration = iter(hr.Loader(damaged, SMALL, batch_size=4))
    assert int(next(iteration).image[3, 0, 0, 0]) == 3
    with pytest.raises(hr.DataError):
        next(iteration)


def test_skip_leaves_the_row_out(damaged: Path) -> None:
    loader = hr.Loader(damaged, SMALL, batch_size=4, on_error="skip", error_budget=5)
    assert values(loader) == [i for i in range(20) if i not in (7, 13)]


def test_substitute_fills_the_row_and_shifts_no_other_row(damaged: Path) -> None:
    options: dict[str, Any] = {"batch_size": 4, "on_error": "substitute", "error_budget": 5}
    loader = hr.Loader(damaged, SMALL, **options)
    got = values(loader)
    assert [v for i, v in enumerate(got) if i not in (7, 13)] == [
        i for i in range(20) if i not in (7, 13)
    ]
    assert not {got[7], got[13]} & {7, 13}
    assert values(hr.Loader(damaged, SMALL, threads=1, **options)) == got


def test_the_quarantine_lists_record_location_and_reason(damaged: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    loader = hr.Loader(
        damaged, SMALL, batch_size=4, on_error="skip", error_budget=5, quarantine=path
    )
    list(loader)
    assert [entry["record"] for entry in loader.quarantine] == [7, 13]
    entry = loader.quarantine[0]
    assert entry["key"].endswith("07.png") and entry["code"] in _core.error_codes()
    assert entry["action"] == "skipped"
    assert [json.loads(line) for line in path.read_text().splitlines()] == loader.quarantine


@pytest.mark.parametrize("budget", [1, (1, 1.0), (100, 0.0)])
def test_an_exhausted_error_budget_ends_the_run(damaged: Path, budget: Any) -> None:
    many = hr.subset(hr.open(damaged), list(range(20)) * 100)
    loader = hr.Loader(many, SMALL, batch_size=4, on_error="skip", error_budget=budget)
    with pytest.raises(hr.Error, match="records of this epoch are bad"):
        list(loader)


def test_a_loader_continues_after_an_error(damaged: Path) -> None:
    loader = hr.Loader(damaged, SMALL, batch_size=4)
    with pytest.raises(hr.DataError):
        list(loader)
    assert int(next(iter(loader)).image[0, 0, 0, 0]) == 0


def test_a_vanished_file_is_a_storage_error(pictures: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy" / "c"
    folder.mkdir(parents=True)
    for path in files_of(pictures)[:4]:
        (folder / path.name).write_bytes(path.read_bytes())
    source = hr.open(tmp_path / "copy")
    sorted(folder.iterdir())[2].unlink()
    with pytest.raises(hr.StorageError) as caught:
        list(hr.Loader(source, SMALL, batch_size=1))
    assert isinstance(caught.value, OSError)


def test_a_path_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(hr.StorageError, match="nothing found at"):
        hr.open("/nowhere/at/all")
    with pytest.raises(OSError):
        hr.Loader("/nowhere/at/all", batch_size=2)


def test_a_source_locates_a_bad_record(damaged: Path) -> None:
    source = hr.open(damaged)
    with pytest.raises(hr.DataError):
        source[7]
    with pytest.raises(IndexError):
        source[20]
    assert source[-1]["image"][0, 0, 0] == 19


def test_skip_is_refused_with_several_ranks() -> None:
    with pytest.raises(hr.ConfigError, match="substitute"):
        hr.Loader(Numbers(9), batch_size=1, on_error="skip", shard=(0, 2))


def test_too_little_memory_is_refused_at_once(pictures: Path) -> None:
    with pytest.raises(hr.Error, match="the minimum here is"):
        hr.Loader(pictures, [T.Resize((512, 512))], batch_size=512, memory_limit="20 MiB")


def test_too_many_pixels_are_refused_before_allocation(pictures: Path) -> None:
    loader = hr.Loader(pictures, SMALL, batch_size=4, max_pixels=30)
    with pytest.raises(hr.ResourceLimitError, match="the cap is 30"):
        next(iter(loader))


def test_errors_can_be_pickled(damaged: Path) -> None:
    with pytest.raises(hr.DataError) as caught:
        list(hr.Loader(damaged, SMALL, batch_size=4))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.code, copy.where) == (
        str(caught.value), caught.value.code, caught.value.where,
    )  # fmt: skip


def test_every_error_code_has_an_explanation() -> None:
    for code, record in _core.error_codes().items():
        assert code.startswith("HR") and len(code) == 6
        assert record["title"] and len(record["explanation"]) > 40, code


@pytest.mark.parametrize("value", [[[1]], 2**70, [2**70], [None], {1: 2}, object(), [object()]])
def test_an_invalid_argument_is_refused_and_named(value: Any) -> None:
    with pytest.raises(hr.ConfigError, match="padding") as caught:
        T.Pad(value)
    assert caught.value.code == "HR0105"


def test_lists_of_a_fork_in_a_dictionary_are_refused_with_a_hint() -> None:
    for arguments in ([{"view1": []}], ["image", {"view1": []}]):
        with pytest.raises(hr.ConfigError, match=r'HR0151[^\0]*Fork\("image", view1='):
            T.Fork(*arguments)

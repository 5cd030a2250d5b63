# SPDX-License-Identifier: Apache-2.0
"""Batches of ragged fields are counted and split by records, also as dictionaries."""

from __future__ import annotations

import numpy as np
import pytest
from headrace.insight.measure.loop import records_in
from test_ragged import assert_same, loader

import headrace as hr


@pytest.mark.parametrize("ragged", ["pad", "packed", "list"])
@pytest.mark.parametrize("fields", [("boxes",), ("boxes", "image"), ("number", "boxes")], ids=str)
def test_records_are_counted_regardless_of_their_rows(ragged: str, fields: tuple[str, ...]) -> None:
    with loader(ragged=ragged, fields=fields, batch_size=3) as each, hr.watch(each) as seen:
        assert [records_in(batch) for batch in each] == [3, 3, 3, 2]
        assert seen.stats()["records"] == 11


@pytest.mark.parametrize("ragged", ["pad", "packed", "list"])
@pytest.mark.parametrize("fields", [("boxes",), ("boxes", "image"), ("number", "boxes")], ids=str)
def test_dictionaries_are_counted_and_split_like_tuples(
    ragged: str, fields: tuple[str, ...]
) -> None:
    with loader(ragged=ragged, fields=fields, batch_size=3) as one:
        expected = [target for batch in one for target in batch.per_record()]
        view = one.torch(batch="dict")
        with hr.watch(view) as seen:
            batches = list(view)
            assert seen.stats()["records"] == 11
        assert [records_in(batch) for batch in batches] == [3, 3, 3, 2]
        got = [target for batch in batches for target in view.per_record(batch)]
        for mine, theirs in zip(got, expected, strict=True):
            assert_same(mine, theirs)
        boxes = [t for batch in batches for t in view.per_record(batch, "boxes")]
        assert [len(t["boxes"]) for t in boxes] == [len(t["boxes"]) for t in expected]


def test_a_dictionary_without_its_offsets_is_an_error() -> None:
    with loader(ragged="packed") as one:
        view = one.numpy(batch="dict")
        batch = next(iter(view))
        del batch["boxes_offsets"]
        with pytest.raises(
            hr.ConfigError, match=r"HR0743.*'boxes_offsets' is no longer in the batch"
        ):
            view.per_record(batch, "boxes")
        for name in [name for name in batch if name not in ("image", "number")]:
            del batch[name]
        (first, *_) = view.per_record(batch)
        assert set(first) <= {"image", "number"}


def test_unrelated_offsets_are_not_records() -> None:
    spans = {"word": np.zeros((5, 2)), "word_offsets": np.arange(5)}
    assert records_in(spans) == 5
    assert records_in({"word": np.zeros((5, 2)), "word_offsets": np.zeros((5, 2), np.int64)}) == 5

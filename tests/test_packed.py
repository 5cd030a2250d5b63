# SPDX-License-Identifier: Apache-2.0
"""Packed rows equal those made by plain Python and NumPy from the same documents."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from token_files import Tokens, cut, megatron_index, some_lengths, some_tokens, write_megatron

import headrace as hr

# (document, first token, number of tokens), and rows of these
Piece = tuple[int, int, int]
Row = list[Piece]
METHODS = ["best-fit", "first-fit", "sequential", "split"]


def pieces_of(lengths: list[int], length: int, too_long: str) -> Row:
    out = []
    for number, count in enumerate(lengths):
        if count > length and too_long == "drop":
            continue
        parts = [(number, at, min(length, count - at)) for at in range(0, count, length)]
        out += parts[:1] if too_long == "truncate" else parts
    return out


def packed_by_hand(lengths: list[int], length: int, method: str, too_long: str) -> list[Row]:
    """The definitions of the methods, as loops over all rows."""
    if method == "split":
        flat = [(number, at) for number, count in enumerate(lengths) for at in range(count)]
        rows: list[Row] = []
        for begin in range(0, len(flat), length):
            row: Row = []
            for number, at in flat[begin : begin + length]:
                if row and row[-1][0] == number:
                    row[-1] = (number, row[-1][1], row[-1][2] + 1)
                else:
                    row.append((number, at, 1))
            rows.append(row)
        return rows
    rows, rooms = [], []
    pieces = pieces_of(lengths, length, too_long)
    if method == "best-fit":
        pieces = sorted(pieces, key=lambda piece: -piece[2])
    for piece in pieces:
        fitting = [row for row, room in enumerate(rooms) if room >= piece[2]]
        if method == "sequential":
            fitting = [row for row in fitting if row == len(rows) - 1]
        if not fitting:
            rows.append([])
            rooms.append(length)
            fitting = [len(rows) - 1]
        chosen = min(fitting, key=lambda row: rooms[row]) if method == "best-fit" else fitting[0]
        rows[chosen].append(piece)
        rooms[chosen] -= piece[2]
    return rows


def row_by_hand(row: Row, documents: list[Tokens], length: int, shift: int) -> dict[str, Any]:
    ids, labels, positions, segments, bounds = [], [], [], [], [0]
    for number, (document, begin, count) in enumerate(row):
        tokens = documents[document].astype(np.int64).tolist()
        ids += tokens[begin : begin + count]
        if shift:
            following = [*tokens[begin + 1 : begin + count + 1]]
            labels += following + [-100] * (count - len(following))
        else:
            labels += [-100, *tokens[begin + 1 : begin + count]]
        positions += range(count)
        segments += [number + 1] * count
        bounds.append(bounds[-1] + count)
    rest = length - len(ids)
    return {
        "input_ids" if not shift else "tokens": ids + [9] * rest,
        "labels" if not shift else "targets": labels + [-100] * rest,
        "position_ids": positions + list(range(rest)),
        "segment_ids": segments + [0] * rest,
        "cu_seqlens": bounds + [length] * (rest > 0),
    }


def pieces_in(record: dict[str, Any], owner: dict[int, Piece]) -> Row:
    """The documents in a row, if each token encodes its document and position."""
    ids, segments = record["tokens"], record["segment_ids"]
    out = []
    for segment in range(1, int(segments.max()) + 1):
        mine = ids[segments == segment]
        document, at, _ = owner[int(mine[0])]
        out.append((document, at, len(mine)))
    return out


def numbered(lengths: list[int]) -> tuple[list[Tokens], dict[int, Piece]]:
    """Documents of tokens that are all different, and the position of each token."""
    documents = cut(np.arange(sum(lengths), dtype=np.int32), lengths)
    owner = {
        int(token): (number, at, 1)
        for number, document in enumerate(documents)
        for at, token in enumerate(document)
    }
    return documents, owner


def listed(records: list[dict[str, Any]]) -> hr.Source:
    """Records whose arrays have any length."""
    return hr.open(records, shapes={name: (-1,) for name in records[0] if name != "text"})


def source_of(folder: Path, documents: list[Tokens], form: str) -> hr.Source:
    if form == "megatron":
        return hr.tokens(write_megatron(folder, documents), window=None)
    return listed([{"tokens": document} for document in documents])


@pytest.mark.parametrize("form", ["megatron", "list"])
@pytest.mark.parametrize("too_long", ["split", "truncate", "drop"])
@pytest.mark.parametrize("method", METHODS)
def test_rows_have_the_documents_selected_by_the_method(
    tmp_path: Path, method: str, too_long: str, form: str
) -> None:
    for seed in range(3):
        lengths = some_lengths(60, 12, seed).tolist()
        documents, owner = numbered(lengths)
        source = hr.packed(
            source_of(tmp_path, documents, form), length=32, method=method, too_long=too_long
        )
        rows = [pieces_in(record, owner) for record in source]
        expected = packed_by_hand(lengths, 32, method, too_long)
        if method == "best-fit":  # documents and rows of one size are interchangeable
            filled = sorted(sum(piece[2] for piece in row) for row in rows)
            assert filled == sorted(sum(piece[2] for piece in row) for row in expected)
            every = sorted(piece for row in rows for piece in row)
            assert every == sorted(piece for row in expected for piece in row)
            assert all(row == sorted(row) for row in rows)
        else:
            assert rows == expected


@pytest.mark.parametrize("form", ["megatron", "list"])
@pytest.mark.parametrize("shift", [1, 0])
@pytest.mark.parametrize("method", ["first-fit", "sequential", "split"])
def test_every_field_of_a_row_equals_the_reference(
    tmp_path: Path, method: str, shift: int, form: str
) -> None:
    lengths = some_lengths(50, 9, 4).tolist()
    documents = cut(some_tokens(sum(lengths), dtype="int32"), lengths)
    source = hr.packed(
        source_of(tmp_path, documents, form), length=24, method=method, shift=shift, pad=9
    )
    rows = packed_by_hand(lengths, 24, method, "split")
    assert len(source) == len(rows)
    for record, row in zip(source, rows, strict=True):
        for name, value in row_by_hand(row, documents, 24, shift).items():
            found = record[name]
            if name == "cu_seqlens":
                assert found.dtype == np.int32 and (found[len(value) :] == 24).all()
                found = found[: len(value)]
            np.testing.assert_array_equal(found, value, err_msg=name)
    assert record["segment_ids"].dtype == np.int32 and record["position_ids"].dtype == np.int64


def test_the_docstrings_example_row() -> None:
    source = listed([{"tokens": [5, 6, 7]}, {"tokens": [8, 9]}])
    (row,) = hr.packed(source, length=6, shift=0, pad=1, ignore_index=-1)
    assert row["input_ids"].tolist() == [5, 6, 7, 8, 9, 1]
    assert row["labels"].tolist() == [-1, 6, 7, -1, 9, -1]
    assert row["segment_ids"].tolist() == [1, 1, 1, 2, 2, 0]
    assert [field.name for field in hr.packed(source, length=6, shift=None).schema] == [
        "tokens",
        "position_ids",
        "segment_ids",
        "cu_seqlens",
    ]


@pytest.mark.parametrize("shift", [1, 0])
def test_labels_and_weights_of_prompts_are_delivered(shift: int) -> None:
    """As in instruction tuning: prompts have -100 as labels."""
    records = [
        {"input_ids": [1, 2, 3], "labels": [-100, 2, 3], "weight": np.float32([0, 1, 2])},
        {"input_ids": [4, 5], "labels": [-100, 5], "weight": np.float32([0, 3])},
    ]
    source = hr.packed(
        listed(records), length=6, method="first-fit", shift=shift, token_fields="weight"
    )
    (row,) = source
    assert row["input_ids"].tolist() == [1, 2, 3, 4, 5, 0]
    wanted = [2, 3, -100, 5, -100, -100] if shift else [-100, 2, 3, -100, 5, -100]
    assert row["targets" if shift else "labels"].tolist() == wanted
    assert row["weight"].dtype == np.float32 and row["weight"].tolist() == [0, 1, 2, 0, 3, 0]


@pytest.mark.parametrize("along", [False, True])
def test_labels_of_other_lengths_in_another_file_are_refused(tmp_path: Path, along: bool) -> None:
    """They would be the next document's."""
    ids = hr.tokens(
        write_megatron(tmp_path, cut(np.array([5, 6, 7, 0, 8, 9, 0], np.uint16), [4, 3]), "ids"),
        window=None,
    )
    for lengths in ([3, 4], [4, 3]):
        labels = np.array([15, 16, 0, 18, 19, 20, 0], np.uint16)
        path = write_megatron(tmp_path, cut(labels, lengths), f"labels-{lengths[0]}")
        other = hr.tokens(path, window=None)
        both = hr.join(ids, other, on="position", rename={"tokens": "labels"})
        given: dict[str, Any] = {"shift": 0}
        if along:
            given = {"token_fields": "labels", "shift": None}
        if lengths == [4, 3]:
            (row,) = hr.packed(both, "tokens", length=7, **given)
            wanted = labels.tolist() if along else [-100, 16, 0, 18, -100, 20, 0]
            assert row["labels"].tolist() == wanted
            continue
        with pytest.raises(
            hr.DataError, match=r"HR1451 .*'labels' of document 0 has 3 values, but 'tokens' 4"
        ):
            hr.packed(both, "tokens", length=7, **given)


def test_arrow_columns_are_documents(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    lists = [[1, 2, 3], [4, 5], [6, 7, 8, 9]]
    table = pyarrow.table({"input_ids": pyarrow.array(lists, pyarrow.list_(pyarrow.int32()))})
    parquet.write_table(table, tmp_path / "a.parquet")
    for given in (table, tmp_path / "a.parquet"):
        source = hr.packed(hr.open(given), length=5, method="first-fit")
        ids = [record["input_ids"].tolist() for record in source]
        assert ids == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 0]]


def test_views_and_concatenations_of_documents_are_packed(tmp_path: Path) -> None:
    lengths = [3, 5, 2, 4]
    documents = cut(some_tokens(14, dtype="int32"), lengths)
    files = source_of(tmp_path, documents, "megatron")
    of_views = hr.concat(hr.subset(files, [3, 1]), files)
    expected = [documents[i] for i in (3, 1, 0, 1, 2, 3)]
    source = hr.packed(of_views, length=9, method="sequential")
    rows = packed_by_hand([len(each) for each in expected], 9, "sequential", "split")
    for record, row in zip(source, rows, strict=True):
        wanted = row_by_hand(row, expected, 9, 1)
        np.testing.assert_array_equal(record["targets"], wanted["targets"])


@pytest.mark.parametrize("world", [1, 2, 3, 4])
@pytest.mark.parametrize("method", METHODS)
def test_every_document_is_delivered_once_on_any_number_of_ranks(
    tmp_path: Path, method: str, world: int
) -> None:
    lengths = some_lengths(200, 20, 1).tolist()
    documents, _ = numbered(lengths)
    source = hr.packed(source_of(tmp_path, documents, "megatron"), length=64, method=method)
    for epoch in range(2):
        ranks = []
        for rank in range(world):
            loader = hr.Loader(
                source,
                batch_size=12 // world,
                shuffle=True,
                shard=(rank, world),
                last_batch="pad",
                fields=("tokens", "segment_ids", "valid"),
            )
            loader.set_epoch(epoch)
            ranks.append([(b.tokens[b.valid], b.segment_ids[b.valid]) for b in loader])
        assert len({len(batches) for batches in ranks}) == 1
        seen = [tokens[ids > 0] for batches in ranks for tokens, ids in batches]
        assert sorted(np.concatenate(seen).tolist()) == list(range(sum(lengths)))


@pytest.mark.parametrize("form", ["megatron", "list"])
@pytest.mark.parametrize("threads", [1, 3])
def test_resume_at_every_step(tmp_path: Path, threads: int, form: str) -> None:
    lengths = some_lengths(150, 15, 2).tolist()
    documents = cut(some_tokens(sum(lengths), dtype="int32"), lengths)

    def loader(count: int) -> hr.Loader:
        source = hr.packed(source_of(tmp_path, documents, form), length=64)
        return hr.Loader(source, batch_size=4, shuffle=True, threads=count)

    whole = [[value.copy() for value in batch] for batch in loader(1)]
    for step in range(len(whole)):
        first = loader(threads)
        batches = iter(first)
        for _ in range(step):
            next(batches)
        resumed = loader(threads)
        resumed.load_state_dict(first.state_dict())
        rest = [[value.copy() for value in batch] for batch in resumed]
        assert len(rest) == len(whole) - step
        for ours, theirs in zip(rest, whole[step:], strict=True):
            for one, other in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(one, other)


def test_a_state_of_another_packing_is_refused(tmp_path: Path) -> None:
    lengths = some_lengths(100, 15).tolist()
    documents = cut(some_tokens(sum(lengths), dtype="int32"), lengths)
    files = source_of(tmp_path, documents, "megatron")
    state = hr.Loader(hr.packed(files, length=64), batch_size=4).state_dict()
    for given in ({"method": "first-fit"}, {"seed": 1}, {"pad": 1}, {"too_long": "drop"}):
        with pytest.raises(hr.ConfigError, match="HR07"):
            hr.Loader(hr.packed(files, length=64, **given), batch_size=4).load_state_dict(state)
    hr.Loader(hr.packed(files, length=64), batch_size=4).load_state_dict(state)


def test_the_seed_chooses_among_documents_of_equal_length() -> None:
    source = hr.open([{"tokens": np.full(4, number)} for number in range(64)])

    def rows(seed: int) -> list[list[int]]:
        return [row["tokens"].tolist() for row in hr.packed(source, length=8, seed=seed)]

    assert rows(0) == rows(0) != rows(1)
    np.testing.assert_array_equal(np.sort(rows(0), None), np.sort(rows(1), None))


def test_repr_says_how_full_rows_are(tmp_path: Path) -> None:
    source = listed([{"tokens": np.arange(count)} for count in (6, 3, 2, 25, 0)])
    text = repr(hr.packed(source, length=10))
    assert "packed (4 rows of 10, 90.0 % tokens, 1 document split, 1 document left out)" in text
    text = repr(hr.packed(source, length=10, too_long="truncate"))
    assert "1 document truncated, 1 document left out, 15 tokens left out" in text
    loader = hr.Loader(hr.packed(source, length=10, too_long="drop"), batch_size=1)
    assert "2 rows of 10, 55.0 % tokens, 2 documents left out, 25 tokens left out" in repr(loader)


def test_a_packed_source_can_be_pickled(tmp_path: Path) -> None:
    documents = cut(some_tokens(100, dtype="int32"), [40, 25, 35])
    source = hr.packed(source_of(tmp_path, documents, "megatron"), length=60, shift=0, seed=3)
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again[1]["labels"], source[1]["labels"])


@pytest.mark.parametrize("method", METHODS)
def test_a_million_documents_are_packed(tmp_path: Path, method: str) -> None:
    """In seconds: a method that scans all rows for each document would take hours."""
    lengths = some_lengths(1_000_000, 8)
    some_tokens(int(lengths.sum())).tofile(tmp_path / "a.bin")
    (tmp_path / "a.idx").write_bytes(megatron_index(lengths.tolist(), "uint16"))
    source = hr.packed(hr.tokens(tmp_path / "a.bin", window=None), length=512, method=method)
    least = -(-int(lengths.sum()) // 512)
    assert least <= len(source) <= least * (1.02 if method == "sequential" else 1.001)


def test_two_fields_of_one_name_are_refused() -> None:
    for name, given in (
        ("targets", {}),
        ("position_ids", {}),
        ("segment_ids", {"shift": None}),
        ("labels", {"shift": 0, "token_fields": "labels"}),
    ):
        source = listed([{name: np.arange(5)}])
        with pytest.raises(hr.ConfigError, match=rf"HR1450 .*has '{name}' already"):
            hr.packed(source, name, length=8, **given)
    source = listed([{"tokens": np.arange(5), "targets": np.arange(5)}])
    (row,) = hr.packed(source, "tokens", length=5, shift=None, token_fields="targets")
    assert row["targets"].tolist() == [0, 1, 2, 3, 4]


def test_uint64_ids_beyond_int64_are_bad_rows() -> None:
    source = listed([{"tokens": np.array([1, 2**63], np.uint64)}, {"tokens": [np.uint64(3)]}])
    rows = hr.packed(source, length=2, method="sequential")
    with pytest.raises(hr.DataError, match=r"HR1452 .*9223372036854775808, which .*int64"):
        rows[0]
    assert rows[1]["tokens"].tolist() == [3, 0]


def test_uint64_labels_beyond_int64_are_bad_rows() -> None:
    """Also if documents are prepared first: they would be delivered as negative labels."""
    labels = np.array([1, 2**63 + 5], np.uint64)
    source = listed([{"tokens": np.array([1, 2]), "labels": labels}])
    for ids in ([], [7]):
        rows = hr.packed(source, "tokens", length=2, ignore_tokens=ids)
        with pytest.raises(hr.DataError, match=r"HR1452 .*9223372036854775813, which .*int64"):
            rows[0]


@pytest.mark.parametrize(
    "given", [{"mask": "labels"}, {"ignore_tokens": [1]}, {"labels": "labels"}]
)
def test_options_about_labels_need_labels(given: dict[str, Any]) -> None:
    source = listed([{"tokens": np.arange(3), "labels": np.arange(3)}])
    with pytest.raises(hr.ConfigError, match=r"HR0160 .*shift=None"):
        hr.packed(source, "tokens", length=4, shift=None, **given)


def test_fields_may_have_names_of_generated_fields() -> None:
    source = listed([{"labels": np.array([5, 6, 7]), "train": np.array([0, 1, 0])}])
    (row,) = hr.packed(source, "labels", length=3, mask="train")
    assert row["labels"].tolist() == [5, 6, 7] and row["targets"].tolist() == [6, -100, -100]
    given = {"labels": np.array([7, 8, 9]), "train": np.array([1, 0, 1])}
    source = listed([{"tokens": np.array([1, 2, 3]), **given}])
    (row,) = hr.packed(source, "tokens", length=3, mask="train", token_fields="labels")
    assert row["labels"].tolist() == [7, 8, 9] and row["targets"].tolist() == [-100, 9, -100]


def test_documents_that_cannot_be_packed_are_refused() -> None:
    documents = listed(
        [{"tokens": np.arange(5), "text": "a"}, {"tokens": np.arange(7), "text": ""}]
    )
    with pytest.raises(hr.ConfigError, match=r"HR1450 .*1 document longer than a row of 6.*is 1"):
        hr.packed(documents, length=6, too_long="error")
    with pytest.raises(hr.ConfigError, match=r"HR1450 .*no field 'ids'"):
        hr.packed(documents, "ids", length=6)
    with pytest.raises(hr.ConfigError, match=r"HR1450 .*'text' is text"):
        hr.packed(documents, "text", length=6)
    with pytest.raises(hr.ConfigError, match="HR0192"):
        hr.packed(hr.open([{"text": "a"}]), length=6)
    with pytest.raises(
        hr.ConfigError, match=r"HR1450 .*ignore_index=-100 does not fit into uint16"
    ):
        hr.packed(documents, length=6, to="uint16")
    with pytest.raises(hr.ConfigError, match=r"HR1460 .*is left"):
        hr.packed(documents, length=4, too_long="drop")
    with pytest.raises(hr.ConfigError, match="did you mean 'best-fit'"):
        hr.packed(documents, length=6, method="bestfit")
    both = hr.open([{"tokens": np.arange(5), "segment_ids": np.arange(5)}] * 2)
    with pytest.raises(hr.ConfigError, match=r"HR1450 .*'segment_ids' already"):
        hr.packed(both, "tokens", length=6, token_fields="segment_ids")


def test_tokens_that_do_not_fit_are_bad_records() -> None:
    documents = hr.open([{"tokens": np.array([1, 2])}, {"tokens": np.array([1, 1 << 40])}])
    source = hr.packed(documents, length=2, method="sequential", to="int32")
    assert source[0]["tokens"].dtype == np.int32
    with pytest.raises(hr.DataError, match=r"HR1452 .*document 1 has 1099511627776.*int32"):
        source[1]


def test_documents_that_change_are_bad_records() -> None:
    class Changing:
        calls = 0

        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> dict[str, Any]:
            self.calls += 1
            return {"tokens": np.arange(3 + (index == 2 and self.calls > 20))}

    documents = Changing()
    source = hr.packed(hr.open(documents, shapes={"tokens": (-1,)}), length=6, method="sequential")
    documents.calls = 100
    assert source[0]["tokens"].tolist() == [0, 1, 2, 0, 1, 2]
    with pytest.raises(hr.DataError, match=r"HR1451 .*document 2 has 4 values.*expects 3"):
        source[1]

# SPDX-License-Identifier: Apache-2.0
"""Windows and documents of token files equal NumPy slices of the same files."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from token_files import Tokens, cut, llm_bytes, megatron_index, some_tokens, write_megatron

import headrace as hr


def expected_windows(
    tokens: Tokens, window: int, stride: int, shift: int, last: str
) -> list[tuple[Tokens, Tokens]]:
    """Inputs and targets of one file, written down as loops."""
    tokens, span = tokens.astype(np.int64), window + shift
    starts = [at for at in range(0, len(tokens), stride) if at + span <= len(tokens)]
    end = starts[-1] + span if starts else 0
    if last == "overlap" and starts and end < len(tokens):
        starts.append(len(tokens) - span)
    following = len(starts) * stride
    if last == "pad" and end < len(tokens) and following + shift < len(tokens):
        starts.append(following)
    out = []
    for at in starts:
        inputs = tokens[at : at + window]
        targets = tokens[at + shift : at + span]
        out.append(
            (
                np.pad(inputs, (0, window - len(inputs)), constant_values=7),
                np.pad(targets, (0, window - len(targets)), constant_values=-1),
            )
        )
    return out


@pytest.mark.parametrize("shift", [1, 0])
@pytest.mark.parametrize("last", ["drop", "pad", "overlap"])
@pytest.mark.parametrize("stride", [None, 1, 5, 16, 17, 40])
def test_windows_are_slices_of_the_file(
    tmp_path: Path, stride: int | None, last: str, shift: int
) -> None:
    names = ("tokens", "targets") if shift else ("input_ids", "labels")
    for count in (1, 2, 15, 16, 17, 18, 31, 33, 100, 101, 113):
        tokens = some_tokens(count, seed=count)
        tokens.tofile(tmp_path / "train.bin")
        expected = expected_windows(tokens, 16, stride or 16, shift, last)
        given: dict[str, Any] = {"window": 16, "stride": stride, "shift": shift, "last": last}
        if not expected:
            with pytest.raises(hr.ConfigError, match="HR1443"):
                hr.tokens(tmp_path / "train.bin", **given)
            continue
        source = hr.tokens(tmp_path / "train.bin", **given, pad=7, ignore_index=-1)
        assert len(source) == len(expected)
        for record, values in zip(source, expected, strict=True):
            for name, value in zip(names, values, strict=True):
                np.testing.assert_array_equal(record[name], value)


def test_no_targets_are_delivered_without_shift(tmp_path: Path) -> None:
    some_tokens(100).tofile(tmp_path / "a.bin")
    source = hr.tokens(tmp_path / "a.bin", window=10, shift=None)
    assert [field.name for field in source.schema] == ["tokens"] and len(source) == 10


@pytest.mark.parametrize("to", ["int64", "int32", "uint16", "uint32"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int16", "int32", "int64"])
def test_any_dtype_can_be_converted_to_any_other(tmp_path: Path, dtype: str, to: str) -> None:
    tokens = some_tokens(200, 128, dtype=dtype)
    tokens.tofile(tmp_path / "a.bin")
    source = hr.tokens(tmp_path / "a.bin", window=50, dtype=np.dtype(dtype), to=to)
    value = source[1]["tokens"]
    assert np.asarray(value).dtype == to
    np.testing.assert_array_equal(value, tokens[50:100].astype(to))


@pytest.mark.parametrize("descr", ["<u2", ">u2", ">i4", "<i8", "|u1"])
def test_npy_files_declare_their_dtype(tmp_path: Path, descr: str) -> None:
    tokens = some_tokens(65, 200).astype(descr)
    np.save(tmp_path / "a.npy", tokens)
    (record,) = hr.tokens(tmp_path / "a.npy", window=64)
    np.testing.assert_array_equal(record["targets"], tokens[1:].astype(np.int64))


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_files_of_llm_c_are_recognized(tmp_path: Path, dtype: str) -> None:
    tokens = some_tokens(65, dtype=dtype)
    (tmp_path / "a.bin").write_bytes(llm_bytes(tokens))
    for source in (hr.open(tmp_path / "a.bin", window=64), hr.tokens(tmp_path / "a.bin", 64)):
        np.testing.assert_array_equal(source[0]["tokens"], tokens[:-1].astype(np.int64))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "int64"])
def test_megatron_indexes_give_the_document_ends(tmp_path: Path, dtype: str) -> None:
    lengths = [3, 1, 40, 0, 7, 0]
    documents = cut(some_tokens(sum(lengths), 256, dtype=dtype), lengths)
    path = write_megatron(tmp_path, documents)
    for given in (path, path.with_suffix(".idx")):
        source = hr.open(given, window=None)
        wanted = [document for document in documents if len(document)]
        assert [record["tokens"].tolist() for record in source] == [d.tolist() for d in wanted]
        assert "2 empty documents skipped" in repr(source)
        assert source.lengths("tokens").tolist() == [3, 1, 40, 7]
        flat = np.concatenate(documents).astype(np.int64)
        np.testing.assert_array_equal(hr.open(given, window=50)[0]["targets"], flat[1:51])


def test_a_document_may_have_several_sequences(tmp_path: Path) -> None:
    tokens = some_tokens(12)
    (tmp_path / "a.bin").write_bytes(tokens.tobytes())
    (tmp_path / "a.idx").write_bytes(megatron_index([2, 3, 4, 3], "uint16", [0, 2, 4]))
    values = [record["tokens"].tolist() for record in hr.tokens(tmp_path / "a.bin", window=None)]
    assert values == [tokens[:5].tolist(), tokens[5:].tolist()]


def test_documents_end_at_the_eos_token(tmp_path: Path) -> None:
    ended, cut_off = [5, 6, 0, 7, 0, 0, 8, 9, 0], [4, 0, 3]
    np.array(ended, "uint16").tofile(tmp_path / "a.bin")
    np.array(cut_off, "uint16").tofile(tmp_path / "b.bin")
    source = hr.tokens([tmp_path / "a.bin", tmp_path / "b.bin"], window=None, eos=0)
    values = [record["tokens"].tolist() for record in source]
    assert values == [[5, 6, 0], [7, 0], [0], [8, 9, 0], [4, 0], [3]]
    assert [source.key(i) for i in (0, 3, 4)] == ["a.bin/0", "a.bin/3", "b.bin/0"]
    with pytest.raises(hr.ConfigError, match="HR1445"):
        hr.tokens(tmp_path / "a.bin", window=None)


def test_an_eos_that_ends_no_document_is_not_silently_accepted(tmp_path: Path) -> None:
    np.array([5, 6, 0, 7], "uint16").tofile(tmp_path / "a.bin")
    np.array([5, 6, 8, 7], "uint16").tofile(tmp_path / "b.bin")
    with pytest.raises(hr.ConfigError, match=r"HR1446 .*eos=100257 does not fit into uint16"):
        hr.tokens(tmp_path / "a.bin", window=None, eos=100_257)
    with pytest.raises(hr.ConfigError, match=r"HR1446 .*eos=-1 does not fit into uint16"):
        hr.tokens(tmp_path / "a.bin", window=None, eos=-1)
    with pytest.raises(hr.ConfigError, match=r"HR1446 .*eos=0 and window= are both given"):
        hr.tokens(tmp_path / "a.bin", window=2, eos=0)
    with pytest.warns(hr.Warning, match=r"1 file of tokens without eos.*b\.bin"):
        assert len(hr.tokens([tmp_path / "a.bin", tmp_path / "b.bin"], window=None, eos=0)) == 3


def test_a_pattern_of_both_of_megatrons_files_has_each_document_once(tmp_path: Path) -> None:
    documents = cut(some_tokens(12), [5, 7])
    path = write_megatron(tmp_path, documents)
    for given in (tmp_path / "text_document.*", [path, path.with_suffix(".idx")]):
        source = hr.tokens(given, window=None)
        assert [record["tokens"].tolist() for record in source] == [d.tolist() for d in documents]


def test_windows_never_cross_files(tmp_path: Path) -> None:
    files = [some_tokens(count, seed=count) for count in (40, 9, 25)]
    for number, tokens in enumerate(files):
        tokens.tofile(tmp_path / f"part-{number}.bin")
    expected = [pair for tokens in files for pair in expected_windows(tokens, 8, 8, 1, "drop")]
    for path in (tmp_path, tmp_path / "part-*.bin", sorted(tmp_path.glob("*.bin"))):
        source = hr.tokens(path, window=8)
        assert len(source) == len(expected) == 8
        for record, (tokens, targets) in zip(source, expected, strict=True):
            np.testing.assert_array_equal(record["tokens"], tokens)
            np.testing.assert_array_equal(record["targets"], targets)
    assert "from 74 uint16 tokens, 7 skipped" in repr(source)
    assert source.key(5) == "part-2.bin:0"


def test_files_too_short_for_a_window_are_named(tmp_path: Path) -> None:
    some_tokens(40).tofile(tmp_path / "a.bin")
    some_tokens(8).tofile(tmp_path / "b.bin")
    (tmp_path / "c.bin").write_bytes(b"")
    with pytest.warns(hr.Warning, match=r"2 files of tokens .* skipped \(8 tokens\).*b\.bin"):
        assert len(hr.tokens(tmp_path, window=8)) == 4


@pytest.mark.parametrize("world", [1, 2, 3, 4])
@pytest.mark.parametrize("stride", [None, 3])
def test_every_window_is_delivered_once_on_any_number_of_ranks(
    tmp_path: Path, world: int, stride: int | None
) -> None:
    tokens = np.arange(5000, dtype=np.uint16)
    tokens.tofile(tmp_path / "a.bin")
    source = hr.tokens(tmp_path / "a.bin", window=16, stride=stride)
    ranks = [
        list(hr.Loader(source, batch_size=12 // world, shuffle=True, seed=5, shard=(rank, world)))
        for rank in range(world)
    ]
    assert len({len(batches) for batches in ranks}) == 1
    whole = list(hr.Loader(source, batch_size=12, shuffle=True, seed=5))
    for number, batch in enumerate(whole):
        parts = np.concatenate([batches[number].tokens for batches in ranks])
        np.testing.assert_array_equal(parts, batch.tokens)
        np.testing.assert_array_equal(batch.targets, batch.tokens + 1)
    firsts = np.concatenate([batch.tokens[:, 0] for batch in whole])
    expected = [pair[0][0] for pair in expected_windows(tokens, 16, stride or 16, 1, "drop")]
    assert sorted(firsts.tolist()) == expected and firsts.tolist() != expected


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_resume_at_every_step(tmp_path: Path, threads: int) -> None:
    some_tokens(3000).tofile(tmp_path / "a.bin")

    def loader(count: int) -> hr.Loader:
        source = hr.tokens(tmp_path / "a.bin", window=32, last="overlap")
        return hr.Loader(source, batch_size=8, shuffle=True, threads=count)

    whole = [batch.tokens.copy() for batch in loader(1)]
    for step in range(len(whole)):
        first = loader(threads)
        batches = iter(first)
        for _ in range(step):
            next(batches)
        resumed = loader(threads)
        resumed.load_state_dict(first.state_dict())
        rest = [batch.tokens.copy() for batch in resumed]
        assert len(rest) == len(whole) - step
        for ours, theirs in zip(rest, whole[step:], strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_state_of_other_windows_is_refused(tmp_path: Path) -> None:
    some_tokens(3000).tofile(tmp_path / "a.bin")
    some_tokens(3000, seed=1).tofile(tmp_path / "b.bin")
    state = hr.Loader(hr.tokens(tmp_path / "a.bin", window=32), batch_size=8).state_dict()
    for other in (
        hr.tokens(tmp_path / "a.bin", window=32, stride=31),
        hr.tokens(tmp_path / "a.bin", window=32, to="int32"),
        hr.tokens(tmp_path / "b.bin", window=32),
    ):
        with pytest.raises(hr.ConfigError, match="HR07"):
            hr.Loader(other, batch_size=8).load_state_dict(state)


@pytest.mark.parametrize("count", [1, 17, 2047, 2048, 2049, 32_768, 1_000_000])
def test_another_block_of_tokens_is_another_file(tmp_path: Path, count: int) -> None:
    """At any position in a small file, and at the ends of a large one."""
    tokens = some_tokens(count)
    places = range(0, count, 997) if count <= 32_768 else (0, 100, 2047, count - 2048, count - 1)
    prints = set()
    for place in (None, *places):
        changed = tokens.copy()
        if place is not None:
            changed[place] ^= 1
        changed.tofile(tmp_path / "a.bin")
        prints.add(hr.tokens(tmp_path / "a.bin", window=1, shift=None).engine.fingerprint)
    assert len(prints) == len(places) + 1


def test_the_same_bytes_in_another_order_are_other_tokens(tmp_path: Path) -> None:
    prints = []
    for order in "<>":
        array = np.arange(100, dtype=np.uint16).view(f"{order}u2")
        np.save(tmp_path / "a.npy", array)
        prints.append(hr.tokens(tmp_path / "a.npy", window=10).engine.fingerprint)
    assert prints[0] != prints[1]


def test_a_token_source_pickles_as_the_call_that_made_it(tmp_path: Path) -> None:
    some_tokens(300).tofile(tmp_path / "a.bin")
    source = hr.tokens(tmp_path / "a.bin", window=32, dtype="uint16")
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again[3]["tokens"], source[3]["tokens"])


def test_tokens_outside_of_the_vocabulary_are_bad_records(tmp_path: Path) -> None:
    tokens = some_tokens(100, 1000)
    tokens[37] = 1000
    tokens.tofile(tmp_path / "a.bin")
    source = hr.tokens(tmp_path / "a.bin", window=10, shift=None, vocab_size=1000)
    with pytest.raises(hr.DataError, match=r"HR1442 .*token 37 of the file is 1000.*1000"):
        source[3]
    loader = hr.Loader(source, batch_size=3, on_error="skip")
    kept = np.concatenate([batch.tokens for batch in loader])
    np.testing.assert_array_equal(kept, np.delete(tokens.reshape(10, 10), 3, 0).astype(np.int64))
    wide = np.array([1, 70_000], np.uint32)
    wide.tofile(tmp_path / "w.bin")
    wrong = hr.tokens(tmp_path / "w.bin", window=2, shift=None, dtype="uint32", to="uint16")
    with pytest.raises(hr.DataError, match=r"HR1442 .*70000, which does not fit into uint16"):
        wrong[0]


def test_a_vocabulary_does_not_hide_ids_that_do_not_fit(tmp_path: Path) -> None:
    tokens = np.array([5, 84_849, 100, 130_000], np.uint32)
    tokens.tofile(tmp_path / "a.bin")
    given: dict[str, Any] = {"window": 2, "shift": None, "dtype": "uint32", "vocab_size": 128_000}
    narrow = hr.tokens(tmp_path / "a.bin", **given, to="uint16")
    with pytest.raises(
        hr.DataError, match=r"HR1442 .*token 1 .*84849, which does not fit .*uint16"
    ):
        narrow[0]
    wide = hr.tokens(tmp_path / "a.bin", **given)
    assert wide[0]["tokens"].tolist() == [5, 84_849]
    with pytest.raises(hr.DataError, match=r"HR1442 .*130000, but vocab_size is 128000"):
        wide[1]


@pytest.mark.parametrize("vocab_size", [None, 1000])
def test_uint64_ids_beyond_int64_are_bad_records(tmp_path: Path, vocab_size: int | None) -> None:
    tokens = np.array([1, 2, 3, 2**63], np.uint64)
    np.save(tmp_path / "a.npy", tokens)
    source = hr.tokens(tmp_path / "a.npy", window=2, shift=None, vocab_size=vocab_size)
    assert source[0]["tokens"].tolist() == [1, 2]
    with pytest.raises(hr.DataError, match=r"HR1442 .*9223372036854775808, which .*into int64"):
        source[1]
    np.save(tmp_path / "b.npy", np.array([4, 2**63 - 1], np.uint64))
    (record,) = hr.tokens(tmp_path / "b.npy", window=2, shift=None)
    assert record["tokens"].tolist() == [4, 2**63 - 1]


def test_a_file_truncated_while_open_is_an_error_of_its_records(tmp_path: Path) -> None:
    tokens = some_tokens(100_000)
    tokens.tofile(tmp_path / "a.bin")
    source = hr.tokens(tmp_path / "a.bin", window=100, shift=None)
    assert source[0]["tokens"][0] == tokens[0]  # it is open
    os.truncate(tmp_path / "a.bin", 100_000)
    assert source[499]["tokens"].tolist() == tokens[49_900:50_000].tolist()
    with pytest.raises(hr.DataError, match="HR0205"):
        source[500]


def test_a_file_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    some_tokens(1000).tofile(tmp_path / "a.bin")
    source = hr.tokens(tmp_path / "a.bin", window=100)
    copy = pickle.dumps(source)
    some_tokens(1000, seed=1).tofile(tmp_path / "b.bin")
    os.replace(tmp_path / "b.bin", tmp_path / "a.bin")
    with pytest.raises(hr.ConfigError, match="HR0172"):
        pickle.loads(copy)


def test_odd_sizes_and_wrong_dtypes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(1001))
    with pytest.raises(hr.DataError, match=r"HR0424 .*1001 bytes, which is not a multiple of 2"):
        hr.tokens(path, window=8)
    some_tokens(1000, dtype="uint32").tofile(path)
    with pytest.raises(hr.ConfigError, match=r"HR1440 .*uint16"):
        hr.tokens(path, window=8)
    assert len(hr.tokens(path, window=8, dtype="uint16")) == 249
    assert len(hr.tokens(path, window=8, dtype=np.uint32)) == 124
    np.save(tmp_path / "a.npy", some_tokens(1000))
    with pytest.raises(hr.ConfigError, match=r"HR1441 .*uint16 tokens, not uint32"):
        hr.tokens(tmp_path / "a.npy", window=8, dtype="uint32")
    np.save(tmp_path / "b.npy", some_tokens(1000, dtype="int32"))
    with pytest.raises(hr.DataError, match=r"HR0424 .*are int32, but those of .*uint16"):
        hr.tokens([tmp_path / "a.npy", tmp_path / "b.npy"], window=8)


@pytest.mark.parametrize("dtype", ["uint32", "int32", "int64", "uint64"])
@pytest.mark.parametrize("below", [50_257, 128_256, 1 << 20])
def test_raw_files_of_wider_tokens_are_not_mistaken_for_uint16(
    tmp_path: Path, below: int, dtype: str
) -> None:
    some_tokens(5000, below, dtype=dtype).tofile(tmp_path / "a.bin")
    with pytest.raises(hr.ConfigError, match="HR1440") as raised:
        hr.tokens(tmp_path / "a.bin", window=8)
    assert f'"{dtype}"' in str(raised.value)
    assert hr.tokens(tmp_path / "a.bin", window=8, dtype=dtype)[0]["tokens"].max() < below


def test_small_vocabularies_of_uint16_are_accepted(tmp_path: Path) -> None:
    for below in (2, 16, 64, 256, 50_257):
        some_tokens(5000, below).tofile(tmp_path / "a.bin")
        assert len(hr.tokens(tmp_path / "a.bin", window=8)) == 624


def test_arrays_that_are_not_tokens_are_refused(tmp_path: Path) -> None:
    for array in (np.zeros((4, 4), np.int32), np.zeros(4), np.int32(5), np.zeros(4, bool)):
        np.save(tmp_path / "a.npy", array)
        with pytest.raises(hr.UnsupportedError, match="HR0425"):
            hr.tokens(tmp_path / "a.npy", window=2)


def test_padding_must_fit_the_dtype(tmp_path: Path) -> None:
    some_tokens(100).tofile(tmp_path / "a.bin")
    with pytest.raises(
        hr.ConfigError, match=r"HR1443 .*ignore_index=-100 does not fit into uint16"
    ):
        hr.tokens(tmp_path / "a.bin", window=64, last="pad", to="uint16")


def changed(index: bytes, at: int, value: bytes) -> bytes:
    return index[:at] + value + index[at + len(value) :]


INDEX = megatron_index([3, 1, 4], "uint16", [0, 1, 3])
NUMBER = (1 << 63).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("index", "code", "text"),
    [
        (b"", "HR0424", "0 bytes, but the header alone has 34"),
        (INDEX[:-1], "HR0424", "3 sequences and 3 document ends"),
        (INDEX + b"\0", "HR0424", "3 sequences and 3 document ends"),
        (changed(INDEX, 0, b"TNTIDX\0\0"), "HR0424", "MMIDIDX"),
        (changed(INDEX, 9, b"\2"), "HR0425", "version is 2"),
        (changed(INDEX, 17, b"\7"), "HR0425", "code is 7"),
        (changed(INDEX, 17, b"\0"), "HR0425", "code is 0"),
        (changed(INDEX, 18, NUMBER), "HR0424", "9223372036854775808 sequences"),
        (changed(INDEX, 26, NUMBER), "HR0424", "9223372036854775808 document ends"),
        (changed(INDEX, 34, b"\xff\xff\xff\xff"), "HR0424", "sequence 0 has -1 tokens"),
        (changed(INDEX, 34, b"\xff\xff\xff\x7f"), "HR0424", "sequence 0 has 2147483647 tokens"),
        (changed(INDEX, 46, b"\x02"), "HR0424", "sequence 0 is at byte 2"),
        (changed(INDEX, 54, NUMBER), "HR0424", "sequence 1 is at byte -9223372036854775808"),
        (changed(INDEX, 70, b"\1"), "HR0424", "begins at sequence 1"),
        (changed(INDEX, 78, b"\4"), "HR0424", "document 0 ends at sequence 4"),
        (changed(INDEX, 86, b"\0"), "HR0424", "document 1 ends at sequence 0"),
        (changed(INDEX, 86, b"\2"), "HR0424", "2 of 3 sequences"),
        (megatron_index([3, 1], "uint16"), "HR0424", "byte 8 of the .bin, which has 16"),
    ],
)
def test_a_hostile_index_is_refused(tmp_path: Path, index: bytes, code: str, text: str) -> None:
    (tmp_path / "a.bin").write_bytes(some_tokens(8).tobytes())
    (tmp_path / "a.idx").write_bytes(index)
    with pytest.raises(hr.Error, match=rf"{code} .*{text}"):
        hr.tokens(tmp_path / "a.idx", window=None)


def test_any_changed_byte_of_an_index_is_an_error_or_harmless(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(some_tokens(8).tobytes())
    opened = 0
    for at in range(len(INDEX)):
        for value in (0, 1, 127, 128, 255):
            (tmp_path / "a.idx").write_bytes(changed(INDEX, at, bytes([value])))
            try:
                source = hr.tokens(tmp_path / "a.idx", window=None)
            except hr.Error:
                continue
            assert sum(len(record["tokens"]) for record in source) <= 16
            opened += 1
    assert opened > 0


def test_a_header_of_llm_c_must_agree_with_the_size(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(llm_bytes(some_tokens(64))[:-2])
    with pytest.raises(hr.DataError, match=r"HR0424 .*header declares 64 tokens"):
        hr.tokens(tmp_path / "a.bin", window=8)

# SPDX-License-Identifier: Apache-2.0
"""Packed rows of texts and images equal those made by plain Python and NumPy from the same
samples."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import pytest
from test_patches import encoded, picture, planes, qwen_patches, qwen_size

import headrace as hr
from headrace import transforms as T

IMAGE = 99  # the placeholder
STEPS = [T.SmartResize(28, 28 * 28, 112 * 112), T.Patchify(14, "qwen2-vl")]
SHAPES = {"tokens": (-1,)}
Sample = dict[str, Any]


def samples(count: int = 20, seed: int = 0) -> list[Sample]:
    """Each with up to two images, whose placeholders are at random positions."""
    random = np.random.default_rng(seed)
    out = []
    for number in range(count):
        images = int(random.integers(0, 3)) if number else 2
        tokens = random.integers(1, 90, int(random.integers(images + 3, 30)))
        tokens[random.choice(np.arange(1, len(tokens)), images, replace=False)] = IMAGE
        sizes = random.integers(20, 150, (2, 2))
        pictures = [picture(int(h), int(w), number * 2 + i) for i, (h, w) in enumerate(sizes)]
        sample: Sample = {"tokens": tokens}
        for i, name in enumerate(("one", "two")):
            sample[name] = encoded(pictures[i]) if i < images else b""
        sample["pictures"] = pictures[:images]
        out.append(sample)
    return out


def source_of(records: list[Sample], **more: Any) -> hr.Source:
    kept = [{n: v for n, v in record.items() if n != "pictures"} for record in records]
    return hr.open(kept, shapes=SHAPES | more, kinds={"one": "image", "two": "image"})


def packed(source: Any, **given: Any) -> hr.Source:
    return hr.packed(
        source,
        "tokens",
        **{
            "length": 128,
            "images": ("one", "two"),
            "placeholder": IMAGE,
            "image_transforms": STEPS,
            "patches_per_token": 4,
            **given,
        },
    )


def sizes_of(sample: Sample) -> list[tuple[int, int]]:
    return [qwen_size(p.height, p.width, 28, 28 * 28, 112 * 112) for p in sample["pictures"]]


def expanded(sample: Sample) -> tuple[list[int], list[int]]:
    """The tokens, and where images begin."""
    sizes = iter(sizes_of(sample))
    out: list[int] = []
    begins = []
    for token in sample["tokens"].tolist():
        if token == IMAGE:
            begins.append(len(out))
            h, w = next(sizes)
            out += [IMAGE] * (h * w // 28 // 28)
        else:
            out.append(token)
    return out, begins


def patches_of(sample: Sample) -> np.ndarray[Any, Any]:
    parts = [
        qwen_patches(planes(image.resize((w, h), 2)), 14, 2)
        for image, (h, w) in zip(sample["pictures"], sizes_of(sample), strict=True)
    ]
    return np.concatenate([np.empty((0, 3 * 2 * 14 * 14), np.uint8), *parts])


def rows_by_hand(records: list[Sample], length: int) -> list[list[int]]:
    """method="sequential"."""
    rows: list[list[int]] = [[]]
    room = length
    for number, record in enumerate(records):
        count = len(expanded(record)[0])
        if count > room:
            rows.append([])
            room = length
        rows[-1].append(number)
        room -= count
    return rows


@pytest.mark.parametrize("shift", [1, 0])
def test_every_field_of_every_row_equals_the_reference(shift: int) -> None:
    records = samples()
    source = packed(source_of(records), method="sequential", shift=shift)
    rows = rows_by_hand(records, 128)
    loader = hr.Loader(source, [T.EachImage(STEPS)], batch_size=len(rows), ragged="packed")
    (batch,) = loader
    assert len(batch.position_ids) == len(rows) == len(source)
    for row, numbers in enumerate(rows):
        tokens: list[int] = []
        targets: list[int] = []
        begins: list[int] = []
        for number in numbers:
            own, at = expanded(records[number])
            begins += [len(tokens) + begin for begin in at]
            label = [-100 if t == IMAGE else t for t in own]
            targets += [*label[1:], -100] if shift else [-100, *label[1:]]
            tokens += own
        rest = 128 - len(tokens)
        found = batch.tokens[row] if shift else batch.input_ids[row]
        assert found.tolist() == tokens + [0] * rest
        labels = batch.targets[row] if shift else batch.labels[row]
        assert labels.tolist() == targets + [-100] * rest
        begin, end = batch.image_positions_offsets[row : row + 2]
        assert batch.image_positions[begin:end].tolist() == begins
        sizes = [size for number in numbers for size in sizes_of(records[number])]
        assert batch.image_sizes[begin:end].tolist() == [list(size) for size in sizes]
        begin, end = batch.images_offsets[row : row + 2]
        expected = np.concatenate([patches_of(records[number]) for number in numbers])
        np.testing.assert_array_equal(batch.images[begin:end], expected)
        assert batch.segment_ids[row].max() == len(numbers)


def test_images_of_one_size_are_stacked() -> None:
    records = samples(6)
    steps = [T.Resize((20, 24)), T.ToDtype("float32", scale=True)]
    source = packed(source_of(records), image_transforms=steps, image_tokens=5, method="sequential")
    (batch,) = hr.Loader(source, [T.EachImage(steps)], batch_size=len(source), ragged="packed")
    pictures = [image for record in records for image in record["pictures"]]
    expected = np.stack([planes(image.resize((24, 20), 2)) for image in pictures])
    np.testing.assert_allclose(batch.images, expected / np.float32(255), atol=1e-7)
    assert (batch.tokens == IMAGE).sum() == 5 * len(pictures)


def test_tokens_that_are_already_expanded_are_accepted() -> None:
    records = samples()
    wide = [{**record, "tokens": np.array(expanded(record)[0])} for record in records]
    first = packed(source_of(records), method="sequential")
    second = packed(source_of(wide), method="sequential", expand=False)
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_labels_respect_masks_and_ignored_ids() -> None:
    """A label is kept if the mask is set and the id is not ignored."""
    tokens = [5, 6, 7, 8, 9]
    records = [{"tokens": np.array(tokens), "train": np.array([0, 0, 1, 1, 1], bool)}] * 2
    (row,) = hr.packed(hr.open(records), "tokens", length=10, mask="train", ignore_tokens=[8])
    assert row["tokens"].tolist() == tokens * 2
    assert row["targets"].tolist() == [-100, 7, -100, 9, -100] * 2
    (row,) = hr.packed(hr.open(records), "tokens", length=10, shift=0, ignore_tokens=[6, 8])
    assert row["labels"].tolist() == [-100, -100, 7, -100, 9] * 2
    own = [{**record, "labels": np.array([-100, -100, -100, 3, 4])} for record in records]
    (row,) = hr.packed(hr.open(own), "tokens", length=10, mask="train", ignore_tokens=[9])
    assert row["targets"].tolist() == [-100, -100, 3, -100, -100] * 2


def test_extra_fields_have_one_value_per_token() -> None:
    records = samples(8)
    for record in records:
        record["weight"] = np.arange(len(record["tokens"]), dtype=np.float32)
    source = source_of(records, weight=(-1,))
    rows = packed(source, method="sequential", token_fields="weight")
    for row, numbers in zip(rows, rows_by_hand(records, 128), strict=True):
        expected: list[float] = []
        for number in numbers:
            sizes = iter(sizes_of(records[number]))
            for at, token in enumerate(records[number]["tokens"]):
                h, w = next(sizes) if token == IMAGE else (28, 28)
                expected += [at] * (h * w // 28 // 28)
        assert row["weight"].tolist() == expected + [0] * (128 - len(expected))


def test_a_field_may_have_the_name_of_a_generated_field() -> None:
    records = samples(8)
    for record in records:
        record["image_entries"] = np.arange(len(record["tokens"]))
    rows = packed(source_of(records, image_entries=(-1,)), token_fields="image_entries")
    plain = packed(source_of(records))
    for row, other in zip(rows, plain, strict=True):
        text = row["tokens"] != IMAGE
        assert row["images"] == other["images"]
        assert row["image_entries"].shape == (128,) and row["image_entries"][text].max() < 30


@pytest.mark.parametrize("world", [1, 2, 3])
def test_ranks_divide_the_rows_and_any_step_resumes(world: int) -> None:
    records = samples(40)
    source = packed(source_of(records), length=80)
    augmented = [*STEPS[:1], T.RandomHorizontalFlip(), *STEPS[1:]]

    def loader(rank: int, world: int, threads: int = 1) -> hr.Loader:
        return hr.Loader(
            source,
            [T.EachImage(augmented)],
            batch_size=6 // world,
            shuffle=True,
            seed=3,
            shard=(rank, world),
            last_batch="drop",
            ragged="packed",
            threads=threads,
        )

    whole = list(loader(0, 1))
    parts = [list(loader(rank, world, threads=2)) for rank in range(world)]
    for number, batch in enumerate(whole):
        for name in ("tokens", "images", "image_positions", "image_sizes"):
            joined = np.concatenate([np.asarray(part[number][name]) for part in parts])
            np.testing.assert_array_equal(joined, batch[name])
    for step in range(len(whole)):
        first = loader(0, 1)
        for _ in zip(range(step), first, strict=False):
            pass
        resumed = loader(0, 1)
        resumed.load_state_dict(first.state_dict() if step else loader(0, 1).state_dict())
        rest = list(resumed)
        assert len(rest) == len(whole) - step
        for ours, theirs in zip(rest, whole[step:], strict=True):
            np.testing.assert_array_equal(ours.images, theirs.images)


def changed(**values: Any) -> hr.Source:
    """Five good samples, of which number 3 has other values."""
    records = samples(5)
    records[3] = {**records[3], **values}
    return source_of(records)


def tokens_with(count: int) -> np.ndarray[Any, Any]:
    return np.array([1, *[IMAGE] * count, 2])


def test_mismatched_placeholders_and_images_are_bad_rows() -> None:
    one = encoded(picture(40, 40))
    for count, images in ((2, 1), (0, 1), (1, 0), (1, 2)):
        given = {"one": one if images else b"", "two": one if images > 1 else b""}
        rows = packed(changed(tokens=tokens_with(count), **given), length=64, method="sequential")
        with pytest.raises(hr.DataError, match=rf"HR1453 .*document 3 has {count} placeholder"):
            list(rows)
        loader = hr.Loader(rows, batch_size=1, on_error="skip", fields=("tokens",))
        assert len(list(loader)) < len(rows)
    rows = packed(changed(tokens=tokens_with(3), one=one, two=b""), expand=False)
    with pytest.raises(hr.DataError, match="HR1453"):
        list(rows)


def test_unusable_images_are_errors_or_left_out() -> None:
    narrow = encoded(picture(1, 300))
    for bad in (b"not an image", encoded(picture(9, 9))[:20], narrow):
        source = changed(tokens=tokens_with(1), one=bad, two=b"")
        with pytest.raises(hr.DataError, match=r"HR1454 .*'one' of document 3"):
            packed(source)
        assert "1 document left out" in repr(packed(source, bad_images="drop"))
    with pytest.raises(hr.DataError, match=r"HR1454 .*multiple of 7"):
        packed(source_of(samples(3)), patches_per_token=7)


def test_images_that_no_decoder_accepts_are_unusable() -> None:
    steps = [T.ResizeToSequence(16, 64), T.Patchify(16)]
    for edge, said in ((20_000, "limit"), (2**31 - 1, "")):
        source = changed(tokens=tokens_with(1), one=with_edges(edge), two=b"")
        given: dict[str, Any] = {
            "image_transforms": steps,
            "patches_per_token": 1,
            "length": 256,
        }
        with pytest.raises(hr.DataError, match=rf"HR1454 .*'one' of document 3.*{said}"):
            packed(source, **given)
        rows = packed(source, bad_images="drop", **given)
        assert "1 document left out" in repr(rows)
        with pytest.raises(hr.DataError, match=rf"HR1454 .*{said}"):
            packed(source, image_transforms=(), image_tokens=4)


def with_edges(edge: int) -> bytes:
    """A PNG whose header says that its edges are so long."""
    file = bytearray(encoded(picture(9, 9)))
    file[16:24] = struct.pack(">II", edge, edge)
    file[29:33] = struct.pack(">I", zlib.crc32(file[12:29]))
    return bytes(file)


def test_a_long_sample_is_an_error_or_left_out() -> None:
    source = changed(tokens=np.arange(1, 90))
    source = changed(tokens=np.concatenate([np.arange(1, 90), [7] * 60]), one=b"", two=b"")
    with pytest.raises(hr.ConfigError, match=r"HR1450 .*longer than a row.*is 3"):
        packed(source)
    assert "1 document left out" in repr(packed(source, too_long="drop"))
    for given in ({"too_long": "split"}, {"too_long": "truncate"}, {"method": "split"}):
        with pytest.raises(hr.ConfigError, match="HR0194"):
            packed(source, **given)


def test_ids_out_of_range_are_bad_rows() -> None:
    for tokens in ([1, -5, 2], [1, -(2**62), 2]):
        rows = packed(changed(tokens=np.array(tokens), one=b"", two=b""), method="sequential")
        with pytest.raises(hr.DataError, match=r"HR1455 .*document 3 has the id -"):
            list(rows)
    plain = hr.open([{"tokens": np.array([1, 2])}, {"tokens": np.array([3, 64])}])
    rows = hr.packed(plain, length=2, vocab_size=64, method="sequential")
    assert rows[0]["tokens"].tolist() == [1, 2]
    with pytest.raises(hr.DataError, match=r"HR1455 .*id 64.*vocab_size is 64"):
        rows[1]


def test_fields_of_wrong_length_are_bad_rows() -> None:
    for name, given in (("train", {"mask": "train"}), ("labels", {}), ("w", {"token_fields": "w"})):
        records = [{"tokens": np.arange(3), name: np.ones(3 - (n == 1), int)} for n in range(3)]
        source = hr.open(records, shapes={"tokens": (-1,), name: (-1,)})
        rows = hr.packed(
            source, "tokens", length=3, ignore_tokens=[7], method="sequential", **given
        )
        assert rows[0]["tokens"].tolist() == [0, 1, 2]
        with pytest.raises(hr.DataError, match=r"HR1456 .*document 1 has 2 values"):
            rows[1]


def test_an_image_that_changes_is_a_bad_row() -> None:
    class Changing:
        late = False

        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> Sample:
            edge = 84 if self.late else 56
            return {"tokens": tokens_with(1), "one": encoded(picture(edge, 56))}

    records = Changing()
    source = hr.open(records, shapes=SHAPES, kinds={"one": "image"})
    rows = packed(source, images="one")
    records.late = True
    loader = hr.Loader(rows, [T.EachImage(STEPS)], batch_size=1, ragged="packed")
    with pytest.raises(hr.DataError, match=r"HR1459 .*document 0: it has 84 x 56"):
        list(loader)


def test_transforms_that_differ_from_those_counted_are_refused() -> None:
    rows = packed(source_of(samples(4)))
    for steps in ([T.SmartResize(28), STEPS[1]], [T.Resize((28, 28))]):
        loader = hr.Loader(rows, [T.EachImage(steps)], batch_size=1, ragged="packed")
        with pytest.raises(hr.DataError, match="HR1459"):
            list(loader)
    for bad in ([T.Resize(28)], [lambda image: image], [T.RandomApply([T.Resize(28)])]):
        with pytest.raises(hr.ConfigError, match="HR0141"):
            hr.Loader(rows, [T.EachImage(bad)], batch_size=1, ragged="packed")
    with pytest.raises(hr.DataError, match="HR1454"):
        packed(source_of(samples(4)), image_transforms=[T.RandomResize(20, 40), T.Patchify(1)])
    other = hr.open([{"images": b"abc"}], kinds={"images": "bytes"})
    with pytest.raises(hr.DataError, match="HR1458"):
        list(hr.Loader(other, [T.EachImage(STEPS)], batch_size=1, ragged="packed"))


def test_misuse_is_refused() -> None:
    source = source_of(samples(3))
    for steps in ([T.Resize((20, 24))], [T.SmartResize(28), T.CenterCrop(28)]):
        with pytest.raises(hr.ConfigError, match=r"HR0141 .*(?s:.*)image_tokens="):
            packed(source, image_transforms=steps, patches_per_token=1)
    for given in (
        {"placeholder": None},
        {"image_transforms": ()},
        {"images": ()},
        {"images": ("one", "one")},
    ):
        with pytest.raises(hr.ConfigError, match="HR0194"):
            packed(source, **given)
    for given, said in (
        ({"images": "three"}, "no field 'three'"),
        ({"images": "tokens"}, "not encoded images"),
    ):
        with pytest.raises(hr.ConfigError, match=rf"HR1450 .*{said}"):
            packed(source, **given)
    with pytest.raises(hr.ConfigError, match="HR0160"):
        packed(source, vocab_size=IMAGE)
    with pytest.raises(hr.ConfigError, match="HR0160"):
        hr.packed(source, "tokens", rows=3)


class Large:
    """Ten samples, each with this many images of 6 MB."""

    read = 0

    def __init__(self, images: int) -> None:
        self.images = images

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> Sample:
        self.read += 1
        image = encoded(picture(28, 28)) + bytes(6_000_000)
        images = {"one": image, "two": image if self.images == 2 else b""}
        return {"tokens": tokens_with(self.images), **images}


@pytest.mark.parametrize(("images", "read"), [(1, 5), (2, 1)])
def test_encoded_images_beyond_the_limit_are_not_read(images: int, read: int) -> None:
    """Of a row they are counted as they are read. One document may have too many, too."""
    records = Large(images)
    source = hr.open(records, shapes=SHAPES, kinds={"one": "image", "two": "image"})
    rows = packed(source)
    assert len(rows) == 1
    records.read = 0
    loader = hr.Loader(
        rows, [T.EachImage(STEPS)], batch_size=1, ragged="packed", memory_limit="64 MiB"
    )
    with pytest.raises(hr.ResourceLimitError, match="HR1457"):
        list(loader)
    assert records.read <= read


def test_little_memory_is_an_error() -> None:
    """Nothing of that size is allocated: the patches of a row are counted first."""
    steps = [T.SmartResize(28, 2000 * 2000, 2100 * 2100), T.ToDtype("float32"), STEPS[1]]
    source = changed(tokens=tokens_with(1), two=b"")
    rows = packed(source, image_transforms=steps, length=20_000, method="sequential")
    loader = hr.Loader(
        rows, [T.EachImage(steps)], batch_size=1, ragged="packed", memory_limit="64 MiB", threads=1
    )
    with pytest.raises(hr.ResourceLimitError, match="HR0593"):
        list(loader)

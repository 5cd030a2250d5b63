# SPDX-License-Identifier: Apache-2.0
"""Values from Python arrive unchanged, or are their record's error: nothing is truncated, parsed,
unmasked, or read after it was overwritten."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import files_of, pixels_of
from PIL import Image
from worker_steps import Refilled

import headrace as hr
from headrace import transforms as T


def delivered(records: Any, field: str, **options: Any) -> list[Any]:
    """Values of a field, in order, of the records that are not rejected."""
    loader = hr.Loader(hr.open(records, **options), batch_size=1, on_error="skip", error_budget=99)
    return [value for batch in loader for value in np.asarray(getattr(batch, field)).tolist()]


@pytest.mark.parametrize("field", ["age", "label"])
@pytest.mark.parametrize("first", [31, np.int32(31), True])
@pytest.mark.parametrize("later", [27.5, 27.0, np.float32(27.5), Decimal("27.5"), Fraction(1, 2)])
def test_an_integer_in_the_first_record_does_not_truncate_later_floats(
    field: str, first: Any, later: Any
) -> None:
    records = [{field: first}, {field: later}, {field: np.uint8(3)}]
    assert delivered(records, field) == [int(first), 3]
    with pytest.raises(hr.DataError, match=rf"{field} is .*27.*record 0 had an integer|Fraction"):
        list(hr.Loader(records, batch_size=3))
    assert hr.open(records).column(field).tolist() == [int(first), -1, 3]  # as for any bad record


def test_single_element_tensors_are_not_truncated() -> None:
    torch = pytest.importorskip("torch")
    records = [{"age": v} for v in (31, torch.tensor(27.5), torch.tensor(4), torch.tensor(True))]
    assert delivered(records, "age") == [31, 4, 1]


def test_exactly_representable_integers_fit_a_float_field() -> None:
    assert delivered([{"x": v} for v in (0.5, 31, np.int16(-2))], "x") == [0.5, 31, -2]
    thirds = [{"x": v} for v in (np.float32(0.5), 3, (1 << 24) + 1)]
    assert delivered(thirds, "x") == [0.5, 3]  # float32 cannot represent 16,777,217
    lists = [{"x": [0.5, 1.5]}, {"x": [1, 2]}]
    assert delivered(lists, "x") == [[0.5, 1.5], [1, 2]]


def test_numbers_are_not_converted_to_text_or_bytes() -> None:
    assert delivered([{"words": v} for v in ("a", 5, None, "b")], "words") == ["a", "b"]
    assert delivered([{"raw": v} for v in (b"a", 5, [1, 2], b"b")], "raw") == [b"a", b"b"]
    assert delivered([{"label": v} for v in (1, "7", 2)], "label") == [1, 2]


class Buffered:
    """Records that share one array, refilled each time."""

    def __init__(self, images: np.ndarray) -> None:
        self.images, self.buffer = images, np.empty_like(images[0])

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> dict[str, Any]:
        self.buffer[...] = self.images[index]
        return {"image": self.buffer, "label": index}


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 255, (48, 3, 16, 16), np.uint8)


def test_a_dataset_may_reuse_one_array(images: np.ndarray) -> None:
    loader = hr.Loader(hr.open(Buffered(images)), batch_size=4, threads=2)
    np.testing.assert_array_equal(np.concatenate([np.array(b.image) for b in loader]), images)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_step_may_reuse_one_array(images: np.ndarray, workers: int) -> None:
    steps = [T.Python(Refilled(images.shape[1:]), fields="image")]
    with hr.Loader(
        hr.records(image=images), steps, batch_size=4, threads=2, python_workers=workers
    ) as loader:
        got = np.concatenate([np.array(batch.image) for batch in loader])
    np.testing.assert_array_equal(got, 255 - images)


# --- Labels beside the records --------------------------------------------------------------------


class Listed:
    """A Dataset with a list of labels that differs from its records'."""

    targets = (0, 1, 0, 1)

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": np.float32(index), "label": 1 - self.targets[index]}


def test_targets_that_getitem_changes_are_not_used_as_labels() -> None:
    source = hr.open(Listed())
    assert source.column("label").tolist() == [r["label"] for r in source] == [1, 0, 1, 0]


def test_targets_that_a_target_transform_changes_are_not_used_as_labels(pictures: Path) -> None:
    datasets = pytest.importorskip("torchvision.datasets")
    plain = datasets.ImageFolder(str(pictures))
    assert hr.open(plain).column("label").tolist() == plain.targets
    assert hr.open(plain).classes == plain.classes
    plain.samples = plain.samples[::-1]  # which ImageFolder reads, without using its targets
    assert hr.open(plain).column("label").tolist() == plain.targets[::-1]
    merged = datasets.ImageFolder(str(pictures), target_transform=lambda label: label // 2)
    source = hr.open(merged)
    assert source.column("label").tolist() == [label // 2 for label in merged.targets]
    assert source.classes == []  # the folder's classes are not those of the labels


def test_given_labels_must_match_the_records() -> None:
    source = hr.open(Listed(), labels=[1, 0, 1, 0])
    assert source.column("label").tolist() == [1, 0, 1, 0] and source[3]["label"] == 0
    with pytest.raises(hr.DataError, match=r"label is 1, but labels= has 0"):
        hr.open(Listed(), labels=Listed.targets)[0]
    with pytest.raises(hr.ConfigError, match=r"labels= has 3 labels"):
        hr.open(Listed(), labels=[1, 0, 1])


# --- Masked arrays, byte orders, dtypes that NumPy lacks ------------------------------------------

HIDDEN = np.ma.masked_equal(np.float32([1, 9.96921e36, 3]), np.float32(9.96921e36))


def test_masked_values_are_not_delivered() -> None:
    with pytest.raises(hr.ConfigError, match=r"x: 1 of 3 values are masked.*\.filled"):
        hr.records(x=HIDDEN)
    assert delivered([{"x": HIDDEN[i : i + 1]} for i in (0, 1, 2)], "x") == [[1], [3]]
    with pytest.raises(hr.ConfigError, match=r"x of record 0: 1 of 1 values are masked"):
        hr.open([{"x": HIDDEN[1:2]}])
    step = T.Python(lambda x: HIDDEN, fields="x", returns={"x": ("float32", (3,))})
    with pytest.raises(hr.DataError, match="masked"):
        list(hr.Loader(hr.records(x=np.zeros((2, 3), np.float32)), [step], batch_size=2))
    whole = np.ma.array([1, 2, 3])
    assert [record["x"] for record in hr.records(x=whole)] == [1, 2, 3]


@pytest.mark.parametrize(
    "sampler",
    [
        lambda masked: hr.sampling.weighted(masked),
        lambda masked: hr.sampling.buckets(masked.astype(int), batch_size=1),
        lambda masked: masked.astype(int) % 3,
    ],
)
def test_masked_values_are_refused_as_weight_length_or_index(sampler: Any) -> None:
    with pytest.raises(hr.ConfigError, match="masked"):
        masked = np.ma.masked_equal([1.0, 2.0, 3.0], 2.0)
        hr.Loader(hr.records(x=np.arange(3)), batch_size=1, sampler=sampler(masked))


def test_arrays_of_another_byte_order_are_read() -> None:
    values = np.arange(3, dtype=">i4")
    assert [record["x"] for record in hr.records(x=values)] == [0, 1, 2]
    assert delivered([{"x": values[i : i + 1]} for i in range(3)], "x") == [[0], [1], [2]]


def test_bfloat16_is_refused_with_a_hint() -> None:
    torch = pytest.importorskip("torch")
    values = torch.arange(3.0).bfloat16()
    with pytest.raises(hr.ConfigError, match=r"x: NumPy has no bfloat16: .*\.float\(\)"):
        hr.records(x=values)
    with pytest.raises(
        hr.ConfigError, match=r"x of record 0: NumPy has no bfloat16: .*\.float\(\)"
    ):
        hr.open([{"x": values}])


# --- Axes -----------------------------------------------------------------------------------------


def test_pillow_images_have_a_known_axis_order() -> None:
    pixels = np.arange(3 * 8 * 3, dtype=np.uint8).reshape(3, 8, 3)  # 3 high, 8 wide
    source = hr.open([Image.fromarray(pixels)] * 2)
    np.testing.assert_array_equal(source[0]["image"], pixels.transpose(2, 0, 1))


def test_arrays_have_the_axis_order_of_the_other_records() -> None:
    def image(height: int) -> np.ndarray:
        return np.arange(height * 50 * 3, dtype=np.uint8).reshape(height, 50, 3)

    records = [{"image": image(height)} for height in (20, 3, 4, 30)]  # crops, some 3 or 4 high
    source = hr.open(records)
    for record, read in zip(records, source, strict=True):
        np.testing.assert_array_equal(read["image"], record["image"].transpose(2, 0, 1))
    source = hr.open(records[::-1][1:])  # record 0 is 4 high
    np.testing.assert_array_equal(source[0]["image"], image(4).transpose(2, 0, 1))


@pytest.mark.parametrize("channels", [2, 5, 16])
@pytest.mark.parametrize("width", [1, 3, 4])
def test_an_ambiguous_channel_axis_is_an_error(channels: int, width: int) -> None:
    pixels = np.arange(channels * 7 * width, dtype=np.uint8).reshape(channels, 7, width)
    said = {"kinds": {"image": "image"}}
    with pytest.raises(hr.ConfigError, match=r"channels may come first or last") as caught:
        hr.open([{"image": pixels}], **said)
    assert caught.value.code == "HR0615" and str(pixels.shape) in caught.value.hint
    source = hr.open([{"image": pixels}], shapes={"image": pixels.shape}, **said)
    np.testing.assert_array_equal(source[0]["image"], pixels)
    last = hr.open([{"image": pixels}], shapes={"image": (width, channels, 7)}, **said)
    np.testing.assert_array_equal(last[0]["image"], pixels.transpose(2, 0, 1))
    wide = np.zeros((channels, 7, 30), np.uint8)
    source = hr.open([{"image": pixels}, {"image": wide}], **said)
    np.testing.assert_array_equal(source[0]["image"], pixels)


# --- Records of other forms -----------------------------------------------------------------------


def test_a_gray_image_among_rgb_ones_is_rgb() -> None:
    gray = np.arange(48, dtype=np.uint8).reshape(6, 8)
    color = np.zeros((6, 8, 3), np.uint8)
    for pixels in ([color, gray, color], [gray, color, color]):
        source = hr.open([(Image.fromarray(each), 1) for each in pixels])
        assert [record["image"].shape for record in source] == [(3, 6, 8)] * 3
        at = [each.ndim for each in pixels].index(2)
        np.testing.assert_array_equal(source[at]["image"], np.stack([gray] * 3))


COLORS = Image.fromarray(np.random.default_rng(5).integers(0, 256, (12, 10, 4), np.uint8), "RGBA")
CLEAR = COLORS.convert("RGB").quantize(7)
CLEAR.info["transparency"] = 2
OF_MODES = {mode: COLORS.convert("RGB").convert(mode) for mode in ("1", "CMYK", "YCbCr", "HSV")}
OF_MODES |= {"RGBA": COLORS, "LA": COLORS.convert("LA"), "PA": CLEAR.convert("PA"), "P": CLEAR}
OF_MODES["RGB"] = COLORS.convert("RGB")


@pytest.mark.parametrize("mode", OF_MODES)
def test_a_pillow_image_equals_the_result_of_its_convert(mode: str) -> None:
    image = OF_MODES[mode]
    want = np.asarray(image.convert("RGB"))
    sources = [[image] * 2, [(image, 1)] * 2, [{"image": image}] * 2, [{"x": image}] * 2]
    for source in sources[: 3 if mode == "P" else 4]:
        (read,) = (v for v in hr.open(source)[1].values() if np.ndim(v) > 1)
        np.testing.assert_array_equal(read, want.transpose(2, 0, 1))
    for name in ("image", "x"):
        column = hr.records(**{name: [image] * 2}, kinds={name: "image"})[1][name]
        np.testing.assert_array_equal(column, want.transpose(2, 0, 1))
    composed = hr.Compose([T.RandomHorizontalFlip(1.0)])
    np.testing.assert_array_equal(np.asarray(composed(image)), want[:, ::-1])


def test_a_mask_of_a_palette_keeps_its_ids() -> None:
    ids = np.asarray(CLEAR)
    for source in (
        hr.open([{"image": OF_MODES["RGB"], "mask": CLEAR}] * 2),
        hr.open([(OF_MODES["RGB"], CLEAR)] * 2, names=("image", "mask")),
        hr.open([{"mask": CLEAR}] * 2, kinds={"mask": "mask"}),
        hr.records(mask=[CLEAR] * 2),
    ):
        np.testing.assert_array_equal(source[1]["mask"], ids[None])
    flip = hr.Compose([T.RandomHorizontalFlip(1.0)])
    flipped = flip({"image": OF_MODES["RGB"], "mask": CLEAR})["mask"]
    np.testing.assert_array_equal(np.asarray(flipped), ids[:, ::-1])


def test_a_palette_of_unclear_meaning_is_an_error() -> None:
    record = {"image": OF_MODES["RGB"], "target": CLEAR}
    for ask in (
        lambda **said: hr.open([record] * 2, **said),
        lambda **said: hr.records(target=[CLEAR] * 2, **said),
    ):
        with pytest.raises(hr.ConfigError, match="mode 'P'") as caught:
            ask()
        assert caught.value.code == "HR0686" and 'kinds={"target": "mask"}' in caught.value.hint
        ids = ask(kinds={"target": "mask"})[0]["target"]
        np.testing.assert_array_equal(ids, np.asarray(CLEAR)[None])
        colors = ask(kinds={"target": "image"})[0]["target"]
        np.testing.assert_array_equal(colors, np.asarray(CLEAR.convert("RGB")).transpose(2, 0, 1))


def test_columns_of_pillows_images_are_of_one_size() -> None:
    with pytest.raises(hr.ConfigError, match=r'several sizes.*hr.open\(\[\{"image": image'):
        hr.records(image=[Image.new("RGB", (8, 6)), Image.new("RGB", (8, 7))])
    with pytest.raises(hr.ConfigError, match="record 1 is str, but record 0 is an image"):
        hr.records(image=[Image.new("RGB", (8, 6)), "a.png"])
    with pytest.raises(hr.ConfigError, match="HR0685"):
        hr.records(image=[Image.new("I", (8, 6))])


def test_records_of_another_shape_are_refused_with_a_hint() -> None:
    gray, color = Image.new("L", (8, 6)), Image.new("RGB", (8, 6))
    records = [(gray, 0)] * 3 + [(color, 1)] + [(gray, 0)] * 4
    with pytest.raises(hr.DataError, match=r'return \.convert\("RGB"\) of every Pillow image'):
        list(hr.Loader(hr.open(records), batch_size=1))
    boxes = [{"boxes": np.zeros((n, 4))} for n in (2, 3)]
    with pytest.raises(hr.DataError, match=r'shapes=\{"boxes": \(-1, 4\)\}\) allows both') as bad:
        list(hr.Loader(boxes, batch_size=1))
    assert "shapes={'boxes'" not in str(bad.value)
    with pytest.raises(hr.DataError, match="a different number of axes"):
        list(hr.Loader([{"x": np.zeros((2, 2))}, {"x": np.zeros(2)}], batch_size=1))


def test_the_hint_for_a_gray_image_in_a_dataloader_is_applicable() -> None:
    data = pytest.importorskip("torch.utils.data")

    class Shapes(data.Dataset):
        def __len__(self) -> int:
            return 400

        def __getitem__(self, index: int) -> Any:
            return np.zeros((1 if index == 137 else 3, 6, 8), np.uint8), index

    loader = hr.from_dataloader(data.DataLoader(Shapes(), batch_size=8), check=False, verbose=False)
    with pytest.raises(hr.ConfigError, match="HR0601") as caught:
        list(loader)
    assert "returns=" not in caught.value.hint and '.convert("RGB")' in caught.value.hint


def test_a_dataset_that_draws_random_numbers_is_reported() -> None:
    class Drawing:
        def __init__(self) -> None:
            self.draws = np.random.default_rng(0)

        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> Any:
            return {"x": self.draws.random(3), "label": index}

    with pytest.warns(
        UserWarning, match=r"record 0 of Drawing differs .*\(x\).*draws its own random numbers"
    ):
        hr.open(Drawing())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hr.open([{"x": np.float32([np.nan, 1])}] * 2)


def test_paths_in_records_are_files(pictures: Path) -> None:
    files = files_of(pictures)[:3]
    for records in (
        [{"image": path, "label": i} for i, path in enumerate(files)],
        [{"image": str(path), "label": i} for i, path in enumerate(files)],
        [(path, i) for i, path in enumerate(files)],
        [(str(path), i) for i, path in enumerate(files)],
    ):
        source = hr.open(records)
        assert [(f.name, f.kind) for f in source.schema] == [("image", "image"), ("label", "label")]
        np.testing.assert_array_equal(source[2]["image"], pixels_of(files[2]))
        assert source[2]["label"] == 2
    with pytest.raises(hr.ConfigError, match=r'kinds=\{"notes": "image"\} reads it'):
        hr.open([{"notes": Path("notes.txt")}])
    named = hr.open([{"x": 1, "path": str(path)} for path in files])
    assert named.schema[1].kind == "text" and named[0]["path"] == str(files[0])


def test_lengths_may_be_seconds(tmp_path: Path) -> None:
    rows = [{"id_": i, "seconds": seconds} for i, seconds in enumerate([2.5, 0.25, 2.25, 0.5])]
    source = hr.open(rows)
    seconds = [row["seconds"] for row in rows]
    for lengths in (seconds, np.float32(seconds), "seconds"):
        by_length = hr.sampling.buckets(lengths, batch_size=2)
        pairs = [sorted(b.id_.tolist()) for b in hr.Loader(source, batch_size=2, sampler=by_length)]
        assert sorted(pairs) == [[0, 2], [1, 3]]
        within = hr.sampling.budget(lengths, total=2.5, num_buckets=2)
        for batch in hr.Loader(source, sampler=within):
            longest = max(seconds[i] for i in batch.id_.tolist())
            assert longest * len(batch.id_) <= 2.5
    for bad in ([1, 2, 3, float("nan")], [1, 2, 3]):
        with pytest.raises(hr.ConfigError, match="lengths"):
            hr.Loader(source, batch_size=2, sampler=hr.sampling.buckets(bad, batch_size=2))


# --- Tables in memory -----------------------------------------------------------------------------


def test_columns_in_a_dictionary_are_a_source(pictures: Path) -> None:
    files = files_of(pictures)[:3]
    source = hr.open({"image": files, "label": ["cat", "dog", "cat"]}, classes=["dog", "cat"])
    assert source.classes == ["dog", "cat"] and source.column("label").tolist() == [1, 0, 1]
    np.testing.assert_array_equal(source[1]["image"], pixels_of(files[1]))


def test_a_dataframe_is_read_like_a_manifest(pictures: Path) -> None:
    pandas = pytest.importorskip("pandas")
    names = [str(path.relative_to(pictures)) for path in files_of(pictures)[:3]]
    frame = pandas.DataFrame({"path": names, "class": ["b", "a", "b"], "age": [1.5, 2.5, 3.5]})
    frame.index = [7, 8, 9]
    source = hr.open(frame, root=pictures)
    assert [field.name for field in source.schema] == ["image", "label", "age"]
    assert source.classes == ["a", "b"] and source.column("label").tolist() == [1, 0, 1]
    assert source[2]["age"] == 3.5
    np.testing.assert_array_equal(source[2]["image"], pixels_of(pictures / names[2]))


def test_a_dataframe_may_have_a_column_id(pictures: Path) -> None:
    pandas = pytest.importorskip("pandas")
    names = [str(path.relative_to(pictures)) for path in files_of(pictures)[:2]]
    frame = pandas.DataFrame({"id": [5, 6], "file": names, "key": ["a", "b"]})
    source = hr.open(frame, root=pictures)
    assert [field.name for field in source.schema] == ["id_", "image", "key_"]
    assert source[1]["id_"] == 6 and source[1]["key_"] == "b"


def test_text_that_looks_like_a_file_name_can_be_declared_text() -> None:
    texts = ["what is in 1.jpg", "see 2.png"]
    with pytest.raises(hr.ConfigError, match=r'file names, .*(?s:.)*kinds=\{"caption": "text"\}'):
        hr.records(caption=texts)
    said = hr.records(caption=texts, kinds={"caption": "text"})
    assert [record["caption"] for record in said] == texts
    with pytest.raises(hr.ConfigError, match=r'kinds=\{"caption": "text"\} or "image"'):
        hr.records(caption=[*texts, "nothing"])
    breeds = hr.records(breed=["pug", "lab", "pug"], kinds={"breed": "label"})
    assert breeds.classes == ["lab", "pug"] and breeds.column("breed").tolist() == [1, 0, 1]

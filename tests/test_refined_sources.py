# SPDX-License-Identifier: Apache-2.0
"""Sources are filtered, sorted, extended and shown as tables without reading an image."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import files_of

import headrace as hr
from headrace import transforms as T

RNG = np.random.default_rng(3)
SCORE = RNG.random(60)
TEXTS = [f"story {'x' * (i % 7)}" for i in range(60)]


def table() -> hr.Source:
    return hr.records(
        number=np.arange(60),
        score=SCORE,
        story=TEXTS,
        label=[["cat", "dog", "owl"][i % 3] for i in range(60)],
        point=np.arange(120, dtype=np.float32).reshape(60, 2),
    )


def kept(src: hr.Source) -> list[int]:
    return src.column("number").tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("score > 0.5", lambda i: SCORE[i] > 0.5),
        ("label == 'dog'", lambda i: i % 3 == 1),
        ("label in ['cat', 'owl'] and not number < 20", lambda i: i % 3 != 1 and i >= 20),
        (
            "10 <= number * 2 - 4 < 30 or score < .1",
            lambda i: 10 <= i * 2 - 4 < 30 or SCORE[i] < 0.1,
        ),
        ("len(story) == 8 and number % 2 == 0", lambda i: len(TEXTS[i]) == 8 and i % 2 == 0),
        ("story != 'story x'", lambda i: TEXTS[i] != "story x"),
        ("abs(number - 30) ** 2 // 3 > 40", lambda i: abs(i - 30) ** 2 // 3 > 40),
        ("number not in (1, 2, 3)", lambda i: i not in (1, 2, 3)),
    ],
)
def test_an_expression_equals_pythons_result_for_each_record(text: str, truth: Any) -> None:
    expected = [i for i in range(60) if truth(i)]
    assert kept(table().filter(text)) == expected
    assert kept(table().filter(truth_of(truth))) == expected
    assert kept(table().filter(np.array([bool(truth(i)) for i in range(60)]))) == expected


def truth_of(truth: Any) -> Any:
    return lambda record: bool(truth(record["number"]))


@pytest.mark.parametrize(
    "text",
    [
        "scoer > 1",
        "score",
        "score >",
        "__import__('os').system('true')",
        "score.__class__",
        "(lambda: 1)()",
        "[n for n in number]",
        "label == 'cow'",
        "number > 'a'",
        "9 ** 9 ** 9 > number",
        "5 > 3",
        "point > 3",
        "score and label == 'cat'",
        "image.width > 3",
        "(" * 3000 + "1" + ")" * 3000,
        "+".join(["number"] * 600) + " > 1",
        "f'{score}'",
        "number if score else label",
        "\x00",
        "",
    ],
)
def test_an_invalid_condition_is_refused(text: str) -> None:
    with pytest.raises(hr.ConfigError) as caught:
        table().filter(text)
    assert caught.value.code in ("HR0144", "HR0145", "HR0155")


def test_a_filter_that_removes_all_is_an_error() -> None:
    with pytest.raises(hr.ConfigError, match="keeps none of 60 records"):
        table().filter("score > 2")
    with pytest.raises(hr.ConfigError, match="ZeroDivisionError for record 0"):
        table().filter(lambda record: 1 / 0)
    with pytest.raises(hr.ConfigError, match="'nothing' is not a field"):
        table().filter(lambda record: record["nothing"])
    with pytest.raises(hr.ConfigError, match="got shape"):
        table().filter([True])


def test_records_are_sorted_by_any_key_and_equal_ones_keep_their_order() -> None:
    assert kept(table().sort_by("score")) == np.argsort(SCORE).tolist()
    by_length = sorted(range(60), key=lambda i: len(TEXTS[i]))
    assert kept(table().sort_by("len(story)")) == by_length
    assert kept(table().sort_by(lambda record: len(record["story"]))) == by_length
    backwards = sorted(range(60), key=lambda i: len(TEXTS[i]), reverse=True)
    assert kept(table().sort_by("len(story)", reverse=True)) == backwards
    with pytest.raises(hr.ConfigError, match="1 values are not numbers"):
        table().sort_by(np.where(np.arange(60) == 4, np.nan, SCORE))


def test_columns_of_every_kind_are_unchanged() -> None:
    src = table()
    np.testing.assert_array_equal(src.column("score"), SCORE)
    assert src.column("story") == TEXTS
    assert src.column("point").shape == (60, 2) and src.column("point").dtype == np.float32
    assert src.filter("number >= 58").column("story") == TEXTS[58:]
    assert src.lengths("story").tolist() == list(map(len, TEXTS))
    with pytest.raises(hr.ConfigError, match="did you mean 'score'"):
        src.column("scor")


def test_map_adds_fields_and_keeps_the_others() -> None:
    src = table().map(lambda record: {"words": len(record["story"]), "half": record["score"] / 2})
    assert [field.name for field in src.schema][-2:] == ["words", "half"]
    np.testing.assert_allclose(src.column("half"), SCORE / 2)
    batch = next(iter(hr.Loader(src, batch_size=60)))
    assert batch.words.tolist() == list(map(len, TEXTS)) and batch.number.tolist() == list(
        range(60)
    )
    for bad in (
        lambda record: 3,
        lambda record: {},
        lambda record: {"score": 1},
        lambda record: {"a" if record["number"] < 5 else "b": 1},
        lambda record: 1 / 0,
    ):
        with pytest.raises(hr.ConfigError, match="HR0145"):
            table().map(bad)


def test_columns_are_added_by_position() -> None:
    src = table().with_columns(weight=SCORE * 2, name=TEXTS)
    np.testing.assert_allclose(src.column("weight"), SCORE * 2)
    with pytest.raises(hr.ConfigError, match="59 values for 60 records"):
        table().with_columns(weight=SCORE[1:])
    joined = hr.join(table(), hr.records(other=np.arange(60)[::-1]), on="position")
    assert joined.column("other").tolist() == list(range(60))[::-1]
    with pytest.raises(hr.ConfigError, match="60 records, but the right has 2 records"):
        hr.join(table(), hr.records(other=np.arange(2)), on="position")


def test_an_arrow_table_of_a_source_has_its_fields() -> None:
    pa = pytest.importorskip("pyarrow")
    arrow = table().to_arrow()
    assert arrow.column("story").to_pylist() == TEXTS
    assert arrow.column("number").to_pylist() == list(range(60))
    assert arrow.column("point").to_pylist()[3] == [6.0, 7.0]
    assert arrow.column("label").type == pa.int64()
    again = hr.open(table().to_arrow(["number", "score"]))
    np.testing.assert_array_equal(again.column("score"), SCORE)


def test_sizes_of_images_come_from_their_headers(pictures: Path) -> None:
    src = hr.open(pictures)
    shapes = np.array([record["image"].shape[1:] for record in src])
    np.testing.assert_array_equal(src.sizes("image"), shapes)
    np.testing.assert_array_equal(src.lengths("image"), shapes.prod(1))
    wide = src.filter("image.width > image.height")
    assert len(wide) == int((shapes[:, 1] > shapes[:, 0]).sum())
    order = hr.sampling.budget("image", total=4 * int(shapes.prod(1).max()))
    loader = hr.Loader(src, sampler=order, ragged="list", fields="id")
    assert sorted(i for batch in loader for i in batch.id) == list(range(len(src)))


def test_image_sizes_are_cached_until_a_file_changes(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import Image

    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(5):
        Image.new("RGB", (20 + number, 10)).save(folder / f"{number}.png")
    first = hr.open(folder).sizes()
    [entry] = (tmp_path / "cache").glob("headers-*")
    assert first[:, 1].tolist() == [20, 21, 22, 23, 24]
    looked: list[int] = []
    hr.open(folder).sizes(progress=lambda done, total: looked.append(done))
    assert not looked  # nothing was read
    for damage in (entry.read_bytes()[:-1], bytes([7]) * len(entry.read_bytes())):
        entry.write_bytes(damage)
        np.testing.assert_array_equal(hr.open(folder).sizes(), first)
    Image.new("RGB", (99, 7)).save(folder / "3.png")
    assert hr.open(folder).sizes()[3].tolist() == [7, 99]


def test_a_bad_image_has_no_size(pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    good = files_of(pictures)[0]
    (tmp_path / f"b{good.suffix}").write_bytes(good.read_bytes())
    src = hr.open(tmp_path)
    assert src.sizes()[0].tolist() == [-1, -1] and src.lengths("image")[0] == -1
    assert src.sizes()[1].min() > 0


def test_a_bad_image_in_batches_of_similar_size_is_left_to_on_error(
    pictures: Path, tmp_path: Path
) -> None:
    for number, good in enumerate(files_of(pictures)[:8]):
        (tmp_path / f"{number}{good.suffix}").write_bytes(good.read_bytes())
    (tmp_path / "8.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    src, steps = hr.open(tmp_path), [T.Resize((8, 8))]
    lengths = src.lengths("image")
    assert lengths[8] == -1
    orders = {
        "buckets": lambda given: hr.sampling.buckets(given, batch_size=4),
        "budget": lambda given: hr.sampling.budget(given, total=4.0 * lengths.max()),
    }
    for order in orders.values():
        options = {"global_batch_size": 4} if order is orders["buckets"] else {}
        run = hr.Loader(
            src, steps, sampler=order("image"), on_error="skip", fields=("id", "image"), **options
        )
        assert sorted(np.concatenate([batch.id for batch in run])) == list(range(8))
        with pytest.raises(hr.DataError):
            list(hr.Loader(src, steps, sampler=order("image"), **options))
        with pytest.raises(hr.ConfigError, match=r"HR0724.*record 8 has a length of -1"):
            hr.Loader(src, steps, sampler=order(lengths), **options)


def doubled(record: Any) -> dict[str, Any]:
    return {"double": record["number"] * 2}


def test_refined_sources_pickle_and_have_a_state() -> None:
    src = table().filter("score > 0.3").sort_by("score").map(doubled)
    again = pickle.loads(pickle.dumps(src))
    assert again.fingerprint == src.fingerprint
    assert kept(again) == kept(src)
    state = hr.Loader(src, batch_size=4).state_dict()
    hr.Loader(again, batch_size=4).load_state_dict(json.loads(json.dumps(state)))
    with pytest.raises(hr.ConfigError, match="HR0711"):
        hr.Loader(table().filter("score > 0.2"), batch_size=4).load_state_dict(state)

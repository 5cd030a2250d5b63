# SPDX-License-Identifier: Apache-2.0
"""Promise: combined sources are sources: exact order, exact epochs, exact resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Numbers
from headrace.drawing.png import png_from_pixels

import headrace as hr


def numbers(count: int, first: int = 0) -> hr.Source:
    return hr.records(value=np.arange(first, first + count))


def values(source: Any, **given: Any) -> list[int]:
    options = {"batch_size": 7, **given}
    return [int(v) for batch in hr.Loader(source, **options) for v in batch.value]


def test_concat_appends_its_sources_in_order() -> None:
    source = hr.concat(numbers(10), numbers(5, 100), numbers(3, 200))
    assert values(source) == [*range(10), *range(100, 105), *range(200, 203)]
    assert source.column("value").tolist() == values(source)
    assert "concat (18 records)" in repr(source)


def test_concat_and_mix_take_one_list_of_sources() -> None:
    sources = [hr.open(Numbers(3)), Numbers(2)]
    assert hr.concat(sources).column("label").tolist() == [0, 1, 2, 0, 1]
    assert len(hr.concat(sources)) == len(hr.concat(*sources))
    mixed, wanted = (hr.mix(*given, seed=3) for given in ([sources], sources))
    assert mixed.column("label").tolist() == wanted.column("label").tolist()
    records = [("a", 1), ("b", 2)]  # one source of two records
    assert len(hr.concat(records)) == 2


def test_mix_has_its_weights_in_every_interval_and_depends_on_the_seed() -> None:
    source = hr.mix(numbers(100), numbers(1000, 1000), weights=[1, 3], seed=1)
    order = values(source)
    small = np.cumsum([value < 1000 for value in order])
    assert np.abs(small - np.arange(1, len(order) + 1) / 4).max() <= 1
    assert set(order) == {*range(100), *range(1000, 2000)}
    assert values(hr.mix(numbers(100), numbers(1000, 1000), weights=[1, 3], seed=1)) == order
    assert values(hr.mix(numbers(100), numbers(1000, 1000), weights=[1, 3], seed=2)) != order
    assert len(hr.mix(numbers(100), numbers(1000, 1000), size=50)) == 50


@pytest.mark.parametrize("world", [1, 2])
def test_a_shuffled_mix_has_its_weights_in_every_interval_too(world: int) -> None:
    """With a plain shuffle, a batch of 20 would have anywhere from 0 to 12 from the small
    source."""
    source = hr.mix(numbers(100), numbers(1000, 1000), numbers(70, 5000), weights=[2, 6, 1], seed=1)
    options: dict[str, Any] = {"global_batch_size": 18 * world, "shuffle": True, "seed": 3}
    epochs = []
    for epoch in range(2):
        orders = []
        for rank in range(world):
            loader = hr.Loader(source, shard=(rank, world), **options)
            loader.set_epoch(epoch)
            batches = [batch.value for batch in loader]
            for batch in batches[:-1]:
                low, high = np.sum(batch < 1000), np.sum(batch >= 5000)
                assert abs(low - 4) <= 1 and abs(high - 2) <= 1, (low, high)
            orders.append(np.concatenate(batches))
        epochs.append(np.concatenate(orders))
    in_order = values(source)
    assert sorted(epochs[0]) == sorted(epochs[1]) == sorted(in_order)
    assert np.mean(epochs[0] == epochs[1]) < 0.1
    assert np.mean(epochs[0] == in_order) < 0.1


VIEWS = {
    "kinds": lambda mixed: mixed.with_kinds({"value": "tensor"}),
    "subset": lambda mixed: hr.subset(mixed, [*range(3, 403), *range(420, 800)]),
    "both": lambda mixed: hr.subset(mixed, range(900)).with_kinds({"value": "tensor"})[100:500],
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_a_mix_keeps_its_weights_when_it_is_shuffled(view: str) -> None:
    """With a plain shuffle, the count of small ones would vary by about ten."""
    source = VIEWS[view](hr.mix(numbers(300), numbers(900, 1000), weights=[1, 3], seed=1))
    order = values(source, shuffle=True, seed=3)
    assert sorted(order) == sorted(values(source))
    assert order != values(source)
    small = np.cumsum([value < 1000 for value in order])
    assert np.abs(small - np.arange(1, len(order) + 1) / 4).max() <= 2.5
    again = values(source, shuffle=True, seed=4)
    assert again != order
    assert [v < 1000 for v in again] == [v < 1000 for v in order]  # each position keeps its source


def test_a_source_of_a_shuffled_mix_gives_all_records_before_repeating_any() -> None:
    source = hr.mix(numbers(40), numbers(1000, 1000), weights=[1, 1])
    seen = [value for value in values(source, shuffle=True) if value < 1000]
    passes = [seen[begin : begin + 40] for begin in range(0, len(seen), 40)]
    assert all(sorted(one) == list(range(40)) for one in passes)
    assert len({tuple(one) for one in passes}) == len(passes) == 25


def test_a_mix_resumes_and_shards() -> None:
    source = hr.mix(numbers(40), numbers(60, 100), weights=[1, 2])
    whole = values(source, shuffle=True)
    first = hr.Loader(source, batch_size=7, shuffle=True)
    for number, _ in enumerate(first, 1):
        rest = hr.Loader(source, batch_size=7, shuffle=True)
        rest.load_state_dict(first.state_dict())
        if number % 4 == 0:
            assert [int(v) for batch in rest for v in batch.value] == whole[number * 7 :]


def test_kfold_validates_every_record_once() -> None:
    labels = np.repeat(np.arange(4), 25)
    source = hr.records(value=np.arange(100), label=labels)
    seen: list[int] = []
    for train, validation in hr.kfold(source, 5, seed=3, stratify_by="label"):
        held = validation.column("value").tolist()
        assert np.bincount(validation.column("label")).tolist() == [5, 5, 5, 5]
        assert sorted(held + train.column("value").tolist()) == list(range(100))
        seen += held
    assert sorted(seen) == list(range(100))


def test_join_pairs_by_name_and_counts_the_rest(tmp_path: Path) -> None:
    for folder, suffix, names in (("img", "txt", "abc"), ("snd", "wav", "bcd")):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / f"{name}.{suffix}").write_text(f"{folder} {name}")

    def files(folder: str) -> hr.Source:
        return hr.records(**{folder: sorted((tmp_path / folder).iterdir())})

    joined = hr.join(files("img"), files("snd"))
    assert len(joined) == 2
    assert "1 of the left source without a match; 1 of the right" in repr(joined)


@pytest.mark.parametrize("options", [{}, {"cache": "16 MiB"}, {"resident": True}])
def test_a_join_of_joins_has_every_field_of_its_record(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    draws = np.random.default_rng(4)
    pictures = {name: draws.integers(0, 256, (40, 3, 8, 8), np.uint8) for name in "abcd"}
    for name, images in pictures.items():
        (tmp_path / name).mkdir()
        for i, image in enumerate(images):
            image[:, i % 8 :] = 0  # so that the files have different sizes
            image[:, 0, 0] = i
            (tmp_path / name / f"{i:02}.png").write_bytes(png_from_pixels(image))
    a, b, c, d = (hr.open(tmp_path / name) for name in pictures)

    def joined(left: hr.Source, right: hr.Source, name: str) -> hr.Source:
        return hr.join(left, right, rename={"image": name})

    left = joined(joined(joined(a, b, "b"), c, "c"), d, "d")
    inner = hr.join(joined(b, c, "c"), d, rename={"image": "d"})  # its own image becomes b
    right = joined(a, inner, "b")
    both = hr.join(joined(a, b, "b"), joined(c, d, "d"), rename={"image": "c"})
    for source in (left, right, both):
        seen = []
        whole = [hr.transforms.CenterCrop(8)]
        loader = hr.Loader(source, whole, batch_size=8, shuffle=True, **options)
        for batch in [*loader, *loader]:
            for row, number in enumerate(batch.image[:, 0, 0, 0]):
                seen.append(int(number))
                for name, field in zip("abcd", ("image", "b", "c", "d"), strict=True):
                    assert np.array_equal(getattr(batch, field)[row], pictures[name][number])
        assert sorted(seen) == sorted([*range(40)] * 2)


def test_join_by_a_column_requires_colliding_names_to_be_renamed() -> None:
    left = hr.records(number=np.array([3, 1, 3]), label=np.array([0, 1, 0]))
    right = hr.records(number=np.arange(4), label=np.arange(4) * 10)
    with pytest.raises(hr.ConfigError, match="both sources have a field 'label'"):
        hr.join(left, right, on="number")
    joined = hr.join(left, right, on="number", rename={"label": "score"})
    assert joined.column("score").tolist() == [30, 10, 30]
    with pytest.raises(hr.ConfigError, match="HR0498"):
        hr.join(left, right, on="nothing")


def test_sources_that_do_not_match_are_refused() -> None:
    with pytest.raises(hr.ConfigError, match="HR0496"):
        hr.concat(numbers(3), hr.records(other=np.arange(3)))
    with pytest.raises(hr.ConfigError, match="HR0497"):
        hr.mix(numbers(3), numbers(3), weights=[1, 0])
    with pytest.raises(hr.ConfigError, match="HR0431"):
        hr.kfold(numbers(3), 1)

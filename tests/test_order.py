# SPDX-License-Identifier: Apache-2.0
"""Batch k of an epoch is a pure function of (seed, epoch, k)."""

from __future__ import annotations

import ast
import copy
import hashlib
import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import files_of, label_of, resized

import headrace as hr
from headrace import _core
from headrace import transforms as T

AUGMENT = [T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ToDtype("float32", scale=True)]


def hash_of(batches: Any) -> str:
    digest = hashlib.sha256()
    for batch in batches:
        for value in batch:
            digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


def two_epochs(loader: hr.Loader) -> list[str]:
    return [hash_of(loader), hash_of(loader)]


def test_records_come_in_the_order_of_the_source(pictures: Path) -> None:
    loader = hr.Loader(pictures, [T.Resize((16, 20))], batch_size=5)
    images = np.concatenate([batch.image for batch in loader])
    for image, path in zip(images, files_of(pictures), strict=True):
        np.testing.assert_array_equal(image, resized(path, 16, 20))


def test_labels_belong_to_their_images(pictures: Path) -> None:
    fields = ("label", "key")
    loader = hr.Loader(pictures, batch_size=4, shuffle=True, fields=fields)
    for labels, keys in loader:
        assert labels.tolist() == [label_of(Path(key)) for key in keys]


def test_the_order_does_not_depend_on_threads(pictures: Path) -> None:
    hashes = [
        two_epochs(hr.Loader(pictures, AUGMENT, batch_size=4, shuffle=True, threads=threads))
        for threads in (1, 2, 5)
    ]
    assert hashes[0] == hashes[1] == hashes[2]
    assert hashes[0][0] != hashes[0][1]


def test_the_order_does_not_depend_on_the_instruction_set(pictures: Path) -> None:
    level = _core.simd_level()
    hashes = set()
    for name in _core.simd_levels():
        _core.set_simd_level(name)
        with hr.Loader(pictures, AUGMENT, batch_size=4, shuffle=True) as loader:
            hashes.add(hash_of(loader))
    _core.set_simd_level(level)
    assert len(hashes) == 1


def test_ranks_together_equal_one_process(pictures: Path) -> None:
    whole = hr.Loader(pictures, AUGMENT, batch_size=6, shuffle=True, last_batch="drop")
    parts = [
        hr.Loader(
            pictures,
            AUGMENT,
            global_batch_size=6,
            shuffle=True,
            last_batch="drop",
            shard=(rank, 3),
        )
        for rank in range(3)
    ]
    assert [part.batch_size for part in parts] == [2, 2, 2]
    for batch, *pieces in zip(whole, *parts, strict=True):
        np.testing.assert_array_equal(batch.image, np.concatenate([p.image for p in pieces]))


@pytest.mark.parametrize("seed", [0, 1, 2**40])
def test_a_seed_reproduces_the_batches(pictures: Path, seed: int) -> None:
    make = lambda: hr.Loader(pictures, AUGMENT, batch_size=8, shuffle=True, seed=seed)  # noqa: E731
    assert two_epochs(make()) == two_epochs(make())


def test_orders_differ_between_seeds_and_epochs(pictures: Path) -> None:
    hashes = [
        value
        for seed in range(3)
        for value in two_epochs(hr.Loader(pictures, AUGMENT, batch_size=8, shuffle=True, seed=seed))
    ]
    assert len(set(hashes)) == len(hashes)


def test_a_batch_can_be_recreated_by_its_number(pictures: Path) -> None:
    loader = hr.Loader(pictures, AUGMENT, batch_size=4, shuffle=True)
    taken = [[batch.image.copy() for batch in loader] for _ in range(2)]
    for epoch in range(2):
        for index in range(len(loader)):
            again = loader.batch(epoch, index)
            np.testing.assert_array_equal(again.image, taken[epoch][index])
            assert [loader.source.key(int(i)) for i in again.id] == again.key


def test_a_deterministic_operator_does_not_change_the_draws_of_others(pictures: Path) -> None:
    plain = hr.Loader(pictures, [T.Resize((16, 16)), T.RandomHorizontalFlip()], batch_size=23)
    more = [T.Resize((16, 16)), T.Pad(0), T.RandomHorizontalFlip()]
    padded = hr.Loader(pictures, more, batch_size=23)
    np.testing.assert_array_equal(next(iter(plain)).image, next(iter(padded)).image)


def test_two_views_of_an_image_differ(pictures: Path) -> None:
    views = T.Fork("image", view1=[T.RandomResizedCrop(16)], view2=[T.RandomResizedCrop(16)])
    batch = next(iter(hr.Loader(pictures, [views], batch_size=23)))
    assert batch._fields == ("view1", "view2", "label")
    assert (batch.view1 != batch.view2).any()


def test_weights_decide_how_often_a_record_is_drawn() -> None:
    source = hr.open([{"x": i} for i in range(4)])
    sampler = hr.sampling.weighted([0, 1, 3, 0], num_samples=4000)
    loader = hr.Loader(source, batch_size=100, sampler=sampler)
    seen = np.bincount(np.concatenate([batch.x for batch in loader]), minlength=4)
    assert seen[0] == seen[3] == 0
    assert 0.70 < seen[2] / 4000 < 0.80


def test_balanced_labels_are_equally_frequent() -> None:
    source = hr.open([{"label": 0}] * 90 + [{"label": 1}] * 10)
    sampler = hr.sampling.balanced("label", num_samples=4000)
    loader = hr.Loader(source, batch_size=100, sampler=sampler)
    share = np.concatenate([batch.label for batch in loader]).mean()
    assert 0.45 < share < 0.55


def test_an_index_array_is_an_order() -> None:
    source = hr.open([{"x": i} for i in range(10)])
    indices = [3, 3, -1, 0]
    loader = hr.Loader(source, batch_size=3, sampler=indices)
    assert np.concatenate([batch.x for batch in loader]).tolist() == [3, 3, 9, 0]
    shuffled = hr.Loader(source, batch_size=4, sampler=np.array(indices), shuffle=True)
    assert sorted(next(iter(shuffled)).x.tolist()) == [0, 3, 3, 9]


def test_sampler_classes_have_the_declared_parameters() -> None:
    """The settings a user passes, reads and gets rejected; type checkers agree."""
    stub = ast.parse(Path(hr.sampling.__file__).with_suffix(".pyi").read_text())
    typed = {
        each.name: [
            ast.unparse(line.target) for line in each.body if isinstance(line, ast.AnnAssign)
        ]
        for each in stub.body
        if isinstance(each, ast.ClassDef)
    }
    for name, record in _core.samplers().items():
        if name not in hr.sampling.__all__:  # of a plug-in that another test has loaded
            continue
        made = getattr(hr.sampling, name)
        given = inspect.signature(made).parameters.values()
        assert [p.name for p in given] == [p["name"] for p in record["params"]] == typed[name]
        defaults = [p.default for p in given if p.default is not p.empty]
        assert defaults == [p["default"] for p in record["params"] if not p["required"]]
        assert record["doc"] in made.__doc__ and record["example"] in made.__doc__
        order = eval(record["example"], {"hr": hr})
        assert pickle.loads(pickle.dumps(order)) == order == copy.copy(order)
        with pytest.raises(AttributeError):
            setattr(order, record["params"][0]["name"], None)
    assert repr(hr.sampling.weighted([1, 2], num_samples=3)) == (
        "weighted(<2 weights>, num_samples=3, replacement=True)"
    )
    assert repr(hr.sampling.indices([3, 0])) == "indices(<2>)"
    assert repr(hr.sampling.budget("audio", 2.5)) == (
        "budget('audio', total=2.5, num_buckets=30, max_records=None)"
    )
    with pytest.raises(hr.ConfigError, match=r"\[buckets\] pool must be at least 1 \(got 0\)"):
        hr.sampling.buckets("length", batch_size=2, pool=0)
    assert hr.sampling.buckets("length", np.int32(2)).batch_size == 2


def test_bucket_lengths_may_be_in_seconds() -> None:
    lengths = np.random.default_rng(1).permutation(40) / 8 + 0.25
    source = hr.records(seconds=lengths)
    for given in (lengths, lengths.tolist(), "seconds"):
        order = hr.sampling.buckets(given, batch_size=4)
        batches = [np.asarray(b.seconds) for b in hr.Loader(source, batch_size=4, sampler=order)]
        assert sorted(np.concatenate(batches)) == sorted(lengths)
        assert all(np.ptp(batch) == 3 / 8 for batch in batches)

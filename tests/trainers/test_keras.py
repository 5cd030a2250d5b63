# SPDX-License-Identifier: Apache-2.0
"""Keras 3 takes a loader as its data, epoch after epoch in the loader's order."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import notes_of, output_of

import headrace as hr

pytest.importorskip("torch")
os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")


def loader_of(count: int = 22, **options: Any) -> hr.Loader:
    x = np.arange(count, dtype=np.float32)[:, None]
    source = hr.records(x=x, y=x * 2)
    return hr.Loader(source, **{"batch_size": 4, "shuffle": True, "seed": 5, **options})


class Seen(keras.layers.Layer):  # type: ignore[misc, name-defined]
    """Records the values that pass through it."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[float]] = []

    def call(self, x: Any) -> Any:
        if hasattr(x, "tolist") and x.device.type != "meta":
            self.batches.append([row[0] for row in x.tolist()])
        return x


def model_of() -> tuple[Any, Seen]:
    seen = Seen()
    model = keras.Sequential([seen, keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse", run_eagerly=True)
    return model, seen


def epochs(count: int, **options: Any) -> list[list[list[float]]]:
    loader = loader_of(**options)
    return [[batch.x[:, 0].tolist() for batch in loader] for _ in range(count)]


@pytest.mark.parametrize("last", ["keep", "drop", "pad"])
def test_fit_sees_each_epoch_once_in_its_order(last: str) -> None:
    model, seen = model_of()
    model.fit(loader_of(last_batch=last).keras(), epochs=3, verbose=0)
    assert seen.batches == list(chain(*epochs(3, last_batch=last)))


def test_validation_and_prediction_cover_all_records() -> None:
    model, seen = model_of()
    plain = {"shuffle": False}
    model.fit(
        loader_of().keras(), validation_data=loader_of(7, **plain).keras(), epochs=2, verbose=0
    )
    validated = [[0, 1, 2, 3], [4, 5, 6]]
    first, second = epochs(2)
    assert seen.batches == [*first, *validated, *second, *validated]
    assert model.predict(loader_of(7, **plain).keras(), verbose=0).shape == (7, 1)


def test_a_state_resumes_in_the_middle_of_its_epoch() -> None:
    first, second = epochs(2)
    loader = loader_of()
    for _, batch in zip(range(3), loader, strict=False):
        del batch
    resumed = loader_of()
    resumed.load_state_dict(loader.state_dict())
    model, seen = model_of()
    model.fit(resumed.keras(), epochs=1, verbose=0)
    model.fit(resumed.keras(), epochs=1, verbose=0)
    assert seen.batches == first[3:] + second


def test_two_ranks_see_each_record_once_per_epoch() -> None:
    ranks = []
    for rank in range(2):
        model, seen = model_of()
        model.fit(loader_of(shard=(rank, 2)).keras(), epochs=2, verbose=0)
        ranks.append(seen.batches)
    assert [len(batches) for batches in ranks] == [6, 6]
    for epoch in (slice(3), slice(3, 6)):
        parts = [record for batches in ranks for batch in batches[epoch] for record in batch]
        assert sorted(parts) == list(range(22))


def test_fit_resumes_exactly_after_a_kill(tmp_path: Path) -> None:
    output_of("trainers/ranks_keras.py", tmp_path, cwd=tmp_path)
    whole, killed, resumed = (
        notes_of(tmp_path, name, 0) for name in ("whole", "killed", "resumed")
    )
    assert len(whole) == 3 * 6 + 1
    assert killed == whole[:10]
    assert resumed == whole[8:], "the batches after the checkpoint, and the weights"


@pytest.mark.parametrize("memory_format", ["channels_first", "channels_last"])
def test_images_have_the_axis_order_of_keras(pictures: Path, memory_format: str) -> None:
    steps = [hr.transforms.Resize((8, 6))]
    loader = hr.Loader(str(pictures), steps, batch_size=4, memory_format=memory_format)
    adapter, images = loader.keras(), loader.batch(0, 0).image
    for batches in (adapter.get_numpy_iterator(), adapter.get_torch_dataloader()):
        image, _ = next(iter(batches))
        assert tuple(image.shape) == (4, 8, 6, 3)
        np.testing.assert_array_equal(np.asarray(image), images.transpose(0, 2, 3, 1))
    keras.config.set_image_data_format("channels_first")
    try:
        assert next(iter(loader.keras().get_torch_dataloader()))[0].shape == (4, 3, 8, 6)
    finally:
        keras.config.set_image_data_format("channels_last")


def test_a_keras_without_the_adapter_is_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace.frameworks import keras as adapter
    from keras.src.trainers.data_adapters import data_adapter

    adapter._adapter_class.cache_clear()
    monkeypatch.delattr(data_adapter, "DataAdapter")
    with pytest.raises(hr.UnsupportedError, match=r"HR0809.*DataAdapter"):
        loader_of().keras()

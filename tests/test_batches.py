# SPDX-License-Identifier: Apache-2.0
"""Batches are namedtuples over the engine's memory: not copied, writable, valid while
referenced."""

from __future__ import annotations

import gc
import pickle
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import Numbers

import headrace as hr
from headrace import transforms as T

torch = pytest.importorskip("torch")

SMALL = [T.Resize((16, 16))]


def first(loader: hr.Loader) -> hr.Loader:
    return next(iter(loader))


def test_numpy_and_torch_share_the_engines_memory(pictures: Path) -> None:
    loader = hr.Loader(pictures, SMALL, batch_size=4).dlpack()
    array = first(loader).image
    assert np.asarray(array).ctypes.data == array.data_ptr
    assert np.from_dlpack(array).ctypes.data == array.data_ptr
    assert torch.from_dlpack(array).data_ptr() == array.data_ptr


def test_arrays_may_be_written_to(pictures: Path) -> None:
    batch = first(hr.Loader(pictures, SMALL, batch_size=4).numpy())
    batch.image[:] = 7
    assert batch.image.flags.writeable and (batch.image == 7).all()
    tensor = first(hr.Loader(pictures, SMALL, batch_size=4).torch()).image
    assert tensor.add_(1).dtype == torch.uint8


def test_a_view_keeps_its_memory_alive(pictures: Path) -> None:
    with hr.Loader(pictures, SMALL, batch_size=4).torch() as loader:
        iteration = iter(loader)
        row = next(iteration).image[2]
        kept = row.clone()
        for _ in iteration:
            pass
    del loader, iteration
    gc.collect()
    assert torch.equal(row, kept)


def test_list_of_a_loader_works(pictures: Path) -> None:
    loader = hr.Loader(pictures, [T.Resize((160, 160))], batch_size=1)
    copies = [batch.image.copy() for batch in loader]
    loader.set_epoch(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.Warning)
        kept = list(loader)
    assert len(kept) == 23
    for batch, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(batch.image, copy)


def test_copies_are_counted_and_warned_about_once(pictures: Path) -> None:
    loader = hr.Loader(pictures, [T.Resize((160, 160))], batch_size=1)
    with pytest.warns(hr.Warning, match="held by the consumer") as caught:
        kept = list(loader)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert loader.stats()["copies"] > 0
    del kept


def test_the_last_reference_may_be_dropped_on_any_thread(pictures: Path) -> None:
    loader = hr.Loader(pictures, SMALL, batch_size=4).torch()
    kept = [batch.image for batch in loader]
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    assert len(list(loader)) == 6


def test_a_batch_is_a_namedtuple_with_names_as_keys(pictures: Path) -> None:
    batch = first(hr.Loader(pictures, SMALL, batch_size=4))
    image, label = batch
    assert batch["image"] is image is batch.image is batch[0]
    assert batch._fields == ("image", "label") and type(batch).__bases__ == (tuple,)
    assert batch._asdict()["label"] is label
    assert batch._replace(label=3).label == 3
    with pytest.raises(KeyError, match="did you mean 'label'"):
        batch["labels"]
    with pytest.raises(AttributeError):
        _ = batch.nothing


def test_torch_treats_batches_as_namedtuples(pictures: Path) -> None:
    from torch.utils._pytree import tree_map

    batch = first(hr.Loader(pictures, SMALL, batch_size=4).torch())
    doubled = tree_map(lambda value: value * 2, batch)
    assert type(doubled) is type(batch)
    assert torch.equal(doubled.label, batch.label * 2)


def test_batches_can_be_pickled(pictures: Path) -> None:
    loader = hr.Loader(pictures, SMALL, batch_size=4)
    for batch in (first(loader), loader.batch(0, 0)):
        copy = pickle.loads(pickle.dumps(batch))
        assert type(copy) is type(batch)
        np.testing.assert_array_equal(copy.image, batch.image)
    assert copy.key == batch.key


def test_batches_may_be_dictionaries(pictures: Path) -> None:
    batch = first(hr.Loader(pictures, SMALL, batch_size=4).torch(batch="dict"))
    assert type(batch) is dict and list(batch) == ["image", "label"]


def test_fields_select_and_order(pictures: Path) -> None:
    fields = ("key", "valid", "label", "id")
    batch = first(hr.Loader(pictures, SMALL, batch_size=4, fields=fields))
    assert batch._fields == fields
    assert isinstance(batch.key, list) and batch.key[0].endswith(".png")
    assert batch.valid.dtype == bool and batch.id.dtype == np.int64


def test_channels_last_is_another_order_of_the_same_shape(pictures: Path) -> None:
    plain = first(hr.Loader(pictures, SMALL, batch_size=4).torch()).image
    last = hr.Loader(pictures, SMALL, batch_size=4, memory_format=torch.channels_last).torch()
    image = first(last).image
    assert image.shape == (4, 3, 16, 16)
    assert image.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(image, plain)
    array = first(last.numpy()).image
    np.testing.assert_array_equal(array, plain.numpy())
    assert array.strides == (768, 1, 48, 3)


@pytest.mark.parametrize(
    "shape", [(3, 4, 5), (1, 4, 5), (1, 1, 5), (3, 4, 1), (3, 1, 1), (1, 1, 1)]
)
def test_in_memory_order_permutes_axes_without_a_copy(shape: tuple[int, int, int]) -> None:
    images = np.random.default_rng(2).integers(0, 256, (2, *shape), np.uint8)
    source = hr.records(image=list(images))
    plain = first(hr.Loader(source, batch_size=2).dlpack()).image
    assert plain.in_memory_order().shape == plain.shape == images.shape
    array = first(hr.Loader(source, batch_size=2, memory_format="channels_last").dlpack()).image
    turned = array.in_memory_order()
    np.testing.assert_array_equal(np.asarray(turned), np.asarray(plain).transpose(0, 2, 3, 1))
    assert turned.data_ptr == array.data_ptr and np.asarray(turned).flags.c_contiguous


@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
def test_dtypes_arrive_as_they_are(pictures: Path, dtype: str) -> None:
    steps = [*SMALL, T.ToDtype(getattr(torch, dtype), scale=True)]
    loader = hr.Loader(pictures, steps, batch_size=4)
    assert first(loader.torch()).image.dtype == getattr(torch, dtype)
    if dtype != "bfloat16":
        assert first(loader.numpy()).image.dtype == dtype


def test_bfloat16_for_numpy_suggests_a_dtype(pictures: Path) -> None:
    loader = hr.Loader(pictures, [*SMALL, T.ToDtype("bfloat16", scale=True)], batch_size=4)
    with pytest.raises(hr.UnsupportedError, match="NumPy has no bfloat16") as caught:
        first(loader.numpy())
    assert ".torch()" in caught.value.hint


def test_images_of_differing_shape_come_as_a_list(pictures: Path) -> None:
    batch = first(hr.Loader(pictures, batch_size=4, ragged="list").torch())
    assert isinstance(batch.image, list) and len({image.shape for image in batch.image}) > 1
    with pytest.raises(hr.ConfigError):
        hr.Loader(pictures, batch_size=4)


def test_dlpack_rejects_what_it_cannot_export(pictures: Path) -> None:
    array = first(hr.Loader(pictures, SMALL, batch_size=4).dlpack()).image
    assert array.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError):
        array.__dlpack__(dl_device=(2, 0))
    copy = torch.from_dlpack(array, copy=True) if hasattr(torch, "from_dlpack") else None
    assert copy is None or copy.data_ptr() != array.data_ptr
    array.__dlpack__(), array.__dlpack__(max_version=(1, 0))  # never consumed: freed


def test_numbers_reach_the_engine_exactly() -> None:
    batch = first(hr.Loader(Numbers(5), batch_size=5))
    np.testing.assert_array_equal(batch.x, [[i, -i] for i in range(5)])
    assert batch.x.dtype == np.float32 and batch.label.dtype == np.int64

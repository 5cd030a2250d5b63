# SPDX-License-Identifier: Apache-2.0
"""The contract of batches in every framework. A framework's tests derive from Contract."""

from __future__ import annotations

import gc
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from conftest import Numbers, files_of, resized

import headrace as hr
from headrace import transforms as T

ROOT = Path(__file__).parent.parent.parent
DTYPES = (
    "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "float32",
    "float64", "bool",
)  # fmt: skip
LARGE = [T.Resize((160, 160))]  # its batches borrow slots of a ring


class Contract:
    """Derive from this, and define how to get batches from the framework and how to inspect
    them."""

    name: ClassVar[str]
    title: ClassVar[str]  # the section about it in docs/guide/frameworks.md
    refused: ClassVar[dict[str, str]] = {}  # dtypes that the framework lacks, and the error
    copied: ClassVar[tuple[str, ...]] = ()  # dtypes that cost a copy
    arrives_as: ClassVar[dict[str, str]] = {}  # dtypes that are converted to others
    has_strides: ClassVar[bool] = False

    def deliver(self, loader: hr.Loader, **options: Any) -> Any:
        """The loader's view."""
        return getattr(loader, self.name)(**options)

    def convert(self, array: hr.Array) -> Any:
        """One array, as in the view's batches."""
        raise NotImplementedError

    def pointer(self, tensor: Any) -> int:
        """The address of its elements."""
        raise NotImplementedError

    def as_numpy(self, tensor: Any) -> np.ndarray[Any, Any]:
        return np.asarray(tensor)

    def bfloat16(self, tensor: Any) -> np.ndarray[Any, Any]:
        """A bfloat16 tensor as float32; fails for any other."""
        raise NotImplementedError

    def fields(self, batch: Any) -> dict[str, Any]:
        """A batch's tensors by name."""
        return batch if isinstance(batch, dict) else batch._asdict()

    # The promises.

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dtypes_arrive_unchanged_and_without_a_copy(self, dtype: str) -> None:
        rows = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 100, (6, 4, 5))
        rows = rows.astype(dtype)
        (array,) = next(iter(hr.Loader([{"x": row} for row in rows], batch_size=6).dlpack()))
        if dtype in self.refused:
            with pytest.raises(hr.UnsupportedError, match=self.refused[dtype]):
                self.convert(array)
            return
        tensor = self.convert(array)
        got = self.as_numpy(tensor)
        assert got.dtype == self.arrives_as.get(dtype, dtype)
        np.testing.assert_array_equal(got, rows)
        assert (self.pointer(tensor) == array.data_ptr) == (dtype not in self.copied)

    def test_bfloat16_arrives(self, pictures: Path) -> None:
        steps = [T.Resize((8, 8)), T.ToDtype("bfloat16", scale=True)]
        view = self.deliver(hr.Loader(pictures, steps, batch_size=23, fields="image"))
        if "bfloat16" in self.refused:
            with pytest.raises(hr.UnsupportedError, match=self.refused["bfloat16"]):
                next(iter(view))
            return
        image = self.bfloat16(self.fields(next(iter(view)))["image"])
        exact = np.stack([resized(path, 8, 8) for path in files_of(pictures)]) / np.float32(255)
        bits = exact.astype(np.float32).view(np.uint32).astype(np.uint64)
        nearest = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).astype(np.uint32)
        np.testing.assert_array_equal(image, nearest.view(np.float32))

    def test_images_and_labels_arrive_without_a_copy(self, pictures: Path) -> None:
        image, label = next(iter(hr.Loader(pictures, LARGE, batch_size=4).dlpack()))
        assert self.pointer(self.convert(image)) == image.data_ptr
        if "int64" not in self.copied:
            assert self.pointer(self.convert(label)) == label.data_ptr

    def test_a_batch_that_is_held_is_not_overwritten(self, pictures: Path) -> None:
        loader = hr.Loader(pictures, LARGE, batch_size=3, fields="image")
        view = self.deliver(loader)
        begun = iter(view)
        kept = [self.fields(next(begun))["image"] for _ in range(2)]  # shared, not copied
        for _ in range(3):
            for batch in view:
                self.fields(batch)
        assert loader.stats().copies == 0
        loader.close()
        del loader, view, begun, batch
        gc.collect()
        expected = np.stack([resized(path, 160, 160) for path in files_of(pictures)[:6]])
        got = np.concatenate([self.as_numpy(tensor) for tensor in kept])
        np.testing.assert_array_equal(got, expected)

    def test_a_dropped_batch_frees_its_slot(self, pictures: Path) -> None:
        loader = hr.Loader(pictures, LARGE, batch_size=2)
        view = self.deliver(loader)
        for _ in range(12):
            for batch in view:
                self.fields(batch)
        assert loader.stats().copies == 0
        assert loader.stats().batches == 12 * len(loader)

    def test_every_batch_of_every_epoch_equals_the_loaders(self, pictures: Path) -> None:
        def make() -> hr.Loader:
            return hr.Loader(pictures, [T.RandomResizedCrop(16)], batch_size=5, shuffle=True)

        loader = make()
        ours = [{n: v.copy() for n, v in b._asdict().items()} for _ in range(2) for b in loader]
        view = self.deliver(make())
        theirs = [self.fields(batch) for _ in range(2) for batch in view]
        assert len(ours) == len(theirs) == 2 * len(view) and view.epoch == 2
        for mine, other in zip(ours, theirs, strict=True):
            for name in ("image", "label"):
                np.testing.assert_array_equal(self.as_numpy(other[name]), mine[name])

    def test_it_resumes_in_the_middle_of_an_epoch(self) -> None:
        def make() -> Any:
            return self.deliver(hr.Loader(Numbers(23), batch_size=4, shuffle=True, seed=3))

        through = make()
        whole = [self.as_numpy(self.fields(b)["x"]) for _ in range(2) for b in through]
        begun, resumed = make(), make()
        iteration = iter(begun)
        for _ in range(2):
            next(iteration)
        resumed.load_state_dict(begun.state_dict())
        rest = [self.as_numpy(self.fields(batch)["x"]) for _ in range(2) for batch in resumed]
        np.testing.assert_array_equal(np.concatenate(rest), np.concatenate(whole[2:]))

    def test_channels_last_is_converted_without_a_copy(self, pictures: Path) -> None:
        loader = hr.Loader(pictures, LARGE, batch_size=4, memory_format="channels_last")
        array = next(iter(loader.dlpack())).image
        tensor = self.convert(array)
        expected = np.stack([resized(path, 160, 160) for path in files_of(pictures)[:4]])
        if not self.has_strides:
            expected = expected.transpose(0, 2, 3, 1)
        np.testing.assert_array_equal(self.as_numpy(tensor), expected)
        assert self.pointer(tensor) == array.data_ptr

    def test_views_of_one_loader_share_its_position(self) -> None:
        loader = hr.Loader(Numbers(8), batch_size=2)
        view = self.deliver(loader)
        next(iter(view))
        assert loader.state_dict() == view.state_dict() and view.state_dict()["batch"] == 1
        assert len(view) == 4 and view.batch_size == 2 and view.stats().batches == 1
        view.close()
        with pytest.raises(hr.ConfigError, match="closed"):
            next(iter(loader))

    def test_the_example_runs(self, tmp_path: Path) -> None:
        example = ROOT / "examples" / "frameworks" / f"train_{self.name}.py"
        done = subprocess.run(
            [sys.executable, str(example)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert "loss" in done.stdout
        assert not list(tmp_path.iterdir()), "an example leaves nothing behind"

    def test_the_code_of_the_guide_runs(self, tmp_path: Path) -> None:
        for number, picture in enumerate(sorted((ROOT / "examples" / "images").glob("*.jpg"))):
            folder = tmp_path / "train" / f"class{number % 2}"
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, folder)
        preface, *sections = (ROOT / "docs" / "guide" / "frameworks.md").read_text().split("\n## ")
        (section,) = (text for text in sections if text.startswith(self.title + "\n"))
        code = "\n".join(re.findall(r"^```python\n(.*?)^```", preface + section, re.M | re.S))
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr


class NamedBatches(Contract):
    """Frameworks whose batches are the loader's own namedtuples and dicts."""

    def test_batches_may_be_dictionaries(self, pictures: Path) -> None:
        loader = hr.Loader(pictures, LARGE, batch_size=4, fields=("label", "image"))
        batch = next(iter(self.deliver(loader, batch="dict")))
        assert type(batch) is dict and list(batch) == ["label", "image"]
        with pytest.raises(hr.ConfigError, match="batch must be"):
            self.deliver(loader, batch="list")

    def test_text_and_images_of_different_sizes_come_as_lists(self, pictures: Path) -> None:
        fields = ("image", "key")
        loader = hr.Loader(pictures, batch_size=4, ragged="list", fields=fields)
        batch = next(iter(self.deliver(loader)))
        assert len(batch.key) == 4 and all(isinstance(key, str) for key in batch.key)
        for array, image in zip(next(iter(loader.dlpack())).image, batch.image, strict=True):
            assert tuple(image.shape) == array.shape
            assert array.data_ptr % 64 == 0, "as XLA and Eigen want it"

    @pytest.mark.parametrize("ragged", ["pad", "packed", "list"])
    def test_per_record_returns_the_rows_of_each_record(self, ragged: str) -> None:
        counts = [2, 0, 3, 1]
        records = [{"x": np.full((rows, 2), rows, np.float32)} for rows in counts]
        source = hr.open(records, shapes={"x": (-1, 2)})
        batch = next(iter(self.deliver(hr.Loader(source, batch_size=4, ragged=ragged))))
        for part, record in zip(batch.per_record("x"), records, strict=True):
            np.testing.assert_array_equal(self.as_numpy(part["x"]), record["x"])

    def test_a_batch_can_be_inspected_without_being_consumed(self) -> None:
        view = self.deliver(hr.Loader(Numbers(23), batch_size=4, shuffle=True))
        peeked, looked = view.peek(), view.batch(0, 0)
        taken = next(iter(view))
        for batch in (peeked, looked):
            np.testing.assert_array_equal(self.as_numpy(batch.x), self.as_numpy(taken.x))
            assert type(batch.x) is type(taken.x)
        assert len(looked.key) == 4

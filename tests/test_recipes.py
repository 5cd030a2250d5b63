# SPDX-License-Identifier: Apache-2.0
"""Promise: a source pickles as the call that made it, and is the same source in another process, or
an error says what differs. A loader's description is plain data."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Numbers
from headrace.sources.recipe import carrying_arrays, plain_recipe, plain_value, source_of_plain
from PIL import Image
from processes import run_code

import headrace as hr
from headrace import transforms as T

NUMBERS = hr.records(n=np.arange(20), x=np.arange(40.0).reshape(20, 2))
LETTERS = hr.records(n=np.arange(5, 15), label=[*"abcabcabca"])
PICTURE = np.zeros((3, 8, 8), np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a/1.png", "a/2.png", "b/3.png", "b/4.png"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (int(name[2]), 0, 0)).save(tmp_path / "photos" / name)
    return tmp_path / "photos"


SOURCES: dict[str, Callable[[Path], hr.Source]] = {
    "folder": lambda folder: hr.folder(folder),
    "open": lambda folder: hr.open(folder, kinds={"image": "image"}),
    "paths": lambda folder: hr.records(image=sorted(folder.rglob("*.png")), label=[*"xyxx"]),
    "pairs": lambda folder: hr.open([(str(path), 1) for path in folder.rglob("*.png")]),
    "bytes": lambda folder: hr.records(image=[p.read_bytes() for p in folder.rglob("*.png")]),
    "table": lambda folder: hr.open({"x": np.arange(3), "label": [*"aab"]}, classes=["b", "a"]),
    "object": lambda folder: hr.open(Numbers(9)),
    "list": lambda folder: hr.open([{"image": PICTURE, "seg": PICTURE[0]}] * 2).with_kinds(
        {"seg": "mask"}
    ),
    "concat": lambda folder: hr.concat(NUMBERS, NUMBERS[3:9]),
    "mix": lambda folder: hr.mix(NUMBERS, NUMBERS[3:9], weights=[1, 2], seed=3),
    "subset": lambda folder: hr.subset(hr.subset(NUMBERS, [3, 1, -1, 3]), [2, 0]),
    "split": lambda folder: hr.split(LETTERS, 0.6, 0.3, seed=4, stratify_by="label")[1],
    "fold": lambda folder: hr.kfold(NUMBERS, 3, seed=1)[1][0],
    "join": lambda folder: hr.join(NUMBERS, LETTERS, on="n"),
    "slice": lambda folder: hr.folder(folder)[::-1],
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_pickles_as_the_call_that_made_it(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(folder.parent)
    source = SOURCES[name](Path("photos") if name in ("folder", "slice") else folder)
    pickled = pickle.dumps(source)
    monkeypatch.chdir(os.sep)  # where another process may run
    copies = [pickle.loads(pickled)]
    if name not in ("object", "list"):
        copies.append(source_of_plain(json.loads(json.dumps(plain_recipe(source)))))
    for copy in copies:
        assert repr(copy) == repr(source)
        assert copy.fingerprint == source.fingerprint
        assert [copy.key(i) for i in range(len(copy))] == [
            source.key(i) for i in range(len(source))
        ]


def test_small_arrays_are_pickled_too(tmp_path: Path) -> None:
    large = hr.concat(hr.records(x=np.zeros((150_000, 1))), hr.records(x=np.zeros((5, 1))))
    with pytest.raises(hr.ConfigError, match=r"HR0171.*1,200,000 bytes.*\n.*hr.npy"):
        pickle.dumps(large)
    with carrying_arrays():
        pickled = pickle.dumps(large)
    assert len(pickle.loads(pickled)) == 150_005
    np.save(tmp_path / "x.npy", np.zeros((150_000, 1)))
    assert len(pickle.dumps(hr.npy(tmp_path / "x.npy"))) < 2000


def test_different_records_in_the_other_process_are_an_error_that_names_the_difference(
    folder: Path,
) -> None:
    pickled = pickle.dumps(hr.concat(hr.folder(folder), hr.folder(folder)))
    last = folder / "b" / "3.png"
    last.rename(folder / "b" / "5.png")
    with pytest.raises(hr.ConfigError, match=r"HR0172.*record 2 is .*4.png' here, .*3.png' there"):
        pickle.loads(pickled)
    (folder / "b" / "5.png").rename(folder / "c.png")
    with pytest.raises(hr.ConfigError, match=r"HR0172.*3 records here, 4 there"):
        pickle.loads(pickled)
    (folder / "c.png").rename(last)
    pickle.loads(pickled)
    shutil.move(folder / "b", folder / "c")
    with pytest.raises(hr.ConfigError, match=r"HR0172.*classes differ: 'c' here, 'b' there"):
        pickle.loads(pickled)


STEPS = [
    T.RandomResizedCrop(4),
    T.RandomApply([T.RandomHorizontalFlip()], p=0.5),
    T.ToDtype(np.float32, scale=True),
    T.Normalize(hr.IMAGENET_MEAN, hr.IMAGENET_STD),
]


@pytest.mark.parametrize(
    ("steps", "given"),
    [
        (STEPS, {"batch_size": 2, "shuffle": True, "seed": 5, "threads": 1}),
        (STEPS, {"global_batch_size": 2, "sampler": hr.sampling.balanced("label")}),
        ({"image": STEPS, "label": None}, {"batch_size": 2, "sampler": np.array([2, 1, 0])}),
        ([T.Resize((8, 8)), T.Fork("image", a=STEPS, b=[T.Resize(4)])], {"batch_size": 3}),
    ],
)
def test_a_loader_can_be_recreated_from_its_description(
    folder: Path, steps: Any, given: dict[str, Any]
) -> None:
    loader = hr.Loader(folder, steps, **given)
    described = json.loads(json.dumps(loader.description()))
    assert "threads" not in described["keywords"]
    copy = hr.Loader.from_description(described, threads=2)
    for batch, other in zip(loader, copy, strict=True):
        assert batch._fields == other._fields
        for value, its in zip(batch, other, strict=True):
            np.testing.assert_array_equal(value, its)
    assert copy.description() == described


def test_an_outdated_description_is_refused(folder: Path) -> None:
    described = hr.Loader(folder, STEPS, batch_size=2).description()
    resize = {"Resize": {"size": [4, 4]}}
    with pytest.raises(hr.ConfigError, match=r"HR0174.*the transforms or the outputs"):
        hr.Loader.from_description({**described, "transforms": [resize]})
    with pytest.raises(hr.ConfigError, match=r"HR0174.*records is 4, but 5 in the description"):
        hr.Loader.from_description({**described, "records": 5})
    with pytest.warns(hr.Warning, match="described by Headrace 0.0.1"):
        hr.Loader.from_description({**described, "plan": "", "headrace": "0.0.1"})


def test_objects_without_a_plain_form_are_refused_and_named(folder: Path) -> None:
    def invert(image: Any) -> Any:
        return 255 - image

    with pytest.raises(hr.ConfigError, match=r"HR0173.*invert\(image\) is a Python transform"):
        hr.Loader(folder, [T.Resize((8, 8)), invert], batch_size=2).description()
    with pytest.raises(hr.ConfigError, match=r"HR0171.*Numbers has no form in plain data"):
        hr.Loader(Numbers(9), batch_size=2).description()
    with pytest.raises(hr.ConfigError, match=r"HR0175.*\n.*description\(\)"):
        pickle.dumps(hr.Loader(folder, STEPS, batch_size=2))


@pytest.mark.parametrize(
    "column",
    [
        ["__setattr__", "_columns", None],
        ["source"],
        ["add_bytes", "x", "text", np.zeros(8, np.uint8), np.arange(2, dtype=np.int8) + 8],
        ["add_bytes", "x", "text", np.zeros(8, np.uint8), np.zeros(0, np.int64)],
        ["add_bytes", "x", "text", np.zeros(8, np.uint8), np.array([-1, 8])],
    ],
)
def test_plain_data_only_reads_its_own_memory(column: list[Any]) -> None:
    arguments = {"columns": [column], "title": "", "kinds": [], "evident_kinds": True}
    recipe = {"make": "source_of_columns", "arguments": plain_value(arguments)["named"]}
    with pytest.raises(hr.ConfigError, match=r"HR0160|HR0420"):
        source_of_plain(recipe)


def test_an_absolute_path_opens_without_a_current_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    code = (
        "import os, pickle, sys; import headrace as hr\n"
        "os.chdir(sys.argv[2]); os.rmdir(sys.argv[2])\n"
        "source = pickle.loads(pickle.dumps(hr.open(sys.argv[1], kinds={'image': 'image'})))\n"
        "print([len(images) for images, *_ in hr.Loader(source, batch_size=3, ragged='list')])"
    )
    done = run_code(code, folder, tmp_path / "gone")
    assert (done.stdout, done.stderr) == ("[3, 1]\n", "")

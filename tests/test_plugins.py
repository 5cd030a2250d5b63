# SPDX-License-Identifier: Apache-2.0
"""Plug-ins built out of tree: their results and draws."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import audio_files
import numpy as np
from built_plugins import ROOT, case, compiled, darkened, needs_compiler
from conftest import files_of, pixels_of, resized

import headrace as hr
from headrace import transforms as T

pytest_plugins = ["plugin_fixtures"]
pytestmark = needs_compiler
PHOTOS = sorted((ROOT / "examples" / "images").glob("*.jpg"))


def test_a_c_plugin_works_between_built_in_transforms(pictures: Path, vignette: Any) -> None:
    steps = [T.Resize((24, 40)), vignette.Vignette(strength=0.8), T.RandomHorizontalFlip(1)]
    batch = next(iter(hr.Loader(pictures, steps, batch_size=23)))
    for image, path in zip(batch.image, files_of(pictures), strict=True):
        np.testing.assert_array_equal(
            image, darkened(resized(path, 24, 40), 0.8)[:, :, ::-1], strict=True
        )


def test_plugins_accept_floats_too(pictures: Path, vignette: Any) -> None:
    steps = [T.Resize((9, 7)), T.ToDtype("float32", scale=True), vignette.Vignette(0.25)]
    batch = next(iter(hr.Loader(pictures, steps, batch_size=5)))
    for image, path in zip(batch.image, files_of(pictures), strict=False):
        scaled = resized(path, 9, 7).astype(np.float32) * np.float32(1 / 255)
        np.testing.assert_array_equal(image, darkened(scaled, 0.25))


def test_python_functions_work_before_and_after_a_plugin(pictures: Path, vignette: Any) -> None:
    steps = [T.Resize((8, 8)), lambda image: 255 - image, vignette.Vignette(), lambda image: image]
    batch = next(iter(hr.Loader(pictures, steps, batch_size=4)))
    for image, path in zip(batch.image, files_of(pictures), strict=False):
        np.testing.assert_array_equal(image, darkened(255 - resized(path, 8, 8), 0.5))


def test_compose_runs_it_on_one_image(vignette: Any) -> None:
    image = np.random.default_rng(3).integers(0, 256, (3, 6, 5), dtype=np.uint8)
    np.testing.assert_array_equal(vignette.Vignette(1.0)(image, seed=1), darkened(image, 1))


def test_plugins_work_on_photos_decoded_together(vignette: Any) -> None:
    """JPEGs, whose pixels a step requests before the engine has decoded them."""
    source = hr.open([{"image": path.read_bytes()} for path in PHOTOS], kinds={"image": "image"})
    window = [T.RandomResizedCrop(48), T.RandomHorizontalFlip()]

    def batch(*steps: Any, **options: Any) -> Any:
        keywords = {"batch_size": len(PHOTOS), "seed": 4, **options}
        return next(iter(hr.Loader(source, [*window, *steps], **keywords))).image.copy()

    plain = batch()
    for threads in (1, 3):
        images = batch(vignette.Vignette(0.6), threads=threads)
        np.testing.assert_array_equal(images, [darkened(image, 0.6) for image in plain])


def test_plugins_accept_labels_tensors_and_audio(tmp_path: Path) -> None:
    library, name = case(
        tmp_path, RUN="add_one", KINDS="HEADRACE_LABEL|HEADRACE_TENSOR|HEADRACE_AUDIO", DTYPES=0
    )
    step = getattr(hr.load_plugin(library), name)()
    record = {"label": 41, "x": np.int64([[1, 2, 3]]), "empty": np.zeros((0, 2), np.int64)}
    batch = next(iter(hr.Loader([record] * 2, [step], batch_size=2)))
    assert batch.label.tolist() == [42, 42] and batch.x.tolist() == [[[2, 3, 4]]] * 2
    assert batch.empty.shape == (2, 0, 2)
    samples = audio_files.int16_waves(50, seed=1)
    source = hr.open([{"audio": audio_files.wav_of(samples)}], kinds={"audio": "audio"})
    batch = next(iter(hr.Loader(source, [step], batch_size=1, ragged="list")))
    expected = samples.astype(np.float32) / np.float32(32768) + np.float32(1)
    np.testing.assert_array_equal(batch.audio[0], np.atleast_2d(expected))


# ---- Draws ---------------------------------------------------------------------------------------


def run(source: Path, steps: list[Any], **options: Any) -> dict[int, bytes]:
    """Each record's image, by record number."""
    keywords = {"batch_size": 4, "shuffle": True, "seed": 5, "fields": ("id", "image"), **options}
    out = {}
    with hr.Loader(source, steps, ragged="list", **keywords) as loader:
        for batch in loader:
            for record, image in zip(batch.id, batch.image, strict=True):
                out[int(record)] = (
                    repr(image.shape).encode() + np.ascontiguousarray(image).tobytes()
                )
    return out


def test_draws_do_not_depend_on_threads_ranks_or_a_resume(
    pictures: Path, vignette: Any, transpose: Any
) -> None:
    steps = [vignette.Vignette(0.9, p=0.5), transpose.RandomTranspose(p=0.5), T.RandomCrop(8)]
    alone = run(pictures, steps, threads=1)
    assert len(alone) == 23 and alone == run(pictures, steps, threads=4)
    assert alone != run(pictures, steps, seed=6)
    parts = [run(pictures, steps, shard=(rank, 2), last_batch="drop") for rank in (0, 1)]
    assert not set(parts[0]) & set(parts[1])
    assert all(alone[record] == image for part in parts for record, image in part.items())

    options: dict[str, Any] = {"batch_size": 4, "shuffle": True, "seed": 5}
    first = hr.Loader(pictures, steps, **options)
    wanted = [batch.image.copy() for batch in first]
    again = hr.Loader(pictures, steps, **options)
    there = iter(again)
    next(there), next(there)
    state = json.loads(json.dumps(again.state_dict()))
    again.close()
    resumed = hr.Loader(pictures, steps, **options)
    resumed.load_state_dict(state)
    rest = [batch.image.copy() for batch in resumed]
    assert len(rest) == len(wanted) - 2
    for image, expected in zip(rest, wanted[2:], strict=True):
        np.testing.assert_array_equal(image, expected)


def test_a_plugin_with_p_is_applied_to_some_records(pictures: Path, vignette: Any) -> None:
    steps = [T.Resize((8, 8)), vignette.Vignette(1.0, p=0.5)]
    images = np.concatenate([b.image for b in hr.Loader(pictures, steps, batch_size=23)])
    plain = [resized(path, 8, 8) for path in files_of(pictures)]
    dark = [darkened(image, 1) for image in plain]
    taken = [(image == d).all() for image, d in zip(images, dark, strict=True)]
    left = [(image == p).all() for image, p in zip(images, plain, strict=True)]
    assert all(a != b for a, b in zip(taken, left, strict=True)) and 3 < sum(taken) < 20


def test_every_kind_of_draw_is_per_record(tmp_path: Path) -> None:
    library, name = case(
        tmp_path,
        RUN="numbers",
        SHAPE="seven",
        KINDS="HEADRACE_TENSOR",
        FLAGS="HEADRACE_VALUES|HEADRACE_RANDOM",
    )
    kind = getattr(hr.load_plugin(library), name)
    source = [{"x": np.float32([i])} for i in range(50)]

    def numbers(**options: Any) -> np.ndarray[Any, Any]:
        batches = hr.Loader(source, [kind()], batch_size=50, shuffle=True, **options)
        return next(iter(batches)).x.copy()

    rows = numbers(seed=1)
    np.testing.assert_array_equal(rows, numbers(seed=1, threads=3))
    assert (numbers(seed=2)[:, 0] != rows[:, 0]).all()
    seeds, bits, below, uniform, index, position, nothing = rows.T
    assert len(set(seeds)) == len(set(bits)) == 50
    assert ((below >= 0) & (below < 1000)).all() and ((uniform >= 0) & (uniform < 1000)).all()
    assert len(set(below)) > 40 and len(set(uniform)) > 40 and (nothing == 0).all()
    assert sorted(index) == list(range(50)) and sorted(position) == list(range(50))


# ---- In C++ --------------------------------------------------------------------------------------


def test_two_plugins_may_have_classes_of_the_same_name(tmp_path: Path) -> None:
    """Both are optimized and unoptimized, because in g++ builds a process shares exported symbols
    of a class."""
    source = Path(__file__).with_name("plugin_of_one_class.cc")
    image = np.zeros((3, 4, 4), np.uint8)
    for flags in ("-O2", "-O0"):
        for value in (3, 5):
            name, argument = f"Fill{value}{flags[1:]}", f"by{value}"
            definitions = {
                "PLUGIN": f'"fill-{value}-{flags[1:].lower()}"', "TRANSFORM": f'"{name}"',
                "ARGUMENT": f'"{argument}"', "VALUE": value,
            }  # fmt: skip
            defined = [f"-D{key}={given}" for key, given in definitions.items()]
            library = compiled(source, tmp_path / f"lib{name}.so", flags, *defined)
            symbols = subprocess.run(["nm", "-D", library], capture_output=True, text=True)
            assert symbols.returncode == 0 and "headrace_plugin_table" in symbols.stdout
            assert not re.findall("^.* u .*$", symbols.stdout, re.M)
            plugin = hr.load_plugin(library)
            assert plugin.transforms == (name,)
            filled = hr.Compose([getattr(plugin, name)(**{argument: 2})])(image)
            assert (filled == 2 * value).all()


def test_plugins_get_images_without_a_copy(pictures: Path, vignette: Any) -> None:
    """The record as decoded, not a copy that others share: two transforms of one image differ."""
    fork = T.Fork("image", a=[vignette.Vignette(1.0)], b=[])
    batch = next(iter(hr.Loader(pictures, [T.Resize((8, 8)), fork], batch_size=3)))
    for a, b, path in zip(batch.a, batch.b, files_of(pictures), strict=False):
        np.testing.assert_array_equal(b, resized(path, 8, 8))
        np.testing.assert_array_equal(a, darkened(resized(path, 8, 8), 1.0))


def test_images_of_any_size_are_passed_whole(pictures: Path, vignette: Any) -> None:
    loader = hr.Loader(pictures, [vignette.Vignette(0.7)], batch_size=23, ragged="list")
    for image, path in zip(next(iter(loader)).image, files_of(pictures), strict=True):
        np.testing.assert_array_equal(image, darkened(pixels_of(path), 0.7))

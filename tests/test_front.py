# SPDX-License-Identifier: Apache-2.0
"""Keywords, names and messages that users meet first."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Numbers, files_of, pixels_of
from PIL import Image

import headrace as hr
from headrace import _core, environment
from headrace import transforms as T


@pytest.mark.parametrize(
    ("keyword", "way"),
    [
        ("num_workers", "threads=N"),
        ("collate_fn", "ragged="),
        ("pin_memory", '.torch("cuda")'),
        ("drop_last", 'last_batch="drop"'),
        ("prefetch_factor", "memory_limit="),
        ("worker_init_fn", "rng"),
        ("generator", "seed=N"),
        ("persistent_workers", "threads"),
        ("batch_sampler", "sampler="),
    ],
)
def test_the_error_for_a_dataloader_keyword_suggests_the_equivalent(keyword: str, way: str) -> None:
    with pytest.raises(hr.ConfigError, match=keyword) as caught:
        hr.Loader(Numbers(4), batch_size=2, **{keyword: 1})
    assert way in caught.value.hint


@pytest.mark.parametrize("keyword", ["nworkers", "numworkers"])
def test_the_error_for_a_misspelled_dataloader_keyword_suggests_the_equivalent(
    keyword: str,
) -> None:
    with pytest.raises(hr.ConfigError, match=r"DataLoader's num_workers: .*threads=N"):
        hr.Loader(Numbers(4), batch_size=2, **{keyword: 1})


def test_a_missing_codec_library_is_named_with_two_ways_out() -> None:
    program = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "headrace._core":
            raise ImportError("libFLAC.so.12: cannot open shared object file: No such file")

sys.meta_path.insert(0, Missing())
import headrace
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 1
    last = run.stderr.splitlines()[-1]
    assert "libFLAC.so.12" in last and "installing.md" in last and "./dev wheels" in last


def test_indexing_a_source_by_name_is_an_error_with_a_hint(pictures: Path) -> None:
    src = hr.open(pictures)
    with pytest.raises(TypeError, match=r"by number \(got 'image'\): src\[0\]"):
        src["image"]  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="by number"):
        src[1.5]  # type: ignore[call-overload]
    assert src[np.int64(1)]["label"] == src[1]["label"]


def test_a_list_of_files_is_one_source_and_not_their_names_as_text(
    pictures: Path, tmp_path: Path
) -> None:
    shards = [tmp_path / "a.tar", tmp_path / "b.tar"]
    for shard in shards:
        hr.convert(pictures, shard, "tar")
    for paths in (shards, [str(shard) for shard in shards], tuple(shards)):
        src = hr.open(paths)
        assert len(src) == 46 and [field.name for field in src.schema] == ["image", "label"]
        assert "\n" not in repr(src) and "a.tar, " in repr(src)
    with pytest.raises(hr.StorageError, match=r"c\.tar"):
        hr.open([str(tmp_path / "c.tar"), str(shards[0])])
    with pytest.raises(hr.StorageError, match=r"c\.tar"):  # in a misspelled folder
        hr.open([str(tmp_path / "no" / "c.tar"), str(tmp_path / "no" / "d.tar")])
    files = sorted(map(str, pictures.rglob("*.png")))
    with pytest.raises(hr.ConfigError, match=r"HR0154.*\n.*hr\.records\(image="):
        hr.open(files)
    assert hr.open(["a story", "another one"])[1]["data"] == "another one"


def test_a_path_given_as_an_image_is_read_for_any_suffix(pictures: Path, tmp_path: Path) -> None:
    """Content-addressed stores name files after their hash."""
    plain = shutil.copy(pictures / "cat/00.png", tmp_path / "5f3a9c")
    source = hr.records(image=[str(plain)], mask=[str(plain)], story=["5f3a9c"])
    assert [str(field.kind) for field in source.schema] == ["image", "mask", "text"]
    assert source[0]["image"].shape == hr.open(pictures)[0]["image"].shape
    with pytest.raises(hr.StorageError, match="HR0201"):
        hr.records(image=["no such file", str(plain)])[0]


def test_a_keyword_that_belongs_to_open_is_recognized() -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0159.*split=\n.*hr\.open\(\.\.\., split=\.\.\.\)"):
        hr.Loader("train/", batch_size=4, split="train")  # type: ignore[call-arg]


def test_unknown_names_suggest_similar_ones() -> None:
    with pytest.raises(hr.ConfigError, match="did you mean 'batch_size'"):
        hr.Loader(Numbers(4), batchsize=2)
    with pytest.raises(hr.ConfigError, match="did you mean 'substitute'"):
        hr.Loader(Numbers(4), batch_size=2, on_error="substitue")
    with pytest.raises(AttributeError, match="did you mean 'RandomHorizontalFlip'"):
        T.RandomHorizontalflip()
    with pytest.raises(hr.ConfigError, match="interpolation"):
        T.Resize(8, interpolatoin="bilinear")
    with pytest.raises(hr.ConfigError, match="label"):
        hr.Loader(Numbers(4), batch_size=2, fields=("x", "lable"))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 0},
        {"batch_size": 2.0},
        {"batch_size": True},
        {"batch_size": 2, "global_batch_size": 2},
        {"batch_size": 2, "seed": -1},
        {"batch_size": 2, "shuffle": "yes"},
        {"batch_size": 2, "threads": 0},
        {"batch_size": 2, "memory_limit": "lots"},
        {"batch_size": 2, "last_batch": "maybe"},
        {"batch_size": 2, "shard": (2, 2)},
        {"batch_size": 2, "shard": "rank"},
        {"batch_size": 2, "sampler": [0, 99]},
        {"batch_size": 2, "sampler": "label"},
        {"batch_size": 2, "error_budget": 1.5},
        {"batch_size": 2, "ragged": "maybe"},
        {"batch_size": 2, "memory_format": "NHWC"},
        {"batch_size": 2, "fields": [1]},
        {"batch_size": 2, "shuffle": True, "sampler": hr.sampling.balanced("label")},
    ],
    ids=str,
)
def test_misuse_is_refused_before_anything_runs(options: dict[str, Any]) -> None:
    with pytest.raises(hr.ConfigError) as caught:
        hr.Loader(Numbers(4), **options)
    assert caught.value.code in _core.error_codes()
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("text", "size"),
    [("512 MiB", 512 << 20), ("2GB", 2 * 10**9), ("1.5 GiB", 3 << 29), (1 << 28, 1 << 28)],
)
def test_memory_limits_are_sizes(text: Any, size: int) -> None:
    loader = hr.Loader(Numbers(4), batch_size=2, memory_limit=text)
    assert loader.stats()["memory_limit"] == size


def test_repr_shows_every_option_that_is_not_the_default(pictures: Path) -> None:
    given = {"damaged": "repair", "max_pixels": 10**6, "error_budget": (5, 0.5)}
    with hr.Loader(pictures, [T.Resize((8, 8))], batch_size=4, **given) as loader:
        lines = dict(line.split(maxsplit=1) for line in repr(loader).splitlines()[1:])
    assert {name: lines[name] for name in given} == {n: repr(v) for n, v in given.items()}
    assert "strict" not in lines


def test_repr_shows_every_resolved_value_and_its_origin(pictures: Path) -> None:
    loader = hr.Loader(pictures, [T.Resize((8, 8))], batch_size=4, threads=2)
    text = repr(loader)
    for part in (
        "23 records",
        "Resize(size=",
        "4 per rank",
        "rank 0 of 1 (one process",
        "2 (given)",
    ):
        assert part in text
    assert "available" in text and "damaged" not in text
    loader.close()
    assert repr(loader) == "<Loader, closed>"
    with pytest.raises(hr.ConfigError, match="closed"):
        iter(loader)


def test_the_world_is_resolved_at_the_first_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = hr.Loader(Numbers(24), batch_size=3, fields="id")
    assert len(loader) == 8
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    assert next(batch.id.tolist() for batch in loader) == [3, 4, 5]
    assert len(loader) == 4 and "rank 1 of 2 (torchrun's variables)" in repr(loader)
    monkeypatch.delenv("RANK")
    assert len(list(loader)) == 4, "frozen"
    alone = hr.Loader(Numbers(24), batch_size=3, shard=False)
    assert len(list(alone)) == 8


def test_signatures_come_from_the_registry() -> None:
    for name, record in _core.operators().items():
        cls = getattr(T, name)
        names = list(inspect.signature(cls).parameters)
        assert set(names) == {param["name"] for param in record["params"]} | {"fields"}
        assert record["doc"] in cls.__doc__ and record["oracle"] in cls.__doc__


def test_every_operators_example_is_valid_python() -> None:
    for name, record in _core.operators().items():
        step = eval(record["example"], {each: getattr(T, each) for each in T.__all__})
        assert type(step).__name__ == name, record["example"]


@pytest.mark.parametrize(
    "name", ["Resize", "CenterCrop", "RandomResizedCrop", "Normalize", "ToDtype"]
)
def test_positional_arguments_have_torchvisions_order(name: str) -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2")
    theirs = list(inspect.signature(getattr(v2, name)).parameters)
    ours = [n for n in inspect.signature(getattr(T, name)).parameters if n != "fields"]
    assert ours == theirs[: len(ours)]


def test_enumerations_and_dtypes_are_accepted_in_every_spelling() -> None:
    import enum

    class InterpolationMode(enum.Enum):  # as torchvision's
        BICUBIC = "bicubic"

    for spelling in ("bicubic", InterpolationMode.BICUBIC, Image.Resampling.BICUBIC):
        loader = hr.Loader(
            [(np.zeros((9, 9, 3), np.uint8), 0)], [T.Resize((5, 5), spelling)], batch_size=1
        )
        assert "bicubic" in loader.plan()
    for spelling in ("float16", np.float16, np.dtype("float16")):
        T.ToDtype(spelling, scale=True).spec()
    torch = pytest.importorskip("torch")
    T.ToDtype(torch.bfloat16, True).spec()
    with pytest.raises(hr.ConfigError, match="dtype"):
        T.ToDtype("float33")


def test_arrays_and_tensors_are_accepted_as_numbers() -> None:
    T.Normalize(np.array([0.5, 0.5, 0.5]), np.float32([1, 1, 1])).spec()
    T.Resize(np.int64(8)).spec()
    with pytest.raises(hr.ConfigError):
        T.Resize("big")
    with pytest.raises(hr.ConfigError):
        T.RandomHorizontalFlip(p=2)


def test_an_object_that_is_not_a_transform_is_refused(pictures: Path) -> None:
    for entry, message in [
        (3, "not a transform"),
        (T.Resize, "call it"),
        ("Resize", "not a transform"),
    ]:
        with pytest.raises(hr.ConfigError, match=message):
            hr.Loader(pictures, [entry], batch_size=2)


def test_lists_in_lists_and_compose_are_one_list(pictures: Path) -> None:
    plain = [T.Resize((8, 8)), T.RandomHorizontalFlip()]
    nested = [T.Compose([T.ToImage(), T.Resize((8, 8))]), [T.RandomHorizontalFlip()]]
    images = [
        next(iter(hr.Loader(pictures, steps, batch_size=23))).image for steps in (plain, nested)
    ]
    np.testing.assert_array_equal(*images)


def test_a_dictionary_gives_each_field_its_own_list(pictures: Path) -> None:
    batch = next(
        iter(hr.Loader(pictures, {"image": [T.Resize((8, 8))], "label": None}, batch_size=2))
    )
    assert batch._fields == ("image",)


def test_trace_shows_each_step(pictures: Path, tmp_path: Path) -> None:
    steps = [T.Resize((8, 8)), T.ToDtype("float32", scale=True), T.Normalize([0.5] * 3, [0.5] * 3)]
    loader = hr.Loader(pictures, steps, batch_size=4, shuffle=True)
    trace = loader.trace(3)
    stored = pixels_of(files_of(pictures)[int(loader.batch(0, 0).id[3])])
    np.testing.assert_array_equal(trace[0].values["image"], stored)
    np.testing.assert_array_equal(trace[-1].values["image"], loader.batch(0, 0).image[3])
    assert len(trace) == 4 and "Normalize" in repr(trace)
    saved = trace.images.save(tmp_path / "trace.png")
    assert Image.open(saved).format == "PNG"


def test_show_returns_a_png_of_the_next_images(pictures: Path) -> None:
    loader = hr.Loader(pictures, [T.Resize((8, 8))], batch_size=4)
    grid = loader.show(4)
    import io

    picture = np.asarray(Image.open(io.BytesIO(grid._repr_png_())))
    np.testing.assert_array_equal(picture[:8, :8].transpose(2, 0, 1), loader.peek().image[0])
    assert loader.show(4, columns=4).pixels.shape[1:] == (8, 4 * 8 + 3 * 4)
    assert loader.show(40).pixels.shape[0] == 3, "more than a batch, more than an epoch"


def test_plan_stats_and_bottleneck(pictures: Path) -> None:
    loader = hr.Loader(pictures, [T.Resize((8, 8))], batch_size=4)
    assert "no batch was delivered" in loader.bottleneck()
    list(loader)
    stats = loader.stats()
    assert stats.records == stats["records"] == 23 and stats.batches == 6
    assert set(stats["stages"]) == {
        "read", "decode", "prepare", "transform", "resample", "store", "python", "wait",
    }  # fmt: skip
    assert stats.wall_seconds >= stats.wait_seconds > 0
    assert loader.bottleneck().count("%") >= 1 and loader.bottleneck().endswith(".")
    assert "Resize" in repr(loader.plan()) and "uint8 (3, 8, 8)" in loader.plan()


def test_sources_describe_their_contents(pictures: Path) -> None:
    source = hr.open(pictures)
    assert (len(source), source.classes) == (23, ["cat", "dog", "eel"])
    assert source.class_to_idx == {"cat": 0, "dog": 1, "eel": 2}
    assert source.fingerprint == hr.open(pictures).fingerprint
    assert [(f.name, f.kind, f.dtype) for f in source.schema] == [
        ("image", "image", "uint8"), ("label", "label", "int64"),
    ]  # fmt: skip
    record = source[3]
    np.testing.assert_array_equal(record["image"], pixels_of(files_of(pictures)[3]))
    assert record["key"] == source.key(3) and "23 records" in repr(source)
    with pytest.raises(hr.ConfigError, match="is a field of image files"):
        source.column("image")
    with pytest.raises(hr.ConfigError, match="not a source"):
        hr.open(3)


def test_classes_of_another_source_keep_their_labels(pictures: Path) -> None:
    source = hr.folder(pictures, classes=["eel", "dog", "cat"])
    assert source.column("label").tolist() == [2] * 8 + [1] * 8 + [0] * 7
    assert hr.open(pictures, classes=["eel", "dog", "cat"]).classes == ["eel", "dog", "cat"]


def test_presets_are_lists_of_transforms() -> None:
    assert [step.name for step in hr.presets.imagenet_train(224, dtype="uint8")] == [
        "RandomResizedCrop", "RandomHorizontalFlip",
    ]  # fmt: skip
    steps = hr.presets.imagenet_eval(192, dtype="float16")
    assert steps[0].arguments["size"] == 219 and steps[-1].arguments["dtype"] == "float16"
    with pytest.raises(TypeError, match=r"by name: segmentation_train\(40, base=32\)"):
        hr.presets.segmentation_train(40, 32)  # type: ignore[misc]


def test_headrace_never_imports_a_framework_by_itself() -> None:
    code = (
        "import sys, headrace as hr\n"
        "list(hr.Loader([{'x': 1}], batch_size=1).numpy())\n"
        "from headrace.frameworks import jax, mxnet, paddle, tensorflow, torch\n"
        "frameworks = {'torch', 'tensorflow', 'keras', 'jax', 'paddle', 'mxnet', 'lightning'}\n"
        "assert not (frameworks | {'PIL'}) & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_importing_headrace_imports_little_else() -> None:
    """Modules that few calls need are imported by those calls, to start fast. (pathlib, and what it
    imports, is needed by many.)"""
    late = {"asyncio", "base64", "concurrent", "difflib", "hashlib", "html", "logging"}
    late |= {"multiprocessing", "pkgutil", "selectors", "shutil", "signal", "socket"}
    late |= {"subprocess", "tarfile", "traceback"}
    ours = ("cli", "compose", "delivery", "insight", "jobs", "migrate", "ray", "write")
    late |= {f"headrace.{name}" for name in ours}
    code = (
        "import sys, numpy\n"
        "before = set(sys.modules)\n"
        "import headrace\n"
        "print(*(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    frameworks = {"torch", "tensorflow", "jax", "PIL", "paddle", "mxnet", "h5py", "lmdb", "pyarrow"}
    imported = {".".join(name.split(".")[:n]) for name in done.stdout.split() for n in (1, 2)}
    assert not {*late, *frameworks, "typer", "rich"} & imported


def test_a_prompt_completes_what_is_imported_on_first_use() -> None:
    listed = dir(hr)
    assert {"doctor", "watch", "region", "Loader", "webdataset", "__version__"} <= set(listed)
    assert all(hasattr(hr, name) for name in listed)
    assert not [name for name in listed if name not in hr.__all__ and not name.startswith("__")]


def test_the_error_for_an_unsupported_torchvision_transform_has_a_hint() -> None:
    with pytest.raises(
        AttributeError, match=r"HR0153.*\n.*put v2\.LinearTransformation\(\.\.\.\) into"
    ):
        T.LinearTransformation  # noqa: B018
    with pytest.raises(AttributeError, match=r'ToDtype\("float32", scale=True\)'):
        T.ToTensor  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'RandomHorizontalFlip'"):
        T.RandomHorizontalFlop  # noqa: B018


def test_every_torchvision_transform_has_an_operator_or_a_workaround() -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2")
    from headrace.absent import NAMES

    theirs = {
        name
        for name, value in vars(v2).items()
        if isinstance(value, type) and "transforms.v2" in value.__module__ and name != "Transform"
    }
    assert {"ColorJitter", "Resize"} <= theirs
    assert theirs - NAMES - set(T.__all__) == set()


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"HEADRACE_CACHE_LIMIT": "200 GB"}, "HEADRACE_CACHE_LIMIT='200 GB' is not read; known: "),
        ({"HEADRACE_THREADS": "4"}, "HEADRACE_THREADS='4' is not read; known: HEADRACE_CACHE, "),
        ({"HEADRACE_CACHE": "~/cache"}, "HEADRACE_CACHE='~/cache' is relative"),
        (
            {"HEADRACE_CACHE": "/dev/null/cache"},
            "/dev/null is a file; nothing is cached; give an abs",
        ),
        ({"HEADRACE_CACHE": "", "HEADRACE_SIMD": "scalar", "HEADRACE_TEST_DATA": "/x"}, ""),
        ({"HEADRACE_CACHE": "/tmp/not/there/yet", "HEAD": "1"}, ""),
    ],
)
def test_an_environment_variable_without_effect_is_warned_about(
    variables: dict[str, str], said: str
) -> None:
    text = "\n".join(environment.complaints(variables))
    assert said in text and bool(text) == bool(said)


def test_unknown_environment_variables_are_warned_about_at_import() -> None:
    script = "import headrace; import headrace.loader"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "HEADRACE_CACHE_LIMIT": "200 GB"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.count("HEADRACE_CACHE_LIMIT='200 GB' is not read") == 1


def test_environment_variables_that_are_read_are_declared() -> None:
    root = Path(__file__).parent.parent
    read = set()
    for folder in ("headrace", "python"):
        for path in (root / folder).rglob("*"):
            if path.suffix in (".cc", ".h", ".py") and "_test" not in path.stem:
                text = path.read_text()
                read.update(re.findall(r"""(?:getenv\(|environ\W.{0,9})"(HEADRACE_\w+)""", text))
    assert read == set(environment.VARIABLES)

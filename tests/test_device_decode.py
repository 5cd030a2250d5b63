# SPDX-License-Identifier: Apache-2.0
"""JPEGs decoded on the device: the batches equal those decoded on the CPU."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from processes import run_command

import headrace as hr
from headrace import _core
from headrace import transforms as T

MEAN, STD = [0.48, 0.46, 0.41], [0.23, 0.22, 0.25]
CORRUPT = Path(os.environ.get("HEADRACE_TEST_DATA", "/nowhere")) / "corrupt" / "jpeg"


def devices() -> list[Any]:
    return [
        _core.open_device("cpu"),
        _core.simulated_device(seed=1),
        _core.simulated_device(seed=2),
    ]


def scene(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Smooth areas, edges and some noise, as in photos."""
    y, x = np.mgrid[:height, :width]
    waves = [127 + 80 * np.sin(x / rng.uniform(3, 40) + y / rng.uniform(3, 40)) for _ in range(3)]
    pixels = np.stack(waves, axis=-1) + rng.normal(0, 8, (height, width, 3))
    pixels[height // 3 :, width // 2 :] += rng.integers(-60, 60)
    return np.clip(pixels, 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """72 files: all of Pillow's samplings, gray, CMYK, progressive, restart markers, Exif
    orientations, tiny ones, PNGs between them."""
    root = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(3)
    for number in range(72):
        folder = root / "abc"[number % 3]
        folder.mkdir(exist_ok=True)
        small = number % 6 == 4
        height, width = rng.integers(1, 18, 2) if small else rng.integers(40, 300, 2)
        picture = Image.fromarray(scene(rng, int(height), int(width)))
        options: dict[str, Any] = {"quality": 85, "subsampling": number % 3}
        if number % 12 == 3:
            options["progressive"] = True
        if number % 8 == 5:
            options["restart_marker_blocks"] = 3
        if number % 9 == 7:
            exif = Image.Exif()
            exif[274] = 1 + number % 8
            options["exif"] = exif
        if number % 10 == 6:
            picture = picture.convert("L")
        if number % 24 == 11:
            picture = picture.convert("CMYK")
        if number % 18 == 2:
            picture.save(folder / f"{number:02}.png")
        else:
            picture.save(folder / f"{number:02}.jpg", **options)
    return root


def train(size: int = 48, dtype: str = "float32") -> list[Any]:
    steps: list[Any] = [T.RandomResizedCrop(size), T.RandomHorizontalFlip()]
    if dtype != "uint8":
        steps += [T.ToDtype(dtype, scale=True), T.Normalize(MEAN, STD)]
    return [*steps, T.RandomErasing(p=0.3)]


def loader(source: Any, transforms: list[Any], **options: Any) -> Any:
    given = {"batch_size": 8, "shuffle": True, "seed": 3, "decode": "device", **options}
    return hr.Loader(source, transforms, **given)


def on_cpu(source: Any, transforms: list[Any], **options: Any) -> Any:
    return loader(source, transforms, **{**options, "decode": "cpu"}).dlpack()


def fields_of(batch: Any) -> list[Any]:
    """Shape, dtype, strides and bytes of each field; for lists, their values."""
    out = []
    for value in batch:
        if isinstance(value, _core.Array):
            values = np.asarray(value.bits())
            axes = tuple(np.argsort([-stride for stride in values.strides], kind="stable"))
            out.append((value.dtype, values.shape, axes, values.tobytes()))
        else:
            out.append([np.asarray(v).tobytes() if hasattr(v, "shape") else v for v in value])
    return out


def epoch(view: Any) -> list[Any]:
    return [fields_of(batch) for batch in view]


def decoded(view: Any) -> dict[str, int]:
    return dict(view.stats()["decoded"])


@pytest.mark.parametrize("memory_format", ["channels_first", "channels_last"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_batches_equal_those_decoded_on_the_cpu(
    photos: Path, dtype: str, memory_format: str
) -> None:
    hr.index(photos)
    given = {"memory_format": memory_format}
    expected = epoch(on_cpu(photos, train(dtype=dtype), **given))
    for device in devices():
        view = loader(photos, train(dtype=dtype), **given).dlpack(device)
        assert epoch(view) == expected
        counts = decoded(view)
        assert counts["device"] >= 50
        assert counts["unsupported format"] >= 4  # the PNGs
        assert counts["damaged"] == counts["slot full"] == 0
        assert sum(counts.values()) == 72
        assert view.stats()["decode"] == f"device: {device.name}"


OF_THE_FILES = {"device", "unsupported format", "no row index"}
# For files that no device decodes: a step that needs all pixels decodes them.
AFTER_A_PASS = {"rendered earlier", "unsupported color transform"}


@pytest.mark.parametrize(
    ("steps", "reasons"),
    [
        ([T.Resize(40), T.CenterCrop(32)], set()),
        ([T.Resize((24, 56), interpolation="bicubic"), T.RandomVerticalFlip()], set()),
        ([T.Resize((40, 33), interpolation="nearest"), T.RandomHorizontalFlip()], set()),
        ([T.RandomHorizontalFlip(), T.RandomVerticalFlip(), T.Resize((300, 280))], set()),
        ([T.RandomCrop(32, pad_if_needed=True), T.RandomHorizontalFlip()], set()),
        ([T.Resize((32, 32)), T.Pad(4, fill=9), T.RandomVerticalFlip()], set()),
        ([T.Resize((32, 32)), T.RandomCrop(32, padding=4, fill=(9, 8, 7))], set()),
        ([T.Pad(300, fill=200), T.CenterCrop(64), T.RandomHorizontalFlip()], set()),
        ([T.Resize((40, 40)), T.ColorJitter(brightness=0.4)], set()),
        ([T.Resize((40, 40)), T.ColorJitter(saturation=0.4)], set()),
        ([T.RandomResizedCrop(40), T.ColorJitter(0.4, 0.4, 0.4, 0.1)], AFTER_A_PASS),
        ([T.RandomResizedCrop(33), T.RandomEqualize(), T.RandomVerticalFlip()], AFTER_A_PASS),
        (
            [T.Resize((40, 40)), T.CLAHE(), T.ColorJitter(0.4, 0.4, 0.4, 0.1)],
            {"rendered earlier"},
        ),
        (
            [
                T.RandomChoice(
                    [
                        [T.Resize((40, 40), interpolation=filter, antialias=antialias)]
                        for filter, antialias in [
                            ("bilinear", True),
                            ("box", True),
                            ("hamming", True),
                            ("lanczos", True),
                            ("bilinear", False),
                            ("bicubic", False),
                            ("nearest", False),
                            ("nearest-exact", False),
                        ]
                    ]
                )
            ],
            set(),
        ),
        (
            [T.RandomResizedCrop(40), T.RandomApply([T.Grayscale(3)], p=0.5)],
            set(),
        ),
        ([T.Pad(5, fill=3), T.Resize((40, 40))], {"padded before resize"}),
        ([T.Resize((64, 64)), T.Resize((40, 40))], {"rendered earlier"}),
        ([T.Pad(300), T.RandomCrop(32)], set()),
        ([T.Resize((40, 40)), T.GaussianBlur(3), T.RandomHorizontalFlip()], AFTER_A_PASS),
        (
            [
                T.RandomResizedCrop(41),
                T.RandomAdjustSharpness(2.5),
                T.RandomAffine(20, scale=(0.7, 1.2), interpolation="bilinear", fill=(9, 80, 7)),
                T.RandomPerspective(),
            ],
            AFTER_A_PASS,
        ),
        ([T.RandomResizedCrop(40), T.RandAugment(3), T.RandomHorizontalFlip()], AFTER_A_PASS),
        ([T.RandomResizedCrop(39), T.TrivialAugmentWide(interpolation="bilinear")], AFTER_A_PASS),
        ([T.Resize((40, 40)), T.GaussianBlur(33, 9.0)], {"rendered earlier"}),
    ],
    ids=[
        "eval",
        "bicubic",
        "nearest",
        "flips",
        "padded",
        "letterbox",
        "padded_crop",
        "framed",
        "brightness",
        "saturation",
        "jitter",
        "equalize",
        "jitter_after_pixels",
        "filters",
        "gray",
        "resized_border",
        "two_resizes",
        "border_alone",
        "blur",
        "warps",
        "rand_augment",
        "trivial_augment",
        "wide_blur",
    ],
)
def test_batches_are_equal_for_all_kinds_of_steps(
    photos: Path, steps: list[Any], reasons: set[str]
) -> None:
    hr.index(photos)
    for exif in (False, True):
        expected = epoch(on_cpu(photos, steps, exif_orientation=exif))
        for device in devices()[:2]:
            view = loader(photos, steps, exif_orientation=exif).dlpack(device)
            assert epoch(view) == expected
            counts = {reason for reason, count in decoded(view).items() if count}
            assert sum(decoded(view).values()) == 72
            if reasons is AFTER_A_PASS:
                assert counts - OF_THE_FILES <= reasons
                assert decoded(view)["device"] >= 50
                continue
            assert counts - OF_THE_FILES == reasons


def test_a_field_finished_on_the_host_is_counted_too(photos: Path) -> None:
    hr.index(photos)
    steps = [T.Fork("image", one=[T.RandomResizedCrop(32)], two=[T.RandomHorizontalFlip()])]
    expected = epoch(on_cpu(photos, steps, ragged="list"))
    view = loader(photos, steps, ragged="list").dlpack(_core.simulated_device(seed=8))
    assert epoch(view) == expected
    counts = decoded(view)
    assert counts["field finished on the CPU"] == 72
    assert counts["device"] >= 50
    assert sum(counts.values()) == 144


def test_both_views_of_an_image_are_decoded_on_the_device(photos: Path) -> None:
    hr.index(photos)
    end = [T.ToDtype("float32", scale=True), T.Normalize(MEAN, STD)]
    colors = [T.RandomApply([T.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8), T.RandomGrayscale(0.2)]
    one = [T.RandomResizedCrop(32), *colors, *end]
    steps = [T.Fork("image", one=one, two=[T.RandomResizedCrop(32), *end])]
    expected = epoch(on_cpu(photos, steps))
    view = loader(photos, steps).dlpack(_core.simulated_device(seed=5))
    assert epoch(view) == expected
    counts = decoded(view)
    assert counts["field finished on the CPU"] == 0
    assert counts["device"] >= 2 * 50


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
def test_batches_are_equal_in_every_mode(photos: Path, mode: str) -> None:
    hr.index(photos)
    steps = [T.RandomResizedCrop(40)]
    expected = epoch(on_cpu(photos, steps, mode=mode))
    view = loader(photos, steps, mode=mode).dlpack(_core.simulated_device(seed=3))
    assert epoch(view) == expected
    assert (decoded(view)["device"] > 50) == (mode != "RGBA")


def test_images_decoded_by_the_cpu_are_counted_by_reason(photos: Path) -> None:
    hr.index(photos)
    steps = [*train(), T.RandomErasing(p=1.0, value="random")]
    expected = epoch(on_cpu(photos, steps))
    view = loader(photos, steps).dlpack(_core.simulated_device(seed=9))
    assert epoch(view) == expected
    assert decoded(view)["unsupported final transforms"] == 72


def test_the_guide_describes_every_key_of_the_counts(photos: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "guide" / "gpu.md").read_text()
    _, _, rest = page.partition('| `stats()["decoded"]` | images |\n|---|---|\n')
    described = re.findall(r"^\| `([^`]+)` \|", rest.partition("\n\n")[0], re.MULTILINE)
    assert sorted(described) == sorted(loader(photos, train()).stats()["decoded"])


def test_without_an_index_the_cpu_decodes_and_the_stats_say_so(photos: Path) -> None:
    expected = epoch(on_cpu(photos, train()))
    one = loader(photos, train(), index=False)
    view = one.dlpack(_core.open_device("cpu"))
    with pytest.warns(UserWarning, match="the CPU decodes most images: 81.9 % of 72 images"):
        assert epoch(view) == expected
    counts = decoded(view)
    assert counts["device"] == 0 and counts["no row index"] == 59
    assert counts["unsupported format"] == 13  # PNGs, CMYK and progressive JPEGs
    note = (
        "81.9 % of 72 images have no row index (index=False disables it), "
        "18.1 % are not baseline JPEGs"
    )
    assert view.stats()["decode_note"] == note
    assert f"on the CPU, {note}" in repr(one)


def test_a_learned_index_is_used_for_the_same_batch(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    expected = on_cpu(photos, train())
    both = [epoch(expected) for _ in range(2)]
    with loader(photos, [T.RandomCrop(8, pad_if_needed=True)], index="auto", decode="cpu") as one:
        next(iter(one))  # for some, the first rows are known
    view = loader(photos, train(), index="auto").dlpack(_core.open_device("cpu"))
    assert [epoch(view), epoch(view)] == both
    counts = decoded(view)
    assert counts["no row index"] == 0 and counts["device"] >= 2 * 55
    assert view.stats()["index"]["entries"] == 59


def is_taken(path: Path) -> bool:
    picture = Image.open(path)
    return picture.mode != "CMYK" and not picture.info.get("progressive")


COMBINED = ["concat", "mix", "subset", "concat of splits", "join"]


def combined(name: str, a: list[Path], b: list[Path]) -> Any:
    """A source made of two others, and the first of these."""
    number = np.arange(len(a))
    one, other = hr.records(image=a, number=number), hr.records(image=b, number=number)
    if name == "join":
        other = hr.records(second=b, number=number)
        return hr.join(one, other, on="number"), one
    both = hr.concat(one, other)
    made = {
        "concat": both,
        "mix": hr.mix(one, other, weights=[1, 1]),
        "subset": hr.subset(both, [*range(len(both))]),
        "concat of splits": hr.concat(*hr.split(both, 0.5, 0.5)),
    }
    return made[name], one


@pytest.mark.parametrize("name", COMBINED)
def test_the_index_of_each_source_is_used_in_combinations(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    files = [path for path in sorted(photos.rglob("*.jpg")) if is_taken(path)][:56]
    source, one = combined(name, files[:28], files[28:])
    steps = {field: train() for field in ("image", "second")[: 1 + (name == "join")]}
    expected = epoch(on_cpu(source, steps))

    def counts(**options: Any) -> dict[str, int]:
        view = loader(source, steps, **options).dlpack(_core.open_device("cpu"))
        assert epoch(view) == expected
        return decoded(view)

    assert counts()["no row index"] == 56
    hr.index(one)
    assert (counts()["device"], counts()["no row index"]) == (28, 28)
    learned = counts(index="auto")
    assert learned["device"] >= 55 and learned["no row index"] == 0
    assert counts() == learned  # cached, each in the file of its source
    assert len(list(tmp_path.glob("rows-*"))) == 2


def test_dense_packs_contain_their_index(photos: Path, tmp_path: Path) -> None:
    pack = tmp_path / "photos.hrpack"
    done = run_command("pack", photos, "-o", pack, "--level", "dense")
    assert done.returncode == 0, done.stderr
    expected = epoch(on_cpu(pack, train()))
    view = loader(pack, train()).dlpack(_core.simulated_device(seed=4))
    assert epoch(view) == expected
    assert decoded(view)["device"] > 10  # files of 8 KiB and more


def test_ranks_and_resumed_runs_give_the_same_batches(photos: Path) -> None:
    hr.index(photos)
    expected = epoch(on_cpu(photos, train(), batch_size=16))
    ranks = [
        epoch(
            loader(photos, train(), batch_size=8, shard=(rank, 2)).dlpack(
                _core.simulated_device(rank)
            )
        )
        for rank in range(2)
    ]
    for whole, *parts in zip(expected, *ranks, strict=True):
        assert b"".join(part[0][3] for part in parts) == whole[0][3]
    view = loader(photos, train(), batch_size=16).dlpack(_core.simulated_device(5), depth=3)
    run = iter(view)
    got = [fields_of(next(run)) for _ in range(2)]
    for decode in ("cpu", "device"):
        rest = loader(photos, train(), batch_size=16, decode=decode)
        rest.load_state_dict(view.state_dict())
        assert got + epoch(rest.dlpack(_core.simulated_device(6))) == expected


def whole(parts: Any) -> list[Any]:
    """The fields of a batch that was divided over devices, joined."""
    fields = [
        np.concatenate([np.asarray(value) for value in field]) for field in zip(*parts, strict=True)
    ]
    return [(field.dtype, field.shape, field.tobytes()) for field in fields]


def on_several(source: Any, count: int, seed: int, **options: Any) -> Any:
    pair = [_core.simulated_device(seed=10 * seed + n) for n in range(count)]
    return loader(source, train(), **options).dlpack(pair)


@pytest.mark.parametrize("count", [2, 3])
def test_each_of_several_devices_decodes_its_part(photos: Path, count: int) -> None:
    hr.index(photos)
    expected = [whole([batch]) for batch in on_cpu(photos, train())]
    view = on_several(photos, count, 1)
    assert [whole(parts) for parts in view] == expected
    assert decoded(view)["device"] >= 50
    assert view.stats()["decode"] == "device: simulated"


def test_several_devices_per_rank_and_resumed_runs(photos: Path) -> None:
    hr.index(photos)
    expected = [whole([batch]) for batch in on_cpu(photos, train(), batch_size=16)]
    ranks = [
        [whole(parts)[0][2] for parts in on_several(photos, 2, rank, shard=(rank, 2))]
        for rank in range(2)
    ]
    assert [first + second for first, second in zip(*ranks, strict=True)] == [
        one[0][2] for one in expected
    ]
    view = on_several(photos, 2, 3, batch_size=16)
    run = iter(view)
    got = [whole(next(run)) for _ in range(2)]
    for count in (1, 3):
        rest = loader(photos, train(), batch_size=16)
        rest.load_state_dict(view.state_dict())
        devices = [_core.simulated_device(seed=n) for n in range(count)]
        assert got + [whole(parts) for parts in rest.dlpack(devices)] == expected


@pytest.fixture
def damaged(photos: Path, tmp_path: Path) -> Path:
    """The same with an index made before bytes were changed: the hash of the file detects that."""
    root = tmp_path / "damaged"
    for path in sorted(photos.rglob("*.*")):
        to = root / path.parent.name / path.name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(path.read_bytes())
    hr.index(root)
    rng = np.random.default_rng(5)
    for number, path in enumerate(sorted(root.rglob("*.jpg"))):
        data = bytearray(path.read_bytes())
        if number % 7 == 1:
            data[int(rng.integers(len(data) // 2, len(data)))] ^= 0x55
        if number % 7 == 4:
            data = data[: len(data) // 2]
        path.write_bytes(data)
    return root


@pytest.mark.parametrize("policy", ["substitute", "skip"])
def test_damaged_files_follow_the_policy_as_on_the_cpu(damaged: Path, policy: str) -> None:
    options = {"on_error": policy, "error_budget": 1.0}
    reference = on_cpu(damaged, train(), **options)
    expected = epoch(reference)
    for device in devices():
        one = loader(damaged, train(), **options)
        view = one.dlpack(device)
        assert epoch(view) == expected
        counts, wanted = view.stats(), reference.stats()
        for name in ("records", "bad_records", "repaired", "warnings"):
            assert counts[name] == wanted[name], name


@pytest.mark.parametrize("policy", ["substitute", "skip"])
def test_damaged_files_in_any_part_follow_the_policy(damaged: Path, policy: str) -> None:
    options = {"on_error": policy, "error_budget": 1.0}
    reference = on_cpu(damaged, train(), **options)
    expected = [whole([batch]) for batch in reference]
    view = on_several(damaged, 2, 7, **options)
    assert [whole(parts) for parts in view] == expected
    for name in ("records", "bad_records", "repaired", "warnings"):
        assert view.stats()[name] == reference.stats()[name], name


def test_damaged_files_end_a_run_at_the_same_batch(damaged: Path) -> None:
    reference = loader(damaged, train(), shuffle=False, decode="cpu")
    with pytest.raises(hr.DataError) as expected:
        list(reference)
    one = loader(damaged, train(), shuffle=False)
    with pytest.raises(hr.DataError) as failure:
        list(one.dlpack(_core.simulated_device(1)))
    assert str(failure.value) == str(expected.value)
    assert one.state_dict() == reference.state_dict()


@pytest.mark.skipif(not CORRUPT.is_dir(), reason=f"no {CORRUPT}")
def test_corrupt_files_of_the_test_data_decode_as_on_the_cpu() -> None:
    options = {"on_error": "skip", "error_budget": 1.0, "index": "auto"}
    source = hr.open(CORRUPT, allow_empty=True)
    expected = on_cpu(source, train(), **options)
    both = [epoch(expected) for _ in range(2)]
    one = loader(source, train(), **options)
    view = one.dlpack(_core.simulated_device(7))
    assert [epoch(view) for _ in range(2)] == both


def test_auto_uses_the_cpu_without_a_gpu(photos: Path) -> None:
    view = loader(photos, train(), decode="auto").dlpack(_core.open_device("cpu"))
    next(iter(view))
    assert view.stats()["decode"] == "cpu: cpu is not a GPU"
    plain = loader(photos, train(), decode="device")
    next(iter(plain))
    assert plain.stats()["decode"] == "cpu: batches stay on the host"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"finish": "cpu"}, "finish="),
        ({"strict": True}, "strict=True"),
    ],
)
def test_obstacles_to_decoding_on_the_device_are_named(
    photos: Path, options: Any, why: str
) -> None:
    with pytest.raises(hr.ConfigError, match=rf"(?s)HR0717.*{why}"):
        iter(loader(photos, train(), **options).dlpack(_core.open_device("cpu")))
    tensors = [(np.zeros((3, 64, 64), np.uint8), 0)] * 9
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0717.*no encoded images"):
        iter(loader(tensors, train()).dlpack(_core.open_device("cpu")))


def test_bench_has_the_same_hash_on_cpu_and_device(photos: Path) -> None:
    hr.index(photos)

    def bench(*options: str) -> Any:
        common = ("--size", "48", "--batch-size", "8", "--epochs", "1", "--json")
        done = run_command("bench", photos, *common, *options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    expected = bench()["batch_hash"]
    for device in ("host", "simulated"):
        for decode in ("auto", "cpu", "device"):
            result = bench("--device", device, "--decode", decode)
            assert result["batch_hash"] == expected
            assert (result["decoded"]["device"] > 0) == (decode == "device")


def noise(root: Path, height: int, width: int, names: list[str]) -> None:
    rng = np.random.default_rng(8)
    for name in names:
        pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "jpeg", quality=95, subsampling=0)
        (root / "a").mkdir(exist_ok=True)
        (root / "a" / name).write_bytes(file.getvalue())


def test_large_images_fit_in_the_slot_if_memory_suffices(tmp_path: Path) -> None:
    noise(tmp_path, 600, 700, [f"{number:02}.jpg" for number in range(12)])
    hr.index(tmp_path)
    expected = epoch(on_cpu(tmp_path, train(32)))
    view = loader(tmp_path, train(32)).dlpack(_core.simulated_device(seed=2))
    assert epoch(view) == expected
    assert decoded(view)["device"] == 12
    small = {"memory_limit": "48 MiB", "threads": 2}
    view = loader(tmp_path, train(32), **small).dlpack(_core.simulated_device(seed=2))
    assert epoch(view) == expected
    assert decoded(view)["slot full"] > 0


def test_an_image_larger_than_its_share_of_the_slot_is_accepted(tmp_path: Path) -> None:
    # Sixteen are sampled, every fourth: none of the large ones.
    noise(tmp_path, 30, 40, [f"{number:02}.jpg" for number in range(64) if number % 4 != 2])
    noise(tmp_path, 1000, 1100, [f"{number:02}.jpg" for number in range(64) if number % 4 == 2])
    hr.index(tmp_path)
    given = {"shuffle": False, "batch_size": 16}
    expected = epoch(on_cpu(tmp_path, train(32), **given))
    view = loader(tmp_path, train(32), **given).dlpack(_core.simulated_device(seed=2))
    assert epoch(view) == expected
    counts = decoded(view)
    assert counts["slot full"] > 0
    assert counts["device"] > 0 and sum(counts.values()) == 64


def test_the_size_limit_is_the_same_on_cpu_and_device(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    (tmp_path / "a").mkdir()
    for number in range(40):  # whose coefficients are held at the same time
        side = 600 + 25 * number
        picture = Image.fromarray(rng.integers(0, 256, (side, side, 3), dtype=np.uint8))
        picture.save(tmp_path / "a" / f"{number:02}.jpg", progressive=True, quality=30)
    options = {"on_error": "skip", "error_budget": 1.0, "threads": 1, "index": False}
    delivered = set()
    for mebibytes in (28, 34, 40):
        given = {**options, "memory_limit": f"{mebibytes} MiB"}
        expected = epoch(on_cpu(tmp_path, train(32), finish="cpu", **given))
        delivered.add(sum(batch[0][1][0] for batch in expected))
        for decode in ("cpu", "device"):
            view = loader(tmp_path, train(32), decode=decode, **given)
            assert epoch(view.dlpack(_core.simulated_device(seed=1))) == expected
    assert len(delivered) > 1  # some were too large

# SPDX-License-Identifier: Apache-2.0
"""hr.from_dataloader() traces a dataset: its use of files and transforms becomes native if that is
proven, and everything else stays in Python, with the reason."""

from __future__ import annotations

import gc
import importlib
import itertools
import os
import random
import re
import signal
import sys
import threading
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.migrate import traced, ways
from headrace.migrate.look import child, looking
from migrated_classes import translated
from PIL import Image, ImageOps

pytest.importorskip("torch")
pytest.importorskip("torchvision")
import torch
import traced_datasets as sets
from test_nested_records import assert_alike
from torch.utils.data import ConcatDataset, DataLoader, Subset, random_split
from torchvision import datasets
from torchvision import transforms as v1
from torchvision.transforms import v2

pytestmark = pytest.mark.skipif(not child.can_fork(), reason="it forks")


@pytest.fixture(scope="module", autouse=True)
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 images in three folders, of differing sizes, some of them gray."""
    root = tmp_path_factory.mktemp("looked") / "train"
    rng = np.random.default_rng(3)
    for number in range(30):
        folder = root / ("cat", "dog", "eel")[number % 3]
        folder.mkdir(parents=True, exist_ok=True)
        height, width = rng.integers(20, 40, 2)
        shape = (height, width, 3) if number % 7 else (height, width)
        pixels = rng.integers(0, 256, shape, dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02}.png")
    sets.use(root)
    return root


def gray() -> Any:
    return v1.Compose([v1.Resize((8, 8)), v1.PILToTensor()])


def in_colors() -> Any:
    """From images of any mode."""
    return v1.Compose([v1.Lambda(lambda image: image.convert("RGB")), sets.fixed()])


def split() -> Any:
    return random_split(sets.Plain(), [0.5, 0.5], torch.Generator().manual_seed(0))[0]


RECOGNIZED: dict[str, Callable[[], Any]] = {
    "the usual one": lambda: sets.Usual(),
    "a preset of v2": lambda: sets.Usual(sets.Preset(v2.Resize((8, 8)), v2.ToImage())),
    "rows, file objects and text that ends in .jpg": lambda: sets.Rows(),
    "an annotation beside each image": lambda: sets.Notes(),
    "bytes of the file": lambda: sets.FromBytes(),
    "a file of pathlib's": lambda: sets.FromPath(),
    "bytes of pathlib's": lambda: sets.FromPathsBytes(),
    "a file that a library opened": lambda: sets.FromReader(),
    "a cache of its own": lambda: sets.Cached(),
    "lru_cache": lambda: sets.LruCached(),
    "two views": lambda: sets.TwoViews(),
    "two views by a transform": lambda: datasets.ImageFolder(
        sets.FOLDER, sets.TwoCrops(sets.fixed())
    ),
    "target_transform": lambda: sets.TargetTransform(target_transform=sets.double),
    "several images": lambda: sets.Several(gray=gray()),
    "image and target together": lambda: sets.Joint(
        transforms=sets.JointPreset(v2.Resize((8, 8)), v2.ToImage())
    ),
    "image and target together, v2's own": lambda: sets.Joint(
        transforms=v2.Compose([v2.Resize((8, 8)), v2.ToImage()])
    ),
    "an array beside each image": lambda: sets.Arrays(),
    "convert where the mode is another one": lambda: sets.AsksMode(),
    "a thread that reads": lambda: sets.ReadsInThread(),
    "turned upright": lambda: sets.Upright(),
    "a clock that has no effect": lambda: sets.Clock(),
    "a subset of a subset": lambda: Subset(Subset(sets.Usual(), range(25)), range(0, 25, 3)),
    "two with equal transforms": lambda: ConcatDataset([sets.Usual(), sets.Usual(sets.fixed())]),
    "a transform around a split": lambda: sets.Wraps(split(), sets.fixed()),
    "a folder with path and index": lambda: sets.WithPath(sets.FOLDER, sets.fixed()),
    "a folder with a loader of its own": lambda: datasets.ImageFolder(
        sets.FOLDER, sets.fixed(), loader=sets.load
    ),
}


@pytest.mark.parametrize("made", RECOGNIZED.values(), ids=RECOGNIZED)
def test_a_traced_dataset_is_native_with_the_same_batches(made: Callable[[], Any]) -> None:
    dataset = made()
    dataloader = DataLoader(dataset, batch_size=4)
    loader = translated(dataloader)
    assert not loader.report.python, loader.report
    assert "traced" in loader.report.native[0].note
    for ours, theirs in zip(loader.torch(), dataloader, strict=True):
        assert_alike(ours, theirs)


def object_of_slots() -> Any:
    calls = sets.Calls()
    calls.count = 0
    return calls


# A change that they make in one of many calls shows in none of the traced records.
COUNTING: dict[str, tuple[Callable[[], Any], str]] = {
    "in values": (lambda: sets.CountsInValues(), r"record \d+ differs the second time"),
    "in a default": (lambda: sets.CountsInDefault(), r"__defaults__\[0\] now has \d+ entries"),
    "in an object": (
        lambda: sets.CountsInObject(calls=object_of_slots()),
        r"self\.calls\.count is now \d+, was 0",
    ),
    "deeply": (
        lambda: sets.CountsDeeply(calls={"a": {"b": {"c": {"d": {"e": 0}}}}}),
        r"changes self\.calls",
    ),
    "in an iterator": (
        lambda: sets.Iterates(calls=itertools.count()),
        "uses its calls, whose contents cannot be compared",
    ),
}

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "encoded images from a container": (lambda: sets.Stored(), r"BytesIO, not of a path"),
    "arrays in memory": (lambda: sets.InMemory(), "transform gets an image from memory"),
    "arithmetic of its own": (lambda: sets.ToFloat(), r"\.astype of the image"),
    "flips": (lambda: sets.Flips(), r"\.transpose of the image of record \d+ \(traced_datas"),
    "a generator of NumPy's": (
        lambda: sets.DrawsRarely(np.random.default_rng(1)),
        "draws random numbers from self.generator",
    ),
    "a generator of Python's": (
        lambda: sets.DrawsRarely(random.Random(1)),
        "draws random numbers from self.generator",
    ),
    "a generator of the module's": (lambda: sets.DrawsOfModule(), "from GENERATOR"),
    "a generator of its own for each record": (
        lambda: sets.DrawsAnew(make=(np.random.default_rng,)),
        "draws from the system's generator",
    ),
    "torch's seed": (lambda: sets.DrawsAnew(make=(sets.of_torch,)), r"initial_seed\(\)"),
    "a process": (lambda: sets.Starts(), "starts a process"),
    "the environment is set": (lambda: sets.Sets(), r"calls os\.putenv\(\)"),
    "another record by chance": (lambda: sets.Partner(), "draws random numbers"),
    "one draw for two images": (lambda: sets.SameDraw(sets.drawn()), r"get_rng_state\(\)"),
    "images as they are stored": (lambda: sets.AsStored(in_colors()), r"without \.convert"),
    "gray images stay gray": (lambda: sets.KeepsGray(in_colors()), "depends on its mode"),
    "the size of an image": (lambda: sets.Size(), r"\.size of the image of record 0"),
    "whatever happens is caught": (lambda: sets.Swallows(), r"\.resize of the image"),
    "an exception is caught": (lambda: sets.SwallowsSome(), "catches a"),
    "another transform for one record": (
        lambda: sets.OneRecord(other=sets.mirrored()),
        "record 17 is made in a different way",
    ),
    "two with other transforms": (
        lambda: ConcatDataset([sets.Usual(), sets.Usual(sets.mirrored())]),
        "record 30 is made in a different way",
    ),
    "set_epoch": (lambda: sets.SetsEpoch(), r"set_epoch\(\)"),
    "writes": (lambda: sets.Writes(), "writes to"),
    "counts": (lambda: sets.Counts(), "changes self.calls"),
    **{f"counts {where}": (made, reason) for where, (made, reason) in COUNTING.items()},
    "an open file": (
        lambda: sets.Lines(Path(sets.FOLDER).with_name("lines.txt")),
        "uses its log, whose contents cannot be compared",
    ),
    "text as bytes": (lambda: sets.Bytes(), "asks for the class of the bytes"),
    "isinstance": (lambda: sets.AsksClass(), "asks for the class of the image"),
    "type()": (lambda: sets.AsksType(), "something other than the file's image"),
    "type() of a result": (lambda: sets.AsksTypeOfResult(), "than what transform returned"),
    "one call for two views": (lambda: sets.Mixed(), "than what transform returned"),
    "images without a transform": (
        lambda: sets.SameSize(),
        "without a transform that makes them tensors",
    ),
}


def test_a_library_that_rejects_a_traced_value_is_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any) -> Any:
        raise ValueError("Bad argument in function 'resize'\n> Overload resolution failed:\n" * 3)

    monkeypatch.setattr(looking, "_traced", refuse)
    reason = looking.trace(sets.Usual(), True, lambda *_: None).reason
    assert reason.startswith("with a mock of its file, record 0 raises ValueError: Bad argu")
    assert "\n" not in reason and reason.endswith(" ...")


@pytest.mark.parametrize(("made", "reason"), REFUSED.values(), ids=REFUSED)
def test_an_untraceable_dataset_stays_in_python_and_the_report_says_why(
    made: Callable[[], Any], reason: str
) -> None:
    loader = translated(DataLoader(made(), batch_size=4))
    (part,) = loader.report.python
    assert part.note.startswith("left unchanged: ")
    assert re.search(reason, part.note), part.note
    assert next(iter(loader.torch()))


@pytest.mark.parametrize("made", [made for made, _ in COUNTING.values()], ids=COUNTING)
def test_a_dataset_that_counts_calls_gives_the_same_as_in_a_dataloader(
    made: Callable[[], Any],
) -> None:
    """Nothing that from_dataloader tries is counted."""

    def epochs(loader: Callable[[Any], Any]) -> list[Any]:
        sets.CountsInDefault.__getitem__.__defaults__[0].clear()  # type: ignore[index]
        batches = loader(DataLoader(made(), batch_size=4))
        return [batch for _ in range(3) for batch in batches]

    for ours, theirs in zip(
        epochs(lambda dataloader: translated(dataloader).torch()),
        epochs(lambda dataloader: dataloader),
        strict=True,
    ):
        assert_alike(ours, theirs)


def test_tracing_can_be_disabled() -> None:
    loader = translated(DataLoader(sets.Usual(), batch_size=4), trace=False)
    assert "unknown class" in loader.report.python[0].note


def test_tracing_that_takes_too_long_is_skipped_and_the_report_says_how_to_allow_it() -> None:
    loader = translated(DataLoader(sets.Usual(), batch_size=4), trace=1e-6)
    assert re.search(r"limit is 1e-06 s; trace=2e-06 allows", loader.report.python[0].note)


def test_tracing_changes_nothing_in_the_dataset_or_the_program() -> None:
    cached, lru, writes = sets.Cached(), sets.LruCached(), sets.Writes()
    before = sets.GENERATOR.bit_generator.state, random.getstate(), torch.get_rng_state()
    log = Path(sets.FOLDER).parent / "log.txt"
    log.unlink(missing_ok=True)  # other tests run it
    filled = lru.load.cache_info().currsize
    lines = sets.Lines(log.with_name("lines.txt"))
    for dataset in (cached, lru, writes, sets.DrawsOfModule(), lines):
        looking.look(dataset)
    assert lines.file.read() == b"0" * 30 and lines.log.tell() == 0
    assert not cached.cache and lru.load.cache_info().currsize == filled
    assert not log.exists()
    assert before[:2] == (sets.GENERATOR.bit_generator.state, random.getstate())
    assert torch.equal(before[2], torch.get_rng_state())
    assert sets.pil_open is Image.open and Image.open.__module__ == "PIL.Image"


class Ends(sets.Base):
    def __init__(self, how: Callable[[], Any]) -> None:
        super().__init__()
        self.how = (how,)

    def __getitem__(self, i: int) -> Any:
        if i == 11:
            self.how[0]()
        return self.transform(self.open(i)), self.labels[i]


def crash() -> None:
    signal.raise_signal(signal.SIGSEGV)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (crash, "ended by SIGSEGV"),
        (lambda: os._exit(3), "ended without a message"),
        (lambda: sys.exit(3), "record 11 ends the process"),
        (lambda: threading.Event().wait(), "gave no answer for 0.5 s"),
    ],
)
def test_a_dataset_that_ends_or_hangs_its_process_stays_in_python(
    how: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "SILENCE", 0.5 if "no answer" in reason else 300)
    assert reason in looking.look(Ends(how)).reason


def test_a_lock_held_by_another_thread_is_not_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the child it is held forever, because the thread that holds it does not exist there."""
    monkeypatch.setattr(child, "SILENCE", 0.5)
    lock, held, done = threading.Lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert "no answer" in looking.look(Ends(lock.acquire)).reason
    finally:
        done.set()
        thread.join()


def test_a_running_loader_continues_despite_a_fork() -> None:
    first = translated(DataLoader(sets.Usual(), batch_size=4), threads=2)
    running = iter(first.torch())
    seen = [next(running)]
    second = translated(DataLoader(sets.Usual(), batch_size=4))
    seen += list(running)
    for one, other in zip(seen, second.torch(), strict=True):
        assert_alike(one, other)


def test_other_threads_of_the_program_are_not_traced() -> None:
    done, seen = threading.Event(), set()

    def opens() -> None:
        while not done.is_set():
            seen.add(type(Image.open(sets.FILES[0]).convert("RGB")))

    thread = threading.Thread(target=opens)
    thread.start()
    try:
        assert not looking.look(sets.Usual()).reason
    finally:
        done.set()
        thread.join()
    assert seen == {Image.Image}


def test_skipped_damaged_files_are_reported() -> None:
    loader = translated(DataLoader(sets.Retries(), batch_size=4))
    assert not loader.report.python
    (part,) = [part for part in loader.report.changed if "except" in part.name]
    assert 'on_error="substitute"' in part.note


def test_a_compose_over_arrays_stays_in_python_and_decoding_becomes_native() -> None:
    loader = translated(DataLoader(sets.OfArrays(aug=sets.Keywords()), batch_size=4))
    (part,) = loader.report.python
    assert part.name.startswith("Keywords")
    assert "Image.open(path)" in loader.report.native[0].name
    first, again = (next(iter(loader.torch())) for _ in range(2))
    assert first[0].shape == (4, 3, 10, 10) and first[0].dtype == torch.float32
    assert not torch.equal(first[0], again[0])  # another epoch, other draws
    loader.set_epoch(0)
    assert torch.equal(next(iter(loader.torch()))[0], first[0])


class TorchvisionIo:
    """Pillow replaces torchvision.io's functions: its wheel may lack the decoders."""

    @staticmethod
    def read_file(path: str) -> str:
        return path

    @staticmethod
    def decode_image(path: str, mode: Any = "UNCHANGED") -> Any:
        image = Image.open(path)
        pixels = np.array(image.convert("RGB") if "RGB" in str(mode) else image)
        return torch.from_numpy(np.ascontiguousarray(np.atleast_3d(pixels).transpose(2, 0, 1)))


def test_images_of_torchvision_io_are_decoded_natively(monkeypatch: pytest.MonkeyPatch) -> None:
    io = importlib.import_module("torchvision.io")
    for name in ("read_file", "decode_image"):
        monkeypatch.setattr(io, name, getattr(TorchvisionIo, name))
    transform = v2.Compose([v2.CenterCrop(16), v2.Identity()])
    dataset = sets.Decoded(transform, mode=(io.ImageReadMode.RGB,))
    dataloader = DataLoader(dataset, batch_size=4)
    loader = translated(dataloader)
    assert not loader.report.python and "decode_image" in loader.report.native[0].name
    for ours, theirs in zip(loader.torch(), dataloader, strict=True):
        assert_alike(ours, theirs)
    gray = v2.Compose([v2.RGB(), transform])
    (part,) = translated(DataLoader(sets.Decoded(gray, mode=()), batch_size=4)).report.python
    assert "ImageReadMode.UNCHANGED" in part.note and "ImageReadMode.RGB" in part.way


@pytest.mark.parametrize("how", ["function", "slice", "not at all"])
def test_images_of_opencv_are_decoded_natively_and_upright(
    how: str, monkeypatch: pytest.MonkeyPatch, files: Path, tmp_path: Path
) -> None:
    """OpenCV rotates them by their Exif orientation by default."""

    def imread(path: str, flags: int = 1) -> Any:
        image = ImageOps.exif_transpose(Image.open(path)).convert("RGB")
        return np.ascontiguousarray(np.array(image)[:, :, ::-1])

    def convert(image: Any, code: int) -> Any:
        return np.ascontiguousarray(image[:, :, ::-1])

    module = types.ModuleType("cv2")
    module.__dict__.update(imread=imread, cvtColor=convert, COLOR_BGR2RGB=4)
    monkeypatch.setitem(sys.modules, "cv2", module)
    pixels = np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(pixels).save(tmp_path / "turned.jpg", quality=95, exif=exif)
    monkeypatch.setattr(sets, "FILES", [str(tmp_path / "turned.jpg"), *sets.FILES])
    monkeypatch.setattr(sets, "LABELS", [0, *sets.LABELS])
    dataset = sets.OfOpenCv(how, sets.Cut())
    dataloader = DataLoader(dataset, batch_size=4)
    loader = translated(dataloader)
    assert "cv2.imread(path)" in loader.report.native[0].name
    assert [part.name for part in loader.report.python] == ["Cut(image=image)"]
    for ours, theirs in zip(loader.torch(), dataloader, strict=True):
        assert_alike(ours, theirs)


def test_transforms_of_torchvisions_weights_are_native() -> None:
    presets = importlib.import_module("torchvision.transforms._presets")
    transform = presets.ImageClassification(crop_size=16, resize_size=20)
    dataloader = DataLoader(datasets.ImageFolder(sets.FOLDER, transform), batch_size=4)
    loader = translated(dataloader)
    assert not loader.report.python
    for ours, theirs in zip(loader.torch(), dataloader, strict=True):
        torch.testing.assert_close(ours[0], theirs[0], rtol=0, atol=1e-6)


def test_two_views_draw_independently_and_share_their_file() -> None:
    for blur in ([], [v1.RandomApply([sets.Blur()], p=1.0)]):
        views = sets.TwoCrops(v1.Compose([v1.RandomResizedCrop(16), *blur, v1.ToTensor()]))
        dataset = datasets.ImageFolder(sets.FOLDER, views)
        loader = translated(DataLoader(dataset, batch_size=10))
        assert not loader.report.python
        for (query, key), labels in loader.torch():
            assert query.shape == key.shape == (10, 3, 16, 16) and len(labels) == 10
            assert not torch.equal(query, key)


def test_one_of_two_views_can_be_left_out() -> None:
    views = sets.TwoCrops(sets.fixed())
    dataset = datasets.ImageFolder(sets.FOLDER, views)
    for fields in (("image2", "label"), ("label",)):
        loader = translated(DataLoader(dataset, batch_size=4), fields=fields)
        assert next(iter(loader.torch()))._fields == fields


def test_a_loader_ends_with_its_last_reference() -> None:
    dataset = datasets.ImageFolder(sets.FOLDER, sets.TwoCrops(sets.fixed()))  # a second attempt
    gc.disable()  # which would end it eventually, together with its threads
    try:
        loader = weakref.ref(translated(DataLoader(dataset, batch_size=4)))
        assert loader() is None
    finally:
        gc.enable()


def test_datasets_with_files_that_headrace_refuses_stay_in_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """16-bit gray, which Pillow silently alters."""
    deep = np.linspace(0, 65535, 400, dtype=np.uint16).reshape(20, 20)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    monkeypatch.setattr(sets, "FILES", [str(tmp_path / "deep.png")] * 4)
    monkeypatch.setattr(sets, "LABELS", [0] * 4)
    (part,) = translated(DataLoader(sets.Usual(), batch_size=4)).report.python
    assert "HR0386" in part.note


def test_classes_of_a_dataset_name_its_labels() -> None:
    dataset = sets.Usual(classes=["cat", "dog", "eel"])
    assert translated(DataLoader(dataset)).source.classes == ["cat", "dog", "eel"]


def test_files_decoded_to_other_pixels_stay_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a library's own decoder may."""
    monkeypatch.setattr(traced, "opened", lambda path, ops: sets.load(path).rotate(180))
    loader = translated(DataLoader(sets.Usual(), batch_size=4))
    assert "has different pixels" in loader.report.python[0].note


def test_large_lists_of_a_dataset_are_stored_compactly() -> None:
    class Many(sets.Usual):
        def __init__(self) -> None:
            super().__init__()
            self.paths, self.labels = self.paths * 1000, list(range(30_000))

    found = looking.look(Many())
    assert not found.reason and len(found.columns[0]["paths"]) == 30_000
    assert found.columns[1]["values"].itemsize == 8


class WithBoxes(sets.Flips):
    def __getitem__(self, i: int) -> Any:
        return {"image": super().__getitem__(i)[0], "boxes": np.float32([[0, 0, 8, 8]])}


class Numbers(sets.Usual):
    def __getitem__(self, i: int) -> Any:
        return np.random.rand(3), i


def test_the_report_has_the_cost_of_a_python_step() -> None:
    loader = translated(DataLoader(sets.OfArrays(aug=sets.Keywords()), batch_size=4))
    (part,) = loader.report.python
    assert re.fullmatch(
        r"[\d.e-]+ ms of [\d.e-]+ ms of CPU per record: about [\d,]+ records/s on one thread, "
        r"without it [\d,]+; the dataset itself takes [\d.e-]+ ms(: no faster than .*)?",
        part.cost,
    )
    (part,) = translated(DataLoader(sets.Flips(), batch_size=4)).report.python
    assert re.fullmatch(
        r"[\d.e-]+ ms of [\d.e-]+ ms of CPU per record: at most about [\d,]+ records/s on one "
        r"thread; the dataset itself takes [\d.e-]+ ms(: no faster than .*)?",
        part.cost,
    )
    assert "images that it opens are decoded, resized and cropped by the engine" in part.note
    assert "hr.records(image=paths, label=labels)" in part.way
    (part,) = translated(DataLoader(Numbers(), batch_size=4)).report.python
    assert "no faster than a DataLoader with num_workers=0, perhaps slower" in part.cost
    (part,) = translated(DataLoader(WithBoxes(), batch_size=4)).report.python
    assert part.way.startswith('hr.Loader(hr.coco("instances.json")')
    text = str(loader.report).splitlines()
    assert text[text.index(next(line for line in text if "Keywords" in line)) + 1].endswith(
        loader.report.python[0].cost
    )


class OfAlbumentations:
    """Resembles their Compose."""

    def __init__(self, *names: str) -> None:
        self.transforms = [type(name, (), {})() for name in names]


OfAlbumentations.__module__ = "albumentations.core.composition"


def test_a_compose_of_albumentations_gets_a_hint() -> None:
    known = OfAlbumentations("RandomResizedCrop", "HorizontalFlip", "Normalize", "ToTensorV2")
    way = ways.way_of(traced.Keyword(known, "image", "image"))
    assert "[T.RandomResizedCrop, T.RandomHorizontalFlip, T.ToDtype, T.Normalize]" in way
    assert not ways.way_of(OfAlbumentations("HorizontalFlip", "RandomFog"))


class DrawsByItself(sets.Base):
    """From its own generators, and one of its module."""

    def __init__(self) -> None:
        super().__init__()
        self.generators = [np.random.default_rng(0), random.Random(0)]
        self.of_torch = torch.Generator()
        self.of_numpy = np.random.RandomState(0)

    def __getitem__(self, i: int) -> Any:
        drawn = [each.random() for each in (*self.generators, sets.GENERATOR)]
        drawn += [self.of_numpy.rand(), torch.rand(1, generator=self.of_torch).item()]
        return np.float32(drawn), self.labels[i]


def test_generators_of_a_dataset_are_a_function_of_seed_epoch_and_record() -> None:
    """Like the global ones: their draws repeat after a resume."""
    dataset = DrawsByItself()
    before = dataset.generators[0].bit_generator.state, sets.GENERATOR.bit_generator.state
    loader = translated(DataLoader(dataset, batch_size=4))
    assert loader.report.records_checked == 30
    epochs = [[batch[0] for batch in loader.torch()] for _ in range(2)]
    drawn = torch.cat([*epochs[0], *epochs[1]])
    assert all(len(set(column.tolist())) == 60 for column in drawn.T)
    resumed = translated(DataLoader(DrawsByItself(), batch_size=4))
    batches = iter(resumed.torch())
    next(batches)
    other = translated(DataLoader(DrawsByItself(), batch_size=4), threads=1)
    other.load_state_dict(resumed.state_dict())
    for ours, expected in zip(other.torch(), epochs[0][1:], strict=True):
        assert torch.equal(ours[0], expected)
    after = dataset.generators[0].bit_generator.state, sets.GENERATOR.bit_generator.state
    assert before == after


class Numbered:
    """Counts its calls."""

    calls = 0

    def __call__(self, image: Any) -> Any:
        self.calls += 1
        return torch.full((3, 8, 8), self.calls, dtype=torch.uint8)


def test_a_transform_that_keeps_state_is_not_compared_and_the_report_says_so() -> None:
    loader = translated(DataLoader(sets.Usual(Numbered()), batch_size=4))
    (part,) = [part for part in loader.report.changed if part.name == "record 0"]
    assert "Numbered returns different values when called twice" in part.note
    assert not loader.report.records_checked


class Raises(sets.Base):
    def __getitem__(self, i: int) -> Any:
        if i == 5:
            raise ValueError("bits must be between 1 and 8")
        return np.float32([i]), self.labels[i]


def test_a_record_that_makes_the_original_raise_is_named() -> None:
    loader = translated(DataLoader(Raises(), batch_size=4))
    (part,) = [part for part in loader.report.changed if part.name == "record 5"]
    assert "the original raises ValueError: bits must be between 1 and 8" in part.note
    assert loader.report.records_checked == 29


def test_the_report_says_that_torchs_seed_is_separate() -> None:
    def said(**options: Any) -> bool:
        transform = options.pop("transform", sets.fixed())
        loader = translated(DataLoader(sets.Usual(transform), batch_size=4, **options))
        return "seed=0" in {part.name for part in loader.report.changed}

    assert said(shuffle=True) and said(transform=sets.drawn()) and not said()


def test_the_report_only_says_equal_for_identical_bytes() -> None:
    """Tensors are resized by torch's filter in the original, and by Pillow's here."""
    for transform, own in (
        (v2.Compose([v2.ToImage(), v2.Resize((9, 9))]), False),
        (v2.Compose([v2.Resize((9, 9)), v2.ToImage()]), True),
    ):
        loader = translated(DataLoader(sets.Usual(transform), batch_size=30))
        (theirs, _) = next(iter(DataLoader(sets.Usual(transform), batch_size=30)))
        ours = next(iter(loader.torch()))[0]
        largest = int((ours.int() - theirs.int()).abs().max())
        assert loader.report.differences["image"] == largest and (largest == 0) == own
        assert ("original's filter in Resize" in str(loader.report)) != own

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole loaders onto a GPU, beside what docs/cuda.md says of an H100, and what else is there.

    python bench/gpu_loaders.py PHOTOS WORK [--device cuda] [--parts hash,loaders,...] [--seconds 1]

PHOTOS: a folder of JPEGs; WORK: where packs and indexes go. Prints a line a figure, and writes
WORK/gpu_loaders.json. Exit status 1 where a batch of the device's is not the CPU's.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import itertools
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

import headrace as hr
from headrace import transforms as T

SIZE = 224
RECIPES: dict[str, Callable[[], list[Any]]] = {
    "crop, flip": lambda: [],
    "RandAugment": lambda: [T.RandAugment()],
    "TrivialAugmentWide": lambda: [T.TrivialAugmentWide()],
    "AutoAugment": lambda: [T.AutoAugment()],
    "ColorJitter": lambda: [T.ColorJitter(0.4, 0.4, 0.4, 0.1)],
    "affine, bilinear": lambda: [
        T.RandomAffine(15, translate=(0.1, 0.1), scale=(0.8, 1.2), interpolation="bilinear")
    ],
    "sharpness, blur": lambda: [T.RandomAdjustSharpness(2.0), T.GaussianBlur(5)],
}


def steps(recipe: str = "crop, flip", dtype: str = "float16") -> list[Any]:
    return [
        T.RandomResizedCrop(SIZE),
        T.RandomHorizontalFlip(),
        *RECIPES[recipe](),
        T.ToDtype(dtype, scale=True),
        T.Normalize(hr.IMAGENET_MEAN, hr.IMAGENET_STD),
    ]


@dataclass
class Row:
    what: str
    measured: float
    unit: str
    predicted: float | None = None
    more: str = ""


@dataclass
class Bench:
    photos: Path
    work: Path
    device: str
    seconds: float
    rows: list[Row] = field(default_factory=list)
    wrong: int = 0

    def row(
        self, what: str, measured: float, unit: str, predicted: float | None = None, more: str = ""
    ) -> None:
        self.rows.append(Row(what, measured, unit, predicted, more))
        beside = f"{predicted:12.3f}" if predicted is not None else f"{'-':>12}"
        print(f"{what:54} {measured:12.3f} {beside}  {unit}  {more}", flush=True)

    def synchronize(self) -> None:
        if self.device.startswith("cuda"):
            torch.cuda.synchronize()

    def source(self, form: str, at_least: int = 0) -> Any:
        where = self.photos if form == "files" else self.work / f"{form}.hrpack"
        if not where.exists():
            hr.pack(self.photos, where, **({"level": "dense"} if form == "dense" else {}))
        source = hr.open(where)
        times = -(-at_least // len(source))
        return hr.concat(*[source] * times) if times > 1 else source

    def batches(self, loader: Any) -> Iterable[Any]:
        """PyTorch's on a GPU; --device cpu: the host takes the place of one."""
        return cast(
            "Iterable[Any]",
            loader.torch(self.device) if self.device != "cpu" else loader.dlpack("cpu"),
        )


def cpu_seconds() -> float:
    told = os.times()
    return told.user + told.system


def digest(batches: Iterable[Any]) -> str:
    told = hashlib.sha256()
    for batch in batches:
        for value in batch:
            array = torch.as_tensor(np.from_dlpack(value)) if not hasattr(value, "cpu") else value
            array = array.cpu().contiguous()
            told.update(array.view(torch.uint8).numpy().tobytes())
    return told.hexdigest()[:12]


def compare_hashes(bench: Bench) -> None:
    """Each recipe decoded on the device, beside the CPU: one hash."""
    for recipe, form in itertools.product(RECIPES, ("files", "dense")):
        found = {}
        for where, decode in ((None, "cpu"), (bench.device, "device")):
            loader = hr.Loader(
                bench.source(form), steps(recipe), batch_size=32, shuffle=True, seed=3, threads=4,
                memory_format="channels_last", decode=decode if where else "auto",
            )  # fmt: skip
            batches = bench.batches(loader) if where else loader.torch()
            found[decode] = digest(batches)
            decoded = loader.stats().get("decoded")
        same = len(set(found.values())) == 1
        bench.wrong += not same
        bench.row(f"hash: {recipe}, {form}", float(same), "equal", 1.0, "" if same else f"{found}")
        if decoded:
            print(f"    decoded: {decoded}", flush=True)


def rate(
    bench: Bench, what: str, predicted: float | None, source: Any, recipe: str = "crop, flip",
    batch: int = 256, threads: int = 16, decode: str = "device", **more: Any,
) -> Any:  # fmt: skip
    loader = hr.Loader(
        source, steps(recipe), batch_size=batch, shuffle=True, threads=threads, last_batch="drop",
        decode=decode, memory_limit="8 GiB", memory_format="channels_last", **more,
    )  # fmt: skip
    records, begin, cpu = 0, 0.0, 0.0
    for number, (images, _) in enumerate(itertools.chain.from_iterable(itertools.repeat(
        loader.torch(bench.device)
    ))):  # fmt: skip
        if number == max(4, 2048 // batch):
            bench.synchronize()
            records, begin, cpu = 0, time.perf_counter(), cpu_seconds()
        records += len(images)
        if begin and number % 2 == 0 and time.perf_counter() - begin > bench.seconds:
            break
    bench.synchronize()
    took, used = time.perf_counter() - begin, cpu_seconds() - cpu
    stats = loader.stats()
    copies = next(iter(stats["devices"].values()), {}) if stats.get("devices") else {}
    told = ", ".join(f"{key} {copies[key]}" for key in ("lanes", "parts") if key in copies)
    per = {
        name: round(seconds / max(1, stats["records"]) * 1e6, 1)
        for name, seconds in stats["stages"].items()
        if name != "wait" and seconds > 0
    }
    bench.row(
        what, records / took, "images/s", predicted,
        f"{used / records * 1e6:.0f} CPU us; {told} {loader_places(stats)} {per}",
    )  # fmt: skip
    return stats


def loader_places(stats: Any) -> str:
    decoded = stats.get("decoded") or {}
    all_of = sum(decoded.values()) or 1
    return ", ".join(f"{name} {100 * n / all_of:.1f} %" for name, n in decoded.items() if n)


def time_loaders(bench: Bench) -> None:
    """The figures that docs/cuda.md states."""
    many = 400_000  # an epoch's end drains what is under way
    dense, files = bench.source("dense", many), bench.source("files", many)
    for threads, large, small in ((16, 100e3, 100e3), (4, 70e3, 70e3), (1, 18e3, 18e3)):
        for batch, predicted in ((256, small), (1024, large)):
            rate(
                bench, f"dense, decoded there, {threads} threads, batch {batch}", predicted, dense,
                threads=threads, batch=batch,
            )  # fmt: skip
    rate(bench, "indexed files, decoded there, 16 threads", 100e3, files)
    rate(bench, "dense, decode='auto', 16 threads", 100e3, dense, decode="auto")
    rate(bench, "files, decoded by 16 threads", 17e3, files, decode="cpu")
    rate(bench, "files, decoded by 4 threads", 4.6e3, files, threads=4, decode="cpu")
    packed = bench.source("packed", many)
    rate(bench, "packed, decoded by 16 threads", 27.5e3, packed, decode="cpu")


def time_recipes(bench: Bench) -> None:
    dense = bench.source("dense", 40_000)
    for recipe in list(RECIPES)[1:]:
        rate(bench, f"{recipe}, decoded there, 16 threads", 80e3, dense, recipe)
    rate(bench, "RandAugment, decoded by 16 threads", None, dense, "RandAugment", decode="cpu")


def per_batch(
    bench: Bench, make: Callable[[], Iterable[Any]], step: Callable[[Any], object]
) -> float:
    """Milliseconds, the median of three runs."""
    times = []
    for _ in range(3):
        begin, seen = 0.0, 0
        for number, batch in enumerate(make()):
            if number == 4:
                bench.synchronize()
                begin = time.perf_counter()
            step(batch)
            seen = number
        bench.synchronize()
        times.append((time.perf_counter() - begin) / (seen - 3) * 1e3)
    return sorted(times)[1]


def time_prefetch(bench: Bench) -> None:
    """Batches of 256 x 3 x 224 x 224 beside steps of some 5 ms; predicted: docs/prefetch.md."""
    weights = torch.randn(4096, 4096, device=bench.device, dtype=torch.bfloat16)

    def step(batch: Any) -> object:
        value = weights * batch[0].flatten()[0].to(weights.dtype)
        for _ in range(24):
            value = weights @ value * 1e-3
        return value

    def apex(batches: Iterable[Any]) -> Iterator[Any]:
        side, ahead = torch.cuda.Stream(), None
        for host in batches:
            with torch.cuda.stream(side):
                there = [value.pin_memory().cuda(non_blocking=True) for value in host]
            if ahead is not None:
                yield ahead
            torch.cuda.current_stream().wait_stream(side)
            for value in there:
                value.record_stream(torch.cuda.current_stream())
            ahead = there
        yield ahead

    for dtype, pinned in itertools.product((torch.uint8, torch.float32), (True, False)):
        base = [
            (torch.randint(0, 256, (256, 3, SIZE, SIZE), dtype=torch.uint8).to(dtype),
             torch.arange(256)) for _ in range(6)
        ]  # fmt: skip
        if pinned:
            base = [tuple(value.pin_memory() for value in batch) for batch in base]
        there = [value.to(bench.device) for value in base[0]]
        name = f"{str(dtype).split('.')[1]}, {'pinned' if pinned else 'pageable'}"
        bound = 9.0 if dtype == torch.float32 and not pinned else 5.6
        ways: list[tuple[str, float | None, Callable[[], Iterable[Any]]]] = [
            ("already there", None, lambda there=there: (there for _ in range(32))),
            (".cuda()", None, lambda base=base: (
                [value.cuda(non_blocking=True) for value in base[i % 6]] for i in range(32))),
            ("pin_memory, side stream", None, lambda base=base: apex(
                base[i % 6] for i in range(32))),
            ("hr.prefetch", bound, lambda base=base: hr.prefetch(
                (base[i % 6] for i in range(32)), bench.device)),
        ]  # fmt: skip
        for way, predicted, make in ways:
            bench.row(f"{name}: {way}", per_batch(bench, make, step), "ms", predicted)


def time_resident(bench: Bench) -> None:
    images = torch.randint(0, 256, (60_000, 1, 28, 28), dtype=torch.uint8)
    labels = torch.randint(0, 10, (60_000,))
    images_there, labels_there = images.to(bench.device), labels.to(bench.device)

    def by_hand() -> Iterator[Any]:
        order = torch.randperm(60_000, device=bench.device)
        for i in range(0, 60_000 - 63, 64):
            yield images_there[order[i : i + 64]], labels_there[order[i : i + 64]]

    edits = [
        T.RandomCrop(28, padding=4), T.RandomHorizontalFlip(),
        T.ToDtype("float32", scale=True), T.Normalize([0.13], [0.31]),
    ]  # fmt: skip
    fields = {"image": images_there, "label": labels_there}
    sets: list[tuple[str, float | None, Callable[[], Iterable[Any]]]] = [
        ("randperm and an index by hand", None, by_hand),
        ("hr.resident, shuffled", 15.0, lambda: plain),
        ("hr.resident, crop, flip, normalize", 25.0, lambda: edited),
        ("the same, batches of 512", None, lambda: edited_512),
    ]
    plain = hr.resident(fields, 64, shuffle=True).torch(bench.device)
    edited, edited_512 = (
        hr.resident({"image": images, "label": labels}, size, shuffle=True, transforms=edits)
        .torch(bench.device) for size in (64, 512)
    )  # fmt: skip
    for what, predicted, make in sets:
        batches, begin = 0, time.perf_counter()
        while not batches or time.perf_counter() - begin < bench.seconds:
            if batches == 0:
                for _ in make():
                    pass
                bench.synchronize()
                begin = time.perf_counter()
            for _ in make():
                batches += 1
            bench.synchronize()
        bench.row(
            f"batches of 64: {what}", (time.perf_counter() - begin) / batches * 1e6, "us",
            predicted,
        )  # fmt: skip


def time_training(bench: Bench) -> None:
    """ResNet-50 in bfloat16, fed by a tensor that is there and by loaders."""
    if importlib.util.find_spec("torchvision") is None:
        return print("training: torchvision is not there", flush=True)
    import torchvision

    torch.backends.cudnn.benchmark = True
    model = torchvision.models.resnet50().to(bench.device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()

    def step(batch: Any) -> None:
        images, labels = batch
        with torch.autocast("cuda", torch.bfloat16):
            loss = loss_of(model(images), labels % 1000)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    there = (
        torch.randn(256, 3, SIZE, SIZE, device=bench.device, dtype=torch.float16)
        .to(memory_format=torch.channels_last),
        torch.randint(0, 10, (256,), device=bench.device),
    )  # fmt: skip
    dense = bench.source("dense", 40_000)

    def fed(threads: int) -> Iterable[Any]:
        loader = hr.Loader(
            dense, steps(), batch_size=256, shuffle=True, threads=threads, last_batch="drop",
            memory_format="channels_last", memory_limit="8 GiB", decode="device",
        )  # fmt: skip
        return itertools.islice(loader.torch(bench.device), 24)

    base = per_batch(bench, lambda: (there for _ in range(24)), step)
    bench.row("ResNet-50, 256: a tensor that is there", base, "ms a step")
    for threads in (4, 2):
        took = per_batch(bench, lambda threads=threads: fed(threads), step)
        bench.row(f"ResNet-50, 256: dense, {threads} threads", took, "ms a step", base * 1.01)


def time_peers(bench: Bench) -> None:
    files = sorted(p for p in bench.photos.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    if importlib.util.find_spec("torchvision"):
        from torchvision.io import ImageReadMode, decode_jpeg, read_file
        from torchvision.transforms import v2

        data = [read_file(str(path)) for path in files]
        batch = [data[i % len(data)] for i in range(256)]
        crop = v2.RandomResizedCrop(SIZE, antialias=True)
        ways: dict[str, Callable[[Any], object]] = {
            "decode alone": lambda images: images,
            "and v2.RandomResizedCrop there": lambda images: torch.stack(
                [crop(image) for image in images]
            ).half(),
        }
        for name, finish in ways.items():
            seen, begin, cpu = 0, 0.0, 0.0
            while not begin or time.perf_counter() - begin < bench.seconds:
                finish(decode_jpeg(batch, mode=ImageReadMode.RGB, device=bench.device))
                if not begin:
                    bench.synchronize()
                    begin, cpu = time.perf_counter(), cpu_seconds()
                else:
                    seen += len(batch)
            bench.synchronize()
            took, used = time.perf_counter() - begin, cpu_seconds() - cpu
            bench.row(
                f"torchvision's nvJPEG: {name}", seen / took, "images/s", None,
                f"{used / max(seen, 1) * 1e6:.0f} CPU us",
            )  # fmt: skip
    print(
        "DALI is there: bench/peers has its loops"
        if importlib.util.find_spec("nvidia.dali") else "DALI is not there", flush=True,
    )  # fmt: skip


PARTS: dict[str, Callable[[Bench], None]] = {
    "hash": compare_hashes,
    "loaders": time_loaders,
    "recipes": time_recipes,
    "prefetch": time_prefetch,
    "resident": time_resident,
    "training": time_training,
    "peers": time_peers,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("photos", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seconds", type=float, default=1.0, help="of each figure")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("HEADRACE_CACHE", str(options.work / "cache"))
    bench = Bench(options.photos, options.work, options.device, options.seconds)
    begin = time.perf_counter()
    hr.index(options.photos)
    print(f"{'':54} {'measured':>12} {'predicted':>12}", flush=True)
    failed = 0
    for name in options.parts.split(","):
        started = time.perf_counter()
        try:
            PARTS[name](bench)
        except Exception:
            failed += 1
            traceback.print_exc()
        print(f"  {name}: {time.perf_counter() - started:.1f} s", flush=True)
        told = {"seconds": time.perf_counter() - begin, "rows": [asdict(r) for r in bench.rows]}
        (options.work / "gpu_loaders.json").write_text(json.dumps(told, indent=1))
    print(f"differences: {bench.wrong}; parts that failed: {failed}")
    return int(bench.wrong > 0 or failed > 0)


if __name__ == "__main__":
    np.seterr(all="raise")
    sys.exit(main())

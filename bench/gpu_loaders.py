#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole loaders feeding a GPU, compared with the H100 figures of docs/guide/gpu.md, and other
loaders.

    python bench/gpu_loaders.py PHOTOS WORK [--device cuda] [--parts hash,loaders,...] [--seconds 1]

PHOTOS: a folder of JPEGs; WORK: a folder for packs and indexes. Prints one line per figure, and
writes WORK/gpu_loaders.json. `--device cpu` tests it without a GPU. Exit status 1 if a batch from
the device differs from the CPU's.
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
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpu_bench import SIZE, Bench, cpu_seconds, per_batch
from gpu_tensors import time_prefetch, time_resident

import headrace as hr
from headrace import transforms as T

RECIPES: dict[str, Callable[[], list[Any]]] = {
    "crop, flip": lambda: [],
    "RandAugment": lambda: [T.RandAugment()],
    "TrivialAugmentWide": lambda: [T.TrivialAugmentWide()],
    "AutoAugment": lambda: [T.AutoAugment()],
    "ColorJitter": lambda: [T.ColorJitter(0.4, 0.4, 0.4, 0.1)],
    "saturation, hue": lambda: [T.ColorJitter(saturation=0.4, hue=0.1)],
    "contrast, equalize": lambda: [T.AdjustContrast(1.3), T.RandomEqualize(p=0.5)],
    "TimmAugment": lambda: [T.TimmAugment("rand-m9-mstd0.5-inc1")],
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


def digest(batches: Iterable[Any]) -> str:
    told = hashlib.sha256()
    for batch in batches:
        for value in batch:
            array = torch.as_tensor(np.from_dlpack(value)) if not hasattr(value, "cpu") else value
            array = array.cpu().contiguous()
            told.update(array.view(torch.uint8).numpy().tobytes())
    return told.hexdigest()[:12]


def compare_hashes(bench: Bench) -> None:
    """Each recipe decoded on the device, and on the CPU: the hashes must be equal."""
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
        bench.batches(loader)
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
    """The figures stated in docs/guide/gpu.md."""
    many = 400_000  # the end of an epoch drains the batches in flight
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


def time_training(bench: Bench) -> None:
    """ResNet-50 in bfloat16, fed from a resident tensor and by loaders."""
    if importlib.util.find_spec("torchvision") is None:
        return print("training: torchvision is not installed", flush=True)
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
    bench.row("ResNet-50, 256: a resident tensor", base, "ms a step")
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
        "DALI is installed: bench/peers has its loops"
        if importlib.util.find_spec("nvidia.dali") else "DALI is not installed", flush=True,
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
    parser.add_argument("--parts", help="parts to run; default: all; with --device cpu, only hash")
    parser.add_argument("--seconds", type=float, default=1.0, help="duration per figure")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("HEADRACE_CACHE", str(options.work / "cache"))
    bench = Bench(options.photos, options.work, options.device, options.seconds)
    begin = time.perf_counter()
    hr.index(options.photos)
    print(f"{'':54} {'measured':>12} {'predicted':>12}", flush=True)
    failed = 0
    parts = options.parts or ("hash" if options.device == "cpu" else ",".join(PARTS))
    for name in parts.split(","):
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

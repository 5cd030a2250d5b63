# SPDX-License-Identifier: Apache-2.0
"""`python -m headrace.insight.demo [PATH]`: run by `./dev demo` once everything is built."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import headrace
from headrace import _core
from headrace.insight.demo import page, photos, terminal
from headrace.insight.demo.timing import LoopFailed, Timing, time_loop
from headrace.insight.demo.training import has_torch, make_trainer
from headrace.printable import printable

DATA, ENVIRONMENT = 3, 4
SAMPLES = 24


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="demo",
        description="Feeds a training loop from a folder of photos, compares it with a PyTorch "
        "DataLoader, and writes a report.",
    )
    parser.add_argument(
        "path", nargs="?", type=Path, help="a folder of photos (default: generated)"
    )
    parser.add_argument("--images", type=Path, default=Path("examples/images"))
    parser.add_argument("--build", type=Path, default=Path("build/demo"), help="output folder")
    parser.add_argument("--photos", type=int, default=3000, help="number of photos to make")
    parser.add_argument(
        "--seconds", type=float, default=6.0, help="duration of each of the four timings"
    )
    parser.add_argument("--threads", type=int, default=_core.allowed_cores())
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--no-dataloader", action="store_true", help="omit the DataLoader")
    return parser.parse_args()


def main() -> int:
    args = parse_arguments()
    terminal.title("Headrace demo")
    if args.path is None and not args.images.is_dir():
        print(f"demo: no folder {args.images}; run it in the checkout, or give a folder of photos")
        return ENVIRONMENT
    folder: Path = args.path or prepare_photos(args)
    use_torch = has_torch()
    try:
        result = run_headrace(folder, use_torch, args)
    except (headrace.Error, LoopFailed) as error:
        print(printable(f"demo: {error}"))
        return DATA
    peer = None
    if use_torch and not args.no_dataloader:
        peer = run_dataloader(folder, args)
    elif not use_torch:
        terminal.fact("DataLoader", "PyTorch is not installed: nothing to compare with "
                      "(./dev demo --with-torch installs it)")  # fmt: skip
    terminal.comparison(result, peer)
    report = page.make_page(result, peer).write(args.build / "report.html")
    terminal.fact("report", str(report))
    return 0


def prepare_photos(args: argparse.Namespace) -> Path:
    folder: Path = args.build / "photos"
    folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    with terminal.Line("photos") as line:
        made = photos.make_photos(
            args.images,
            folder,
            args.photos,
            workers=args.threads,
            progress=lambda done, total: line.show(f"making {done:,} of {total:,}"),
        )
    if made:
        terminal.fact(
            "photos", f"made {args.photos:,} in {time.perf_counter() - start:.1f} s: {folder}"
        )
    return folder


def run_headrace(folder: Path, use_torch: bool, args: argparse.Namespace) -> dict[str, Any]:
    """Our loader's two timings, and its stats for the report."""
    load = os.getloadavg()[0]
    source = headrace.open(str(folder))
    trainer = make_trainer(len(source.classes), use_torch)
    terminal.fact("data", f"{len(source):,} records, {len(source.classes)} classes: {folder}")
    terminal.fact("machine", f"{page.processor()}; {args.threads} loading threads")
    terminal.fact("training", trainer.name)
    print()

    def make_loader() -> Any:
        transforms = headrace.presets.imagenet_train(224)
        loader = headrace.Loader(
            source, transforms, batch_size=args.batch_size, shuffle=True, threads=args.threads
        )
        return loader.torch() if use_torch else loader.numpy()

    with terminal.Line("Headrace, feeding alone") as line:
        loader = make_loader()
        feeding = time_loop(loader, args.seconds, tell=line.count)
        line.timing(feeding)
        loader.close()
    with terminal.Line("Headrace, with training") as line:
        loader = make_loader()
        training = time_loop(loader, args.seconds, trainer, line.count)
        line.timing(training)
        stages = dict(loader.stats()["stages"])
        loader.close()
    return {
        "name": "Headrace",
        "feeding": feeding,
        "training": training,
        "stages": stages,
        "samples": page.sample_pictures(source, SAMPLES),
        "trainer": trainer.name,
        "folder": str(folder),
        "records": len(source),
        "load": load,
        "threads": args.threads,
        "batch_size": args.batch_size,
    }


def run_dataloader(folder: Path, args: argparse.Namespace) -> dict[str, Any] | None:
    """The DataLoader's timings, from a separate process; None if it cannot run on this machine."""
    command = [sys.executable, "-m", "headrace.insight.demo.dataloader", str(folder)]
    command += ["--threads", str(args.threads), "--batch-size", str(args.batch_size)]
    command += ["--seconds", str(args.seconds)]
    with terminal.Line("DataLoader, feeding and training") as line:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            start = time.perf_counter()
            while process.poll() is None:
                line.show(f"{time.perf_counter() - start:.0f} s")
                time.sleep(0.2)
            assert process.stdout and process.stderr
            out, errors = process.stdout.read(), process.stderr.read()
        if process.returncode:
            line.end("failed: " + (errors.strip().splitlines() or ["no message"])[-1])
            return None
        found = json.loads(out)
        result = {
            "name": found["name"],
            "feeding": Timing(**found["feeding"]),
            "training": Timing(**found["training"]),
        }
        line.timing(result["feeding"])
    return result


if __name__ == "__main__":
    sys.exit(main())

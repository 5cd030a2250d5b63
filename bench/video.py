# SPDX-License-Identifier: Apache-2.0
"""Clips of videos into batches against torchcodec and decord: `python bench/video.py VIDEO...`.

A clip is 16 frames, every fourth one, from a random place on, the same places for all; of several
clips of a video each has draws of its own. Times are CPU time of this process and its children
(videos are decoded in one of them), a clip, on one thread; rounds alternate, and each way's least
counts. `--encode FILE` adds what ffmpeg makes of a file: H.264 with key frames far and near,
baseline, HEVC, VP9, AV1. Peers take part where they can be imported: torchcodec with a new decoder
a clip, with one that is kept, and decord with a new reader.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from process_tree import PeakMemory, cpu_seconds, pss_mib

import headrace as hr
from headrace import transforms as T

FRAMES, STRIDE = 16, 4
SPAN = (FRAMES - 1) * STRIDE + 1
SIZE = 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
ENCODINGS = {  # name: options of ffmpeg
    "H.264, keys 250 apart": "-c:v libx264 -g 250",
    "H.264, keys 30 apart": "-c:v libx264 -g 30",
    "HEVC, keys 250 apart": "-c:v libx265 -g 250 -x265-params log-level=error",
    "H.264 baseline": "-c:v libx264 -profile:v baseline -g 250",
    "VP9, keys 128 apart": "-c:v libvpx-vp9 -b:v 0 -crf 33 -deadline realtime -cpu-used 5 -g 128",
    "AV1, keys 120 apart": "-c:v libsvtav1 -preset 10 -g 120",
}
Way = Callable[[int], Any]  # so many clips


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("videos", nargs="*", type=Path)
    parser.add_argument("--encode", type=Path, help="encode this video in several ways")
    parser.add_argument("--keep", type=Path, help="folder for what is encoded")
    parser.add_argument("--clips", type=int, default=16, help="of a round")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument(
        "--work",
        nargs="+",
        default=["frames", "train", "several"],
        choices=["frames", "train", "several", "loader"],
    )
    return parser.parse_args()


def encoded(source: Path, folder: Path) -> dict[str, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for name, options in ENCODINGS.items():
        suffix = ".webm" if "vpx" in options else ".mp4"
        path = folder / (name.replace(" ", "_").replace(",", "") + suffix)
        if not path.exists():
            command = ["ffmpeg", "-v", "error", "-nostdin", "-y", "-i", str(source), "-an"]
            if subprocess.run([*command, *options.split(), str(path)]).returncode:
                path.unlink(missing_ok=True)
                continue
        made[name] = path
    return made


def frame_count(path: Path) -> int:
    from torchcodec.decoders import VideoDecoder

    return VideoDecoder(str(path)).metadata.num_frames


def all_of_it(path: Path) -> list[Any]:
    """What makes a batch of frames of this size one tensor, and changes none."""
    from torchcodec.decoders import VideoDecoder

    said = VideoDecoder(str(path)).metadata
    return [T.CenterCrop((said.height, said.width))]


def starts(frames: int, clips: int, seed: int) -> list[int]:
    drawn = random.Random(seed)
    return [drawn.randrange(frames - SPAN + 1) for _ in range(clips)]


def indices(start: int) -> list[int]:
    return list(range(start, start + SPAN, STRIDE))


def train_steps() -> list[Any]:
    return [
        T.RandomResizedCrop(SIZE),
        T.RandomHorizontalFlip(),
        T.ToDtype("float32", scale=True),
        T.Normalize(mean=MEAN, std=STD),
    ]


def middles(path: Path, count: int) -> np.ndarray:
    """The seconds around which VideoClipAt takes the clips that the others take."""
    from torchcodec.decoders import VideoDecoder

    said = VideoDecoder(str(path)).metadata
    first = np.array([starts(said.num_frames, 1, seed)[0] for seed in range(count)])
    return said.begin_stream_seconds + (first + SPAN // 2 + 0.5) / said.average_fps


def by_headrace(path: Path, steps: list[Any], clips: int | None = None) -> Way:
    """One loader for all rounds, as training has it: its media process is started once."""
    loaders: dict[int, hr.Loader] = {}

    def run(count: int) -> int:
        if count not in loaders:
            take: Any = T.VideoClipAt(FRAMES, time="second", stride=STRIDE)
            if clips:
                take = T.RandomVideoClips(FRAMES, stride=STRIDE, num_clips=clips)
            loaders[count] = hr.Loader(
                hr.records(video=[str(path)] * count, second=middles(path, count)),
                [take, *steps],
                batch_size=2,
                shuffle=False,
                threads=1,
            )
        return sum(len(batch["video"]) for batch in loaders[count])

    return run


def torchvision_operators() -> Any:
    """torchvision's wheel for CUDA, beside a torch for the CPU, cannot load its operators, and
    fails on import where two of them are not declared. None is used here."""
    import importlib.metadata

    from torch.library import Library

    if "+cpu" in importlib.metadata.version("torchvision"):
        return None
    operators = Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor boxes, Tensor scores, float iou_threshold) -> Tensor")
    return operators


def by_torchcodec(
    path: Path,
    frames: int,
    *,
    kept: bool,
    clips: int = 1,
    at_once: bool = True,
    train: bool = False,
) -> Way:
    import torch
    from torchcodec.decoders import VideoDecoder
    from torchvision.transforms import v2

    steps = v2.Compose(
        [
            v2.RandomResizedCrop(SIZE),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )
    decoders = [VideoDecoder(str(path), num_ffmpeg_threads=1)]

    def run(count: int) -> None:
        for seed in range(count):
            decoder = decoders[0] if kept else VideoDecoder(str(path), num_ffmpeg_threads=1)
            wanted = [indices(start) for start in starts(frames, clips, seed)]
            groups = [list(itertools.chain(*wanted))] if at_once else wanted
            for group in groups:
                pixels = decoder.get_frames_at(group).data
                if train:
                    steps(pixels)

    return run


def by_decord(path: Path, frames: int) -> Way:
    import decord

    def run(count: int) -> None:
        for seed in range(count):
            reader = decord.VideoReader(str(path), num_threads=1)
            reader.get_batch(indices(starts(frames, 1, seed)[0])).asnumpy()

    return run


def ways_of(work: str, path: Path, frames: int) -> dict[str, Callable[[], Way]]:
    if work == "train":
        return {
            "headrace": lambda: by_headrace(path, train_steps()),
            "torchcodec + v2": lambda: by_torchcodec(path, frames, kept=False, train=True),
            "kept + v2": lambda: by_torchcodec(path, frames, kept=True, train=True),
        }
    if work == "several":
        return {
            "headrace": lambda: by_headrace(path, all_of_it(path), 4),
            "clip by clip": lambda: by_torchcodec(path, frames, kept=True, clips=4, at_once=False),
            "in one call": lambda: by_torchcodec(path, frames, kept=True, clips=4),
        }
    return {
        "headrace": lambda: by_headrace(path, all_of_it(path)),
        "torchcodec new": lambda: by_torchcodec(path, frames, kept=False),
        "torchcodec kept": lambda: by_torchcodec(path, frames, kept=True),
        "decord new": lambda: by_decord(path, frames),
    }


def least_ms(ways: dict[str, Way], clips: int, rounds: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for round_number in range(rounds + 1):
        for name, way in ways.items():
            begin = cpu_seconds(os.getpid())
            way(clips)
            spent = 1e3 * (cpu_seconds(os.getpid()) - begin) / clips
            if round_number:  # the first one warms up
                found[name] = min(found.get(name, spent), spent)
    return found


def measured(work: str, name: str, path: Path, clips: int, rounds: int) -> dict[str, float]:
    frames = frame_count(path)
    if frames < SPAN:
        return {}
    ways = {}
    for way, make in ways_of(work, path, frames).items():
        try:
            ways[way] = make()
            ways[way](1)
        except Exception as error:
            ways.pop(way, None)
            print(f"  {name}: {way} takes no part: {str(error).splitlines()[0][:120]}", flush=True)
    found = least_ms(ways, clips, rounds)
    ours = found.get("headrace", math.nan)
    times = ", ".join(f"{way} {ms:.1f}" for way, ms in found.items())
    ratios = {way: ms / ours for way, ms in found.items() if way != "headrace"}
    text = ", ".join(f"{ratio:.2f}x" for ratio in ratios.values())
    print(f"{work:8} {name:38} CPU ms a clip: {times}; {text}", flush=True)
    return ratios


class ClipsOfTorchcodec:
    """A data set for DataLoader, one clip an item."""

    def __init__(self, path: str, frames: int, count: int) -> None:
        self.path, self.frames, self.count = path, frames, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, item: int) -> Any:
        import torch
        from torchcodec.decoders import VideoDecoder
        from torchvision.transforms import v2

        steps = v2.Compose(
            [
                v2.RandomResizedCrop(SIZE),
                v2.RandomHorizontalFlip(),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize(MEAN, STD),
            ]
        )
        decoder = VideoDecoder(self.path, num_ffmpeg_threads=1)
        return steps(decoder.get_frames_at(indices(starts(self.frames, 1, item)[0])).data)


def whole_loaders(name: str, path: Path, clips: int) -> None:
    """Two threads against two workers: wall time, and memory of all processes."""
    import time

    from torch.utils.data import DataLoader

    def ours() -> Any:
        return hr.Loader(
            hr.records(video=[str(path)] * clips),
            [T.RandomVideoClips(FRAMES, stride=STRIDE), *train_steps()],
            batch_size=8,
            threads=2,
        )

    def theirs() -> Any:
        data = ClipsOfTorchcodec(str(path), frame_count(path), clips)
        return DataLoader(data, batch_size=8, num_workers=2)  # type: ignore[arg-type]

    rates, memory = {}, {}
    for way, make in {"DataLoader + torchcodec": theirs, "headrace": ours}.items():
        before = pss_mib(os.getpid())
        with PeakMemory(os.getpid(), 0.1) as peak:
            loader = make()
            begin = time.perf_counter()
            for _batch in loader:
                pass
            rates[way] = clips / (time.perf_counter() - begin)
        memory[way] = peak.mib - before
        del loader
    for way in rates:
        print(
            f"loader   {name:38} {way}: {rates[way]:.1f} clips/s,"
            f" {memory[way]:.0f} MiB beside what was there",
            flush=True,
        )


def main() -> None:
    arguments = parse_arguments()
    try:
        import torch

        torch.set_num_threads(1)
        _operators = torchvision_operators()  # which live as long as this does
    except ImportError:
        pass
    with tempfile.TemporaryDirectory() as folder:
        videos = {path.name: path for path in arguments.videos}
        if arguments.encode and shutil.which("ffmpeg"):
            videos |= encoded(arguments.encode, arguments.keep or Path(folder))
        for work in arguments.work:
            if work == "loader":
                for name, path in videos.items():
                    whole_loaders(name, path, 4 * arguments.clips)
                continue
            all_ratios = [
                measured(work, name, path, arguments.clips, arguments.rounds)
                for name, path in videos.items()
            ]
            for way in dict.fromkeys(way for ratios in all_ratios for way in ratios):
                ratios = [found[way] for found in all_ratios if way in found]
                mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
                least = min(ratios)
                print(f"{work:8} against {way}: {mean:.2f}x (geometric mean), least {least:.2f}x")


if __name__ == "__main__":
    main()

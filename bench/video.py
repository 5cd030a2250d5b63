# SPDX-License-Identifier: Apache-2.0
"""Loading video clips into batches, compared with other loaders: `python bench/video.py VIDEO...`.

A clip is 16 frames, every fourth one, starting at a random position, the same positions for all;
several clips of a video are drawn independently. Times are CPU time per clip of this process and
its children (one of which decodes videos), on one thread; rounds alternate, and the minimum of each
way counts. `--encode FILE` adds ffmpeg's encodings of a file: H.264 with key frames far apart and
close together, baseline, HEVC, VP9, AV1. Peers are included if they can be imported, and listed if
not.

frames   consecutive clips from the video's end to its start, so that no decoder can continue from
         the last one: the cost of a set of many files. Others reopen the file for each
kept     clips in random order, with decoders kept open for the file
train    as frames, with a random resized crop, flip and normalization to float32
several  four clips per visit
loader   two threads against two workers, in separate processes: clips per second, and peak memory
         (PSS of all processes)
memory   `--clips` of Headrace's loader, and its memory over time
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import video_ways as ways
from process_tree import cpu_seconds
from video_ways import Video, Way

ENCODINGS = {  # name: ffmpeg options
    "H.264, key frames 250 apart": "-c:v libx264 -g 250",
    "H.264, key frames 30 apart": "-c:v libx264 -g 30",
    "HEVC, key frames 250 apart": "-c:v libx265 -g 250 -x265-params log-level=error",
    "H.264 baseline": "-c:v libx264 -profile:v baseline -g 250",
    "VP9, key frames 128 apart": "-c:v libvpx-vp9 -b:v 0 -crf 33 -deadline realtime "
    "-cpu-used 5 -g 128",
    "AV1, key frames 120 apart": "-c:v libsvtav1 -preset 10 -g 120",
}
WORKS = ("frames", "kept", "train", "several", "loader", "memory")
LOADERS = ("headrace", "torchcodec")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("videos", nargs="*", type=Path)
    parser.add_argument("--encode", type=Path, help="encode this video in several ways")
    parser.add_argument("--keep", type=Path, help="folder for the encoded videos")
    parser.add_argument("--clips", type=int, default=16, help="clips per round")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--work", nargs="+", default=list(WORKS[:4]), choices=WORKS)
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


def ways_of(work: str, video: Video, count: int) -> dict[str, Callable[[], Way]]:
    whole, train = ways.all_of_it(video), ways.train_steps()
    random_order = ways.drawn(video, count)
    anew = ways.backwards(random_order)
    four = ways.drawn(video, count, 4)
    if work == "train":
        return {
            "headrace": lambda: ways.by_headrace(video, anew, train),
            "torchcodec + v2": lambda: ways.by_torchcodec(video, anew, kept=False, train=True),
        }
    if work == "several":
        return {
            "headrace": lambda: ways.by_headrace(video, four, whole, 4),
            "clip by clip": lambda: ways.by_torchcodec(video, four, kept=True, at_once=False),
            "in one call": lambda: ways.by_torchcodec(video, four, kept=True),
        }
    if work == "kept":
        return {
            "headrace": lambda: ways.by_headrace(video, random_order, whole),
            "torchcodec": lambda: ways.by_torchcodec(video, random_order, kept=True),
        }
    return {
        "headrace": lambda: ways.by_headrace(video, anew, whole),
        "torchcodec": lambda: ways.by_torchcodec(video, anew, kept=False),
        "decord": lambda: ways.by_decord(video, anew),
        "spdl": lambda: ways.by_spdl(video, anew),
        "dali": lambda: ways.by_dali(video, anew),
    }


def least_ms(made: dict[str, Way], clips: int, rounds: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for round_number in range(rounds + 1):
        for name, way in made.items():
            begin = cpu_seconds(os.getpid())
            way()
            spent = 1e3 * (cpu_seconds(os.getpid()) - begin) / clips
            if round_number:  # the first one warms up
                found[name] = min(found.get(name, spent), spent)
    return found


def measured(work: str, video: Video, clips: int, rounds: int) -> dict[str, float]:
    """Ratios to Headrace's time."""
    if video.frames < ways.SPAN:
        return {}
    made = {}
    for name, make in ways_of(work, video, clips).items():
        try:
            way = make()
            way()
            made[name] = way
        except Exception as error:
            why = (str(error).splitlines() or [type(error).__name__])[0]
            print(f"  {video.name}: {name} takes no part: {why[:120]}", flush=True)
    found = least_ms(made, clips, rounds)
    ours = found.get("headrace", math.nan)
    times = ", ".join(f"{name} {ms:.1f}" for name, ms in found.items())
    ratios = {name: ms / ours for name, ms in found.items() if name != "headrace"}
    text = ", ".join(f"{ratio:.2f}x" for ratio in ratios.values())
    print(f"{work:8} {video.name:38} CPU ms a clip: {times}; {text}", flush=True)
    return ratios


def in_a_process(way: str, video: Video, clips: int) -> dict[str, Any] | None:
    """The output of video_loaders.py; None if it cannot take part."""
    script = Path(__file__).with_name("video_loaders.py")
    command = [sys.executable, str(script), way, str(video.path), str(clips)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found
    why = (done.stderr.splitlines() or ["it failed"])[-1]
    print(f"  {video.name}: {way} takes no part: {why[:120]}", flush=True)
    return None


def whole_loaders(video: Video, clips: int) -> None:
    ours: dict[str, Any] = {}
    for way in LOADERS:
        found = in_a_process(way, video, clips)
        if not found:
            continue
        ours = ours or found
        print(
            f"loader   {video.name:38} {way}: {found['rate']:.1f} clips/s, {found['peak']:.0f} MiB"
            f" at its peak, {found['beside']:.0f} beside what was imported;"
            f" {ours['rate'] / found['rate']:.2f}x, {ours['peak'] / found['peak']:.2f} and"
            f" {ours['beside'] / found['beside']:.2f} of the memory",
            flush=True,
        )


def memory_over(video: Video, clips: int) -> None:
    if found := in_a_process("headrace", video, clips):
        on_the_way = ", ".join(f"{mib:.0f}" for mib in found["tenths"])
        print(f"memory   {video.name:38} MiB after each tenth of {clips} clips: {on_the_way}")


def main() -> None:
    arguments = parse_arguments()
    import torch

    torch.set_num_threads(1)
    _operators = ways.torchvision_operators()  # which live as long as this does
    with tempfile.TemporaryDirectory() as folder:
        paths = {path.name: path for path in arguments.videos}
        if arguments.encode and shutil.which("ffmpeg"):
            paths |= encoded(arguments.encode, arguments.keep or Path(folder))
        videos = [ways.video_of(name, path) for name, path in paths.items()]
        for work in arguments.work:
            if work in ("loader", "memory"):
                for video in videos:
                    if work == "loader":
                        whole_loaders(video, 4 * arguments.clips)
                    else:
                        memory_over(video, arguments.clips)
                continue
            found = [measured(work, video, arguments.clips, arguments.rounds) for video in videos]
            for way in dict.fromkeys(way for ratios in found for way in ratios):
                ratios = [each[way] for each in found if way in each]
                mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
                least = min(ratios)
                print(f"{work:8} against {way}: {mean:.2f}x (geometric mean), least {least:.2f}x")


if __name__ == "__main__":
    main()

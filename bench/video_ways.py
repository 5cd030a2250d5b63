# SPDX-License-Identifier: Apache-2.0
"""Functions for `video.py` that read clips of one video once, with Headrace and others."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FRAMES, STRIDE = 16, 4
SPAN = (FRAMES - 1) * STRIDE + 1
SIZE = 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
Way = Callable[[], Any]
Visits = Sequence[Sequence[int]]  # for each clip, the frame at which it begins


@dataclass(frozen=True)
class Video:
    name: str
    path: Path
    frames: int
    width: int
    height: int
    fps: float
    begin_seconds: float

    def seconds(self, frame: float) -> float:
        return self.begin_seconds + frame / self.fps


def video_of(name: str, path: Path) -> Video:
    from torchcodec.decoders import VideoDecoder

    said: Any = VideoDecoder(str(path)).metadata
    return Video(
        name,
        path,
        said.num_frames,
        said.width,
        said.height,
        said.average_fps,
        said.begin_stream_seconds,
    )


def drawn(video: Video, count: int, clips: int = 1) -> list[list[int]]:
    random_ = random.Random(1)
    last = video.frames - SPAN
    return [[random_.randint(0, last) for _ in range(clips)] for _ in range(count)]


def backwards(visits: Visits) -> list[Sequence[int]]:
    """Backwards, so that no decoder can continue from the previous clip, as with a set of many
    files."""
    return sorted(visits, key=lambda begins: -begins[0])


def indices(begin: int) -> list[int]:
    return list(range(begin, begin + SPAN, STRIDE))


def all_of_it(video: Video) -> list[Any]:
    """Makes one tensor of a batch of frames of this size, without changing any."""
    from headrace import transforms as T

    return [T.CenterCrop((video.height, video.width))]


def train_steps() -> list[Any]:
    from headrace import transforms as T

    return [
        T.RandomResizedCrop(SIZE),
        T.RandomHorizontalFlip(),
        T.ToDtype("float32", scale=True),
        T.Normalize(mean=MEAN, std=STD),
    ]


def by_headrace(video: Video, visits: Visits, steps: list[Any], clips: int | None = None) -> Way:
    """One loader for all rounds, as in training: its media process is started once."""
    import headrace as hr
    from headrace import transforms as T

    middles = [video.seconds(begins[0] + SPAN // 2 + 0.5) for begins in visits]
    take: Any = T.VideoClipAt(FRAMES, time="second", stride=STRIDE)
    if clips:
        take = T.RandomVideoClips(FRAMES, stride=STRIDE, num_clips=clips)
    loader = hr.Loader(
        hr.records(video=[str(video.path)] * len(visits), second=np.array(middles)),
        [take, *steps],
        batch_size=2,
        shuffle=False,
        threads=1,
    )
    return lambda: sum(len(batch["video"]) for batch in loader)


def torchvision_operators() -> Any:
    """torchvision's CUDA wheel cannot load its operators with a CPU build of torch, and its import
    fails because two of them are not declared. They are not used here."""
    import importlib.metadata

    from torch.library import Library

    if "+cpu" in importlib.metadata.version("torchvision"):
        return None
    operators = Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor boxes, Tensor scores, float iou_threshold) -> Tensor")
    return operators


def torchvision_steps() -> Any:
    import torch
    from torchvision.transforms import v2

    return v2.Compose(
        [
            v2.RandomResizedCrop(SIZE),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )


def by_torchcodec(
    video: Video, visits: Visits, *, kept: bool, at_once: bool = True, train: bool = False
) -> Way:
    from torchcodec.decoders import VideoDecoder

    steps = torchvision_steps() if train else None
    one = VideoDecoder(str(video.path), num_ffmpeg_threads=1)

    def run() -> None:
        for begins in visits:
            decoder = one if kept else VideoDecoder(str(video.path), num_ffmpeg_threads=1)
            wanted = [indices(begin) for begin in begins]
            groups = [list(itertools.chain(*wanted))] if at_once else wanted
            for group in groups:
                pixels = decoder.get_frames_at(group).data
                if steps:
                    steps(pixels)

    return run


def by_decord(video: Video, visits: Visits) -> Way:
    import decord

    def run() -> None:
        for begins in visits:
            reader = decord.VideoReader(str(video.path), num_threads=1)
            reader.get_batch(indices(begins[0])).asnumpy()

    return run


def by_spdl(video: Video, visits: Visits) -> Way:
    """It decodes every frame of a time range."""
    import spdl.io

    def run() -> None:
        for begins in visits:
            window = (video.seconds(begins[0] - 0.5), video.seconds(begins[0] + SPAN - 0.5))
            packets = spdl.io.demux_video(str(video.path), timestamp=window)
            steps = f"trim=start={window[0]}:end={window[1]},select=not(mod(n\\,{STRIDE})),"
            frames = spdl.io.decode_packets(packets, filter_desc=steps + "format=rgb24")
            spdl.io.to_numpy(spdl.io.convert_frames(frames))

    return run


def by_dali(video: Video, visits: Visits) -> Way:
    """On the CPU it supports VP8, VP9 and MJPEG."""
    from nvidia.dali import fn, pipeline_def

    encoded = np.fromfile(video.path, dtype=np.uint8)

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def clips() -> Any:
        file = fn.external_source(name="file", batch=True)
        begin = fn.external_source(name="begin", batch=True)
        return fn.decoders.video(
            file, device="cpu", start_frame=begin, stride=STRIDE, sequence_length=FRAMES
        )

    pipeline = clips()
    pipeline.build()

    def run() -> None:
        for begins in visits:
            pipeline.feed_input("file", [encoded])
            pipeline.feed_input("begin", [np.array(begins[0], np.int32)])
            np.asarray(pipeline.run()[0].as_array())

    return run

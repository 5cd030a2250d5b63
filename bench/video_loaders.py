# SPDX-License-Identifier: Apache-2.0
"""One loader of training clips, in a separate process, for `video.py`: prints one JSON line.

`python bench/video_loaders.py WAY VIDEO CLIPS`: two threads, or two workers; batches of eight
clips, randomly cropped, resized to 224 x 224, flipped, normalized, float32.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import video_ways as ways
from process_tree import PeakMemory, cpu_seconds, pss_mib
from video_ways import Video

BATCH, WORKERS = 8, 2


def by_headrace(path: Path, clips: int) -> Iterable[Any]:
    import headrace as hr
    from headrace import transforms as T

    return hr.Loader(
        hr.records(video=[str(path)] * clips),
        [T.RandomVideoClips(ways.FRAMES, stride=ways.STRIDE), *ways.train_steps()],
        batch_size=BATCH,
        threads=WORKERS,
    )


class ClipsOfTorchcodec:
    """A dataset for DataLoader, one clip per item."""

    def __init__(self, video: Video, clips: int) -> None:
        self.path, self.begins = str(video.path), ways.drawn(video, clips)
        self.steps = ways.torchvision_steps()

    def __len__(self) -> int:
        return len(self.begins)

    def __getitem__(self, item: int) -> Any:
        from torchcodec.decoders import VideoDecoder

        decoder = VideoDecoder(self.path, num_ffmpeg_threads=1)
        return self.steps(decoder.get_frames_at(ways.indices(self.begins[item][0])).data)


def by_torchcodec(path: Path, clips: int) -> Iterable[Any]:
    import torch
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    data: Any = ClipsOfTorchcodec(ways.video_of(path.name, path), clips)
    return DataLoader(data, batch_size=BATCH, num_workers=WORKERS)


def main() -> None:
    way, path, clips = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    operators = None
    if way == "torchcodec":
        operators = ways.torchvision_operators()  # which live as long as this does
        import torchvision.transforms.v2  # noqa: F401
    make = {"headrace": by_headrace, "torchcodec": by_torchcodec}[way]
    before = pss_mib(os.getpid())
    tenths: list[float] = []
    with PeakMemory(os.getpid(), 0.1) as peak:
        loader = make(path, clips)
        begin, cpu = time.perf_counter(), cpu_seconds(os.getpid())
        for number, _batch in enumerate(loader):
            if number * BATCH >= len(tenths) * clips // 10:
                tenths.append(pss_mib(os.getpid()))
        rate = clips / (time.perf_counter() - begin)
        cpu = (cpu_seconds(os.getpid()) - cpu) / clips
    del operators
    found = {
        "rate": rate,
        "cpu_ms": 1e3 * cpu,
        "peak": peak.mib,
        "beside": peak.mib - before,
        "tenths": tenths,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()

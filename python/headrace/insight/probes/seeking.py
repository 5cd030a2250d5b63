# SPDX-License-Identifier: Apache-2.0
"""Measures seeking in videos: the part of decoding spent on frames that are not in the clip."""

from __future__ import annotations

from typing import Any

from headrace import _core
from headrace.loader import Loader

_SAMPLES = 8  # number of sampled records


def seek_share(loader: Loader) -> float | None:
    """The fraction of decoded packets whose frames are not used; None without video. Computed from
    the indexes of some videos, for clips from the middle, as the first transform takes them.
    """
    source = loader.source
    fields = [field.name for field in source.schema if field.kind == "video"]
    steps = [s for s in loader.assembly.pipeline.all_steps() if s.name in _CLIPS]
    if not fields or not steps or not len(source):
        return None
    fed = shown = 0
    for number in range(0, len(source), max(1, len(source) // _SAMPLES)):
        try:
            encoded = source[number][fields[0]]
            frames = frames_of_a_clip(_core.video_header(encoded)["times"], steps[0].arguments)
            fed += _core.video_packets_for(encoded, frames)
            shown += len(set(frames))
        except Exception:
            continue  # bad records are reported elsewhere
    return max(0.0, 1 - shown / fed) if fed else None


_CLIPS = ("RandomVideoClips", "UniformVideoClips", "CenterVideoClip", "VideoClipAt")


def frames_of_a_clip(times: list[float], arguments: dict[str, Any]) -> list[int]:
    """Frame numbers of evenly spaced clips, according to the transform's arguments.

    >>> frames_of_a_clip([n / 25 for n in range(10)], {"num_frames": 3, "stride": 2})
    [2, 4, 6]
    """
    count, clips = int(arguments["num_frames"]), int(arguments.get("num_clips") or 1)
    stride = float(arguments.get("stride") or 1)
    if arguments.get("fps") and len(times) > 1:
        rate = (len(times) - 1) / max(times[-1] - times[0], 1e-9)
        stride = max(rate / float(arguments["fps"]), 1e-9)
    last = max(0, len(times) - 1 - int((count - 1) * stride))
    frames = []
    for clip in range(clips):
        begin = last * (clip + 1) // (clips + 1)
        frames += [min(begin + int(i * stride), len(times) - 1) for i in range(count)]
    return frames

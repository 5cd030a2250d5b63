# SPDX-License-Identifier: Apache-2.0
"""The options of ``headrace convert --to lerobot``, with LeRobot's defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headrace import _core
from headrace.write.options import WRONG_OPTION, Option

OPTIONS = (
    Option("fps", "float", None, "Frames per second; default: derived from the field `timestamp`"),
    Option("episode_field", "text", "episode_index", "Field that tells episodes apart"),
    Option("task_field", "text", "task", "Text field with the task of each frame"),
    Option("task", "text", None, "The task of all frames, for a source without such a field"),
    Option("fields", "names", None, "Fields to write; default: all"),
    Option("rename", "names", None, "Names of features, as `FIELD=FEATURE`"),
    Option("images", "video|image", "video", "Cameras as `video`, or as `image` in the tables"),
    Option("codec", "text", "libsvtav1", "Encoder, by FFmpeg's name"),
    Option("crf", "integer", 30, "Constant rate factor: lower is better and larger"),
    Option("gop", "count", 2, "Frames from one key frame to the next"),
    Option("pix_fmt", "text", "yuv420p", "Pixel format of the video"),
    Option("preset", "text", None, "Encoder's preset; default: 12 for `libsvtav1`"),
    Option("lossless", "switch", False, "Lossless RGB: `libx264rgb`, `crf=0`, `pix_fmt=rgb24`"),
    Option("robot_type", "text", None, "`robot_type` in `meta/info.json`"),
    Option("data_files_size_in_mb", "count", 100, "Size of a Parquet file, in MiB"),
    Option("video_files_size_in_mb", "count", 200, "Size of an MP4 file, in MiB"),
    Option("chunks_size", "count", 1000, "Files per folder `chunk-000`"),
)

CAMERAS = ("image", "video")  # kinds of fields that become cameras
_LOSSLESS = {"codec": "libx264rgb", "crf": 0, "pix_fmt": "rgb24"}
_DEFAULTS = {option.name: option.default for option in OPTIONS}


class Encoding(NamedTuple):
    """How frames become a video."""

    codec: str
    crf: int
    gop: int
    pix_fmt: str
    preset: str | None

    @property
    def is_lossless(self) -> bool:
        """Whether RGB pixels survive. Lossless YUV rounds colors, so it is not."""
        return self.codec == "libx264rgb" and self.crf == 0

    def codec_options(self, threads: int | None) -> dict[str, str]:
        """Options of the encoder, by the names that FFmpeg and LeRobot use."""
        out = {"g": str(self.gop), "crf": str(self.crf)}
        preset = self.preset or ("12" if self.codec == "libsvtav1" else None)
        if preset:
            out["preset"] = preset
        if threads and self.codec == "libsvtav1":
            out["svtav1-params"] = f"lp={threads}"
        elif threads:
            out["threads"] = str(threads)
        if self.codec in ("hevc", "libx265"):
            out["x265-params"] = "log-level=error"  # otherwise it prints statistics per episode
        return out


def encoding_of(options: Mapping[str, Any]) -> Encoding:
    """Raises HR0414 if ``lossless`` contradicts other options."""
    given = dict(options)
    if given["lossless"]:
        for name, value in _LOSSLESS.items():
            if given[name] not in (_DEFAULTS[name], value):
                raise WRONG_OPTION.error(
                    f"[lerobot] lossless=true with {name}={given[name]}",
                    hint=f"lossless means {name}={value}: omit one of the two",
                )
        given |= _LOSSLESS
    return Encoding(*(given[name] for name in Encoding._fields))


def video_loss(fields: Sequence[_core.Field], options: Mapping[str, Any]) -> str:
    """What encoding the cameras among these fields as videos loses; empty: nothing."""
    encoding = encoding_of(options)
    if not cameras(fields, options) or options["images"] == "image" or encoding.is_lossless:
        return ""
    return f"lossy video: {encoding.codec}, crf {encoding.crf}, {encoding.pix_fmt}"


def cameras(fields: Sequence[_core.Field], options: Mapping[str, Any]) -> list[_core.Field]:
    """The fields that are written as cameras."""
    wanted = options["fields"]
    return [
        each
        for each in fields
        if str(each.kind) in CAMERAS and (wanted is None or each.name in wanted)
    ]

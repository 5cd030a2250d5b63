# SPDX-License-Identifier: Apache-2.0
"""Makes a small file per codec with this machine's ffmpeg, and the samples that ffmpeg decodes
from it: build/wheels/samples, which decode_samples.py compares with."""

from __future__ import annotations

import shutil
import subprocess

from places import SAMPLES

PICTURE = ("-f", "lavfi", "-i", "testsrc2=size=96x64:rate=10:duration=1")
SOUND = ("-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=0.5", "-ac", "2")
RGB, YUV, YUV444 = (("-pix_fmt", name) for name in ("rgb24", "yuv420p", "yuv444p"))
PICTURES = {
    "webp": ("-c:v", "libwebp", "-lossless", "1"),
    "gif": (),
    "tiff": (*RGB, "-c:v", "tiff", "-compression_algo", "deflate"),
    "jp2": (*RGB, "-c:v", "libopenjpeg"),
    "avif": (*YUV444, "-c:v", "libaom-av1", "-crf", "5", "-still-picture", "1", "-cpu-used", "8"),
    "jxl": ("-c:v", "libjxl", "-distance", "0"),
}
SOUNDS = {
    "flac": ("-c:a", "flac"),
    "mp3": ("-c:a", "libmp3lame"),
    "ogg": ("-c:a", "libvorbis"),
    "opus": ("-c:a", "libopus"),
    "m4a": ("-c:a", "aac"),
}
VIDEOS = {
    "h264.mp4": ("-c:v", "libx264"),
    "hevc.mp4": ("-c:v", "libx265", "-x265-params", "log-level=none"),
    "vp8.webm": ("-c:v", "libvpx"),
    "vp9.webm": ("-c:v", "libvpx-vp9"),
    "av1.mp4": ("-c:v", "libaom-av1", "-cpu-used", "8"),
    "mpeg4.mp4": ("-c:v", "mpeg4"),
}


def ffmpeg(*arguments: str) -> None:
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *arguments], check=True)


def main() -> None:
    shutil.rmtree(SAMPLES, ignore_errors=True)
    for kind in ("image", "audio", "video"):
        (SAMPLES / kind).mkdir(parents=True)
    for suffix, options in PICTURES.items():
        file = str(SAMPLES / "image" / f"sample.{suffix}")
        ffmpeg(*PICTURE, "-frames:v", "1", *options, file)
        ffmpeg("-i", file, "-f", "rawvideo", "-pix_fmt", "rgb24", f"{file}.raw")
    for suffix, options in SOUNDS.items():
        file = str(SAMPLES / "audio" / f"sample.{suffix}")
        ffmpeg(*SOUND, *options, file)
        ffmpeg("-i", file, "-f", "f32le", f"{file}.raw")
    for name, options in VIDEOS.items():
        file = str(SAMPLES / "video" / name)
        ffmpeg(*PICTURE, *YUV, *options, file)
        ffmpeg("-i", file, "-f", "rawvideo", "-pix_fmt", "rgb24", f"{file}.raw")


if __name__ == "__main__":
    main()

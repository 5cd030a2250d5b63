# SPDX-License-Identifier: Apache-2.0
"""The MP4 files of one camera: each episode is encoded by itself, and its packets are appended."""

from __future__ import annotations

import contextlib
import importlib
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from headrace.write import NO_PACKAGE
from headrace.write.lerobot.options import Encoding
from headrace.write.lerobot.places import VIDEO_PATH, Places
from headrace.write.lerobot.priority import kept_priority
from headrace.write.options import WRONG_OPTION

_SLOWEST, _FASTEST = 0.01, 1000  # frames per second


def pyav() -> Any:
    """The library ``av``. Raises HR0297 if it is missing."""
    os.environ.setdefault("SVT_LOG", "1")  # otherwise libsvtav1 prints its settings per episode
    try:
        return importlib.import_module("av")
    except ImportError as error:
        raise NO_PACKAGE.error(
            f"[lerobot] videos are encoded by the package av: {error}", hint="pip install av"
        ) from error


def check_encoding(encoding: Encoding) -> None:
    """Raises HR0414 if the library has no such encoder, or the encoder no such pixel format."""
    av = pyav()
    try:
        codec = av.codec.Codec(encoding.codec, "w")
    except ValueError:
        raise WRONG_OPTION.error(
            f"[lerobot] the package av has no encoder {encoding.codec!r:.80}",
            hint="codec=libsvtav1, h264 or hevc; lossless=true",
        ) from None
    formats = [each.name for each in codec.video_formats or ()]
    if encoding.pix_fmt not in formats:
        raise WRONG_OPTION.error(
            f"[lerobot] {encoding.codec} has no pixel format {encoding.pix_fmt!r:.80}",
            hint=f"pix_fmt={', '.join(formats[:12])}",
        )


def rate_of(fps: float) -> Fraction:
    """The frame rate, exact to 1e-12, so that times do not drift. Raises HR0414 if MP4 files cannot
    represent it.
    """
    if not _SLOWEST <= fps <= _FASTEST:
        raise WRONG_OPTION.error(
            f"[lerobot] fps is {fps:g}, but videos have {_SLOWEST:g} to {_FASTEST:g}",
            hint="pass the right fps=, or images=image",
        )
    return Fraction(fps).limit_denominator(1_000_000)


class VideoFiles:
    """Frames of a camera, in files of about the given size. Used by one thread at a time."""

    def __init__(
        self,
        camera: str,
        places: Places,
        encoding: Encoding,
        fps: float,
        threads: int | None,
    ) -> None:
        self.camera, self.places, self.encoding = camera, places, encoding
        self.rate = rate_of(fps)
        self.options = encoding.codec_options(threads)
        self.info: dict[str, Any] = {}
        self._episode: Any = None  # the container of the episode that is being encoded
        self._stream: Any = None
        self._frames = 0  # of this episode
        self._file: Any = None  # the container that episodes are appended to
        self._track: Any = None
        self._extra: bytes | None = None  # parameters of the decoder in the file
        self._frames_in_file = 0
        self._bytes = 0

    @property
    def _scratch(self) -> Path:
        return self.places.scratch / f"{self.camera}.mp4"

    def add(self, pixels: np.ndarray[Any, Any]) -> None:
        """The next frame of the episode, (3, H, W) uint8."""
        av = pyav()
        with self._encoding_errors(pixels):
            if self._episode is None:
                self._scratch.parent.mkdir(parents=True, exist_ok=True)
                self._episode = av.open(str(self._scratch), "w")
                self._stream = self._episode.add_stream(
                    self.encoding.codec, rate=self.rate, options=self.options
                )
                self._stream.height, self._stream.width = pixels.shape[1:]
                self._stream.pix_fmt = self.encoding.pix_fmt
                self._frames = 0
            image = np.ascontiguousarray(pixels.transpose(1, 2, 0))
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = self._frames, 1 / self.rate
            opens = self._frames == 0  # the encoder
            with kept_priority() if opens else contextlib.nullcontext():
                self._episode.mux(self._stream.encode(frame))
            self._frames += 1
        unused = [name for name in ("crf", "preset") if name in self._stream.codec_context.options]
        if unused:
            raise WRONG_OPTION.error(
                f"[lerobot] the encoder {self.encoding.codec} has no {unused[0]}",
                hint="codec=libsvtav1, h264 or hevc; lossless=true",
            )

    @contextlib.contextmanager
    def _encoding_errors(self, pixels: np.ndarray[Any, Any]) -> Any:
        """Errors of an encoder that refuses sizes or options; those of the disk are unchanged."""
        try:
            yield
        except (pyav().FFmpegError, ValueError) as error:  # ValueError: not a codec of MP4 files
            if isinstance(error, OSError):
                raise
            height, width = pixels.shape[1:]
            raise WRONG_OPTION.error(
                f"[lerobot] {self.encoding.codec} does not encode {self.camera} of {height} x "
                f"{width} pixels with {self.options} and {self.encoding.pix_fmt}: {error!s:.200}",
                hint="pass another codec= or pix_fmt= (yuv420p needs even sizes), or images=image",
            ) from error

    def end_episode(self) -> dict[str, Any]:
        """Appends the episode to a file; returns its columns of meta/episodes."""
        self._episode.mux(self._stream.encode(None))
        self._episode.close()
        self._episode = self._stream = None
        with pyav().open(str(self._scratch)) as source:
            self._append(source)
        self._scratch.unlink()
        begin, self._frames_in_file = self._frames_in_file, self._frames_in_file + self._frames
        chunk, file = self.places.current(VIDEO_PATH, self.camera)
        return {
            f"videos/{self.camera}/chunk_index": chunk,
            f"videos/{self.camera}/file_index": file,
            f"videos/{self.camera}/from_timestamp": float(begin / self.rate),
            f"videos/{self.camera}/to_timestamp": float(self._frames_in_file / self.rate),
        }

    def _append(self, source: Any) -> None:
        stream = source.streams.video[0]
        size = self._scratch.stat().st_size
        extra = bytes(stream.codec_context.extradata or b"")
        is_full = self._bytes + size >= self.places.video_bytes
        if self._file is None or is_full or extra != self._extra:
            self._begin_file(stream)
            self._extra = extra
        self._bytes += size
        file: Any = self._file
        shift = Fraction(self._frames_in_file) / self.rate
        for packet in source.demux(stream):
            if packet.dts is None:  # the end
                continue
            ticks = shift / packet.time_base
            assert ticks.denominator == 1, "the muxer's clock has whole frames"
            packet.pts, packet.dts = packet.pts + int(ticks), packet.dts + int(ticks)
            packet.stream = self._track
            file.mux(packet)

    def _begin_file(self, stream: Any) -> None:
        self.close()
        path = self.places.next(VIDEO_PATH, self.camera)
        # The tables at the beginning: readers of far files need them first.
        self._file = pyav().open(str(path), "w", options={"movflags": "faststart"})
        self._track = self._file.add_stream_from_template(stream, opaque=True)
        self._track.time_base = stream.time_base
        self._frames_in_file = self._bytes = 0
        if not self.info:
            self.info = {
                "video.height": stream.height,
                "video.width": stream.width,
                "video.codec": stream.codec.canonical_name,
                "video.pix_fmt": stream.pix_fmt,
                "video.is_depth_map": False,
                "video.fps": int(self.rate) if self.rate.denominator == 1 else float(self.rate),
                "video.channels": 3,
                "has_audio": False,
            }

    def close(self) -> None:
        """Completes the current file."""
        if self._file is not None:
            self._file.close()
            self._file = self._track = None

    def abandon(self) -> None:
        """Closes the files after an error; their contents do not matter."""
        for container in (self._episode, self._file):
            if container is not None:
                with contextlib.suppress(Exception):
                    container.close()
        self._episode = self._file = None

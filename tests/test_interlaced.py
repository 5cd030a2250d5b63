# SPDX-License-Identifier: Apache-2.0
"""Interlaced videos: frames of two fields have the colors of FFmpeg 8 with each field converted
separately, and any frame is the same as in a sequential decode."""

from __future__ import annotations

import io
import itertools
from typing import Any

import h264_fields
import numpy as np
import pytest
import videos

import headrace as hr
from headrace import _core

pytest.importorskip("av", reason="av makes the videos, and says what is in them")
if MISSING := videos.missing_decoder():
    pytest.skip(MISSING, allow_module_level=True)

FIELDS = {"flags": "+ildct+ilme"}
H264 = {"x264-params": "interlaced=1:bframes=2:keyint=10"}
MPEG4 = {"codec": "mpeg4", "bf": 2, "g": 12, **FIELDS}


def woven(count: int, height: int = 64, width: int = 80, seed: int = 1) -> videos.Frames:
    """Frames whose odd rows show a later moment, in other colors."""
    moments = videos.moving(2 * count, height, width, seed)
    frames = moments[::2].copy()
    frames[:, 1::2] = 255 - moments[1::2, 1::2]
    return frames


def fields_alone(data: bytes) -> videos.Frames:
    """(T, 3, H, W) of frames whose fields libswscale converts as separate images. It treats odd
    heights differently: such fields get an additional row, which is removed afterwards."""
    import av

    frames = []
    with av.open(io.BytesIO(data)) as file:
        for frame in file.decode(video=0):
            out = np.empty((frame.height, frame.width, 3), np.uint8)
            planes = [
                np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[:, : plane.width]
                for plane in frame.planes
            ]
            for field in range(2):
                luma, *chroma = (plane[field::2] for plane in planes)
                rows = (len(luma) + 1) // 2
                parts = [
                    np.pad(part, ((0, wanted - len(part)), (0, 0)), "edge")
                    for part, wanted in zip((luma, *chroma), (2 * rows, rows, rows), strict=True)
                ]
                whole = np.concatenate([part.ravel() for part in parts]).reshape(-1, frame.width)
                alone = av.VideoFrame.from_ndarray(whole, format="yuv420p")
                out[field::2] = alone.to_ndarray(format="rgb24")[: len(luma)]
            frames.append(out.transpose(2, 0, 1))
    return np.stack(frames)


@pytest.mark.parametrize("how", [H264, {"codec": "mpeg4", **FIELDS}], ids=["h264", "mpeg4"])
def test_chroma_of_a_field_colors_its_own_rows(how: dict[str, Any]) -> None:
    data = videos.encoded(woven(12), **how)
    frames, _ = videos.decoded(data)
    ours = np.asarray(_core.decode_video(data, range(12)))
    np.testing.assert_array_equal(ours, frames)
    np.testing.assert_array_equal(ours, fields_alone(data))


def test_chroma_of_progressive_frames_colors_two_rows() -> None:
    data = videos.encoded(woven(6))
    np.testing.assert_array_equal(_core.decode_video(data, range(6)), videos.decoded(data)[0])


def test_telecined_film_is_progressive() -> None:
    data = videos.encoded(woven(24), **{"x264-params": "pic-struct=1:bframes=2:keyint=5"})
    # Picture timing (H.264, D.2.3) of three fields, two, three and two, each without a time stamp.
    frame, pulled_down = b"\6\1\1\4\x80", bytearray(data)
    places = [at for at in range(len(data)) if data.startswith(frame, at)]
    assert len(places) == 24
    for number, at in enumerate(places):
        pulled_down[at + 3] = (0x51, 0x42, 0x61, 0x32)[number % 4]
    ours = np.asarray(_core.decode_video(bytes(pulled_down), range(24)))
    np.testing.assert_array_equal(ours, videos.decoded(data)[0])
    for number in range(24):
        alone = np.asarray(_core.decode_video(bytes(pulled_down), [number]))
        np.testing.assert_array_equal(alone[0], ours[number])


@pytest.mark.parametrize("height", [34, 36, 38, 50])
def test_frames_of_any_height_may_have_fields(height: int) -> None:
    data = videos.encoded(woven(4, height), "mpeg4", **FIELDS)
    np.testing.assert_array_equal(_core.decode_video(data, range(4)), fields_alone(data))


PAIRS = itertools.product(["mp4", "avi", "matroska"], [{}, {"bf": 1}, {"bf": 3, "g": 300}])


@pytest.mark.parametrize(
    ("container", "fps", "more"),
    [(container, (25, 30)[number % 2], more) for number, (container, more) in enumerate(PAIRS)],
    ids=str,
)
def test_a_frame_of_interlaced_mpeg4_does_not_depend_on_what_was_decoded_before(
    container: str, fps: int, more: dict[str, Any]
) -> None:
    data = videos.encoded(woven(40, seed=5), container=container, fps=fps, **{**MPEG4, **more})
    frames, _ = videos.decoded(data)
    count = _core.video_header(data)["frames"]
    whole = np.asarray(_core.decode_video(data, range(count)))
    np.testing.assert_array_equal(whole, frames[:count])
    for number in range(count):
        alone = np.asarray(_core.decode_video(data, [number]))[0]
        np.testing.assert_array_equal(alone, whole[number], err_msg=f"frame {number}")
    for first in range(0, count - 8, 5):
        some = [first, first + 1, first + 7]
        np.testing.assert_array_equal(_core.decode_video(data, some), whole[some])


@pytest.mark.parametrize("container", ["mp4", "matroska"])
def test_frames_of_two_fields_equal_those_of_a_sequential_decode(container: str) -> None:
    data = h264_fields.file(container, 12, packets_per_frame=1)
    frames, _ = videos.decoded(data)
    assert len(frames) == 12 and _core.video_header(data)["frames"] == 12
    np.testing.assert_array_equal(_core.decode_video(data, range(12)), frames)
    for number in range(12):
        alone = np.asarray(_core.decode_video(data, [number]))[0]
        np.testing.assert_array_equal(alone, frames[number])


@pytest.mark.parametrize("container", ["mp4", "matroska"])
def test_fields_in_separate_packets_are_refused_and_named(container: str) -> None:
    data = h264_fields.file(container, 4, packets_per_frame=2)
    assert len(videos.decoded(data)[0]) == 4
    for number in range(8):
        with pytest.raises(hr.DataError, match=r"HR0367.*fields of a frame are in separate"):
            _core.decode_video(data, [number])

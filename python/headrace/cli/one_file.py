# SPDX-License-Identifier: Apache-2.0
"""SOURCE of a command that looks at data: what headrace.open takes, or a single file of media."""

from __future__ import annotations

import os
from typing import Any

from headrace.cli import output

_NOT_RECOGNIZED = "HR0401"


def open_source_or_file(path: str, **params: Any) -> Any:
    """An image, audio or video file is a source of one record."""
    import headrace

    try:
        return output.open_source(path, **params)
    except headrace.Error as error:
        kind = kind_of(path) if error.code == _NOT_RECOGNIZED else None
        if kind is None:
            raise
    return headrace.records(**{kind: [path]}, kinds={kind: kind, **params.get("kinds", {})})


def kind_of(path: str) -> str | None:
    """By its content, else by its suffix; None of what is no such file."""
    from headrace import _core

    try:
        with open(path, "rb") as file:
            begin = file.read(64)
            is_container = bool(_core.picture_suffix(begin, "video"))
            whole = file.read() if is_container else b""
    except OSError:
        return None
    if is_container:  # which may hold sound alone
        whole = begin + whole
        is_sound = _core.picture_error(whole, "video") and not _core.picture_error(whole, "audio")
        return "audio" if is_sound else "video"
    own = _core.picture_suffix(begin, "image")
    suffixes = {f".{own}"} if own else {os.path.splitext(path)[1].lower()}
    kinds = (
        ("image", _core.codecs()),
        ("audio", _core.audio_codecs()),
        ("video", _core.video_containers()),
    )
    for kind, records in kinds:
        if any(suffixes & set(record["suffixes"]) for record in records.values()):
            return kind
    return None

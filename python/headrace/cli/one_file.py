# SPDX-License-Identifier: Apache-2.0
"""The SOURCE of commands that inspect data: what headrace.open accepts, or one media file."""

from __future__ import annotations

from typing import Any

from headrace.cli import output

_NOT_RECOGNIZED = "HR0401"


def open_source_or_file(path: str, **params: Any) -> Any:
    """Opens a source; an image, audio or video file becomes a source of one record."""
    import headrace

    try:
        return output.open_source(path, **params)
    except headrace.Error as error:
        kind = kind_of(path) if error.code == _NOT_RECOGNIZED else None
        if kind is None:
            raise
    return headrace.records(**{kind: [path]}, kinds={kind: kind, **params.get("kinds", {})})


def kind_of(path: str) -> str | None:
    """Detected from the content, otherwise from the suffix; None for other files."""
    from headrace import _core
    from headrace.sources.media_paths import kind_by_suffix

    media = _core.media()
    try:
        with open(path, "rb") as file:
            begin = file.read(64)
            # Video containers first, which may hold only audio.
            kinds = [kind for kind in reversed(media) if _core.media_suffix(begin, kind)]
            whole = begin + file.read() if len(kinds) > 1 else b""
    except OSError:
        return None
    if len(kinds) > 1:
        return next((kind for kind in kinds if not _core.media_error(whole, kind)), kinds[0])
    return kinds[0] if kinds else kind_by_suffix(path) or None

# SPDX-License-Identifier: Apache-2.0
"""Self-contained HTML: whole files, escaped text, embedded data."""

from __future__ import annotations


def document(title: str, style: str, body: str) -> str:
    """A complete HTML file; ``body`` is markup."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{clean(title)}</title><style>{style}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def clean(text: object, most: int = 10**6) -> str:
    """Text that XML allows, escaped; longer text is truncated, with an ellipsis."""
    from html import escape  # imported when needed

    plain = "".join(c if _is_xml(c) else "\N{REPLACEMENT CHARACTER}" for c in str(text)[: most + 1])
    return escape(plain if len(plain) <= most else plain[: max(1, most - 1)] + "…")


def _is_xml(c: str) -> bool:
    code = ord(c)
    if code < 0x20:
        return c in "\t\n"
    return not (0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or code & 0xFFFE == 0xFFFE)


def data_uri(kind: str, data: bytes) -> str:
    """The data as a data: URI; ``kind`` is a media type such as image/png."""
    import base64  # imported when needed

    return f"data:{kind};base64,{base64.b64encode(data).decode()}"

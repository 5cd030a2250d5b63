# SPDX-License-Identifier: Apache-2.0
"""Makes text from datasets safe for a terminal. Names of files and classes come with the data. An
escape sequence in a name could clear the screen, set the title or simulate input; bytes that are
not UTF-8 could not be printed at all.

>>> print(printable("a\\x1b[2Jb\\udcff.jpg"))
a\\x1b[2Jb\\xff.jpg
"""

from __future__ import annotations

import functools
import re
import sys
import textwrap
from typing import TextIO


@functools.cache
def _visible(lines: bool) -> dict[int, str]:
    """Replacements for characters that a terminal would obey, or could not print."""
    # Control codes; some terminals also obey those above 0x80.
    shown = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
    # Marks that change the direction of text, and surrogates.
    for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000)):
        shown[code] = f"\\u{code:04x}"
    # Bytes that are not UTF-8, as Python represents them in names.
    shown |= {0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)}
    return {code: text for code, text in shown.items() if not (lines and chr(code) in "\n\t")}


def printable(text: str, lines: bool = True) -> str:
    """The text without terminal control characters. lines: keep line breaks and tabs."""
    return text.translate(_visible(lines))


def in_a_line(failure: BaseException) -> str:
    """Type and message of an exception, as part of a line; long messages are truncated.

    >>> in_a_line(ValueError("(-5:Bad argument) in function 'resize'\\n> Overload resolution"))
    "ValueError: (-5:Bad argument) in function 'resize' > Overload resolution"
    """
    message = textwrap.shorten(printable(str(failure)), 90, placeholder=" ...")
    return f"{type(failure).__name__}: {message}"


# A line's first column: up to three words, and the spaces before the next column.
_COLUMN = r" *\S+(?: \S+){0,2} {2,}(?=\S)"


def fitted(text: str, columns: int) -> str:
    """Lines of at most this many characters, unless a word is longer: a path is not split.
    Continuations are indented to the line's second column.

    >>> print(fitted("  threads  2 (2 allowed cores)", 24))
      threads  2 (2 allowed
               cores)
    """
    lines = []
    for line in text.split("\n"):
        column = re.match(_COLUMN, line)
        indent = len(column[0]) if column else len(line) - len(line.lstrip()) + 2
        wrapper = textwrap.TextWrapper(
            columns,
            subsequent_indent=" " * min(indent, columns // 2),
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines += [line] if len(line) <= columns else wrapper.wrap(line)
    return "\n".join(lines)


def for_terminal(text: str, stream: TextIO | None = None) -> str:
    """The text, wrapped if the stream (default: standard output) is a terminal."""
    stream = stream or sys.stdout
    if stream is None or not hasattr(stream, "isatty") or not stream.isatty():
        return text
    import shutil

    return fitted(text, shutil.get_terminal_size().columns)

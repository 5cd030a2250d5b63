# SPDX-License-Identifier: Apache-2.0
"""Writes the compilers of a wheel: those of the package ziglang, for the glibc of manylinux_2_28.

zig brings clang, a linker, libc++ (linked statically) and the symbols of every glibc, so that what
is built on a new system runs on an old one. By itself it adds debug information, frame pointers
and, where nothing is optimized, checks that trap; none of these is needed here. Nor are its own
forms of memcpy, sin and others (glibc_symbols.h). It does not search the system's headers, so
python_headers.py copies the one that Debian's Python needs.
"""

from __future__ import annotations

import shlex
from importlib.metadata import version
from pathlib import Path

import ziglang
from places import GLIBC, HERE, PYTHON_HEADERS, TOOLS, WORK

TARGET = f"x86_64-linux-gnu.{GLIBC}"
FLAGS = ["-g0", "-fomit-frame-pointer", "-fno-sanitize=all"]


def main() -> None:
    TOOLS.mkdir(parents=True, exist_ok=True)
    zig = shlex.quote(str(Path(ziglang.__file__).parent / "zig"))
    cache = shlex.quote(str(WORK / "zig-cache"))
    symbols = shlex.quote(str(HERE / "glibc_symbols.h"))
    headers = shlex.quote(str(PYTHON_HEADERS))
    compiling = ["-target", TARGET, *FLAGS, "-include", symbols, "-idirafter", headers]
    for name, arguments in {
        "cc": ["cc", *compiling],
        "c++": ["c++", *compiling],
        "ar": ["ar"],
        "ranlib": ["ranlib"],
    }.items():
        script = TOOLS / name
        text = (
            f"#!/bin/sh\n# ziglang {version('ziglang')}\n"
            f"export ZIG_GLOBAL_CACHE_DIR={cache} ZIG_LOCAL_CACHE_DIR={cache}\n"
            f'exec {zig} {" ".join(arguments)} "$@"\n'
        )
        if not script.exists() or script.read_text() != text:  # its time is seen by ccache
            script.write_text(text)
        script.chmod(0o755)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Links each library that codecs open on first use: build/wheels/codecs, headrace/lib in the wheel.

Each file has a unique name, so that no other package's loader mistakes it for the system's. It
exports the functions that the engine looks up; what none of them needs (encoders) is omitted.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from places import CHECKOUT, CODECS, PREFIX, TOOLS, libraries


class File(NamedTuple):
    library: str  # in libraries.toml
    archive: str
    needs: tuple[str, ...] = ()  # archives of other libraries
    compiler: str = "cc"


# By file name without "libheadrace-". The number is the version in the soname of the system's
# library with these headers, which the engine loads, too (run_time_library.h).
FILES = {
    "webp.so.7": File("libwebp", "webpdecoder"),
    "gif.so.7": File("giflib", "gif"),
    "tiff.so.6": File("libtiff", "tiff", ("jpeg", "zstd", "z")),
    "openjp2.so.7": File("openjpeg", "openjp2"),
    "avif.so.16": File("libavif", "avif", ("dav1d", "yuv")),
    "jxl.so.0.11": File("libjxl", "jxl_dec", ("brotlidec", "brotlicommon", "hwy"), "c++"),
    "FLAC.so.14": File("flac", "FLAC", ("ogg",)),
    "mpg123.so.0": File("mpg123", "mpg123"),
    "vorbis.so.0": File("libvorbis", "vorbis", ("ogg",)),
    "vorbisfile.so.3": File("libvorbis", "vorbisfile", ("vorbis", "ogg")),
    "opusfile.so.0": File("opusfile", "opusfile", ("opus", "ogg")),
}
# What the engine reads to tell it from the system's.
NAME = "headrace_library_name"


def looked_up() -> set[str]:
    """All functions that the engine's codecs look up in libraries."""
    sources = (CHECKOUT / "headrace" / "codecs").rglob("*.[hc]*")
    call = re.compile(r'\.find\(\s*\w+,\s*"(\w+)"\)')
    return {name for file in sources for name in call.findall(file.read_text())}


def defined_in(file: Path, *options: str) -> set[str]:
    command = ["nm", "--defined-only", "--extern-only", "--format=posix", *options, file]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[0] for line in lines if line and not line.endswith(":")}


def link(name: str, file: File, title: str, archives: list[Path], functions: list[str]) -> None:
    exported, marker = CODECS.parent / "exported.map", CODECS.parent / "marker.c"
    exported.write_text(f"{{ global: {'; '.join([NAME, *functions])}; local: *; }};\n")
    marker.write_text(f'extern const char {NAME}[];\nconst char {NAME}[] = "{title}";\n')
    target = CODECS / f"libheadrace-{name}"
    command = [
        *(TOOLS / file.compiler, "-shared", "-o", target, f"-Wl,-soname,{target.name}"),
        *("-Wl,--gc-sections", "-Wl,-z,relro", "-Wl,-z,now", f"-Wl,--version-script={exported}"),
        *("-x", "c", marker, "-x", "none"),
        *("-Wl,--whole-archive", archives[0], "-Wl,--no-whole-archive", *archives[1:], "-lm"),
    ]
    subprocess.run(command, check=True)
    subprocess.run(["strip", target], check=True)  # not by zig, which would build a run time for it
    hidden = set(functions) - defined_in(target, "--dynamic")
    if hidden:
        raise SystemExit(f"{target.name}: it does not export {', '.join(sorted(hidden))}")


def main() -> None:
    shutil.rmtree(CODECS, ignore_errors=True)
    CODECS.mkdir(parents=True)
    wanted, versions = looked_up(), libraries()
    for name, file in FILES.items():
        archives = [PREFIX / "lib" / f"lib{each}.a" for each in (file.archive, *file.needs)]
        functions = sorted(wanted & defined_in(archives[0]))
        if not functions:
            raise SystemExit(f"{name}: the engine looks up none of its functions")
        title = f"{file.library} {versions[file.library]['upstream']}"
        link(name, file, title, archives, functions)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel headrace-media: headrace-av, and the libavcodec and libavutil that it needs.

It contains almost no Python code, and works with every Python version. The engine starts the
program from the folder headrace_media next to its own (headrace/codecs/media/media_process.h).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from describe import headrace_version, license_expression
from pack import EXECUTABLE, PLAIN, Packed, license_files, pack
from places import (
    BUNDLED,
    CHECKOUT,
    DIST,
    MEDIA,
    PLATFORM,
    TOOLS,
    WHEELS,
    WORK,
    archive_of,
    lgpl_libraries,
)

STAGE = WORK / "media-wheel"
FLAGS = ("-std=c++20", "-O2", "-DNDEBUG", "-fPIE", "-pie", "-ffunction-sections", "-Wall")
CLASSIFIERS = (
    "Development Status :: 4 - Beta",
    "Intended Audience :: Developers",
    "Operating System :: POSIX :: Linux",
    "Programming Language :: Python :: 3 :: Only",
    "Topic :: Multimedia :: Video",
)
README = """\
Decodes videos (H.264, HEVC, VP8, VP9, AV1, MPEG-4, MJPEG) and AAC for the package headrace of the
same version, which starts it as a separate, sandboxed process. Install it next to headrace; there
is nothing to import.

It contains FFmpeg's libavcodec and libavutil as shared libraries, built with decoders only and
under the LGPL, version 2.1 or later. Licenses are in the folder dist-info/licenses of this package,
and SOURCES.txt there says where the sources are. Patents may apply to H.264, HEVC and AAC where you
use it. This software is based in part on the work of the Independent JPEG Group.
"""


def program(folder: Path) -> None:
    sources = [
        file for file in sorted((CHECKOUT / "headrace-av").glob("*.cc")) if "_test" not in file.name
    ]
    libraries = [f"-l{name}-headrace" for name in ("avcodec", "avutil")]
    command = [
        *(TOOLS / "c++", *FLAGS, f"-I{CHECKOUT}", f"-I{MEDIA}/include", *sources),
        *(f"-L{MEDIA}/lib", *libraries, "-Wl,-rpath,$ORIGIN", "-Wl,-z,relro", "-Wl,-z,now", "-s"),
        *("-o", folder / "headrace-av"),
    ]
    subprocess.run(command, check=True)


def shared_libraries(folder: Path) -> None:
    """By the names that the program asks for, without the links that others use."""
    for name in ("avcodec", "avutil"):
        (file,) = (MEDIA / "lib").glob(f"lib{name}-headrace.so.*.*.*")
        soname = re.sub(r"(\.so\.\d+)\..*", r"\1", file.name)
        subprocess.run(["strip", "-o", folder / soname, file], check=True)
        # Not when it is linked, where shells and make would read the dollar sign.
        subprocess.run(["patchelf", "--set-rpath", "$ORIGIN", folder / soname], check=True)


def metadata(files: list[Path]) -> str:
    """`files`: those of the licenses, by their paths in the wheel."""
    classifiers = "".join(f"Classifier: {each}\n" for each in CLASSIFIERS)
    return (
        "Metadata-Version: 2.4\n"
        "Name: headrace-media\n"
        f"Version: {headrace_version()}\n"
        "Summary: The program with which Headrace decodes videos and AAC\n"
        "Author: The Headrace developers\n"
        "Keywords: aac,h264,hevc,video decoding\n"
        f"License-Expression: {license_expression('headrace-media')}\n"
        f"{license_files(map(str, files))}"
        f"{classifiers}"
        "Requires-Python: >=3.10\n"
        "Description-Content-Type: text/plain\n"
        f"\n{README}"
    )


def dist_info(folder: Path) -> None:
    shutil.copytree(BUNDLED / "headrace-media", folder)
    shutil.copy(CHECKOUT / "LICENSE", folder / "licenses")
    texts = [file.relative_to(STAGE) for file in (folder / "licenses").rglob("*") if file.is_file()]
    (folder / "METADATA").write_text(metadata(texts))
    (folder / "WHEEL").write_text(
        "Wheel-Version: 1.0\nGenerator: headrace\nRoot-Is-Purelib: false\n"
        f"Tag: py3-none-{PLATFORM}\n"
    )


def packed(stage: Path) -> dict[str, Packed]:
    return {
        str(file.relative_to(stage)): Packed(
            file.read_bytes(), EXECUTABLE if os.access(file, os.X_OK) else PLAIN
        )
        for file in stage.rglob("*")
        if file.is_file()
    }


def main() -> None:
    version = headrace_version()
    shutil.rmtree(STAGE, ignore_errors=True)
    folder = STAGE / "headrace_media"
    folder.mkdir(parents=True)
    program(folder)
    shared_libraries(folder)
    dist_info(STAGE / f"headrace_media-{version}.dist-info")
    DIST.mkdir(exist_ok=True)
    sources = DIST / "sources"  # to be offered along with the wheels (SOURCES.txt)
    sources.mkdir(exist_ok=True)
    for wheel in WHEELS:
        for library in lgpl_libraries(wheel).values():
            shutil.copy(archive_of(library), sources)
    pack(packed(STAGE), DIST / f"headrace_media-{version}-py3-none-{PLATFORM}.whl")


if __name__ == "__main__":
    main()

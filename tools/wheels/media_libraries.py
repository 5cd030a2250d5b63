# SPDX-License-Identifier: Apache-2.0
"""Recipe of libavcodec and libavutil for headrace-media: under the LGPL, as shared libraries.

They have the decoders that headrace-av opens and nothing else: no encoders, containers, filters or
network. They have unique names, and are found next to the program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from building import JOBS, SECTIONS, folder_of, run
from places import MEDIA, PREFIX, TOOLS

DECODERS = ("h264", "hevc", "vp8", "vp9", "mpeg4", "mjpeg", "libdav1d", "aac")
OFF = (
    *("everything", "autodetect", "programs", "doc", "network", "avformat", "avdevice"),
    *("avfilter", "swscale", "swresample", "pthreads", "debug", "static"),
)
LICENSE = "License: LGPL version 2.1 or later"


def ffmpeg(source: Path) -> None:
    build = folder_of(source)
    build.mkdir(parents=True)
    shutil.rmtree(MEDIA, ignore_errors=True)
    command = [
        source / "configure",
        *(f"--disable-{part}" for part in OFF),
        *(f"--enable-decoder={decoder}" for decoder in DECODERS),
        *(
            "--enable-libdav1d",
            "--pkg-config-flags=--static",
            "--enable-shared",
            "--enable-pic",
            "--build-suffix=-headrace",
        ),
        *("--enable-cross-compile", "--target-os=linux", "--arch=x86_64", "--x86asmexe=nasm"),
        *(f"--{name}={TOOLS / tool}" for name, tool in (("cc", "cc"), ("ar", "ar"))),
        *(f"--ranlib={TOOLS / 'ranlib'}", "--nm=nm", "--strip=strip", "--pkg-config=pkg-config"),
        f"--extra-cflags={' '.join(SECTIONS)} -I{PREFIX}/include",
        f"--extra-ldflags=-L{PREFIX}/lib",
        "--extra-ldsoflags=-Wl,--gc-sections -Wl,-z,relro -Wl,-z,now",
        f"--prefix={MEDIA}",
    ]
    environment = {**os.environ, "PKG_CONFIG_LIBDIR": f"{PREFIX}/lib/pkgconfig"}
    done = subprocess.run(command, cwd=build, env=environment, capture_output=True, text=True)
    print(done.stdout[-3000:], done.stderr[-3000:])
    done.check_returncode()
    if LICENSE not in done.stdout:
        raise SystemExit(f"ffmpeg: configure does not say `{LICENSE}`")
    forget_sysctl(build / "config.h")
    run("make", f"-j{JOBS}", "install-libs", "install-headers", cwd=build)


def forget_sysctl(config: Path) -> None:
    """configure finds the function, whose header glibc does not have."""
    text = config.read_text()
    config.write_text(text.replace("#define HAVE_SYSCTL 1", "#define HAVE_SYSCTL 0"))


RECIPES = {"ffmpeg": ffmpeg}

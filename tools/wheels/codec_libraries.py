# SPDX-License-Identifier: Apache-2.0
"""Recipes of the libraries that codecs open on first use, and of what these need.

They are static here; link_codecs.py makes the files of them that a wheel contains.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from building import SECTIONS, cmake, compile_static, folder_of, run
from places import PREFIX, SOURCES, TOOLS


def libwebp(source: Path) -> None:
    """By hand: its CMakeLists.txt tries to link with each instruction set, for which zig builds a
    run time each time."""
    files = [
        file for part in ("dec", "dsp", "utils") for file in (source / "src" / part).glob("*.c")
    ]
    levels = {"sse41": ["-msse4.1"], "avx2": ["-mavx2"]}
    known = [f"-DWEBP_HAVE_{level}" for level in ("SSE2", "SSE41", "AVX2")]
    compile_static("libwebpdecoder.a", files, f"-I{source}", *known, special=levels)
    headers = PREFIX / "include" / "webp"
    headers.mkdir(exist_ok=True)
    for name in ("decode.h", "types.h"):
        shutil.copy(source / "src" / "webp" / name, headers)


def giflib(source: Path) -> None:
    names = ("dgif_lib", "gifalloc", "gif_err", "gif_hash", "openbsd-reallocarray")
    compile_static("libgif.a", [source / f"{name}.c" for name in names])
    shutil.copy(source / "gif_lib.h", PREFIX / "include")


def libtiff(source: Path) -> None:
    """With the compressions whose libraries are in the wheel anyway."""
    off = ("cxx", "docs", "tests", "tools", "contrib", "opengl")
    without = ("jbig", "lerc", "libdeflate", "lzma", "webp")
    cmake(
        source,
        *(f"-Dtiff-{name}=OFF" for name in off),
        *(f"-D{name}=OFF" for name in without),
        *(f"-D{name}=ON" for name in ("zlib", "jpeg", "zstd")),
    )


def openjpeg(source: Path) -> None:
    cmake(source, "-DBUILD_CODEC=OFF", "-DBUILD_PKGCONFIG_FILES=OFF")


def dav1d(source: Path) -> None:
    """By meson: no other build has its assembly."""
    build = folder_of(source)
    native = build.with_name("dav1d.ini")
    native.parent.mkdir(parents=True, exist_ok=True)
    tools = ("c", "cc"), ("cpp", "c++"), ("ar", "ar"), ("ranlib", "ranlib")
    lines = [f"{name} = '{TOOLS / tool}'" for name, tool in tools]
    native.write_text("\n".join(["[binaries]", *lines, ""]))
    run(
        *("meson", "setup", build, source, "--native-file", native, "--prefix", PREFIX),
        *("--libdir", "lib", "--buildtype", "release", "--default-library", "static"),
        *("-Denable_tools=false", "-Denable_tests=false", "-Db_staticpic=true"),
        f"-Dc_args={list(SECTIONS)}",
    )
    run("meson", "install", "-C", build)


def libyuv(source: Path) -> None:
    """By hand: its CMakeLists.txt builds programs too. libavif alone reads its headers."""
    flags = ("-fno-exceptions", "-fno-rtti", f"-I{source}/include")
    compile_static("libyuv.a", sorted((source / "source").glob("*.cc")), *flags)


def libavif(source: Path) -> None:
    """Its functions are hidden unless a macro says that it becomes part of a shared library."""
    shared = " ".join([*SECTIONS, "-DAVIF_DLL", "-DAVIF_BUILDING_SHARED_LIBS"])
    cmake(
        source,
        f"-DCMAKE_C_FLAGS={shared}",
        "-DAVIF_CODEC_DAV1D=SYSTEM",
        "-DAVIF_LIBYUV=SYSTEM",
        *(f"-DAVIF_{name}=OFF" for name in ("LIBSHARPYUV", "LIBXML2", "BUILD_APPS")),
        f"-DDAV1D_INCLUDE_DIR={PREFIX}/include",
        f"-DDAV1D_LIBRARY={PREFIX}/lib/libdav1d.a",
        f"-DLIBYUV_INCLUDE_DIR={SOURCES}/libyuv/include",
        f"-DLIBYUV_LIBRARY={PREFIX}/lib/libyuv.a",
    )


def brotli(source: Path) -> None:
    cmake(source, "-DBROTLI_DISABLE_TESTS=ON", "-DBROTLI_BUILD_TOOLS=OFF")


def highway(source: Path) -> None:
    off = ("CONTRIB", "EXAMPLES", "TESTS")
    cmake(source, *(f"-DHWY_ENABLE_{name}=OFF" for name in off))


def libjxl(source: Path) -> None:
    """Its decoder alone, which converts no colors: where the build asks for a library that does,
    any file is an answer, as it is not linked."""
    headers = PREFIX / "include" / "jxl"
    shutil.rmtree(headers, ignore_errors=True)  # an older version's would be found first
    # AVX-512 as Highway asks for it is unknown to clang 22.
    levels = ("HWY_AVX3", "HWY_AVX3_DL", "HWY_AVX3_ZEN4", "HWY_AVX3_SPR", "HWY_AVX10_2")
    flags = " ".join([*SECTIONS, f"-DHWY_DISABLED_TARGETS='({'|'.join(levels)})'"])
    off = (
        *("TOOLS", "JPEGLI", "DOXYGEN", "MANPAGES", "BENCHMARK", "EXAMPLES", "JNI", "SJPEG"),
        *("OPENEXR", "SKCMS", "TRANSCODE_JPEG"),
    )
    build = cmake(
        source,
        *(f"-DJPEGXL_ENABLE_{name}=OFF" for name in off),
        "-DJPEGXL_FORCE_SYSTEM_HWY=ON",
        "-DJPEGXL_FORCE_SYSTEM_BROTLI=ON",
        f"-DHWY_INCLUDE_DIR={PREFIX}/include",
        f"-DHWY_LIBRARY={PREFIX}/lib/libhwy.a",
        f"-DCMAKE_CXX_FLAGS={flags}",
        f"-DLCMS2_INCLUDE_DIR={PREFIX}/include",
        f"-DLCMS2_LIBRARY={PREFIX}/lib/libhwy.a",
        "-DLCMS_VERSION=2.16",
        "-DLCMS2_VERSION=2.16",
        target="jxl_dec",
    )
    (archive,) = build.rglob("libjxl_dec.a")
    shutil.copy(archive, PREFIX / "lib")
    shutil.copytree(source / "lib" / "include" / "jxl", headers, dirs_exist_ok=True)
    shutil.copytree(build / "lib" / "include" / "jxl", headers, dirs_exist_ok=True)


def libogg(source: Path) -> None:
    cmake(source, "-DINSTALL_DOCS=OFF")


def flac(source: Path) -> None:
    off = ("CXXLIBS", "PROGRAMS", "EXAMPLES", "DOCS", "UTILS")
    cmake(
        source,
        *(f"-DBUILD_{name}=OFF" for name in off),
        *("-DINSTALL_MANPAGES=OFF", "-DWITH_STACK_PROTECTOR=OFF", "-DENABLE_MULTITHREADING=OFF"),
        f"-DOgg_DIR={PREFIX}/lib/cmake/Ogg",
    )


def mpg123(source: Path) -> None:
    options = ("-DBUILD_LIBOUT123=OFF", "-DBUILD_PROGRAMS=OFF", "-DYASM_ASSEMBLER=OFF")
    cmake(source / "ports" / "cmake", *options)


def libvorbis(source: Path) -> None:
    cmake(source)


def opus(source: Path) -> None:
    options = ("-DOPUS_BUILD_PROGRAMS=OFF", "-DOPUS_STACK_PROTECTOR=OFF")
    cmake(source, *options, "-DOPUS_DISABLE_INTRINSICS=ON")


def opusfile(source: Path) -> None:
    """By hand: it has no CMakeLists.txt."""
    names = ("info", "internal", "opusfile", "stream")
    files = [source / "src" / f"{name}.c" for name in names]
    include = PREFIX / "include"
    flags = (f"-I{source}/include", f"-I{include}", f"-I{include}/opus")
    compile_static("libopusfile.a", files, "-DOP_HAVE_LRINTF", *flags)
    shutil.copy(source / "include" / "opusfile.h", include / "opus")


RECIPES = {
    "libwebp": libwebp,
    "giflib": giflib,
    "libtiff": libtiff,
    "openjpeg": openjpeg,
    "dav1d": dav1d,
    "libyuv": libyuv,
    "libavif": libavif,
    "brotli": brotli,
    "highway": highway,
    "libjxl": libjxl,
    "libogg": libogg,
    "flac": flac,
    "mpg123": mpg123,
    "libvorbis": libvorbis,
    "opus": opus,
    "opusfile": opusfile,
}

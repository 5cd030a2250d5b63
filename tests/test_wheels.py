# SPDX-License-Identifier: Apache-2.0
"""Promises of a wheel of `./dev wheels`: one file for many systems, nothing else to install.

These tests are skipped if build/wheels has no wheel; ./dev wheels runs them at its end.
"""

from __future__ import annotations

import email
import json
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WHEELS = ROOT / "build" / "wheels"
BUILT = sorted((WHEELS / "dist").glob("headrace-*.whl"))
MEDIA = sorted((WHEELS / "dist").glob("headrace_media-*.whl"))
SAMPLES = WHEELS / "samples"
TOOLS = WHEELS / "python" / "bin"
MODULE = "headrace/_core.abi3.so"
OF_THE_SYSTEM = {
    *("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"),
}
# CUDA's run time in the module needs shm_open, which glibc 2.34 moved from librt.so.1 to libc.so.6.
OF_THE_MODULE = OF_THE_SYSTEM | {"librt.so.1"}
# The generations of GPUs (HEADRACE_CUDA_ARCHITECTURES in cmake/cuda.cmake): Turing, Ampere and Ada,
# Hopper, Blackwell in data centers, Blackwell elsewhere.
GENERATIONS = {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"}
# For each codec, the library in the wheel that decodes it; all others are statically linked or our
# own.
OPENED = {
    "webp": "libwebp",
    "gif": "giflib",
    "tiff": "libtiff",
    "jpeg2000": "openjpeg",
    "avif": "libavif",
    "jpegxl": "libjxl",
    "flac": "flac",
    "mp3": "mpg123",
    "vorbis": "libvorbis",
    "opus": "opusfile",
}
FILES = {
    *("webp.so.7", "gif.so.7", "tiff.so.6", "openjp2.so.7", "avif.so.16", "jxl.so.0.11"),
    *("FLAC.so.14", "mpg123.so.0", "vorbis.so.0", "vorbisfile.so.3", "opusfile.so.0"),
}
MEDIA_FILES = r"headrace-av|libavcodec-headrace\.so\.\d+|libavutil-headrace\.so\.\d+"


def pinned(wheel: str) -> dict[str, dict[str, str]]:
    """The table of libraries inside this wheel."""
    import tomllib  # of Python 3.11, as ./dev wheels has it

    table = tomllib.loads((ROOT / "tools/wheels/libraries.toml").read_text())
    return {name: each for name, each in table.items() if wheel in each.get("wheels", ["headrace"])}


@pytest.fixture(scope="module")
def wheel() -> Path:
    if not BUILT:
        pytest.skip("no wheel was built (./dev wheels)")
    return BUILT[-1]


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    unpack(wheel, folder)
    return folder


def unpack(wheel: Path, folder: Path) -> None:
    """Like pip: executable files stay executable."""
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            os.chmod(
                archive.extract(entry, folder),
                0o755 if entry.external_attr >> 16 & 0o100 else 0o644,
            )


@pytest.fixture(scope="module")
def media() -> Path:
    if not MEDIA:
        pytest.skip("no wheel headrace-media was built (./dev wheels)")
    return MEDIA[-1]


@pytest.fixture(scope="module")
def with_media(wheel: Path, media: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    unpack(wheel, folder)
    unpack(media, folder)
    return folder


def run_unpacked(
    folder: Path, tmp_path: Path, *arguments: str | Path, python: Path = TOOLS / "python"
) -> subprocess.CompletedProcess[str]:
    """Python with only the folder's contents and NumPy, and without any program of the system."""
    environment = {"PATH": "/nowhere", "PYTHONPATH": str(folder), "HEADRACE_CACHE": str(tmp_path)}
    command = [python, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)


@pytest.fixture(scope="module")
def dist_info(unpacked: Path) -> Path:
    (folder,) = unpacked.glob("headrace-*.dist-info")
    return folder


def output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_its_tag_is_python_3_12_or_later_and_glibc_2_28(wheel: Path) -> None:
    assert wheel.name.endswith("-cp312-abi3-manylinux_2_28_x86_64.whl")


def test_auditwheel_finds_nothing_newer_than_its_tag(wheel: Path) -> None:
    told = " ".join(output(TOOLS / "python", "-m", "auditwheel", "show", wheel).split())
    assert 'is consistent with the following platform tag: "manylinux_2_28_x86_64"' in told


def needed_by(file: Path) -> set[str]:
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", file)))


def test_the_module_only_needs_the_c_library(unpacked: Path) -> None:
    assert needed_by(unpacked / MODULE) <= OF_THE_MODULE


def listed_in_module(unpacked: Path, option: str) -> list[str]:
    """The names of the machine code or PTX in the module, as NVIDIA's cuobjdump lists them."""
    (tool,) = TOOLS.parent.glob("lib/python3*/site-packages/nvidia/cu*/bin/cuobjdump")
    return re.findall(r": \S+\.(sm_\d+)\.\w+$", output(tool, option, unpacked / MODULE), re.M)


def test_the_module_has_all_kernels_for_each_generation_of_gpus(unpacked: Path) -> None:
    files = list((ROOT / "headrace").rglob("*.cu"))
    found = listed_in_module(unpacked, "--list-elf")
    assert sorted(found) == sorted([*GENERATIONS] * len(files))
    # For later ones, which the driver compiles.
    assert listed_in_module(unpacked, "--list-ptx") == ["sm_120"] * len(files)


def test_the_module_has_no_symbol_of_the_library_of_nvccs_host_compiler(unpacked: Path) -> None:
    """What crosses between the two compilers is plain C: nothing refers to GNU's C++ library."""
    objects = sorted((WHEELS / "py").rglob("*.cu.o"))
    if not objects:
        pytest.skip("no objects of kernels (./dev wheels)")
    for each in objects:
        # Neither asked for nor, as a copy of an inline function, given.
        symbols = output("nm", "--demangle", each)
        assert not re.findall(r"^.*\bstd::.*$", symbols, re.M), each.name
        needed = re.findall(r"^ +U (headrace::.*)$", symbols, re.M)
        assert set(needed) <= {"headrace::max_blocks(int, int)"}, each.name


WITHOUT_DRIVER = """
import json, sys
import headrace as hr
from headrace import transforms as T
from headrace.insight.measure import system
devices = system.look()["devices"]
steps = [T.Resize((8, 8)), T.ToDtype("float32", scale=True), T.Normalize([0.5], [0.5])]
shapes = [batch["image"].shape for batch in hr.Loader(sys.argv[1], steps, batch_size=4)]
try:
    hr.Loader(sys.argv[1], steps, batch_size=4, device="cuda")
    refused = ""
except Exception as problem:
    refused = str(problem)
print(json.dumps([devices["cuda_devices"], devices["why_none"], len(shapes) > 0, refused]))
"""


def test_without_a_driver_the_wheel_works_on_the_cpu_and_the_doctor_says_so(
    unpacked: Path, tmp_path: Path
) -> None:
    pictures = ROOT / "examples" / "images"
    done = run_unpacked(unpacked, tmp_path, "-c", WITHOUT_DRIVER, pictures)
    assert done.returncode == 0, done.stderr
    devices, why_none, reads, refused = json.loads(done.stdout)
    assert reads
    if devices:
        pytest.skip("there is a driver")
    assert "no NVIDIA driver found (libcuda.so.1)" in why_none
    assert "no NVIDIA driver found (libcuda.so.1)" in refused


def test_abi3audit_finds_nothing_outside_the_stable_interface(wheel: Path) -> None:
    report = json.loads(output(TOOLS / "abi3audit", "--report", wheel))
    (found,) = [each["result"] for spec in report["specs"].values() for each in spec["wheel"]]
    assert found["is_abi3"]
    assert not found["non_abi3_symbols"] and not found["future_abi3_objects"]


def defined_symbols(file: Path) -> list[str]:
    return output("nm", "-D", "--defined-only", file).splitlines()


def test_the_module_exports_nothing_but_its_initialization(unpacked: Path) -> None:
    symbols = defined_symbols(unpacked / MODULE)
    assert [line.split()[-1].split("@")[0] for line in symbols] == ["PyInit__core"]


def test_the_module_takes_its_functions_from_glibc_not_from_its_compiler(unpacked: Path) -> None:
    table = (ROOT / "tools" / "wheels" / "glibc_symbols.h").read_text()
    asked = set(re.findall(r"\.symver \w+, (\S+)\"", table))
    taken = set(output("nm", "-D", "--undefined-only", unpacked / MODULE).split())
    assert {"memcpy@GLIBC_2.14", "memset@GLIBC_2.2.5", "sin@GLIBC_2.2.5"} <= asked & taken


def shared_libraries(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*.so*") if file.name != Path(MODULE).name)


def test_the_wheel_has_its_stubs_and_the_headers_of_plug_ins(unpacked: Path) -> None:
    for stub in ("_core", "formats", "sampling", "transforms", "loader/keywords"):
        assert (unpacked / "headrace" / f"{stub}.pyi").stat().st_size > 0
    headers = {file.name for pattern in ("*.h", "*.hpp") for file in unpacked.rglob(pattern)}
    assert headers == {"plugin.h", "plugin.hpp"}


def test_every_codec_library_has_a_unique_name_in_the_wheel(unpacked: Path) -> None:
    libraries = shared_libraries(unpacked)
    assert {file.relative_to(unpacked / "headrace" / "lib").name for file in libraries} == {
        f"libheadrace-{name}" for name in FILES
    }
    for file in libraries:
        assert f"[{file.name}]" in output("readelf", "-d", file)  # its SONAME
        assert needed_by(file) <= OF_THE_SYSTEM


def test_codec_libraries_export_what_the_engine_looks_up_and_nothing_else(unpacked: Path) -> None:
    sources = (ROOT / "headrace" / "codecs").rglob("*.[hc]*")
    call = re.compile(r'\.find\(\s*\w+,\s*"(\w+)"\)')
    asked = {name for file in sources for name in call.findall(file.read_text())}
    for file in shared_libraries(unpacked):
        exported = {line.split()[-1] for line in defined_symbols(file)}
        assert "headrace_library_name" in exported
        assert exported - {"headrace_library_name"} <= asked, file.name


LIBRARIES = """
import json
from headrace.insight.measure import system
print(json.dumps(system.look()["libraries"]))
"""


def test_the_doctor_shows_each_codec_library_of_the_wheel_and_its_version(
    unpacked: Path, tmp_path: Path
) -> None:
    done = run_unpacked(unpacked, tmp_path, "-c", LIBRARIES)
    assert done.returncode == 0, done.stderr
    origins, table = json.loads(done.stdout), pinned("headrace")
    for codec, name in OPENED.items():
        assert origins[codec] == f"{name} {table[name]['upstream']} (of the wheel)"


def test_without_headrace_media_an_error_names_it(unpacked: Path, tmp_path: Path) -> None:
    done = run_unpacked(unpacked, tmp_path, "-c", LIBRARIES)
    assert "pip install headrace-media" in json.loads(done.stdout)["video (headrace-av)"]


def test_headrace_media_only_has_the_program_and_ffmpegs_libraries(
    with_media: Path, media: Path
) -> None:
    assert re.fullmatch(r"headrace_media-[0-9.]+-py3-none-manylinux_2_28_x86_64\.whl", media.name)
    files = list((with_media / "headrace_media").iterdir())
    assert len(files) == 3
    names = {file.name for file in files}
    for file in files:
        assert re.fullmatch(MEDIA_FILES, file.name)
        assert needed_by(file) <= OF_THE_SYSTEM | names
        assert "[$ORIGIN]" in output("readelf", "-d", file)
        versions = re.findall(r"GLIBC_2\.(\d+)", output("readelf", "-V", file))
        assert max(map(int, versions)) <= 28


def test_headrace_media_has_its_licenses_and_says_where_its_sources_are(with_media: Path) -> None:
    (dist_info,) = with_media.glob("headrace_media-*.dist-info")
    texts = {file.parent.name for file in (dist_info / "licenses").glob("*/*")}
    assert texts == {*pinned("headrace-media"), "zig", "llvm"}
    assert "GNU LESSER" in (dist_info / "licenses/ffmpeg/COPYING.LGPLv2.1").read_text()
    sources = (dist_info / "licenses" / "SOURCES.txt").read_text()
    ffmpeg = pinned("headrace-media")["ffmpeg"]
    assert ffmpeg["sha256"] in sources
    (archive,) = (WHEELS / "dist" / "sources").glob("ffmpeg_*")
    assert archive.name in sources


def test_each_codec_decodes_what_ffmpeg_made(with_media: Path, tmp_path: Path) -> None:
    """Images, audio and videos; the values are close to those decoded by ffmpeg."""
    if not (SAMPLES / "video").exists():
        pytest.skip("no samples were made (./dev wheels)")
    script = ROOT / "tools" / "wheels" / "decode_samples.py"
    done = run_unpacked(with_media, tmp_path, script, SAMPLES)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.findall(r"^(\S+): ok ", done.stdout, re.MULTILINE)
    assert len(passed) == len([file for file in SAMPLES.glob("*/*") if file.suffix == ".raw"])


FRAMES = """
import hashlib, json, sys
import numpy as np
from headrace import _core
found = {}
for path in sys.argv[1:]:
    data = open(path, "rb").read()
    try:
        count = min(16, _core.video_header(data)["frames"])
        frames = np.asarray(_core.decode_video(data, range(count)))
        found[path] = hashlib.sha256(frames.tobytes()).hexdigest()
    except Exception as problem:
        found[path] = str(problem)[:6]  # the error's code
print(json.dumps(found))
"""


def test_videos_are_the_frames_that_the_systems_libavcodec_decodes(
    with_media: Path, tmp_path: Path
) -> None:
    """The build of this checkout is linked with Debian's libavcodec."""
    data = Path(os.environ.get("HEADRACE_TEST_DATA", "/nowhere")) / "video"
    videos = sorted({*data.rglob("*.*"), *(SAMPLES / "video").glob("*.[mw]*")})
    videos = [file for file in videos if file.suffix in (".mp4", ".mkv", ".webm", ".mov", ".avi")]
    if not videos:
        pytest.skip("no videos: HEADRACE_TEST_DATA is not set")
    built = subprocess.run(
        [ROOT / ".venv/bin/python", "-c", FRAMES, *videos], capture_output=True, text=True
    )
    if built.returncode != 0:
        pytest.skip("no build with the system's libavcodec (./dev test)")
    done = run_unpacked(with_media, tmp_path, "-c", FRAMES, *videos)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(built.stdout)


def test_the_wheels_are_small(wheel: Path, media: Path) -> None:
    assert wheel.stat().st_size < 20e6
    assert media.stat().st_size < 15e6


def test_its_version_equals_that_of_the_build(dist_info: Path) -> None:
    metadata = email.message_from_string((dist_info / "METADATA").read_text())
    stated = (ROOT / "CMakeLists.txt").read_text()
    assert f"project(headrace VERSION {metadata['Version']} " in stated


def test_everything_inside_has_its_license_and_is_in_the_sbom(dist_info: Path) -> None:
    inside = {*pinned("headrace"), "cuda-runtime", "nanobind", "robin-map", "zig", "llvm"}
    texts = {file.parent.name for file in (dist_info / "licenses").glob("*/*")}
    sbom = json.loads((dist_info / "sboms" / "headrace.cdx.json").read_text())
    assert sbom["bomFormat"] == "CycloneDX"
    assert texts == {component["name"] for component in sbom["components"]} == inside
    assert all(component["licenses"] for component in sbom["components"])
    assert "Apache License" in (dist_info / "licenses" / "LICENSE").read_text()
    sources = (dist_info / "licenses" / "SOURCES.txt").read_text()
    for name, library in pinned("headrace").items():
        assert (library["sha256"] in sources) == ("LGPL" in library["license"]), name


def stated_licenses(dist_info: Path) -> set[str]:
    expression = email.message_from_string((dist_info / "METADATA").read_text())[
        "License-Expression"
    ]
    # As PyPI reads it, which refuses what is no SPDX expression.
    command = (
        "import sys, packaging.licenses as l; print(l.canonicalize_license_expression(sys.argv[1]))"
    )
    assert output(TOOLS / "python", "-c", command, expression).strip() == expression
    return set(expression.split(" AND "))


def test_the_metadata_state_the_licenses_of_everything_inside(
    dist_info: Path, with_media: Path
) -> None:
    (of_media,) = with_media.glob("headrace_media-*.dist-info")
    for wheel, folder in (("headrace", dist_info), ("headrace-media", of_media)):
        stated = stated_licenses(folder)
        assert {"Apache-2.0", "MIT", "Apache-2.0 WITH LLVM-exception"} <= stated
        for name, library in pinned(wheel).items():
            inside = library["license"]
            parts = {f"({inside})"} if " OR " in inside else set(inside.split(" AND "))
            assert parts <= stated, name


READS = """
import sys
import headrace as hr
from headrace import transforms as T
steps = [T.Resize((32, 48)), T.ToDtype("float32", scale=True)]
loader = hr.Loader(sys.argv[1], steps, batch_size=4)
print(hr.__file__, [batch["image"].shape for batch in loader][0])
"""


def test_it_reads_images_with_only_numpy_installed(unpacked: Path, tmp_path: Path) -> None:
    done = run_unpacked(unpacked, tmp_path, "-c", READS, ROOT / "examples" / "images")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(" ", 1) == [
        str(unpacked / "headrace" / "__init__.py"),
        "(4, 3, 32, 48)\n",
    ]


@pytest.fixture(scope="module", params=["3.10", "3.11"])
def older(request: pytest.FixtureRequest) -> tuple[str, Path]:
    version = request.param
    tag = "cp" + version.replace(".", "")
    built = sorted((WHEELS / "dist").glob(f"headrace-*-{tag}-{tag}-manylinux_2_28_x86_64.whl"))
    if not built:
        pytest.skip(f"no wheel was built for Python {version} (./dev wheels)")
    return version, built[-1]


def test_older_pythons_have_wheels_with_a_separate_module(
    older: tuple[str, Path], wheel: Path, tmp_path: Path
) -> None:
    version, built = older
    unpack(built, tmp_path)
    (module,) = (tmp_path / "headrace").glob("_core.*.so")
    tag = "cp" + version.replace(".", "")
    assert module.name == f"_core.cpython-{tag[2:]}-x86_64-linux-gnu.so"
    assert needed_by(module) <= OF_THE_MODULE
    exported = [line.split()[-1].split("@")[0] for line in defined_symbols(module)]
    assert exported == ["PyInit__core"]
    (about,) = tmp_path.glob("headrace-*.dist-info/WHEEL")
    assert f"Tag: {tag}-{tag}-manylinux_2_28_x86_64\n" in about.read_text()
    told = " ".join(output(TOOLS / "python", "-m", "auditwheel", "show", built).split())
    assert 'is consistent with the following platform tag: "manylinux_2_28_x86_64"' in told
    with zipfile.ZipFile(built) as one, zipfile.ZipFile(wheel) as other:
        names = (
            {name for name in each.namelist() if "/_core." not in name} for each in (one, other)
        )
        assert next(names) == next(names)


def test_older_pythons_read_the_same_pictures(
    older: tuple[str, Path], unpacked: Path, tmp_path: Path
) -> None:
    version, built = older
    python = WHEELS / f"python{version}" / "bin" / "python"
    folder = tmp_path / "older"  # not where the other runs, whose module it would find
    unpack(built, folder)
    pictures = ROOT / "examples" / "images"
    done = run_unpacked(folder, tmp_path, "-c", HASHES, pictures, python=python)
    assert done.returncode == 0, done.stderr
    wanted = run_unpacked(unpacked, tmp_path, "-c", HASHES, pictures)
    assert done.stdout == wanted.stdout != ""


HASHES = """
import hashlib, sys
import numpy as np
import headrace as hr
from headrace import transforms as T
steps = [T.Resize((32, 48)), T.ToDtype("float32", scale=True)]
for batch in hr.Loader(sys.argv[1], steps, batch_size=4, seed=1):
    print(hashlib.sha256(np.asarray(batch["image"]).tobytes()).hexdigest())
"""


def test_the_sdist_has_all_build_inputs_and_no_build_outputs() -> None:
    built = sorted((WHEELS / "dist").glob("headrace-*.tar.gz"))
    if not built:
        pytest.skip("no archive of the sources was made (./dev wheels)")
    with tarfile.open(built[-1]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    for folder in ("headrace", "headrace-av", "bindings", "python", "cmake"):
        assert [name for name in names if name.startswith(f"{folder}/")]
    assert {"CMakeLists.txt", "pyproject.toml", "LICENSE", "PKG-INFO"} <= names
    assert not [name for name in names if name.split("/")[0] in ("build", ".venv", ".git")]


CHECKSUMS = """
import json, inputs
print(json.dumps({name: inputs.of_library(name) for name in inputs.libraries()}))
"""


@pytest.mark.parametrize(
    ("file", "old", "new", "built_again"),
    [
        ("media_libraries.py", '"vp8", ', "", {"ffmpeg"}),
        ("codec_libraries.py", '"gif_err", ', "", {"giflib"}),
        ("libraries.toml", "60dd315c", "00000000", {"zlib", "libpng", "libtiff"}),
        ("libraries.toml", "686616b7", "00000000", {"dav1d", "libavif", "ffmpeg"}),
        ("building.py", '"-O3"', '"-O2"', None),
        ("compilers.py", '"-g0", ', "", None),
        ("glibc_symbols.h", "sin@", "cos@", None),
        ("describe.py", "license", "licence", set()),
        ("building.py", '"""Builds one', '"""Makes one', set()),
    ],
)
def test_a_library_is_rebuilt_when_its_inputs_change(
    tmp_path: Path, file: str, old: str, new: str, built_again: set[str] | None
) -> None:
    if not TOOLS.exists():
        pytest.skip("no environment of ./dev wheels")
    folder = tmp_path / "tools" / "wheels"
    shutil.copytree(ROOT / "tools" / "wheels", folder)
    before, text = checksums(folder), (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    after = checksums(folder)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == (set(before) if built_again is None else built_again)


def checksums(folder: Path) -> dict[str, str]:
    done = subprocess.run(
        [TOOLS / "python", "-B", "-c", CHECKSUMS],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(folder)},
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found

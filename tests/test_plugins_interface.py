# SPDX-License-Identifier: Apache-2.0
"""Plug-ins' C interface: version 1's declarations never change, for C and C++."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from built_plugins import ROOT, needs_compiler

import headrace as hr

pytestmark = needs_compiler


# Sizes in version 1, on 64-bit machines. These never change; later versions append.
LAYOUT = {
    "headrace_error": (16, ["struct_size 0", "capacity 4", "text 8"]),
    "headrace_dtype": (4, ["code 0", "bits 1", "lanes 2"]),
    "headrace_view": (
        48,
        ["data 0", "device_type 8", "device_id 12", "ndim 16", "dtype 20", "shape 24", "strides 32",
         "byte_offset 40"],
    ),
    "headrace_field": (
        96,
        ["struct_size 0", "kind 4", "name 8", "view 16", "canvas_height 64", "canvas_width 72",
         "box_format 80", "sample_rate 88"],
    ),
    "headrace_record": (
        64,
        ["struct_size 0", "reserved 4", "index 8", "position 16", "seed 24", "draws 32", "bits 40",
         "uniform 48", "below 56"],
    ),
    "headrace_value": (
        48,
        ["type 0", "count 4", "integer 8", "number 16", "text 24", "integers 32", "numbers 40"],
    ),
    "headrace_param": (
        112,
        ["name 0", "help 8", "type 16", "flags 20", "fallback 24", "minimum 72", "maximum 80",
         "choices 88", "choice_count 96", "min_count 100", "max_count 104", "reserved 108"],
    ),
    "headrace_params": (16, ["data 0", "count 8", "size 12"]),
    "headrace_transform": (
        80,
        ["name 0", "help 8", "flags 16", "kinds 20", "image_dtypes 24", "reserved 28", "params 32",
         "create 48", "destroy 56", "shape 64", "run 72"],
    ),
    "headrace_transforms": (16, ["data 0", "count 8", "size 12"]),
    "headrace_bytes": (16, ["data 0", "size 8"]),
    "headrace_signature": (24, ["bytes 0", "mask 8", "offset 16", "length 20"]),
    "headrace_signatures": (16, ["data 0", "count 8", "size 12"]),
    "headrace_image_header": (
        40,
        ["struct_size 0", "width 4", "height 8", "channels 12", "dtype 16", "bits 20",
         "orientation 24", "flags 28", "working_bytes 32"],
    ),
    "headrace_decode": (
        96,
        ["struct_size 0", "reserved 4", "file 8", "header 24", "x 32", "y 40", "output 48"],
    ),
    "headrace_codec": (
        80,
        ["name 0", "help 8", "suffixes 16", "suffix_count 24", "flags 28", "signatures 32",
         "create 48", "destroy 56", "read_header 64", "decode 72"],
    ),
    "headrace_codecs": (16, ["data 0", "count 8", "size 12"]),
    "headrace_path_status": (
        32, ["struct_size 0", "kind 4", "size 8", "version 16", "modified_ns 24"]
    ),
    "headrace_listing": (24, ["struct_size 0", "reserved 4", "entries 8", "add 16"]),
    "headrace_storage": (
        64,
        ["scheme 0", "help 8", "example 16", "flags 24", "reserved 28", "create 32",
         "get_status 40", "list 48", "read 56"],
    ),
    "headrace_storages": (16, ["data 0", "count 8", "size 12"]),
    "headrace_records": (
        40, ["struct_size 0", "reserved 4", "count 8", "weights 16", "integers 24", "parts 32"]
    ),
    "headrace_sampler": (
        80,
        ["name 0", "help 8", "flags 16", "per_record 20", "params 24", "create 40", "destroy 48",
         "size 56", "order 64", "batches 72"],
    ),
    "headrace_samplers": (16, ["data 0", "count 8", "size 12"]),
    "headrace_column": (
        88, ["struct_size 0", "kind 4", "name 8", "dtype 16", "ndim 20", "shape 24"]
    ),
    "headrace_opening": (
        64,
        ["struct_size 0", "reserved 4", "opened 8", "get_status 16", "list 24", "read 32",
         "add_column 40", "add_file 48", "add_record 56"],
    ),
    "headrace_cell": (
        96, ["data 0", "bytes 8", "integer 16", "shape 24", "wanted 88", "reserved 92"]
    ),
    "headrace_parse": (
        56,
        ["struct_size 0", "count 4", "record 8", "bytes 16", "cells 32", "opened 40",
         "allocate 48"],
    ),
    "headrace_format": (
        80,
        ["name 0", "help 8", "example 16", "flags 24", "reserved 28", "params 32",
         "recognizes 48", "open 56", "close 64", "parse 72"],
    ),
    "headrace_formats": (16, ["data 0", "count 8", "size 12"]),
    "headrace_plugin": (
        112,
        ["abi 0", "struct_size 4", "name 8", "version 16", "help 24", "transforms 32",
         "codecs 48", "storages 64", "samplers 80",
         "formats 96"],
    ),
}  # fmt: skip
VALUES = {
    "HEADRACE_PLUGIN_ABI": 1, "HEADRACE_OK": 0, "HEADRACE_BAD_RECORD": 1,
    "HEADRACE_BAD_ARGUMENTS": 2, "HEADRACE_FAILED": 3, "HEADRACE_INT": 0, "HEADRACE_UINT": 1,
    "HEADRACE_FLOAT": 2, "HEADRACE_BFLOAT": 4, "HEADRACE_BOOL": 6, "HEADRACE_MAX_AXES": 8,
    "HEADRACE_IMAGE": 1, "HEADRACE_MASK": 2, "HEADRACE_LABEL": 4, "HEADRACE_TENSOR": 8,
    "HEADRACE_BOXES": 16, "HEADRACE_KEYPOINTS": 32, "HEADRACE_MASKS": 64, "HEADRACE_AUDIO": 128,
    "HEADRACE_PARAM_BOOL": 1, "HEADRACE_PARAM_INT": 2, "HEADRACE_PARAM_FLOAT": 3,
    "HEADRACE_PARAM_TEXT": 4, "HEADRACE_PARAM_INTS": 5, "HEADRACE_PARAM_FLOATS": 6,
    "HEADRACE_PARAM_REQUIRED": 1, "HEADRACE_VALUES": 1, "HEADRACE_MOVES": 2, "HEADRACE_RANDOM": 4,
    "HEADRACE_U8": 1, "HEADRACE_U16": 2, "HEADRACE_F16": 4, "HEADRACE_BF16": 8, "HEADRACE_F32": 16,
    "HEADRACE_SIGNATURE_BYTES": 16, "HEADRACE_MAX_CHANNELS": 16, "HEADRACE_CMYK": 1,
    "HEADRACE_NO_COLORS": 2, "HEADRACE_WINDOWS": 1, "HEADRACE_NOT_FOUND": 4,
    "HEADRACE_NOT_ALLOWED": 5, "HEADRACE_TRY_AGAIN": 6, "HEADRACE_FILE": 1, "HEADRACE_FOLDER": 2,
    "HEADRACE_NOTHING": 0, "HEADRACE_WEIGHTS": 1, "HEADRACE_LABELS": 2, "HEADRACE_LENGTHS": 3,
    "HEADRACE_TEXT": 256, "HEADRACE_BYTES": 512, "HEADRACE_REPLACEMENT": 1,
    "HEADRACE_ANY_POSITION": 2,
}  # fmt: skip


@pytest.mark.parametrize("compiler", ["cc -std=c99", "g++ -std=c++11 -x c++"])
def test_the_interface_of_version_1_is_unchanged(tmp_path: Path, compiler: str) -> None:
    checks = [
        f"typedef char {name}_is[({name}) == {value} ? 1 : -1];" for name, value in VALUES.items()
    ]
    for struct, (size, members) in LAYOUT.items():
        checks.append(f"typedef char size_of_{struct}[sizeof({struct}) == {size} ? 1 : -1];")
        for member, offset in map(str.split, members):
            place = f"offsetof({struct}, {member}) == {offset}"
            checks.append(f"typedef char {struct}_{member}[{place} ? 1 : -1];")
    source = tmp_path / "layout.c"
    source.write_text("#include <headrace/plugin.h>\n" + "\n".join(checks) + "\n")
    command = f"{compiler} -pedantic -Wall -Wextra -Werror -fsyntax-only -I{hr.include_dir()}"
    done = subprocess.run([*command.split(), str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_struct_is_listed() -> None:
    header = (ROOT / "headrace" / "plugin.h").read_text()
    structs = set(re.findall(r"typedef struct (\w+) \{", header))
    constants = set(re.findall(r"^ +(HEADRACE_\w+) =", header, re.M))
    constants |= set(re.findall(r"^enum \{ (HEADRACE_\w+) =", header, re.M))
    assert structs == set(LAYOUT) and constants <= set(VALUES)


def test_a_view_has_the_layout_of_dlpacks_tensor(tmp_path: Path) -> None:
    """dlpack.h 1.0, DLTensor: following its declaration exactly."""
    source = tmp_path / "dlpack.c"
    source.write_text(
        "#include <headrace/plugin.h>\n"
        "typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;\n"
        "typedef struct { int device_type; int32_t device_id; } DLDevice;\n"
        "typedef struct { void* data; DLDevice device; int32_t ndim; DLDataType dtype;\n"
        "  int64_t* shape; int64_t* strides; uint64_t byte_offset; } DLTensor;\n"
        "#define SAME(a, b) typedef char a##_is[offsetof(headrace_view, a) == "
        "offsetof(DLTensor, b) ? 1 : -1];\n"
        "SAME(data, data) SAME(device_type, device.device_type) SAME(device_id, device.device_id)\n"
        "SAME(ndim, ndim) SAME(dtype, dtype) SAME(shape, shape) SAME(strides, strides)\n"
        "SAME(byte_offset, byte_offset)\n"
        "typedef char size_is[sizeof(headrace_view) == sizeof(DLTensor) ? 1 : -1];\n"
    )
    command = ["cc", "-std=c99", "-Werror", "-fsyntax-only", f"-I{hr.include_dir()}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_installed_headers_equal_those_of_the_checkout() -> None:
    for name in ("plugin.h", "plugin.hpp"):
        installed = Path(hr.include_dir()) / "headrace" / name
        assert installed.read_text() == (ROOT / "headrace" / name).read_text()

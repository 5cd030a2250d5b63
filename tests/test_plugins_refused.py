# SPDX-License-Identifier: Apache-2.0
"""Plug-ins that break the rules: rejected when they are loaded, or named when they run."""

from __future__ import annotations

import gc
import os
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built_plugins import CASES, EXAMPLES, case, compiled, needs_compiler
from processes import run_code

import headrace as hr
from headrace import transforms as T

pytestmark = needs_compiler


def images(count: int = 6) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    return [{"image": rng.integers(0, 256, (3, 4, 6), dtype=np.uint8)} for _ in range(count)]


def refusal(library: Path | str, **options: Any) -> str:
    with pytest.raises(hr.ConfigError) as caught:
        hr.load_plugin(library, **options)
    return str(caught.value)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plug-in that was never loaded."""
    folder = tmp_path_factory.mktemp("good")
    return compiled(EXAMPLES / "vignette.c", folder / "libgood.so", "-O1", "-g")


# ---- Files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"#!/bin/sh\necho hello\n", "it is a text file"),
        (b"MZ\x90\0" + bytes(200), "it is a Windows library"),
        (b"\xcf\xfa\xed\xfe" + bytes(200), "it is a macOS library"),
        (b"!<arch>\n" + bytes(200), "it is a static library"),
        (bytes(300), "it is not a library"),
        (b"\x7fELF\x01\x01\x01" + bytes(300), "it was built for a 32-bit machine"),
        (b"\x7fELF\x02\x01\x01" + bytes(20), "within its header"),
        (b"\x7fELF\x02\x02\x01" + bytes(300), "with a different byte order"),
    ],
)
def test_files_that_are_not_libraries_are_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "libmine.so"
    path.write_bytes(content)
    text = refusal(path)
    assert text.startswith("HR0570") and message in text and str(path) in text


def test_a_library_of_another_architecture_is_refused(good: Path, tmp_path: Path) -> None:
    content = bytearray(good.read_bytes())
    here = struct.unpack_from("<H", content, 18)[0]
    struct.pack_into("<H", content, 18, 183 if here == 62 else 62)
    path = tmp_path / "libmine.so"
    path.write_bytes(content)
    assert "it was built for 64-bit ARM, but this process is x86-64" in refusal(path) or here != 62


def test_a_truncated_library_never_crashes_the_process(good: Path, tmp_path: Path) -> None:
    """In a separate process, which would die of SIGBUS; each length in a separate file."""
    code = (
        "import sys; from pathlib import Path; import headrace as hr\n"
        "whole = Path(sys.argv[1]).read_bytes(); seen = set()\n"
        "for i in range(64):\n"
        "    path = Path(sys.argv[2]) / f'{i}.so'\n"
        "    path.write_bytes(whole[: len(whole) * i // 64])\n"
        "    try: hr.load_plugin(path); seen.add('loaded')\n"
        "    except hr.ConfigError as error: seen.add(error.code)\n"
        "print(seen)"
    )
    done = run_code(code, good, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "HR0570" in done.stdout


def test_damaged_segment_tables_are_refused(good: Path, tmp_path: Path) -> None:
    content = bytearray(good.read_bytes())
    at = struct.unpack_from("<Q", content, 32)[0]
    for offset, form, value in [
        (32, "<Q", 1 << 60),
        (54, "<H", 3),
        (56, "<H", 0),
        (at + 32, "<Q", 1 << 62),
    ]:
        damaged = bytearray(content)
        struct.pack_into(form, damaged, offset, value)
        path = tmp_path / f"lib{offset}.so"
        path.write_bytes(damaged)
        assert refusal(path).startswith("HR0570")


def test_programs_and_object_files_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "main.c"
    source.write_text("int main(void) { return 0; }\n")
    for name, flags, message in [
        ("main.o", ["-c"], "it is an object file"),
        ("main", ["-no-pie"], "it is a program"),
        ("main-static", ["-static"], "it is a program"),
    ]:
        subprocess.run(["cc", *flags, str(source), "-o", str(tmp_path / name)], check=True)
        assert message in refusal(tmp_path / name)


def test_paths_without_a_library_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nowhere.so").startswith("HR0576")
    assert "is not a file" in refusal(tmp_path)
    assert refusal("nowhere").startswith("HR0579")


def test_errors_of_the_dynamic_linker_are_reported(tmp_path: Path) -> None:
    library, _ = case(tmp_path, NEEDS=1)
    text = refusal(library)
    assert text.startswith("HR0570") and "undefined symbol: headrace_test_nowhere" in text
    needed = tmp_path / "libneeded.so"
    source = tmp_path / "needed.c"
    source.write_text("int headrace_test_nowhere(void) { return 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(needed)], check=True)
    defined = ['-DPLUGIN="needs"', '-DTRANSFORM="Needs"', "-DNEEDS=1"]
    linked = tmp_path / "libneeds.so"
    flags = ["-shared", "-fPIC", f"-I{hr.include_dir()}", *defined]
    subprocess.run(["cc", *flags, str(CASES), str(needed), "-o", str(linked)], check=True)
    needed.unlink()
    text = refusal(linked)
    assert "libneeded.so: cannot open shared object file" in text and "ldd" in text


# ---- Tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("definitions", "message"),
    [
        ({"NO_TABLE": 1, "RUN": "run"}, "HR0570.*does not export headrace_plugin_table"),
        ({"ABI": 2}, "HR0571.*it has version 2 of the interface, but this Headrace has version 1"),
        ({"ABI": 0}, "HR0571.*it has version 0"),
        ({"TABLE": "return NULL"}, "HR0571.*it refuses to be loaded"),
        ({"SIZE": 40}, "HR0572.*its table has 40 bytes, but version 1 has 48"),
        ({"RUN": "NULL"}, "HR0572.*run is NULL"),
        ({"RUN": "(void*)16"}, "HR0572.*run does not point to a function"),
        ({"SHAPE": "(void*)16"}, "HR0572.*shape does not point"),
        ({"PLUGIN": "NULL"}, "HR0572.*the plug-in's name is NULL"),
        ({"PLUGIN": '"My Plugin"'}, "HR0572.*must consist of a-z"),
        ({"TRANSFORM": "NULL"}, "HR0572.*a transform's name is NULL"),
        ({"TRANSFORM": '""'}, "HR0572.*a transform's name is empty"),
        ({"TRANSFORM": '"two words"'}, "HR0572.*must be named like a class"),
        ({"TRANSFORM": '"\\xff"'}, "HR0572.*is not UTF-8"),
        ({"TRANSFORM": '"Resize"'}, r"HR0572.*has the same name as one that is Headrace's own"),
        ({"TRANSFORM": '"Python"'}, r"HR0572.*has the same name as one that is Headrace's own"),
        ({"TRANSFORM": '"Twice"', "SECOND": '"Twice"'}, 'HR0572.*two transforms called "Twice"'),
        ({"HELP": "NULL"}, "HR0572.*its help is NULL"),
        ({"FLAGS": 0}, "HR0572.*must have exactly one of HEADRACE_VALUES .* and HEADRACE_MOVES"),
        ({"FLAGS": 3}, "HR0572.*must have exactly one of HEADRACE_VALUES .* and HEADRACE_MOVES"),
        ({"FLAGS": 257}, "HR0572.*flags has unknown bits"),
        ({"KINDS": 0}, "HR0572.*kinds is 0"),
        ({"KINDS": "1<<20"}, "HR0572.*kinds has unknown bits"),
        ({"DTYPES": 64}, "HR0572.*image_dtypes has unknown bits"),
        ({"FLAGS": 2, "KINDS": "HEADRACE_BOXES"}, "HR0572.*lacks HEADRACE_IMAGE"),
    ],
)
def test_plugin_tables_that_break_a_rule_are_refused(
    tmp_path: Path, definitions: Any, message: str
) -> None:
    library, _ = case(tmp_path, **definitions)
    with pytest.raises(hr.ConfigError, match=message):
        hr.load_plugin(library)


@pytest.mark.parametrize(
    ("param", "message"),
    [
        ('.name="P",.help="H.",.type=HEADRACE_PARAM_INT', "must be named like an argument"),
        ('.name="from",.help="H.",.type=HEADRACE_PARAM_INT', "which is reserved"),
        ('.name="fields",.help="H.",.type=HEADRACE_PARAM_INT', "which is reserved"),
        ('.name="p",.type=HEADRACE_PARAM_INT', r"\(p\)\] its help is NULL"),
        ('.name="p",.help="H."', r"\(p\)\] its type is 0"),
        ('.name="p",.help="H.",.type=HEADRACE_PARAM_TEXT', "its default is NULL"),
        ('.name="p",.help="H.",.type=HEADRACE_PARAM_INT,.minimum=2,.maximum=1', "its range is"),
        ('.name="p",.help="H.",.type=HEADRACE_PARAM_FLOAT,.minimum=NAN', "its range is"),
        (
            '.name="p",.help="H.",.type=HEADRACE_PARAM_INT,.minimum=2,.maximum=5',
            "its default 0 is outside its range",
        ),
        (
            '.name="p",.help="H.",.type=HEADRACE_PARAM_INTS,.fallback={.count=3}',
            "its default list is NULL",
        ),
        (
            '.name="p",.help="H.",.type=HEADRACE_PARAM_TEXT,.fallback={.text="x"},'
            ".choices=kWords,.choice_count=2",
            'its default "x" is not one of its choices',
        ),
        (
            '.name="p",.help="H.",.type=HEADRACE_PARAM_INT},{.name="p",.help="H.",.type=2',
            'two parameters called "p"',
        ),
    ],
)
def test_parameters_that_break_a_rule_are_refused(tmp_path: Path, param: str, message: str) -> None:
    unused = "(void)kWords,(void)kSizes,(void)kScales"
    library, _ = case(tmp_path, PARAMS=f"{{{param}}}", CREATE="create", TABLE=unused)
    with pytest.raises(hr.ConfigError, match="HR0572.*" + message):
        hr.load_plugin(library)


def test_module_names_that_are_not_transforms_are_refused(tmp_path: Path) -> None:
    names = [name for name in vars(T) if name[0].isupper() and name not in T.known()]
    assert {"Any", "Python", "Transform"} <= set(names)
    for name in names:
        library, _ = case(tmp_path, TRANSFORM=f'"{name}"')
        assert f'HR0572 invalid plug-in: {library}: its transform "{name}"' in refusal(library)


def test_parameters_require_a_function_that_accepts_them(tmp_path: Path) -> None:
    param = '{.name="p",.help="H.",.type=HEADRACE_PARAM_INT}'
    unused = "(void)kWords,(void)kSizes,(void)kScales"
    library, _ = case(tmp_path, PARAMS=param, TABLE=unused)
    assert "it has parameters, but create is NULL" in refusal(library)


def test_plugins_of_the_same_contents_are_the_same(tmp_path: Path) -> None:
    library, name = case(tmp_path)
    first = hr.load_plugin(library)
    again = hr.load_plugin(shutil.copy(library, tmp_path / "other.so"))
    assert first == again == hr.load_plugin(os.path.relpath(library))
    assert again.path == str(library) and getattr(first, name) is getattr(again, name)
    other, _ = case(tmp_path, TRANSFORM=f'"{name}"')
    text = refusal(other)
    assert "HR0572" in text and f'"{name}" has the same name as one that is in the plug-in' in text
    shutil.copy(other, library)
    assert refusal(library).startswith("HR0577")


def test_many_threads_load_one_plugin(tmp_path: Path) -> None:
    library, name = case(tmp_path)
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(hr.load_plugin(library))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len({plugin.path for plugin in found}) == 1
    assert len({id(getattr(plugin, name)) for plugin in found}) == 1


# ---- Runs ----------------------------------------------------------------------------------------


def first_batch(library: Path, name: str, check: bool = False, **options: Any) -> Any:
    kind = getattr(hr.load_plugin(library, check=check), name)
    return next(iter(hr.Loader(images(), [kind()], **{"batch_size": 6, **options})))


def failure(folder: Path, check: bool = False, **definitions: Any) -> str:
    library, name = case(folder, **definitions)
    with pytest.raises(hr.Error) as caught:
        first_batch(library, name, check)
    return str(caught.value)


def test_a_plugin_may_report_a_bad_record(tmp_path: Path) -> None:
    library, name = case(tmp_path, RUN="refuse_odd")
    with pytest.raises(hr.DataError, match=f"HR0574.*\\[{name}\\] record 1 is odd") as caught:
        first_batch(library, name, threads=1)
    assert caught.value.where.record == 1 and "libcase" in str(caught.value)
    kind = getattr(hr.load_plugin(library), name)
    loader = hr.Loader(images(), [kind()], batch_size=3, on_error="skip", error_budget=1.0)
    batch = np.concatenate([batch.image for batch in loader])
    np.testing.assert_array_equal(batch, [255 - r["image"] for r in images()[::2]])


def test_failures_end_the_run_for_any_on_error(tmp_path: Path) -> None:
    for run, message in [
        ("fail", "no license for this machine"),
        ("unknown_status", r"run\(\) returned the status 77, which is undefined"),
        ("minus_one", r"run\(\) returned the status -1, which is undefined"),
        ("draw", "it draws random numbers without declaring HEADRACE_RANDOM"),
    ]:
        library, name = case(tmp_path, RUN=run)
        with pytest.raises(hr.ConfigError, match="HR0575.*" + message):
            first_batch(library, name, on_error="skip")


def test_messages_of_plugins_are_made_printable(tmp_path: Path) -> None:
    text = failure(tmp_path, RUN="long_text")
    assert text.startswith("HR0574") and "?" * 1024 in text


@pytest.mark.parametrize(
    ("shape", "flags", "message"),
    [
        (
            "other_size",
            "HEADRACE_VALUES",
            "HR0575.*declares HEADRACE_VALUES, so height and width",
        ),
        (
            "lie",
            "HEADRACE_MOVES",
            r"HR0575.*returned uint8 \(3, 6, 6\) for this record, but planned",
        ),
        (
            "open_shape",
            "HEADRACE_MOVES",
            "HR0575.*left an extent open although the record is given",
        ),
        ("nonsense", "HEADRACE_MOVES", "HR0575.*planned an invalid shape for"),
        ("huge", "HEADRACE_MOVES", "HR0575.*at most 268 million pixels"),
        ("beyond", "HEADRACE_MOVES", "HR0575.*planned .*at most 268 million pixels"),
        ("beyond_late", "HEADRACE_MOVES", "HR0575.*returned .*at most 268 million pixels"),
        ("refuse_shape", "HEADRACE_VALUES", 'HR0573.*"image": gray images only'),
        ("seven", "HEADRACE_VALUES", "HR0575.*planned an invalid shape for"),
        ("fail", "HEADRACE_VALUES", "HR0575.*no license"),
    ],
)
def test_results_of_a_wrong_shape_are_refused(
    tmp_path: Path, shape: str, flags: str, message: str
) -> None:
    library, name = case(tmp_path, SHAPE=shape, FLAGS=flags)
    with pytest.raises(hr.Error, match=message):
        first_batch(library, name, ragged="list")


@pytest.mark.parametrize(("shape", "verb"), [("beyond", "planned"), ("beyond_late", "returned")])
def test_sizes_beyond_the_address_space_are_refused(tmp_path: Path, shape: str, verb: str) -> None:
    library, name = case(tmp_path, SHAPE=shape, KINDS="HEADRACE_TENSOR", DTYPES=0)
    kind = getattr(hr.load_plugin(library), name)
    with pytest.raises(hr.ConfigError, match=f"HR0575.*{verb} .*larger than the address space"):
        source = [{"x": np.zeros(3, np.float32)}]
        next(iter(hr.Loader(source, [kind()], batch_size=1, ragged="list")))


def test_a_lost_row_group_is_an_error_of_the_run(tmp_path: Path) -> None:
    library, name = case(tmp_path, SHAPE="lose_a_row", KINDS="HEADRACE_TENSOR", DTYPES=0)
    kind = getattr(hr.load_plugin(library), name)
    records = [{"a": np.ones(n, np.float32), "b": np.ones(n, np.float32)} for n in (2, 3)]
    open_shapes: dict[str, Any] = {"a": (-1,), "b": (-1,)}
    source = hr.open(records, shapes=open_shapes).with_row_group("a", "b")
    loader = hr.Loader(source, [kind(fields="a")], batch_size=2, ragged="list")
    with pytest.raises(hr.ConfigError, match=r"HR0575.*returned .*\(1,?\).*the same objects"):
        next(iter(loader))


def test_exceptions_that_escape_are_errors(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    library = compiled(CASES.with_name("plugin_throwing.cc"), tmp_path / "libthrowing.so")
    with pytest.raises(hr.ConfigError, match=r"HR0575.*run\(\) threw an exception: out"):
        first_batch(library, "Throwing")
    sampler = hr.sampling.throwing()
    with pytest.raises(hr.ConfigError, match=r"HR0575.*size\(\) threw an exception: out of size"):
        hr.Loader(images(), [], batch_size=1, sampler=sampler)
    gc.collect()
    said = "Headrace: destroy() of the transform Throwing threw an exception: out of destroy\n"
    assert said in capfd.readouterr().err


def test_exceptions_in_cpp_classes_are_errors(tmp_path: Path) -> None:
    library = compiled(CASES.with_name("plugin_classes.cc"), tmp_path / "libclasses.so")
    kind = hr.load_plugin(library).Picky
    for arguments, message in [
        ({"sizes": [1, 9]}, "HR0573.*nine is no size"),
        ({"odd": True}, "HR0573.*no parameter is called nothing"),
        ({"mode": "bad"}, "HR0574.*a bad one"),
        ({"mode": "failed"}, "HR0575.*an exception that is no std::exception"),
        ({"mode": "dtype"}, "HR0575.*image has a different dtype"),
    ]:
        with pytest.raises(hr.Error, match=message):
            next(iter(hr.Loader(images(), [kind(**arguments)], batch_size=6)))
    next(iter(hr.Loader(images(), [kind(4, scales=(0.5, 2))], batch_size=6)))


# ---- Checked -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("past_the_end", "it wrote up to 21 bytes past its output"),
        ("before_the_begin", "it wrote up to 3 bytes before its output"),
        ("half", "it left 36 of 72 bytes of its output unwritten, the first at byte 36"),
        ("change_input", "it changed its input"),
        ("no_function_of_its_input", "it gave two results for the same input"),
    ],
)
def test_a_checked_plugin_that_breaks_rules_is_detected(
    tmp_path: Path, run: str, message: str
) -> None:
    text = failure(tmp_path, check=True, RUN=run)
    assert text.startswith("HR0575") and message in text


def test_a_checked_plugin_that_keeps_the_rules_gives_the_same(tmp_path: Path) -> None:
    library, name = case(tmp_path)
    np.testing.assert_array_equal(
        first_batch(library, name, check=True).image, [255 - r["image"] for r in images()]
    )


@pytest.mark.parametrize(
    ("run", "signal", "record"),
    [("crash", "SIGSEGV", 2), ("read_beyond", "SIGSEGV", 0), ("give_up", "SIGABRT", 0)],
)
def test_a_crash_names_transform_and_record(
    tmp_path: Path, run: str, signal: str, record: int
) -> None:
    library, name = case(tmp_path, RUN=run)
    code = (
        "import faulthandler, sys, numpy as np, headrace as hr\n"
        "if sys.argv[3] == 'after': faulthandler.enable()\n"
        "kind = getattr(hr.load_plugin(sys.argv[1], check=True), sys.argv[2])\n"
        "if sys.argv[3] == 'before': faulthandler.enable()\n"
        "source = [{'image': np.zeros((3, 4, 6), np.uint8)}] * 6\n"
        "list(hr.Loader(source, [kind()], batch_size=6, threads=1))\n"
    )
    for order in ("after", "before", "never"):
        done = run_code(code, library, name, order)
        assert done.returncode == -{"SIGSEGV": 11, "SIGABRT": 6}[signal]
        assert f"Headrace: {signal} in transform {name} of the plug-in" in done.stderr
        assert f'record {record}, field "image"' in done.stderr
        assert ("Fatal Python error" in done.stderr) == (order != "never")


def test_a_crash_at_loading_is_an_error_where_it_is_checked(tmp_path: Path) -> None:
    for table, end in [("abort()", "by SIGABRT"), ("_exit(127)", "with exit status 127")]:
        library, _ = case(tmp_path, TABLE=table)
        text = refusal(library, check=True)
        assert text.startswith("HR0580") and f"ended {end}" in text


def test_a_plugin_that_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.plugins._SECONDS", 5)
    library, _ = case(tmp_path, TABLE="for (;;) pause()")
    text = refusal(library, check=True)
    assert text.startswith("HR0580") and "has not ended after 5 seconds" in text


def test_a_failing_check_process_is_not_reported_as_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no module named headrace >&2\nexit 1\n")
    broken.chmod(0o755)
    for executable, message in [
        ("", "sys.executable is empty"),
        (str(broken), "cannot import headrace: no module named headrace"),
        (str(tmp_path / "nowhere"), "cannot import headrace: .*No such file"),
    ]:
        library, name = case(tmp_path)
        with monkeypatch.context() as here:
            here.setattr(sys, "executable", executable)
            with pytest.warns(hr.Warning, match=f"is not tested in another process.*{message}"):
                plugin = hr.load_plugin(library, check=True)
        assert plugin.transforms == (name,)

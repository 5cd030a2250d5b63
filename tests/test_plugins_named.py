# SPDX-License-Identifier: Apache-2.0
"""Plug-ins like built-in transforms: arguments, pickles, plans, help, and discovery."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built_plugins import EXAMPLES, ROOT, case, compiled, needs_compiler, scene
from processes import run_code, run_command

import headrace as hr
from headrace import transforms as T

pytest_plugins = ["plugin_fixtures"]
pytestmark = needs_compiler


def test_arguments_are_checked_as_those_of_built_in_transforms(vignette: Any) -> None:
    with pytest.raises(hr.ConfigError, match="strength must be"):
        vignette.Vignette(strength=1.5)
    with pytest.raises(hr.ConfigError, match="did you mean 'strength'"):
        vignette.Vignette(strenght=0.5)
    with pytest.raises(hr.ConfigError, match="strength must be"):
        vignette.Vignette("much")
    assert "strength: The share of the light that corners lose." in vignette.Vignette.__doc__
    assert str(vignette.Vignette.__signature__).startswith("(strength: 'float' = 0.5, p:")


def test_parameters_of_every_type_reach_the_plugin(tmp_path: Path) -> None:
    def param(name: str, kind: str, rest: str) -> str:
        return f'{{.name="{name}",.help="H.",.type=HEADRACE_PARAM_{kind},{rest}}}'

    params = [
        param("flag", "BOOL", ".fallback={.integer=1}"),
        param("count", "INT", ".fallback={.integer=7},.minimum=1,.maximum=9"),
        param("scale", "FLOAT", ".flags=HEADRACE_PARAM_REQUIRED,.minimum=-INFINITY,.maximum=3"),
        param("kind", "TEXT", '.fallback={.text="soft"},.choices=kWords,.choice_count=2'),
        param("size", "INTS", ".fallback={.integers=kSizes,.count=2},.min_count=1,.max_count=2"),
        param("scales", "FLOATS", ".fallback={.numbers=kScales,.count=1}"),
    ]
    library, name = case(tmp_path, PARAMS=",".join(params), CREATE="create")
    kind = getattr(hr.load_plugin(library), name)
    source = [{"image": scene()["image"]}]

    def said(*args: Any, **named: Any) -> str:
        with pytest.raises(hr.ConfigError, match="HR0573") as caught:
            hr.Loader(source, [kind(*args, **named)], batch_size=1)
        return str(caught.value).partition("] ")[2].partition("\n")[0]

    assert said(scale=-1e6) == "1 7 -1000000.00 soft 2:3,5 1:0.50"
    assert said(False, 9, 3, "hard", (1, 2), [4, 5.5]) == "0 9 3.00 hard 2:1,2 2:4.00"
    for wrong in ({"count": 10}, {"scale": 3.1}, {"kind": "softer"}, {"size": (1, 2, 3)}, {}):
        with pytest.raises(hr.ConfigError, match=r"HR010[1-4]"):
            kind(**({"scale": 0.0} if wrong else {}) | wrong)


def test_a_plugin_transform_pickles_as_its_path_and_fingerprint(
    libraries: Path, vignette: Any
) -> None:
    step = vignette.Vignette(0.3, fields="image")
    assert pickle.loads(pickle.dumps(step)) == copy.deepcopy(step) == step
    assert pickle.loads(pickle.dumps(vignette)) == vignette
    code = (
        "import pickle, sys; step = pickle.load(sys.stdin.buffer); "
        "print(step, type(step).record['plugin']['path'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(step), capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    expected = f"Vignette(strength=0.3, fields=('image',)) {libraries / 'libvignette.so'}\n"
    assert done.stdout.decode() == expected


def test_another_build_is_not_mistaken_for_the_pickled_one(libraries: Path, tmp_path: Path) -> None:
    moved = str(shutil.copy(libraries / "libvignette.so", tmp_path / "libvignette.so"))
    code = (
        "import headrace as hr, pickle, sys; "
        f"step = hr.load_plugin({moved!r}).Vignette(); sys.stdout.buffer.write(pickle.dumps(step))"
    )
    pickled = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    ran = tmp_path / "ran"
    constructor = tmp_path / "constructor.c"
    constructor.write_text(
        "#include <stdio.h>\n__attribute__((constructor)) static void run(void) "
        f'{{ fclose(fopen("{ran}", "w")); }}\n'
    )
    compiled(constructor, Path(moved))
    code = "import pickle, sys; pickle.load(sys.stdin.buffer)"
    done = subprocess.run([sys.executable, "-c", code], input=pickled, capture_output=True)
    assert b"HR0578 plug-in has a different fingerprint" in done.stderr
    assert not ran.exists(), "nothing of another file runs"
    ctypes_code = f"import ctypes; ctypes.CDLL({moved!r})"
    subprocess.run([sys.executable, "-c", ctypes_code], check=True)
    assert ran.exists()
    Path(moved).unlink()
    done = subprocess.run([sys.executable, "-c", code], input=pickled, capture_output=True)
    assert b"HR0576 plug-in not found" in done.stderr


def test_plugins_work_in_configurations(vignette: Any) -> None:
    steps = [T.Resize(8), vignette.Vignette(0.25, p=0.5)]
    config = json.loads(json.dumps(T.to_config(steps)))
    assert config == [{"Resize": {"size": 8}}, {"Vignette": {"strength": 0.25, "p": 0.5}}]
    assert T.from_config(config) == steps
    with pytest.raises(hr.ConfigError, match=r"HR0177 [^\0]*hr.load_plugin\(\) first"):
        T.from_config(["Vignettes"])


def test_a_description_loads_no_library_and_names_the_plugin(pictures: Path, vignette: Any) -> None:
    steps = [T.Resize((8, 8)), vignette.Vignette(0.5)]
    description = hr.Loader(pictures, steps, batch_size=4).description()
    code = (
        "import headrace as hr, json, sys; [hr.load_plugin(path) for path in sys.argv[1:]]; "
        "loader = hr.Loader.from_description(json.load(sys.stdin)); "
        "print(next(iter(loader)).image.sum())"
    )
    text = json.dumps(description)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    needed = f"the plug-in vignette 1.0 ({vignette.fingerprint}) is not loaded"
    assert f"HR0578 plug-in has a different fingerprint: {needed}" in done.stderr
    assert f'hr.load_plugin("{vignette.path}") first' in done.stderr
    command.append(vignette.path)
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == next(iter(hr.Loader(pictures, steps, batch_size=4))).image.sum()


def test_the_plan_distinguishes_builds(tmp_path: Path, vignette: Any) -> None:
    source = [{"image": scene()["image"]}]
    text = hr.Loader(source, [vignette.Vignette(0.5)], batch_size=1).plan()
    assert f"Vignette(strength=0.5) of vignette {vignette.fingerprint}" in text
    other = compiled(EXAMPLES / "vignette.c", tmp_path / "libvignette.so", "-O1")
    code = (
        "import headrace as hr, numpy as np; "
        f"step = hr.load_plugin({str(other)!r}).Vignette(0.5); "
        "source = [{'image': np.zeros((3, 6, 9), np.uint8)}]; "
        "print(hr.Loader(source, [step], batch_size=1).description()['plan'])"
    )
    done = run_code(code)
    assert done.returncode == 0, done.stderr
    here = hr.Loader(source, [vignette.Vignette(0.5)], batch_size=1).description()["plan"]
    assert done.stdout.strip() != here


def test_plugin_transforms_are_found_in_headrace_transforms(vignette: Any) -> None:
    assert T.Vignette is vignette.Vignette and "Vignette" in dir(T)
    assert "Vignette" not in T.__all__, "which is the same in every process"
    assert repr(vignette) == "<plug-in vignette 1.0: Vignette>"
    with pytest.raises(AttributeError, match="did you mean 'Vignette'"):
        vignette.Vignete  # noqa: B018


def test_the_command_line_describes_a_plugin(libraries: Path) -> None:
    plugin = ("--plugin", libraries / "libvignette.so")
    done = run_command("operators", *plugin)
    assert done.returncode == 0 and "Darkens images toward their corners" in done.stdout
    done = run_command("operators", "Vignette", *plugin, "--json")
    record = json.loads(done.stdout)
    assert [param["name"] for param in record["params"]] == ["strength", "p"]
    assert record["plugin"]["version"] == "1.0"
    done = run_command("operators", "Vignette")
    assert done.returncode == 2


def test_cmake_builds_the_examples(tmp_path: Path) -> None:
    generate = [
        "cmake", "-S", str(EXAMPLES), "-B", str(tmp_path), f"-DPython_EXECUTABLE={sys.executable}",
    ]  # fmt: skip
    for command in (generate, ["cmake", "--build", str(tmp_path)]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    code = (
        "import sys, headrace as hr; "
        "print(*(hr.load_plugin(path) for path in sys.argv[1:]), sep='\\n')"
    )
    paths = [
        str(tmp_path / f"lib{name}.so")
        for name in ("vignette", "transpose", "qoi", "split", "frames")
    ]
    done = run_code(code, *paths)
    assert done.stdout == (
        "<plug-in vignette 1.0: Vignette>\n"
        "<plug-in transpose 1.0: RandomTranspose>\n"
        "<plug-in qoi 1.0: qoi>\n"
        "<plug-in split 1.0: split://>\n"
        "<plug-in frames 1.0: frames>\n"
    )


def test_the_examples_on_the_page_work(tmp_path: Path, pictures: Path) -> None:
    """Its C, its commands and its Python, one after another, and its C++."""
    page = (ROOT / "docs/guide/plugins.md").read_text()

    def block(language: str) -> str:
        return str(re.search(rf"^```{language}\n(.*?)^```", page, re.M | re.S)[1])  # type: ignore[index]

    (tmp_path / "negative.c").write_text(block("c"))
    (tmp_path / "train").symlink_to(pictures)
    (tmp_path / "gain.cc").write_text(block("cpp"))
    folder = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    for command in (["sh", "-ec", block("sh")], [sys.executable, "-c", block("python")]):
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=environment
        )
        assert done.returncode == 0, done.stderr
    gain = hr.load_plugin(compiled(tmp_path / "gain.cc", tmp_path / "libgain.so"))
    image = np.float32(np.arange(48).reshape(3, 4, 4))
    ratio = hr.Compose([gain.Gain(most=3)])(image, seed=2)[1:] / image[1:]
    assert np.allclose(ratio, ratio[0, 0, 0], rtol=1e-6) and 1 < ratio[0, 0, 0] < 3


def test_installed_plugins_are_loaded_by_name(libraries: Path, tmp_path: Path) -> None:
    package = tmp_path / "dark_corners"
    package.mkdir()
    shutil.copy(libraries / "libvignette.so", package)
    (package / "__init__.py").write_text(
        "from pathlib import Path\n"
        "LIBRARY = Path(__file__).parent / 'libvignette.so'\n"
        "def library(): return str(LIBRARY)\n"
    )
    info = tmp_path / "dark_corners-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dark-corners\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[headrace.plugins]\ncorners = dark_corners:LIBRARY\nlater = dark_corners:library\n"
    )
    (tmp_path / "corners").write_text("no library, of the name of an entry point")
    shutil.copytree(info, tmp_path / "twins" / "shadows-1.0.dist-info")
    (tmp_path / "twins" / "shadows-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: shadows\nVersion: 1.0\n"
    )
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import headrace as hr\n"
        "corners = hr.load_plugin('corners')\n"
        "print(corners.path, hr.load_plugin('later') == corners)\n"
        "try: hr.load_plugin('corner')\n"
        "except hr.ConfigError as error: print(error)\n"
        "sys.path.insert(0, sys.argv[1] + '/twins')\n"
        "try: hr.load_plugin('corners')\n"
        "except hr.ConfigError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{package / 'libvignette.so'} True\n")
    assert "HR0579" in done.stdout and "corners, later" in done.stdout
    assert "'corners' is a plug-in of dark-corners and of shadows\n" in done.stdout

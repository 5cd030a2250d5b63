# SPDX-License-Identifier: Apache-2.0
"""`./dev gpu` with programs built elsewhere: without a compiler, a GPU or a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOOLS = (
    "bash", "cat", "dirname", "env", "grep", "gzip", "mkdir", "nproc", "rm", "sed", "tar", "tee",
    "timeout",
)  # fmt: skip

# Behaves like a GoogleTest program that lists its tests, and runs them.
TEST = """#!/usr/bin/env bash
echo "$@ $LD_LIBRARY_PATH" >>"$TOLD"
case "$*" in
  *--gtest_list_tests*) echo "Places/Sums."; echo "  Add/Loop" ;;
  *) echo "[  PASSED  ] 1 test."; exit STATUS ;;
esac
"""
FIGURES = """#!/usr/bin/env bash
echo "$@" >>"$TOLD"
echo "walk 1.000 1.600  ms"
"""


def bundled(folder: Path, status: int, test: str = TEST) -> Path:
    """A checkout as it arrives on a bare machine, with a bundle of programs that do nothing."""
    checkout = folder / "checkout"
    (checkout / "tools/requirements").mkdir(parents=True)
    for name in ("dev", "tools/gpu.sh", "tools/tally.py", "tools/requirements/debian.txt"):
        shutil.copy(ROOT / name, checkout / name)
    there = folder / "there"
    for name, text in (
        ("bin/mix_rows_test", TEST),
        ("bin/finish_test", test.replace("STATUS", str(status))),
        ("bin/gpu_figures", FIGURES),
        ("lib/libheadrace.so.0.1", ""),
        ("compute-sanitizer/compute-sanitizer", "#!/usr/bin/env bash\necho Version 1\n"),
        ("site/headrace/_core.py", "raise ImportError"),
        ("contents.txt", "commit 0123\nnvcc 13.0\n"),
    ):
        path = there / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("STATUS", "0"))
        path.chmod(0o755)
    (checkout / "build/gpu").mkdir(parents=True)
    with tarfile.open(checkout / "build/gpu/bundle.tar.gz", "w:gz") as archive:
        archive.add(there, arcname=".")
    return checkout


def dev_gpu(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    tools = checkout.parent / "tools"
    if not tools.exists():
        tools.mkdir()
        for name in TOOLS:
            found = shutil.which(name)
            assert found, name
            (tools / name).symlink_to(found)
        python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}"
        (tools / "python3").symlink_to(python)
    environment = {"PATH": str(tools), "TOLD": str(checkout / "told"), "HOME": os.devnull}
    run = ["bash", checkout / "dev", "gpu", *words]
    return subprocess.run(run, env=environment, capture_output=True, text=True, timeout=300)


def test_a_bundle_is_all_a_bare_machine_needs(tmp_path: Path) -> None:
    checkout = bundled(tmp_path, status=0)
    done = dev_gpu(checkout, "--device", "cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "commit 0123" in done.stdout and "walk 1.000 1.600  ms" in done.stdout
    assert done.stdout.count("Version 1") == 2  # two of the sanitizer's tools
    assert "python3 is of no version that the package was made for" in done.stdout
    assert done.stdout.splitlines()[-1] == "5 passed, 0 failed, 2 skipped"
    told = (checkout / "told").read_text()
    assert "--device cpu" in told and str(checkout / "build/gpu/there/lib") in told
    table = done.stdout[done.stdout.index("on this machine") :].splitlines()
    assert f"{'kernels on the device':54} {'passed':>12} {'passed':>12}" in table
    assert f"{'walk':54} {'1.000':>12} {'1.600':>12}  ms" in table
    assert [line for line in table if line.startswith("skipped: headrace bench")]


def test_published_figures_use_the_bundles_photos(tmp_path: Path) -> None:
    checkout = bundled(tmp_path, status=0)
    photos = tmp_path / "photos"
    photos.mkdir()
    done = dev_gpu(checkout, "--device", "cpu", "--photos", str(photos), "figures")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"--device cpu {photos}" in (checkout / "told").read_text()
    done = dev_gpu(checkout, "--photos", str(tmp_path / "nowhere"))
    assert done.returncode == 2 and "no folder" in done.stderr


def test_the_package_has_a_module_for_every_python_with_headers() -> None:
    ask = "from tools.gpu_bundle import pythons; print(*pythons())"
    names = subprocess.run(
        [sys.executable, "-c", ask], check=True, cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    assert len(names) == len(set(names))
    for name in names:
        assert name.startswith("cpython-3"), names
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    assert (str(sysconfig.get_config_var("SOABI")) in names) == headers.exists()


def test_a_single_step_can_run_and_failures_are_counted(tmp_path: Path) -> None:
    checkout = bundled(tmp_path, status=1)
    done = dev_gpu(checkout, "--device", "cpu", "start", "tests")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "1 passed, 1 failed"
    assert "failed: kernels on the device" in done.stdout


def test_programs_with_many_tests_or_that_do_not_start_are_counted(
    tmp_path: Path,
) -> None:
    many = TEST.replace(
        '"  Add/Loop"', '"  Add/Loop"; for i in {1..9999}; do echo "  Add/$i"; done'
    )
    done = dev_gpu(bundled(tmp_path / "many", 0, many), "--device", "cpu", "tests")
    assert done.returncode == 0 and "-- finish_test" in done.stdout, done.stdout + done.stderr
    lacks_a_library = TEST.replace('echo "Places/Sums."', "exit 127")
    done = dev_gpu(bundled(tmp_path / "lacks", 0, lacks_a_library), "--device", "cpu", "tests")
    assert done.returncode == 1 and "failed: kernels on the device" in done.stdout


def test_a_missing_gpu_and_an_unknown_step_are_reported(tmp_path: Path) -> None:
    checkout = bundled(tmp_path, status=0)
    done = dev_gpu(checkout)
    assert "no GPU here" in done.stdout and "1 skipped" in done.stdout.splitlines()[-1]
    done = dev_gpu(checkout, "nosuch")
    assert done.returncode == 2 and "usage: ./dev gpu" in done.stderr


def test_the_bundle_has_every_test_with_a_gpu_variant() -> None:
    command = [sys.executable, ROOT / "tools/gpu_bundle.py", "--programs"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert names[0] == "gpu_figures"
    assert {"picture_batch_test", "mix_rows_test", "loader_finish_test"} <= set(names)
    for source in (ROOT / "headrace").rglob("*_test.cc"):
        speaks_of_gpus = "Place::kGpu" in source.read_text() or "places()" in source.read_text()
        assert not speaks_of_gpus or source.stem in names


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_its_help_fits_a_terminal() -> None:
    done = subprocess.run([ROOT / "dev", "gpu", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "--bundle" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80

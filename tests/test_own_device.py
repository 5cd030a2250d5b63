# SPDX-License-Identifier: Apache-2.0
"""The device that "cuda" refers to in each of several processes, and the error if no such device
exists."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from headrace.loader.own_device import own_index

import headrace as hr
from headrace import _core
from headrace.loader import own_device


@pytest.mark.parametrize(
    ("count", "environment", "index"),
    [
        (4, {}, 0),
        (4, {"LOCAL_RANK": "0"}, 0),
        (4, {"LOCAL_RANK": "3"}, 3),
        (2, {"LOCAL_RANK": "1", "CUDA_VISIBLE_DEVICES": "6,7"}, 1),
        (2, {"LOCAL_RANK": "1", "CUDA_VISIBLE_DEVICES": "GPU-8932f937,GPU-1d8fe0f5"}, 1),
        (1, {"LOCAL_RANK": "5", "CUDA_VISIBLE_DEVICES": "5"}, 0),
        (1, {"LOCAL_RANK": "1", "CUDA_VISIBLE_DEVICES": "MIG-a0a4f5ae-7ef8"}, 0),
        (3, {"LOCAL_RANK": ""}, 0),
        (0, {"LOCAL_RANK": "2"}, 0),
    ],
)
def test_cuda_is_the_device_of_the_process(
    count: int, environment: dict[str, str], index: int
) -> None:
    assert own_index(count, environment) == index


@pytest.mark.parametrize(
    ("count", "environment", "said"),
    [
        (2, {"LOCAL_RANK": "2"}, "LOCAL_RANK is 2, but this process sees 2 CUDA devices"),
        (1, {"LOCAL_RANK": "1"}, "LOCAL_RANK is 1, but this process sees 1 CUDA device"),
        (
            2,
            {"LOCAL_RANK": "4", "CUDA_VISIBLE_DEVICES": "0,GPU-1d8fe0f5"},
            "sees 2 CUDA devices of CUDA_VISIBLE_DEVICES=0,GPU-1d8fe0f5",
        ),
    ],
)
def test_the_error_for_a_rank_without_a_device_lists_visible_devices(
    count: int, environment: dict[str, str], said: str
) -> None:
    with pytest.raises(hr.ConfigError, match="HR0897") as caught:
        own_index(count, environment)
    assert said in str(caught.value) and f"--nproc-per-node {count}" in str(caught.value)


def test_every_api_resolves_cuda_to_the_device_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []
    device = _core.simulated_device(seed=1)

    def note(name: str) -> _core.Device:
        opened.append(name)
        return device

    class Engine:
        Device = _core.Device
        open_device = staticmethod(note)
        cuda_devices = staticmethod(lambda: (4, ""))

    monkeypatch.setattr(own_device, "_core", Engine)
    monkeypatch.setenv("LOCAL_RANK", "2")
    loader = hr.Loader([np.float32([1, 2])] * 8, batch_size=4)
    assert len(list(loader.dlpack("cuda"))) == 2
    assert len(list(loader.dlpack(["cuda:1", "cuda"]))) == 2
    assert len(list(hr.prefetch([np.zeros(3)], device="cuda"))) == 1
    assert opened[:3] == ["cuda:2", "cuda:1", "cuda:2"] and opened[3:] == ["cuda:2"]


# A libcuda.so.1 like that of CUDA 12.2, with two functions.
OLD_DRIVER = """
int cuInit(unsigned flags) { (void)flags; return 0; }
int cuDriverGetVersion(int* version) { *version = 12020; return 0; }
"""
GOES_ON = """
import numpy as np, headrace as hr
loader = hr.Loader([np.float32([n]) for n in range(6)], batch_size=2)
try:
    iter(loader.dlpack("cuda"))
except hr.UnsupportedError as error:
    print(error)
print([int(batch[0][0][0]) for batch in loader])
"""


def test_an_outdated_driver_is_named_and_the_cpu_still_works(tmp_path: Path) -> None:
    if "without CUDA" in _core.cuda_devices()[1]:
        pytest.skip("this build has no CUDA")
    compiler = shutil.which("cc") or shutil.which("g++")
    if not compiler:
        pytest.skip("no C compiler")
    (tmp_path / "driver.c").write_text(OLD_DRIVER)
    driver = tmp_path / "libcuda.so.1"
    build = [compiler, "-x", "c", "-shared", "-fPIC", "-o", driver, tmp_path / "driver.c"]
    subprocess.run(build, check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    run = [sys.executable, "-c", GOES_ON]
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "HR0882" in done.stdout and "too old (it supports CUDA 12.2, " in done.stdout
    assert done.stdout.splitlines()[-1] == "[0, 2, 4]"

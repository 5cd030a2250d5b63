# SPDX-License-Identifier: Apache-2.0
"""The commands accept folders of videos."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import videos
from headrace.insight.measure.processes import Processes
from headrace.insight.probes.ours import stages_of
from headrace.insight.probes.seeking import seek_share

import headrace as hr
from headrace import transforms as T

pytest.importorskip("av", reason="av makes the videos")
if MISSING := videos.missing_decoder():
    pytest.skip(MISSING, allow_module_level=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six videos of 40 frames, with one key frame each; and a truncated one."""
    root = tmp_path_factory.mktemp("videos")
    for number in range(7):
        path = root / ("run" if number % 2 else "hop") / f"{number}.mp4"
        path.parent.mkdir(exist_ok=True)
        data = videos.h264(40, seed=number, g=1000)
        path.write_bytes(data[: len(data) // 2] if number == 5 else data)
    return root


def run(*arguments: Any, code: int = 0) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "headrace", *map(str, arguments), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_info_describes_the_videos(folder: Path) -> None:
    facts = run("info", folder)["video"]
    assert facts["inspected"] == 7
    assert facts["unreadable"] == 1
    assert facts["codecs"] == {"h264": 6}
    assert facts["sizes"] == {"64 x 48": 6}
    assert facts["frames"] == 240
    assert facts["frames_per_second"] == 25


def test_scan_finds_the_truncated_video(folder: Path) -> None:
    bad = run("scan", folder, code=1)["bad_records"]
    assert [Path(entry["file"]).name for entry in bad] == ["5.mp4"]


def test_bench_accepts_video_clips(folder: Path) -> None:
    result = run("bench", folder, "--size", 32, "--batch-size", 2, "--epochs", 1)
    assert result["images_per_second"] > 0
    assert result["stages"]["decode"] > 0


def test_the_work_of_decoding_processes_is_counted() -> None:
    before = Processes().cpu_seconds()
    work = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "done\n"
        while_it_lives = Processes().cpu_seconds() - before
        child.communicate("\n")
    if Path(f"/proc/self/task/{os.getpid()}/children").exists():
        assert while_it_lives > 0.25
    assert Processes().cpu_seconds() - before > 0.25


def test_the_doctor_distinguishes_seeking_from_decoding(folder: Path) -> None:
    good = hr.subset(hr.open(folder), [0, 1, 2, 3])
    steps = [T.CenterVideoClip(4), T.Resize((24, 32))]
    far = hr.Loader(good, steps, batch_size=2)
    share = seek_share(far)
    assert share is not None
    assert share > 0.6  # 18 frames come before the clip's 4, without another key frame
    whole = [T.CenterVideoClip(40), T.Resize((24, 32))]
    assert seek_share(hr.Loader(good, whole, batch_size=2)) == 0
    stages, _ = stages_of(far, None, 0.2)
    seconds = {stage.name: stage.seconds for stage in stages if stage.kind == "decode"}
    assert len(seconds) == 2
    np.testing.assert_allclose(max(seconds.values()) / sum(seconds.values()), share)
    assert any(name.startswith("seeking") for name in seconds)


def test_formats_lists_the_containers_of_videos() -> None:
    assert "mp4" in {codec["name"] for codec in run("formats")["codecs"]}

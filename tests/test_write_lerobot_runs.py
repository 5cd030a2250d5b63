# SPDX-License-Identifier: Apache-2.0
"""Promise: a conversion to a LeRobot dataset is complete or leaves nothing behind, stays within its
memory, and its command says what is lost."""

from __future__ import annotations

import errno
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import videos
from lerobot_written import LENGTHS, TOP, Robot, info_of, table, written

import headrace as hr

pytest.importorskip("av")
pytestmark = pytest.mark.skipif(bool(videos.missing_decoder()), reason="no video decoder")
pytest_plugins = ["lerobot_fixtures"]


def test_only_datasets_of_conversions_are_replaced(robot: Robot, tmp_path: Path) -> None:
    root = written(robot, tmp_path / "out", images="image")
    with pytest.raises(hr.ConfigError, match="HR0415"):
        written(robot, root, images="image")
    written(robot, root, images="image", overwrite=True, robot_type="other")
    assert info_of(root)["robot_type"] == "other"
    with pytest.raises(hr.ConfigError, match="HR0415"):  # its own source
        hr.convert(hr.lerobot(root, cameras=[]), root, "lerobot", overwrite=True)
    (root / "SHA256SUMS").unlink()  # as LeRobot would have written it
    with pytest.raises(hr.ConfigError, match="HR0415"):
        written(robot, root, images="image", overwrite=True)
    assert len(hr.lerobot(root, cameras=[])) == sum(LENGTHS)


def test_an_interrupted_conversion_leaves_nothing_complete(
    robot: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.write.lerobot import tables

    write = tables.FrameTable.write
    calls: list[int] = []

    def interrupted(self: Any, values: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return write(self, values)

    whole = written(robot, tmp_path / "whole", lossless=True)
    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr(tables.FrameTable, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            written(robot, out, lossless=True)
    assert not out.exists()
    written(robot, out, lossless=True)
    assert not out.with_name("out.partial").exists()
    assert (out / "SHA256SUMS").read_text() == (whole / "SHA256SUMS").read_text()


@pytest.mark.parametrize("to", ["lerobot", "hdf5"])
def test_a_full_disk_is_said_without_promises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    if to == "hdf5":
        pytest.importorskip("h5py")
    from headrace.write.containers.hdf5 import Hdf5Writer
    from headrace.write.lerobot.tables import FrameTable

    def full(*values: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FrameTable, "write", full)
    monkeypatch.setattr(Hdf5Writer, "add", full)
    source = hr.records(x=np.arange(4), episode_index=[0] * 4)
    options: dict[str, Any] = {"task": "x", "fps": 10} if to == "lerobot" else {}
    with pytest.raises(hr.StorageError, match="HR0275") as caught:
        hr.convert(source, tmp_path / "out", to, **options)
    assert "start over" in caught.value.hint and "resumes" not in caught.value.hint
    assert to == "hdf5" or not list(tmp_path.iterdir())  # the space is free again


def test_large_episodes_are_several_row_groups(
    robot: Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow's offsets are 32 bits."""
    from headrace.write.lerobot import tables

    monkeypatch.setattr(tables, "_GROUP_BYTES", 40_000)
    root = written(robot, tmp_path / "out", images="image", verify=True)
    file = pq.ParquetFile(root / "data/chunk-000/file-000.parquet")
    assert file.num_row_groups > 2 * len(LENGTHS)
    assert table(root, "data")["index"] == list(range(sum(LENGTHS)))


def test_long_episodes_do_not_hold_the_loaders_memory(tmp_path: Path) -> None:
    source = hr.records(x=np.ones((300, 3000)), episode_index=[0] * 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hr.convert(source, tmp_path / "out", "lerobot", task="x", fps=10, verify=True)


def test_the_command_says_what_is_lost(robot: Robot, tmp_path: Path) -> None:
    from headrace.cli.app import application
    from typer.testing import CliRunner

    table_file = tmp_path / "frames.parquet"
    first = written(robot, tmp_path / "first", images="image")
    table_file.write_bytes((first / "data/chunk-000/file-000.parquet").read_bytes())
    out = tmp_path / "out"
    call = ["convert", str(table_file), "-o", str(out), "--to", "lerobot", "--set", "fps=30"]
    call += ["--set", "task=fold", "--set", "codec=h264"]
    call += ["--set", "fields=action,observation_images_top"]  # names of fields in Parquet files
    call += ["--set", f"rename=observation_images_top={TOP}"]
    result = CliRunner().invoke(application(), call)
    assert result.exit_code == 0, result.output
    assert "lossy video: h264, crf 30, yuv420p" in result.output
    assert "headrace.lerobot(" in result.output
    assert len(hr.lerobot(out)) == sum(LENGTHS)


def test_the_command_takes_lists_and_nothing_else_twice(tmp_path: Path) -> None:
    from headrace.cli.app import application
    from typer.testing import CliRunner

    names = tmp_path / "frames.parquet"
    pq.write_table(pa.table({"episode_index": [0, 0], "a": [1, 2], "b": [3, 4]}), names)
    call = ["convert", str(names), "-o", str(tmp_path / "out"), "--to", "lerobot"]
    call += ["--set", "fps=30", "--set", "task=fold, then wait"]
    result = CliRunner().invoke(application(), [*call, "--set", "task=wait"])
    assert result.exit_code == 2 and "task is given twice" in result.output
    result = CliRunner().invoke(application(), [*call, "--set", "fields=a", "--set", "fields=b"])
    assert result.exit_code == 0, result.output
    record = hr.lerobot(tmp_path / "out")[1]
    assert (record["a"], record["b"], record["task"]) == (2, 4, "fold, then wait")


def test_an_interrupted_command_does_not_promise_to_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.cli.app import application
    from headrace.write.lerobot import tables
    from typer.testing import CliRunner

    def interrupted(*values: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tables.FrameTable, "write", interrupted)
    pq.write_table(pa.table({"episode_index": [0, 0]}), tmp_path / "frames.parquet")
    call = ["convert", str(tmp_path / "frames.parquet"), "-o", str(tmp_path / "out"), "--to"]
    result = CliRunner().invoke(
        application(), [*call, "lerobot", "--set", "fps=30", "--set", "task=x"]
    )
    assert result.exit_code == 130 and "to start over" in result.output

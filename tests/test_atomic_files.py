# SPDX-License-Identifier: Apache-2.0
"""Promise: a written file appears completely or not at all, and no other file is lost."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from headrace.insight.scripts.journal import Journal
from headrace.whole_file import replaced, write_whole

import headrace as hr


def test_existing_files_named_like_temporary_ones_are_preserved(tmp_path: Path) -> None:
    mine = {tmp_path / f"report.html{end}" for end in (".partial", ".new", ".tmp")}
    for path in mine:
        path.write_text("mine")
    write_whole(tmp_path / "report.html", "written")
    assert (tmp_path / "report.html").read_text() == "written"
    assert set(tmp_path.iterdir()) == {*mine, tmp_path / "report.html"}
    assert {path.read_text() for path in mine} == {"mine"}


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("before")
    with pytest.raises(KeyboardInterrupt), replaced(str(path)) as temporary:
        assert os.path.dirname(temporary) == str(tmp_path)
        raise KeyboardInterrupt
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


def test_a_replaced_file_keeps_its_permissions_and_a_link_its_target(tmp_path: Path) -> None:
    path, link = tmp_path / "secret.html", tmp_path / "link.html"
    path.touch(0o600)
    link.symlink_to(path)
    write_whole(link, "written")
    assert link.is_symlink() and path.read_text() == "written"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_unfinished_file_is_never_written_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.urandom", bytes)  # the same number of zeros
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (tmp_path / f".headrace-{bytes(16).hex()}").symlink_to(mine)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "report.html", "written")
    assert mine.read_text() == "mine" and (tmp_path / f".headrace-{bytes(16).hex()}").is_symlink()


def test_only_files_overwritten_by_a_script_are_restored(tmp_path: Path) -> None:
    path, copies = tmp_path / "model.pt", tmp_path / "copies"
    copies.mkdir()
    path.write_text("before")
    other = tmp_path / f"model.pt.headrace-{os.getpid()}"
    other.write_text("mine")
    journal = Journal(str(copies))
    journal._temporary = "/nowhere/"
    journal.opened(str(path), "w", os.O_WRONLY | os.O_TRUNC)
    path.write_text("after")
    journal.restore()
    assert (path.read_text(), other.read_text()) == ("before", "mine")
    assert set(tmp_path.iterdir()) == {path, other, copies}


@pytest.mark.parametrize("shards", [1, 2])
def test_another_file_at_the_partial_of_a_pack_is_not_overwritten(
    pictures: Path, tmp_path: Path, shards: int
) -> None:
    mine = tmp_path / "out.hrpack.partial"
    if shards > 1:
        mine.mkdir()
        mine = mine / "shard-00000.hrpack"
    mine.write_text("mine")
    with pytest.raises(hr.ConfigError, match=r"HR0446[^\n]*\.partial"):
        hr.pack(pictures, tmp_path / "out.hrpack", shards=shards)
    assert mine.read_text() == "mine"

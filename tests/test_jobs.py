# SPDX-License-Identifier: Apache-2.0
"""Promise: a job of many processes, killed at any point, gives the result of one process."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr

PARTS = 3


@pytest.fixture
def source(tmp_path: Path) -> hr.Source:
    """Seven records, two of which are not images."""
    folder = tmp_path / "source"
    hr.convert(_records(), folder, "folder")
    bad = sorted(folder.rglob("*.png"))
    for file in (bad[1], bad[5]):
        file.write_bytes(b"<html>not found</html>")
    return hr.open(folder)


def _records() -> hr.Source:
    pixels = np.arange(7 * 3 * 8 * 8, dtype=np.uint8).reshape(7, 3, 8, 8)
    return hr.records(image=pixels, label=[0, 0, 1, 1, 0, 1, 1])


def files_of(folder: Path, suffix: str) -> list[bytes]:
    return [file.read_bytes() for file in sorted(folder.glob(f"*{suffix}"))]


@pytest.mark.parametrize("to", ["tar", "recordio", "pack"])
def test_parts_equal_the_shards_that_one_process_writes(
    source: hr.Source, tmp_path: Path, to: str
) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    options: dict[str, Any] = {} if to == "pack" else {"to": to}
    job = hr.jobs.Job("pack" if to == "pack" else "convert", source.path, out, PARTS, options)
    job = pickle.loads(pickle.dumps(job))
    assert not job(2)["kept"] and not job(0)["kept"]
    with pytest.raises(hr.Error):  # an unfinished job is not opened as a dataset
        hr.open(out)
    assert not job(1)["kept"]
    manifest = hr.jobs.merge(out, verify=True)
    if to == "pack":
        hr.pack(source, whole, shards=PARTS)
    else:
        hr.convert(source, whole, to, shards=PARTS)
    suffix = {"tar": ".tar", "recordio": ".rec", "pack": ".hrpack"}[to]
    assert len(files_of(out, suffix)) == PARTS
    assert files_of(out, suffix) == files_of(whole, suffix)
    again, once = hr.open(out), hr.open(whole)
    assert again.fingerprint == once.fingerprint
    assert again.column("label").tolist() == source.column("label").tolist()
    assert manifest["records"] == 7 and manifest["unusable_count"] == 2
    assert [entry["record"] for entry in manifest["unusable"]] == [
        number for number in range(7) if b"html" in source.engine.read(number)["image"]
    ]
    assert json.loads((out / "manifest.json").read_text()) == manifest
    summed = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=out)
    assert summed.returncode == 0
    assert job(1)["kept"] and hr.jobs.merge(out) == manifest


def test_a_complete_part_is_kept_and_a_damaged_one_remade(
    source: hr.Source, tmp_path: Path
) -> None:
    job = hr.jobs.Job("convert", source, tmp_path / "out", PARTS, {"to": "tar"})
    reports = [job(part) for part in range(PARTS)]
    file = tmp_path / "out" / "part-00001-of-00003.tar"
    assert [entry["file"] for entry in reports[1]["files"]] == [file.name]
    stamp, whole = file.stat().st_mtime_ns, file.read_bytes()
    assert job(1)["kept"] and file.stat().st_mtime_ns == stamp
    file.write_bytes(whole[:-1] + b"x")  # of the same size
    assert hr.jobs.missing(tmp_path / "out") == []
    with pytest.raises(hr.DataError, match=r"HR0280.*1 of 3 parts are missing.*: 1"):
        hr.jobs.merge(tmp_path / "out", verify=True)
    assert not job(1)["kept"] and file.read_bytes() == whole
    file.unlink()
    assert hr.jobs.missing(tmp_path / "out") == [1]
    assert not job(1)["kept"] and file.read_bytes() == whole


def test_parts_of_another_job_are_refused(source: hr.Source, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def make(src: Any, parts: int = PARTS, to: str = "tar", dest: Path = out) -> Any:
        return hr.convert(src, dest, to, part=(0, parts))

    make(source)
    other = hr.subset(source, [1, 0, 2, 3, 4, 5, 6])
    for arguments in ({"src": other}, {"src": source, "parts": 4}, {"src": source, "to": "pack"}):
        with pytest.raises(hr.ConfigError, match=r"HR0279|HR0414"):
            make(**arguments)
    # Copied together by hand: their entries combine them.
    for part in (1, 2):
        hr.convert(other, tmp_path / "other", "tar", part=(part, PARTS))
    for file in (tmp_path / "other").rglob("part-0000[12]*.*"):
        shutil.copy(file, out / file.relative_to(tmp_path / "other"))
    with pytest.raises(hr.ConfigError, match=r"HR0279.*part-00001-of-00003.*fingerprint"):
        hr.jobs.merge(out)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(hr.ConfigError, match=r"HR0279.*notes.txt was not written by a job"):
        make(source, dest=tmp_path / "mine")
    with pytest.raises(hr.ConfigError, match="HR0279"):
        hr.jobs.merge(tmp_path / "mine")
    for part in ((3, 3), (-1, 3), "3-4", (0, 8), 1, (0, 0)):
        with pytest.raises(hr.ConfigError, match="HR0160"):
            hr.convert(source, tmp_path / "wrong", "tar", part=part)
    with pytest.raises(hr.ConfigError, match=r"HR0414.*no parts"):
        make(source, to="folder", dest=tmp_path / "wrong")


# Dies at the given step among those that change the disk; or runs to the end.
KILLED = """
import os, shutil, signal, sys
from pathlib import Path
import headrace as hr
from headrace.convert import convert
import headrace.write.conversion, headrace.jobs.folder, headrace.write.containers.tar

def job(out, die_at):
    steps = 0
    def counted(call):
        def step(*args, **kwargs):
            nonlocal steps
            steps += 1
            if steps == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)
        return step
    for name in ("replace", "rename", "link", "unlink", "mkdir", "rmdir"):
        setattr(os, name, counted(getattr(os, name)))
    hr.convert(sys.argv[1], out, "tar", part=(1, 3), threads=1)
    if die_at == 0:
        Path(out + ".steps").write_text(str(steps))

def child(out, die_at):
    pid = os.fork()
    if pid == 0:
        try:
            job(out, die_at)
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1]

whole = sys.argv[2]
assert child(whole, 0) == 0
steps = int(Path(whole + ".steps").read_text())
for die_at in range(1, steps + 1):
    out = f"{sys.argv[2]}-{die_at}"
    assert child(out, die_at) == signal.SIGKILL, die_at
    assert child(out, 0) == 0, die_at
    for place in ("part-00001-of-00003.tar", ".job/part-00001-of-00003.json", ".job/job.json"):
        assert Path(out, place).read_bytes() == Path(whole, place).read_bytes(), (die_at, place)
    found = sorted(str(path.relative_to(out)) for path in Path(out).rglob("*"))
    expected = sorted(str(path.relative_to(whole)) for path in Path(whole).rglob("*"))
    assert found == expected, (die_at, found)
    shutil.rmtree(out)
print(steps)
"""


def test_after_a_kill_at_any_step_the_next_process_makes_the_same_part_and_cleans_up(
    source: hr.Source, tmp_path: Path
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, source.path, str(tmp_path / "out")],
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > 10


def test_only_files_made_by_a_part_are_removed(source: hr.Source, tmp_path: Path) -> None:
    mine = tmp_path / "mine" / "notes.txt"
    mine.parent.mkdir()
    mine.write_text("kept")
    name = f"part-00000-of-{PARTS:05}"

    def refused(call: Any, link: Path) -> None:
        with pytest.raises(hr.ConfigError, match=r"HR0279.*was not made by a job"):
            call()
        assert mine.read_text() == "kept"
        link.unlink()

    out = tmp_path / "out"
    unfinished = out / "unfinished"
    unfinished.mkdir(parents=True)
    job = hr.jobs.Job("convert", source.path, out, PARTS, {"to": "tar"})
    (unfinished / name).symlink_to(mine.parent)
    refused(lambda: job(0), unfinished / name)
    for part in range(PARTS):
        job(part)
    (unfinished / "notes").symlink_to(mine.parent)
    refused(lambda: hr.jobs.merge(out), unfinished / "notes")
    unfinished.rmdir()
    unfinished.symlink_to(mine.parent)
    refused(lambda: hr.jobs.merge(out), unfinished)
    assert hr.jobs.merge(out)["records"] == 7


def test_indexes_of_parts_merge_into_the_index_of_the_dataset(tmp_path: Path) -> None:
    source = hr.open(Path(__file__).parent.parent / "examples" / "images")
    once = hr.index(source, tmp_path / "whole.rows", threads=1)
    for part in range(PARTS):
        hr.index(source, tmp_path / "indexed", part=(part, PARTS), threads=2)
    manifest = hr.jobs.merge(tmp_path / "indexed")
    assert manifest["indexed"] == once["indexed"] > 3
    whole = (tmp_path / "whole.rows").read_bytes()
    assert (tmp_path / "indexed" / "index.rows").read_bytes() == whole
    loader = hr.Loader(source, batch_size=1, ragged="list", index=tmp_path / "indexed/index.rows")
    assert sum(1 for _ in loader) == len(source)
    with pytest.raises(hr.ConfigError, match="HR0160"):
        hr.index(source, part=(0, PARTS))


def test_parts_of_a_subsets_index_equal_those_of_its_source(tmp_path: Path) -> None:
    """Equal to the index of the whole; for combinations, the combination's."""
    photos = hr.open(Path(__file__).parent.parent / "examples" / "images")
    some = hr.subset(hr.subset(photos, [5, 2, 3]), [2, 0])
    sources = {
        "subset": some,
        "concat": hr.concat(photos, some),
        "mix": hr.mix(photos, photos, weights=[1, 2]),
        "of a mix": hr.subset(hr.mix(photos, photos), [0, 3]),
        "join": hr.join(photos, photos, rename={"image": "other"}),
    }
    for name, source in sources.items():
        out = tmp_path / name
        once = hr.index(source, out.with_suffix(".rows"), threads=1)
        for part in range(PARTS):
            hr.index(source, out, part=(part, PARTS), threads=1)
        manifest = hr.jobs.merge(out, verify=True)
        assert (manifest["records"], manifest["indexed"]) == (once["records"], once["indexed"])
        assert (out / "index.rows").read_bytes() == out.with_suffix(".rows").read_bytes()
        with hr.Loader(source, batch_size=1, ragged="list", index=out / "index.rows") as loader:
            assert sum(1 for _ in loader) == len(source)
    assert not hr.index(photos, tmp_path / "all", part=(0, 2))["kept"]
    assert hr.index(some, tmp_path / "all", part=(0, 2))["kept"]


def test_a_part_that_was_converted_is_hashed_once(
    source: hr.Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.jobs import folder
    from headrace.write import conversion

    hashed: list[Path] = []
    find = folder.sha256
    for module in (folder, conversion):
        monkeypatch.setattr(module, "sha256", lambda path: hashed.append(path) or find(path))
    report = hr.convert(source, tmp_path / "out", "tar", part=(0, PARTS))
    assert len(hashed) == 1
    whole = (tmp_path / "out" / report["files"][0]["file"]).read_bytes()
    assert report["files"][0]["sha256"] == hashlib.sha256(whole).hexdigest()


def test_progress_of_a_part_ends_at_its_records(
    source: hr.Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packs give the remainder to the first parts, conversions to the last ones."""
    pytest.importorskip("typer")
    from headrace.cli import output
    from headrace.cli.part import records_of

    shown: list[int] = []

    class Shown:
        def __init__(self, _: str, total: int, **__: Any) -> None:
            shown.append(total)

        def __enter__(self) -> Any:
            return lambda done: None

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(output, "progress", Shown)
    for part in range(PARTS):
        _command(("pack", source.path, "-o", tmp_path / "packed", "--part", f"{part}/{PARTS}"))
    manifest = hr.jobs.merge(tmp_path / "packed")
    assert shown == [file["records"] for file in manifest["files"]] == [3, 2, 2]
    assert [records_of(f"{part}/{PARTS}", 7) for part in range(PARTS)] == [2, 2, 3]


def test_one_process_at_a_time_makes_a_part(source: hr.Source, tmp_path: Path) -> None:
    from headrace.jobs.folder import locked

    with (
        locked(tmp_path / "out" / "unfinished" / "part-00000-of-00003"),
        pytest.raises(hr.ConfigError, match="HR0277"),
    ):
        hr.convert(source, tmp_path / "out", "tar", part=(0, 3))
    assert not hr.convert(source, tmp_path / "out", "tar", part=(0, 3))["kept"]


def run(*arguments: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    return _command(arguments), capsys.readouterr().out


def _command(arguments: Iterable[object]) -> int:
    """Its exit code."""
    pytest.importorskip("typer")
    pytest.importorskip("rich")
    from headrace.cli.app import application

    with pytest.raises(SystemExit) as ended:
        application()([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


def test_the_command_line_runs_a_job(
    source: hr.Source, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    make = ("convert", source.path, "-o", out, "--to", "tar")
    assert run(*make, "--part", "0/3", capsys=capsys)[0] == 0  # with a bad record: it is still made
    assert run("merge", out, "--missing", capsys=capsys) == (1, "1-2\n")
    assert run("merge", out, capsys=capsys)[0] == 3
    for part in ("1/3", "2/3"):
        assert run(*make, "--part", part, capsys=capsys)[0] == 0
    assert run("merge", out, "--missing", capsys=capsys) == (0, "")
    code, told = run("merge", out, "--json", capsys=capsys)
    assert code == 3 and json.loads(told)["unusable_count"] == 2
    assert "there already" in run(*make, "--part", "1/3", capsys=capsys)[1]


def test_scans_of_parts_list_the_same_as_one_scan(
    source: hr.Source, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "scanned"
    for part in range(PARTS):
        code, _ = run("scan", source.path, "-o", out, "--part", f"{part}/3", capsys=capsys)
        assert code == 0
    assert run("merge", out, capsys=capsys)[0] == 3
    assert run("scan", source.path, "-o", tmp_path / "whole.jsonl", capsys=capsys)[0] == 1
    assert (out / "bad.jsonl").read_text() == (tmp_path / "whole.jsonl").read_text()
    assert run("scan", source.path, "--part", "0/3", capsys=capsys)[0] == 2

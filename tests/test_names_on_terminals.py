# SPDX-License-Identifier: Apache-2.0
"""Promise: names in a dataset are printed with escapes, and never control the terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from headrace.cli import output
from headrace.printable import printable

import headrace as hr

CLASSES = [
    b"[b]x[0]",
    b"[red]a[link=x]",
    b"\x1b]0;owned\x07\x1b[2J",
    b"no utf-8 \xff\xfe",
    b"tail\\",
]


@pytest.fixture(scope="module")
def hostile(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset whose classes and files have hostile names, some of them broken."""
    root = tmp_path_factory.mktemp("names") / os.fsdecode(b"d[/b]\x1b[31m\xff")
    picture = next(pictures.glob("*/*.png"))
    for name in CLASSES:
        folder = root / os.fsdecode(name)
        folder.mkdir(parents=True)
        shutil.copy(picture, folder / os.fsdecode(b"[,dim]\x1b[1m\xff\nrecord 7 is fine.png"))
        (folder / os.fsdecode(b"broken [b]\x1b[8m\xfe.png")).write_bytes(b"\x89PNG\r\n\x1a\n0")
    (root / "list.txt").write_text("a.png [/b]\nb.png [/red]\x1b[5m\n")
    return root


def commands(root: Path, out: Path) -> list[list[str]]:
    for name in ("x[", "un[", "["):
        (out / name).mkdir()
    pack = str(out / "x[/b]\x1b[1m.hrpack")
    return [
        ["info", str(root)],
        ["info", str(root / "list.txt")],
        ["scan", str(root)],
        ["pack", str(root), "-o", pack],
        ["info", pack],
        ["unpack", pack, "-o", str(out / "un[/b]packed")],
        ["index", str(root), "-o", str(out / "[/b].index")],
        ["convert", str(root), "-o", str(out / "x[/b].tar"), "--to", "tar"],
        ["convert", str(root), "-o", str(out / "x[/b].tar"), "--to", "tar"],
        ["info", str(out / "nothing[/b]\x1b[1m")],
    ]


def run(arguments: list[str], **given: object) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONUTF8": "0", "LC_ALL": "C.UTF-8"}
    command = [sys.executable, "-m", "headrace", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, **given)  # type: ignore[call-overload, no-any-return]


def test_every_command_shows_hostile_names_and_exits_normally(
    hostile: Path, tmp_path: Path
) -> None:
    for arguments in commands(hostile, tmp_path):
        ended = run(arguments)
        said = (ended.stdout + ended.stderr).decode()
        assert ended.returncode in (0, 1, 2, 3) and "Traceback" not in said, (arguments, said)
        assert not set("\x1b\x07\x9b") & set(said), (arguments, said)
        assert "\nrecord 7 is fine" not in said
    assert b"[/b]" in run(["info", str(hostile)]).stdout


def test_hostile_names_are_escaped_on_a_terminal_too(hostile: Path) -> None:
    """With colors and an image: rich's markup still works, and the names are not interpreted as
    markup."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.pop("NO_COLOR", None)
        os.environ["TERM"] = "xterm-256color"
        os.execv(sys.executable, [sys.executable, "-m", "headrace", "info", str(hostile)])
    seen = b""
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"\x1b[1m" in seen  # rich's own
    assert b"\x1b]0;owned" not in seen and b"\x1b[2J" not in seen and b"\x1b[31m" not in seen


def test_json_preserves_the_names(hostile: Path, tmp_path: Path) -> None:
    for arguments in (["info", str(hostile)], ["scan", str(hostile)]):
        ended = run([*arguments, "--json"])
        assert b"Traceback" not in ended.stderr
        answer = json.loads(ended.stdout)
    assert set(map(os.fsencode, hr.open(hostile).classes)) == set(CLASSES)
    answer = json.loads(run(["info", str(hostile), "--json"]).stdout)
    assert set(map(os.fsencode, answer["classes"])) == set(CLASSES)


def test_printable_names_are_unchanged() -> None:
    text = "caf\u00e9 \u65e5\u672c\u8a9e \U0001f600 e\u0301 [b]\\ 'quotes'\n\tnext"
    assert printable(text) == text
    assert "\n" not in printable(text, lines=False)
    for code in (*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2066, 0xDCFF):
        shown = printable(chr(code), lines=False)
        assert len(shown) >= 4 and shown.isprintable()


def test_a_console_of_the_command_line_is_printable(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.table import Table

    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    table = Table("a\x1bb")
    table.add_row("c\x1bd\udcff")
    output.console().print(table, "e\x1bf")
    assert "\x1b" not in stream.getvalue() and "c\\x1bd\\xff" in stream.getvalue()

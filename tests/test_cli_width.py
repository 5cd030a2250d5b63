# SPDX-License-Identifier: Apache-2.0
"""On a terminal of 80 columns no line is longer, and no word is broken, however long names are."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from processes import run_on_terminal

pytest.importorskip("typer")
pytest.importorskip("rich")

PICTURES = Path(__file__).parent.parent / "examples" / "images"
LONG = "a_class_whose_name_is_" + "rather_" * 9 + "long"


def seen(folder: Path, *arguments: str, errors: bool = False) -> list[str]:
    """The lines that a person sees, without the styles and without the progress bar, which comes
    with the errors."""
    code, out = run_on_terminal(
        *arguments, columns=80, folder=folder, with_errors=errors, NO_COLOR="1"
    )
    assert code in (0, 1) or errors, out
    return re.sub(r"\x1b\[[\d;]*m", "", out).splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images, one of them damaged, in classes with long names; packed, too."""
    import headrace

    root = tmp_path_factory.mktemp("wide")
    data = root / ("data_" + "that_lies_deep_" * 6)
    for name in (LONG, "b"):
        (data / name).mkdir(parents=True)
        shutil.copy(PICTURES / "cat.jpg", data / name)
    (data / LONG / ("broken_" * 12 + ".jpg")).write_bytes(b"\xff\xd8\xff\xe0 no picture")
    headrace.pack(data, root / "x.hrpack")
    return root


COMMANDS = [
    "bench {good} --epochs 1 --size 32",
    "info {data}",
    "info x.hrpack",
    "scan {data}",
    "index {data}",
    "index {data} -o rows",
    "pack {data} -o p.hrpack",
    "pack {good} -o {far}",
    "unpack x.hrpack -o out",
    "convert {good} -o c.tar --to tar",
    "doctor {good} --seconds 0.5",
    "formats",
    "formats coco",
    "formats jpeg",
    "operators",
    "operators RandomResizedCrop",
    "explain HR0305",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_lines_fit_80_columns(command: str, folder: Path) -> None:
    (data,) = folder.glob("data_*")
    places = {"data": data.name, "good": f"{data.name}/b", "far": "f" * 70 + ".hrpack"}
    lines = seen(folder, *command.format(**places).split())
    assert lines
    for line in lines:
        # Text that is to be copied is not wrapped; the terminal does that.
        whole = ("record ", "use it:", "open it:", "<Source ")
        copied = line.startswith(whole) or line.endswith("b/cat.jpg")
        assert len(line.rstrip()) <= 80 or copied, line


def test_warnings_errors_and_output_fit_80_columns(tmp_path: Path) -> None:
    from headrace.printable import fitted

    import headrace
    from headrace import transforms as T

    shutil.copy(PICTURES / "cat.jpg", tmp_path / "1.jpg")
    (tmp_path / "1.txt").write_text("0 .5 .5 .1 .1\n")
    warned = seen(tmp_path, "info", ".", errors=True)
    refused = seen(tmp_path, "info", "nothing", errors=True)
    assert "such as 1.txt" in " ".join(warned) and "  help: " in "\n".join(refused)
    steps = [T.Resize((8, 8)), T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.RandomAffine(30, (0.1, 0.1))]
    loader = headrace.Loader(PICTURES, steps, batch_size=1)
    for line in [*warned, *refused, *fitted(repr(loader), 80).splitlines()]:
        assert len(line) <= 80 or "/" in max(line.split(), key=len), line
    assert fitted(repr(loader), 80).split() == repr(loader).split()  # nothing else


def test_a_long_class_name_keeps_its_ends(folder: Path) -> None:
    (data,) = folder.glob("data_*")
    (line,) = [line for line in seen(folder, "info", data.name) if "a_class_whose" in line]
    assert "…" in line and "long, b" in line and LONG not in line


def test_the_key_of_a_bad_record_is_complete_so_that_it_can_be_copied(folder: Path) -> None:
    (data,) = folder.glob("data_*")
    (broken,) = (data / LONG).glob("broken*")
    assert f"record 0: {broken}" in seen(folder, "scan", data.name)


def test_ellipses_are_in_the_middle() -> None:
    from headrace.cli.output import shortened

    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("abcdefghij", 7) == "abc…hij"
    assert shortened("abcdefghij", 6) == "abc…ij"
    assert len(shortened("x" * 500, 80)) == 80

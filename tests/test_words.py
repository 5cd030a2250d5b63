# SPDX-License-Identifier: Apache-2.0
"""Promise: tools/check_words.py rejects wording that readers stumble over, and says why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def check(root: Path) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "tools" / "check_words.py"), str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("text", "words", "reason"),
    [
        ("## Of batches", "Of", "begin with the thing itself"),
        ("Sound and moving pictures.", "moving pictures", "say video"),
        ("A picture is decoded.", "picture", "say image"),
        ("An own decoder is faster: an own one.", "an own", "its own"),
        ("Values that are none are refused.", "that are none", "say invalid"),
        ("What a framework has not is refused.", "has not", "say lacks"),
        ("It takes 3 ms a batch.", "3 ms a batch", 'say "per"'),
        ("Whoever asks gets it, and nobody else.", "Whoever", "say the caller"),
        ("It is asked for before each epoch.", "is asked for", "say requested"),
        ("The epoch goes on.", "goes on", "say continues"),
        ("Files that were changed are put back.", "are put back", "say restored"),
        ("The loader was given up.", "was given up", "say abandoned"),
        ("Where batches are wanted.", "are wanted", "say requested"),
        ("The device knows no streams.", "knows no", "say unknown"),
        ("It waits for ever.", "for ever", "say forever"),
        ("The key stands before the value.", "stands before", "say is"),
        ("## Where files lie", "lie", "name the subject"),
        ("`--skip` may be given again.", "may be given again", "say repeatable"),
        ("Normalised colours.", "Normalised", "American"),
        ("Images of uint8 and boxes of pixels.", "boxes of pixels", "say uint8 images"),
        ("The file begins like a pack.", "begins like a", "signature"),
        ("The last batch is filled up.", "filled up", "say padded"),
        ("Each record comes once.", "record comes once", "say is delivered"),
        ("Supported are Opus and Vorbis.", "Supported are", "subject first"),
        ("The same at every level.", "at every level", "say SIMD level"),
        ("Convert it, or leave it out.", "or leave it out", "say skip"),
        ("Its data goes beyond the file.", "goes beyond", "say extends beyond"),
        ("The index is made again.", "is made again", "say recreate"),
        ("It reads so many records.", "so many records", "this number of"),
        ("The offset is that of the one before.", "is that of", "same as"),
        ("It can be read once only.", "once only", "only once"),
    ],
)
def test_each_rejected_wording_has_its_reason(
    tmp_path: Path, text: str, words: str, reason: str
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(f"# A page\n\n{text}\n")
    code, out = check(tmp_path)
    assert code == 1
    assert f'docs/a.md:3: "{words}": ' in out and reason in out


@pytest.mark.parametrize(
    ("file", "text", "words", "reason"),
    [
        ("docs/a.md", "```\nslot ──> one field a frame\n```\n", "one field a frame", 'say "per"'),
        ("docs/a.md", "```\npictures ──> slot\n```\n", "pictures", "say image"),
        ("headrace/a.h", "// The owner guards it.\n", "owner guards", "whose mutex"),
        (
            "headrace/a.cc",
            "int x;  // bytes from `begin` on\n",
            "from `begin` on",
            "say starting at",
        ),
        ("headrace/a.cc", "// Of each record.\n", "Of", "begin with the thing itself"),
        ("python/a.py", '"""Reads it all. ConfigError HR0160."""\n', ". ConfigError", "say when"),
        ("python/a.py", '"""HR0160 if it is 0."""\n', "HR0160 if", "say Raises"),
        ("python/a.py", '"""The rows. TypeError if none."""\n', ". TypeError if", "say Raises"),
        ("headrace/a.cc", "// To be called first.\n", "To be called", "must be called"),
        ("headrace/a.cc", "// Its order is that of the file.\n", "is that of", "same as"),
        ("python/a.py", '"""As Caffe; sizes as OpenCV has them."""\n', "as OpenCV", "say as in"),
        ("python/a.py", '"""A step. Args: a: time."""\n', ". Args:", "begin a line"),
        ("python/a.py", 'x = "its header promises 9"\n', "header promises", "say declares"),
        ("python/a.py", "x = 1  # the values are put back\n", "are put back", "say the caller"),
    ],
)
def test_diagrams_and_comments_are_checked(
    tmp_path: Path, file: str, text: str, words: str, reason: str
) -> None:
    (tmp_path / file).parent.mkdir()
    (tmp_path / file).write_text(text)
    code, out = check(tmp_path)
    assert code == 1
    assert f"{file}:" in out and f'"{words}' in out and reason in out


def test_code_and_links_are_not_checked(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    text = "`examples/pictures`, [images](../examples/pictures)\n\n```sh\nls pictures\n```\n"
    (tmp_path / "docs" / "a.md").write_text(f"# A page\n\n{text}")
    assert check(tmp_path) == (0, "0 breaches\n")


def test_this_repository_is_clean() -> None:
    code, out = check(ROOT)
    assert code == 0, out

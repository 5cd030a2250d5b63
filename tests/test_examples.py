# SPDX-License-Identifier: Apache-2.0
"""Every example runs unmodified; those that train run for two epochs."""

from __future__ import annotations

from pathlib import Path

import fork_server
import pytest
from processes import LIMIT

ROOT = Path(__file__).parent.parent
FOLDERS = [ROOT / "examples", ROOT / "examples/recipes", ROOT / "examples/devices"]
EXAMPLES = sorted(path for folder in FOLDERS for path in folder.glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    text = example.read_text()
    modules = fork_server.TORCH if "torch" in text else fork_server.COMMAND_LINE
    code = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
    words = ["--epochs", 2] if '"--epochs"' in text else []
    done = fork_server.run(modules, code, example, *words, folder=tmp_path, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"


def test_there_are_images_and_each_has_a_source_and_a_license() -> None:
    folder = ROOT / "examples" / "images"
    pictures = {path.name for path in folder.glob("*.jpg")}
    lines = [
        line for line in (folder / "README.md").read_text().splitlines() if line.startswith("| `")
    ]
    assert {line.split("`")[1] for line in lines} == pictures
    assert all("CC0" in line or "public domain" in line for line in lines)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1_000_000

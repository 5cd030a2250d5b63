# SPDX-License-Identifier: Apache-2.0
"""Files about the project agree with the project: one version, links that resolve."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headrace as hr

ROOT = Path(__file__).parent.parent


def test_the_citation_has_the_version_of_the_package() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", text, re.MULTILINE) == [hr.__version__]


def test_the_changelog_begins_with_the_current_version() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert hr.__version__ in headings[0]


@pytest.mark.parametrize("name", ["CHANGELOG.md", "SECURITY.md"])
def test_links_in_project_files_resolve(name: str) -> None:
    links = re.findall(r"\]\(([^)#]+)", (ROOT / name).read_text())
    assert links
    for link in links:
        assert (ROOT / link).exists(), link

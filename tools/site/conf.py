# SPDX-License-Identifier: Apache-2.0
"""Settings of Sphinx for the site that tools/site/make_site.py builds."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
from typing import Any

project = "Headrace"
copyright = "the authors of Headrace"
release = importlib.metadata.version("headrace")
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
myst_heading_anchors = 4  # with GitHub's anchors, so that a link works in both
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the signature has them
napoleon_use_rtype = False
python_maximum_signature_line_length = 80
highlight_language = "text"

html_theme = "furo"
html_title = "Headrace"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#0b6e75", "color-brand-content": "#0b6e75"},
    "dark_css_variables": {"color-brand-primary": "#4fc3c7", "color-brand-content": "#5fd0d4"},
}
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True


def parameters_as_fields(
    _app: Any, _what: str, _name: str, value: Any, _options: Any, lines: list[str]
) -> None:
    """Lines "name: text" about a parameter, as in the package's docstrings, converted for
    Sphinx."""
    try:
        names = set(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        names = set()
    out: list[str] = []
    inside = False
    for line in lines:
        match = re.match(r"(\w+): +(.*)", line)
        is_parameter = match is not None and match[1] in names
        if match and is_parameter:
            if not inside:
                out.append("")
            line = f":param {match[1]}: {match[2]}"
        elif inside and line.strip():
            line = "    " + line.strip()
        inside = is_parameter or (inside and bool(line.strip()))
        out.append(re.sub(r"\bdocs/([\w/-]+)\.md", r":doc:`/\1`", without_emphasis(line)))
    lines[:] = out


def without_emphasis(line: str) -> str:
    """A single asterisk is a wildcard's or a parameter's, never emphasis; code is unchanged."""
    if line.lstrip().startswith((">>>", "...")):
        return line
    parts = re.split(r"(``.*?``|\*\*\S.*?\S\*\*)", line)
    return "".join(part if at % 2 else part.replace("*", r"\*") for at, part in enumerate(parts))


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", parameters_as_fields)

# SPDX-License-Identifier: Apache-2.0
"""The files that `headrace doctor` writes: a report and a trace."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli import output

if TYPE_CHECKING:
    from headrace.insight.report.report import Report


def check(html: Path | None, trace: Path | None, merged: Path | None) -> None:
    """Rejects files that could not be written, before a long examination."""
    output.writable("--html", html)
    output.writable("--trace", trace)
    if merged is not None and trace is None:
        output.fail(
            f"headrace: --merge-trace {merged}: give the output file with --trace FILE",
            output.USAGE,
        )


def show(report: Report) -> None:
    """Prints the text; on a terminal, wrapped at its width and with bars if its encoding has
    them."""
    from headrace.insight.report import text

    columns = shutil.get_terminal_size().columns if output.is_terminal() else 0
    bars = columns > 0 and (sys.stdout.encoding or "").lower().startswith("utf")
    shown = text.of(report, columns, bars)
    output.console().print(shown, end="", markup=False, soft_wrap=True)


def write(report: Report, html: Path | None, trace: Path | None, merged: Path | None) -> None:
    """Writes the requested files. ``merged``: a trace of PyTorch's profiler to merge ours into."""
    from headrace.insight.report.trace import merge

    try:
        if html is not None:
            report.html(html)
        if trace is not None and merged is None:
            report.trace(trace)
        elif trace is not None and merged is not None:
            with tempfile.TemporaryDirectory() as folder:
                ours = Path(folder) / "the examination"
                report.trace(ours)
                merge(ours, merged, trace)
    except OSError as error:
        output.fail(f"headrace: {error}", output.ENVIRONMENT)

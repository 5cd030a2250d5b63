# SPDX-License-Identifier: Apache-2.0
"""The result of an examination: numbers for machines, and the same in plain words."""

from __future__ import annotations

from pathlib import Path

from headrace.insight.report.results import Results
from headrace.whole_file import write_whole


class Report(Results):
    """A verdict and the measurements behind it. ``str()`` is for reading, ``json()`` for machines.

    verdict: "fed", "consumer", "unsure", or what limits the input: "storage", "small-files",
    "decode", "operator", "python", "workers", "collate", "memory", "copy".
    stall_share: fraction of the loop's time spent waiting for data, 0..1; None without a step.
    rates: records per second by experiment. resources: what each resource could sustain.
    remedies: name, what to do, predicted_low and predicted_high in records per second, best first.
    """

    def html(self, path: str | Path) -> None:
        """Writes it as one self-contained HTML page without scripts. Raises OSError if ``path``
        cannot be written.
        """
        from headrace.insight.report import page

        write_whole(path, page.of(self).html())

    def trace(self, path: str | Path) -> None:
        """Writes the timeline in Chrome's JSON format, which ui.perfetto.dev opens. Compressed if
        ``path`` ends in .gz. ``headrace.insight.report.trace.merge`` puts it into a trace of
        PyTorch's profiler. Raises OSError if ``path`` cannot be written.
        """
        from headrace.insight.report import trace

        trace.write(trace.trace_of(self), path)

    def __str__(self) -> str:
        from headrace.insight.report import text

        return text.of(self)

    def __repr__(self) -> str:
        return str(self)

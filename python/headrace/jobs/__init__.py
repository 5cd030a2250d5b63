# SPDX-License-Identifier: Apache-2.0
"""Jobs: many processes that together convert, pack or index a dataset, each making some of the
parts. A part is identified by its number, and has the same records and bytes on every machine and
every time, so any scheduler will do: Slurm, Kubernetes, xargs, Ray.

>>> import headrace as hr, numpy as np, os, tempfile
>>> out = os.path.join(tempfile.mkdtemp(), "out")
>>> src = hr.records(x=np.arange(6, dtype=np.float32).reshape(3, 2), label=[2, 0, 1])
>>> make = hr.jobs.Job("convert", src, out, parts=2, options={"to": "tfrecord"})
>>> [make(part)["records"] for part in range(make.parts)]
[1, 2]
>>> hr.jobs.merge(out)["records"], hr.open(out).column("label").tolist()
(3, [2, 0, 1])
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

COMMANDS = ("convert", "pack", "index")


@dataclasses.dataclass(frozen=True)
class Job:
    """Makes a part by its number: ``job(3)``, in any process. It can be pickled if the source can.

    command: "convert", "pack" or "index". source: a path, or what ``headrace.open`` takes. dest:
    the folder that all parts are written to. options: of ``headrace.convert`` and so on.
    Returns the part's entry in the manifest, and "kept": whether it already existed and was
    complete.
    """

    command: str
    source: Any
    dest: str | os.PathLike[str]
    parts: int
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.command not in COMMANDS:
            from headrace import arguments

            raise arguments.BAD_VALUE.error(
                f"command must be one of {', '.join(COMMANDS)} (got {self.command!r})"
            )

    def __call__(self, part: int) -> dict[str, Any]:
        from headrace.convert import convert
        from headrace.index import index
        from headrace.pack import pack

        make: Any = {"convert": convert, "pack": pack, "index": index}[self.command]
        report: dict[str, Any] = make(
            self.source, self.dest, part=(part, self.parts), **self.options
        )
        return report


def merge(dest: str | os.PathLike[str], *, verify: bool = False) -> dict[str, Any]:
    """Completes a job: checks that all parts exist and belong to one dataset; then ``dest`` opens
    as one source.

    verify: compare the SHA-256 of every file, not only its size. Writes ``manifest.json``, with
    the entries of all parts and the lists of unusable records, and ``SHA256SUMS``. Returns the
    manifest. Raises DataError HR0280 if parts are missing, ConfigError HR0279 if ``dest`` is not a
    job's folder or has parts of several datasets, and HR0277 while a part is being written.
    """
    from headrace.jobs.merging import merged

    return merged(dest, verify)


def missing(dest: str | os.PathLike[str]) -> list[int]:
    """Numbers of the missing parts, so that you can make them. Raises ConfigError HR0279 if
    ``dest`` is not a job's folder.
    """
    from headrace.jobs.merging import missing_parts

    return missing_parts(dest)

# SPDX-License-Identifier: Apache-2.0
"""The doctor: is data the bottleneck, which part of it, and what to change. ``hr.doctor(loader)``.

`examination` runs the `experiments`, which use `headrace.measure` and `probes` (what a loader of
one kind does for a record), on one set of `findings`. `conclusion` makes of those a case of the
`model`, which is the law; `verdict` and `remedies` conclude from it, `ranks` from several
processes. `scripts` examines training scripts as they are. `reports` is what people see.

The package is itself the function, so that ``hr.doctor(...)`` and ``import headrace.doctor.model``
can both be written, and nothing of it is imported before one of them is.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.doctor.reports.report import Report


class _Doctor(types.ModuleType):
    def __call__(self, loader: Any, step: Any = None, **options: Any) -> Report:
        """See headrace.doctor.call.doctor."""
        from headrace.doctor.call import doctor

        return doctor(loader, step, **options)


sys.modules[__name__].__class__ = _Doctor

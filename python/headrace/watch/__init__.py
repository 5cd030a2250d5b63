# SPDX-License-Identifier: Apache-2.0
"""Watches a run that goes on: ``with hr.watch(loader) as seen:``.

`meter` times the loop, batch by batch; `tap` puts it into the loader's own iteration; `window` says
what the last half minute was like; `stalls` notices when the input falls behind, and `changes` what
changed. `status` is the line, `exposition` and `endpoint` what Prometheus reads; `seen` holds it
together.

The package is itself the function, as the doctor's is.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.watch.seen import Watch


class _WatchModule(types.ModuleType):
    def __call__(self, loader: Any, **options: Any) -> Watch:
        """See headrace.watch.call.watch."""
        from headrace.watch.call import watch

        return watch(loader, **options)


sys.modules[__name__].__class__ = _WatchModule

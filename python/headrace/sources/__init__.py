# SPDX-License-Identifier: Apache-2.0
"""Sources: random-access collections of records, and sources made of them.

`source` is what all of them are; `opening`, `columns` and `objects` make them of paths, of columns
and of Python objects, `selection` and `combined` of other sources. `arrow_files` and `trusted_hdf5`
read what the engine leaves to libraries. Public names are those of this package.
"""

from headrace.sources import refined as refined  # gives Source its filter, sort_by, map
from headrace.sources.columns import records
from headrace.sources.opening import open
from headrace.sources.selection import split, subset
from headrace.sources.source import Progress, Source

__all__ = ["Progress", "Source", "open", "records", "split", "subset"]

# SPDX-License-Identifier: Apache-2.0
"""Sources: random-access collections of records, and sources made of them.

`source` defines their class; `opening`, `columns` and `objects` make them from paths, columns and
Python objects, `selection` and `combined` from other sources. `arrow_files` and `trusted_hdf5` read
files that the engine leaves to libraries. The names in this package are public.
"""

from headrace.sources import refined as refined  # gives Source its filter, sort_by, map
from headrace.sources.columns import records
from headrace.sources.opening import open
from headrace.sources.selection import split, subset
from headrace.sources.source import Progress, Source

__all__ = ["Progress", "Source", "open", "records", "split", "subset"]

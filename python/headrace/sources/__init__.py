# SPDX-License-Identifier: Apache-2.0
"""Sources: random-access collections of records, and sources derived from them. `source` defines
the class; `opening`, `columns` and `objects` make them from paths, columns and Python objects,
`selection` and `combined` from other sources. `arrow_files` and `trusted_hdf5` read files through
libraries instead of the engine. The names in this package are public.
"""

from headrace.sources import refined as refined  # adds filter, sort_by and map to Source
from headrace.sources.columns import records
from headrace.sources.opening import open
from headrace.sources.selection import split, subset
from headrace.sources.source import Progress, Source

__all__ = ["Progress", "Source", "open", "records", "split", "subset"]

# SPDX-License-Identifier: Apache-2.0
"""Traces a dataset: what its ``__getitem__`` does with files and transforms.

``dataset[i]`` is called for every record in a forked child process, with mocks for the functions
that read files and for its transforms. The mock of a file's contents is opaque: an operation that
would reveal the contents ends the attempt with a reason. The result is a table with each record's
files, the operations on them, and all other values. Nothing is extrapolated, and a second child
verifies it with real files. ``tracing`` is the first run, ``spies`` the second.
"""

from headrace.migrate.look.looking import LIMIT, Looked, look, transforms_of

__all__ = ["LIMIT", "Looked", "look", "transforms_of"]

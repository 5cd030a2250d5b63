# SPDX-License-Identifier: Apache-2.0
"""Adds up the numbers of all records.

Usage: train_template.py FOLDER
"""

import sys

import headrace as hr

loader = hr.Loader(sys.argv[1], batch_size=8, fields="id")
print(sum(sum(ids) for (ids,) in loader.template()))  # type: ignore[attr-defined]

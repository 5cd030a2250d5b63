# SPDX-License-Identifier: Apache-2.0
"""Valid inputs for the fuzz targets, one module per family; tools/make_fuzz_seeds.py writes them.

Each module ends with SEEDS: NAME of NAME_fuzz -> a function that yields its inputs. Most targets
use the first bytes of an input to select how the rest is used; see their files.
"""

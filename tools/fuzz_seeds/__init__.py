# SPDX-License-Identifier: Apache-2.0
"""Valid inputs for the fuzz targets, one module per family; tools/make_fuzz_seeds.py writes them.

Each module ends with SEEDS: NAME of NAME_fuzz -> a function that yields its inputs. Most targets
read the first bytes of an input as a choice of how the rest is used; their files tell.
"""

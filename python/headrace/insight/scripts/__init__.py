# SPDX-License-Identifier: Apache-2.0
"""Runs unmodified training scripts, ended from inside of their loaders, and protects their
files."""

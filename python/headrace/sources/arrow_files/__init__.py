# SPDX-License-Identifier: Apache-2.0
"""Parquet, Arrow and Hugging Face datasets, through pyarrow; imported when the first such dataset
is opened.
"""

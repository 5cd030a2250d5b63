# SPDX-License-Identifier: Apache-2.0
"""Charts and pages, each in one way: what the doctor, the demo and the benchmarks show."""

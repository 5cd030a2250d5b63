# SPDX-License-Identifier: Apache-2.0
"""Charts and pages in one style, for the doctor, the demo and the benchmarks."""

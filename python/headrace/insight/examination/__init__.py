# SPDX-License-Identifier: Apache-2.0
"""The experiments in their order, on one set of findings, and the conclusions.

`examine` runs the `experiments`, which use `headrace.insight.measure` and the probes.
`conclusion` makes a case of the model of what they found, `ranks` concludes from several processes.
"""

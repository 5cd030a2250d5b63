# SPDX-License-Identifier: Apache-2.0
"""The experiments in order, on one set of findings, and the conclusions.

`examine` runs the `experiments`, which use `headrace.insight.measure` and the probes. `conclusion`
turns the findings into a case of the model, `ranks` compares several processes.
"""

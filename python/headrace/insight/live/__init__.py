# SPDX-License-Identifier: Apache-2.0
"""Watches a run in progress: ``with hr.watch(loader) as seen:``.

`meter` times the loop, batch by batch; `tap` puts it into the loader's own iteration; `window`
describes the last half minute; `stalls` notices when the input falls behind. `status` is the status
line; `exported` lists the metrics for monitoring systems, served by `metrics` and `endpoint`
(Prometheus) and `otel` (OpenTelemetry); `seen` combines all of it.
"""

# SPDX-License-Identifier: Apache-2.0
"""hr.watch's metrics through OpenTelemetry, as its SDK collects them and its exporters show
them."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from timing import PATIENCE

import headrace as hr
from headrace import transforms as T

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
    InMemorySpanExporter,
)

PICTURES = Path(__file__).parents[2] / "examples" / "images"
QUIET: dict[str, Any] = {"every": None}


def loader_of(source: Any = PICTURES, **options: Any) -> hr.Loader:
    return hr.Loader(source, [T.Resize((8, 8))], **{"batch_size": 2, **options})


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def provider(reader: InMemoryMetricReader) -> Iterator[MeterProvider]:
    provider = MeterProvider([reader])
    yield provider
    provider.shutdown()


def collected(reader: InMemoryMetricReader) -> dict[str, Any]:
    """By name: the unit, whether it counts up, and values by their attributes."""
    data = reader.get_metrics_data()
    if data is None:
        return {}
    found = {}
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            assert scope.scope.name == "headrace" and scope.scope.version == hr.__version__
            for one in scope.metrics:
                points = {
                    tuple(sorted(point.attributes.items())): point.value
                    for point in one.data.data_points
                }
                found[one.name] = one.unit, getattr(one.data, "is_monotonic", False), points
    return found


def test_the_sdk_collects_the_metrics_of_the_watch(
    provider: MeterProvider, reader: InMemoryMetricReader
) -> None:
    loader = loader_of()
    with hr.watch(loader, name="train", **QUIET) as seen:
        seen.opentelemetry(provider)
        seen.opentelemetry(provider)  # once more changes nothing
        for _ in loader:
            pass
        stats, found = seen.stats(), collected(reader)
    of_loop = (("headrace.loader", "train"),)
    assert found["headrace.batches"] == ("", True, {of_loop: stats["batches"]})
    assert found["headrace.records"] == ("", True, {of_loop: stats["records"]})
    assert stats["batches"] == len(loader) and stats["records"] == len(loader.source)
    assert found["headrace.wait"][:2] == ("s", True)
    assert found["headrace.recent_wait"][:2] == ("1", False)
    assert found["headrace.resident_memory"][0] == "By"
    assert found["headrace.resident_memory"][2][of_loop] > 1e6
    assert found["headrace.loader.memory_limit"][2] == {of_loop: stats["loader"]["memory_limit"]}
    stages = {dict(key)["stage"] for key in found["headrace.loader.stage"][2]}
    assert {"read", "store"} <= stages


def test_bad_records_are_counted_by_code(
    tmp_path: Path, provider: MeterProvider, reader: InMemoryMetricReader
) -> None:
    for number, file in enumerate(sorted(PICTURES.glob("*.jpg"))):
        (tmp_path / f"{number}.jpg").write_bytes(file.read_bytes())
    (tmp_path / "1.jpg").write_bytes(b"no image")
    (tmp_path / "2.jpg").write_bytes(b"none either")
    loader = loader_of(tmp_path, on_error="skip", error_budget=100)
    with hr.watch(loader, name="train", **QUIET) as seen:
        seen.opentelemetry(provider)
        for _ in loader:
            pass
        found = collected(reader)
    (code,) = {entry["code"] for entry in loader.quarantine}
    expected = {(("code", code), ("headrace.loader", "train")): 2}
    assert found["headrace.loader.errors"] == ("", True, expected)
    assert found["headrace.loader.bad_records"][2] == {(("headrace.loader", "train"),): 2}


def test_two_loops_share_the_instruments_and_last_values_remain(
    provider: MeterProvider, reader: InMemoryMetricReader, caplog: pytest.LogCaptureFixture
) -> None:
    def run(name: str, epochs: int) -> None:
        loader = loader_of()
        with hr.watch(loader, name=name, **QUIET) as seen:
            seen.opentelemetry(provider)
            for _ in range(epochs):
                list(loader)

    run("train", 2)
    run("validation", 1)
    gc.collect()
    count = len(loader_of())
    found = collected(reader)["headrace.batches"][2]
    by_name = {key[0][1]: value for key, value in found.items()}
    assert by_name == {"train": 2 * count, "validation": count}
    run("train", 1)  # replaces the earlier one of that name
    found = collected(reader)["headrace.batches"][2]
    assert found[(("headrace.loader", "train"),)] == count
    assert caplog.text == ""  # the SDK complains of a second instrument of a name


def test_a_stall_is_a_span(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("headrace.insight.live.seen._TICK", 0.05)

    def slow_then_quick() -> Iterator[int]:
        end = time.monotonic() + PATIENCE
        while not exporter.get_finished_spans() and time.monotonic() < end:
            if seen.stats()["stalls"] == 0:
                time.sleep(0.01)  # the loader is slow
            yield 0

    with (
        pytest.warns(hr.Warning, match="waits for data"),
        hr.watch(slow_then_quick(), name="train", window=0.1, **QUIET) as seen,
    ):
        seen.opentelemetry(MeterProvider(), tracers)
        for _ in seen:
            time.sleep(0.001)  # the step
    (span,) = exporter.get_finished_spans()
    assert span.name == "headrace.stall"
    assert span.attributes["headrace.loader"] == "train"
    assert "the loop waits for data" in span.attributes["headrace.message"]
    assert span.start_time and span.end_time and span.end_time > span.start_time


def test_prometheus_names_equal_those_of_the_watch_itself() -> None:
    exporter = pytest.importorskip("opentelemetry.exporter.prometheus")
    client = pytest.importorskip("prometheus_client")
    provider = MeterProvider([exporter.PrometheusMetricReader()])
    with loader_of() as loader, hr.watch(loader, **QUIET) as seen:
        seen.opentelemetry(provider)
        list(loader)
        theirs = client.generate_latest().decode()
        own = seen.prometheus()
    provider.shutdown()

    def families(text: str) -> set[str]:
        return {
            line.split()[2].removesuffix("_total").removesuffix("_ratio")
            for line in text.splitlines()
            if line.startswith("# TYPE headrace_")
        }

    sums = {"headrace_wait_seconds", "headrace_step_seconds"}  # there as histograms
    assert families(own) - sums == families(theirs) - sums


def test_a_watch_that_is_not_open_exports_nothing(provider: MeterProvider) -> None:
    with pytest.raises(hr.ConfigError, match="HR0913"):
        hr.watch([np.zeros(3)]).opentelemetry(provider)

# SPDX-License-Identifier: Apache-2.0
"""hr.watch's Prometheus endpoint: the format is Prometheus's, and no request does harm."""

from __future__ import annotations

import re
import socket
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.errors import all_codes
from headrace.insight.live.histogram import SIZE, bucket_of

import headrace as hr
from headrace import transforms as T

parser = pytest.importorskip("prometheus_client.parser")
metrics = pytest.importorskip("headrace.insight.live.metrics")
PICTURES = Path(__file__).parent.parent / "examples" / "images"
QUIET: dict[str, Any] = {"every": None}


class Numbers:
    """A loader in Python."""

    def __len__(self) -> int:
        return 5

    def __iter__(self) -> Iterator[Any]:
        for number in range(5):
            yield {"x": np.full((3, 2), number)}


def loader_of(**options: Any) -> hr.Loader:
    return hr.Loader(PICTURES, [T.Resize((8, 8))], **{"batch_size": 2, **options})


_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
_SAMPLE = re.compile(
    rf"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? "
    r"([+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|Inf)|NaN)"
)


def parsed(text: str) -> dict[str, list[tuple[str, str, float]]]:
    """Families of the text format 0.0.4, checked line by line against its specification."""
    assert text.endswith("\n")
    families: dict[str, list[tuple[str, str, float]]] = {}
    kind = name = ""
    for text_line in text.splitlines():
        if text_line.startswith("# HELP "):
            name = text_line.split(" ", 3)[2]
            assert name not in families and text_line.split(" ", 3)[3]
            families[name] = []
        elif text_line.startswith("# TYPE "):
            assert text_line.split(" ")[2] == name and not families[name]
            kind = text_line.split(" ")[3]
            assert kind in ("counter", "gauge", "histogram")
            assert (kind == "counter") == name.endswith("_total")
        else:
            match = _SAMPLE.fullmatch(text_line)
            assert match, text_line
            suffix = match[1].removeprefix(name)
            assert suffix in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))
            families[name].append((suffix, match[2] or "", float(match[3])))
    return families


def test_the_metrics_are_in_prometheus_format() -> None:
    name = 'tr"a\\i\nn'
    with loader_of() as loader, hr.watch(loader, name=name, **QUIET) as seen:
        for _ in loader:
            pass
        batches = len(loader)
        text = seen.prometheus()
    families = parsed(text)
    assert families["headrace_batches_total"] == [("", r'loader="tr\"a\\i\nn"', batches)]
    assert all(name.startswith("headrace_") for name in families)
    for family in ("headrace_wait_seconds", "headrace_step_seconds"):
        values = [value for suffix, _, value in families[family] if suffix == "_bucket"]
        assert values == sorted(values) and values[-1] == batches
        assert ("_count", batches) in [(s, v) for s, _, v in families[family]]
    assert parsed(seen.prometheus()).keys() == families.keys()  # also after the end


def test_the_parser_of_prometheus_client_reads_the_metrics() -> None:
    with hr.watch(Numbers(), name='"\\\n', **QUIET) as seen:
        list(seen)
        families = {f.name: f for f in parser.text_string_to_metric_families(seen.prometheus())}
    (batches,) = families["headrace_batches"].samples
    assert (batches.value, batches.labels) == (5, {"loader": '"\\\n'})
    assert families["headrace_wait_seconds"].type == "histogram"


def test_histogram_buckets_are_cumulative() -> None:
    counts = [0] * SIZE
    durations = [1e-7, 1e-5, 1.1e-5, 0.002, 0.0021, 99.0, 100.0, 5000.0]
    for seconds in durations:
        counts[bucket_of(seconds)] += 1
    samples = metrics.durations("x_seconds", "X.", {}, counts, 7.5).samples
    found = {s.labels["le"]: s.value for s in samples if s.name.endswith("_bucket")}
    for label, value in found.items():
        assert value == sum(seconds <= float(label) for seconds in durations), label
    assert found["0.002"] == 4 and ("headrace_x_seconds_sum", 7.5) in [
        (s.name, s.value) for s in samples
    ]


def fetch(port: int, path: str = "/metrics") -> tuple[int, str, str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=300) as answer:
        return answer.status, answer.headers["Content-Type"], answer.read().decode()


def test_the_endpoint_serves_metrics_and_a_status_line() -> None:
    with hr.watch(Numbers(), port=0, **QUIET) as seen:
        list(seen)
        port = seen.port or 0
        code, kind, text = fetch(port)
        assert (code, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert parsed(text)["headrace_batches_total"][0][2] == 5
        assert fetch(port, "/")[2].startswith("headrace: ")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetch(port, "/etc/passwd")


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n",
        b"\x00\xff\x16\x03\x01 nonsense\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
        b"\r\n\r\n",
        b"",
        b"HEAD /metrics HTTP/1.0\r\n\r\n",
    ],
)
def test_hostile_requests_are_harmless(request_bytes: bytes, capfd: Any) -> None:
    with hr.watch(Numbers(), port=0, **QUIET) as seen:
        port = seen.port or 0
        with socket.create_connection(("127.0.0.1", port), timeout=300) as client:
            try:
                client.sendall(request_bytes)
                client.shutdown(socket.SHUT_WR)
                while client.recv(65536):
                    pass
            except OSError:
                pass  # the client disconnected
        assert fetch(port)[0] == 200
    assert capfd.readouterr() == ("", "")


def test_slow_clients_do_not_delay_others() -> None:
    with hr.watch(Numbers(), port=0, **QUIET) as seen:
        port = seen.port or 0
        slow = [socket.create_connection(("127.0.0.1", port), timeout=300) for _ in range(4)]
        for client in slow:
            client.sendall(b"GET /met")
        assert fetch(port)[0] == 200
        many = [socket.create_connection(("127.0.0.1", port), timeout=300) for _ in range(40)]
    names = {thread.name for thread in threading.enumerate()}
    assert not {name for name in names if name.startswith("headrace")} - {"headrace-request"}
    for client in slow + many:
        client.close()


@pytest.mark.parametrize("options", [{}, {"port": 0}])
def test_without_prometheus_client_the_error_names_the_package(
    options: dict[str, Any], monkeypatch: Any
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, "headrace.insight.live.metrics", raising=False)
    assert "HR0915" in all_codes()
    loader = Numbers()
    with (
        pytest.raises(hr.UnsupportedError, match="pip install prometheus-client"),
        hr.watch(loader, **options, **QUIET) as seen,
    ):
        assert len(list(seen)) == 5 and seen.stats()["batches"] == 5
        seen.prometheus()
    assert type(loader) is Numbers


def test_a_port_that_is_taken_is_an_error_with_a_hint(monkeypatch: Any) -> None:
    loader = Numbers()
    with hr.watch(loader, port=0, **QUIET) as seen:
        with (
            pytest.raises(hr.ConfigError, match=r"the port is in use(.|\n)*port=0"),
            hr.watch(loader, port=seen.port, **QUIET),
        ):
            pass
        monkeypatch.setenv("LOCAL_RANK", "1")
        with (
            pytest.raises(hr.ConfigError, match="LOCAL_RANK"),
            hr.watch(loader, port=seen.port, **QUIET),
        ):
            pass
        assert len(list(loader)) == 5
    assert type(loader) is Numbers and seen.stats()["batches"] == 5


def test_without_opentelemetry_the_error_names_the_package(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "headrace.insight.live.otel", raising=False)
    with hr.watch(Numbers(), **QUIET) as seen:
        with pytest.raises(hr.UnsupportedError, match=r"HR0916(.|\n)*opentelemetry-sdk"):
            seen.opentelemetry()
        assert len(list(seen)) == 5


def test_bad_records_are_exported_by_code(tmp_path: Path) -> None:
    for number, file in enumerate(sorted(PICTURES.glob("*.jpg"))):
        (tmp_path / f"{number}.jpg").write_bytes(file.read_bytes())
    (tmp_path / "1.jpg").write_bytes(b"no image")
    loader = hr.Loader(tmp_path, [T.Resize((8, 8))], batch_size=2, on_error="skip", error_budget=9)
    with hr.watch(loader, name="train", **QUIET) as seen:
        list(loader)
        families = parsed(seen.prometheus())
    (entry,) = loader.quarantine
    expected = f'code="{entry["code"]}",loader="train"'
    assert families["headrace_loader_errors_total"] == [("", expected, 1)]

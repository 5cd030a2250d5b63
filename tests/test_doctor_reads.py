# SPDX-License-Identifier: Apache-2.0
"""Promise: an epoch's requests to a storage are predicted, for any number of machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.insight.reads import planned_reads
from servers.object_server import Keys, ObjectServer

import headrace as hr


def test_orders_read_the_dataset_as_often_as_a_simulation_of_blocks_found() -> None:
    """Blocks of 76 records, 32 in a window, batches of 2,048: 8.0 and 28.6 times, streams once."""
    src = hr.simulated(160_000)
    for nodes, times in ((1, 1.0), (8, 8.0), (32, 28.6)):
        plan = planned_reads(src, nodes)
        records, blocks, streams = plan.orders
        assert (records.order, records.requests, records.share) == ("records", 160_000, 1.0)
        assert blocks.share == pytest.approx(times, rel=0.03)
        assert blocks.requests == round(plan.blocks * blocks.share)
        assert streams.share <= 1.02
        assert streams.bytes == pytest.approx(160_000 * 110_000, rel=0.02)
        assert streams.dollars == pytest.approx(streams.requests * 4e-7)
        assert plan.best is (streams if nodes > 1 else plan.best)


def test_single_files_take_a_request_each_unless_packed_in_shards(tmp_path: Path) -> None:
    source = tmp_path / "source"
    pixels = np.arange(40 * 3 * 8 * 8, dtype=np.uint8).reshape(40, 3, 8, 8)
    hr.convert(hr.records(image=pixels, label=[0, 1] * 20), source, "folder")
    plan = planned_reads(hr.open(source), 2, global_batch=8)
    assert plan.file_per_record and all(way.requests >= 40 for way in plan.orders)
    assert plan.packed and plan.packed.requests <= 2
    hr.convert(hr.open(source), tmp_path / "x.tar", "tar")
    assert not planned_reads(hr.open(tmp_path / "x.tar"), 2, global_batch=8).file_per_record
    with pytest.raises(hr.ConfigError, match="HR0160"):
        planned_reads(hr.open(source), 0)


@pytest.mark.parametrize("form", ["tar", "folder"])
def test_a_bucket_is_planned_from_its_listing_without_reading_data(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The figures are the same as for these files on a disk, and the suggested order makes the
    fewest requests.
    """
    pytest.importorskip("typer")
    from headrace.cli.app import application

    draws = np.random.default_rng(1)
    source = hr.records(
        image=draws.integers(0, 255, (60, 3, 160, 160), np.uint8), label=[0, 1] * 30
    )
    hr.convert(source, tmp_path / "train", form, **({"shards": 3} if form == "tar" else {}))

    (tmp_path / "train" / "SHA256SUMS").unlink(missing_ok=True)  # belongs to no shard

    def plan(path: str) -> tuple[dict[str, Any], str]:
        given = ["doctor", path, "--nodes", "32", "--global-batch", "64", "--price", "0.4"]
        told = []
        for more in (["--json"], []):
            with pytest.raises(SystemExit) as ended:
                application()([*given, *more])
            assert not ended.value.code
            told.append(capsys.readouterr().out)
        return json.loads(told[0]), told[1]

    wanted, _ = plan(str(tmp_path / "train"))
    with ObjectServer(keys=Keys(), bucket=form) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", Keys.key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", Keys.secret)
        total = 0
        for file in (tmp_path / "train").rglob("*.*"):
            server.objects[f"/{form}/{file.relative_to(tmp_path)}"] = file.read_bytes()
            total += file.stat().st_size
        got, table = plan(f"s3://{form}/train/")
        read = [each for each in server.requests if each.method == "GET" and not each.query]
    assert got == wanted and got["bytes"] == total and not got["estimated"]
    assert got["file_per_record"] == (form == "folder")
    for way in got["orders"]:
        assert way["dollars"] == pytest.approx(way["requests"] * 0.0004)
        assert f"{way['order']:12}{way['requests']:>16,}" in table
    least = min(got["orders"], key=lambda way: (way["dollars"], way["bytes"]))
    assert got["best"] == least["order"]
    named = (
        "`headrace pack`, then shuffle="
        if form == "folder"
        else f"fewest: shuffle={least['shuffle']}"
    )
    assert named in table
    assert form == "tar" or not read  # a tar is indexed by its headers


def test_the_command_line_shows_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("typer")
    pytest.importorskip("rich")
    from headrace.cli.app import application

    np.save(tmp_path / "image.npy", np.zeros((64, 3, 32, 32), np.uint8))
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            application()(
                [
                    "doctor",
                    str(tmp_path / "image.npy"),
                    "--nodes",
                    "4",
                    "--global-batch",
                    "8",
                    *more,
                ]
            )
        assert not ended.value.code
        told = capsys.readouterr().out
        if more:
            assert [way["order"] for way in json.loads(told)["orders"]] == [
                "records",
                "blocks",
                "streams",
            ]
        else:
            assert max(map(len, told.splitlines())) <= 80 + len(str(tmp_path))

# SPDX-License-Identifier: Apache-2.0
"""Ultralytics' detection trainer, unmodified: its dataset runs in Python, and the batches equal its
own."""

from __future__ import annotations

from pathlib import Path

import made_data
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("ultralytics")
import ultralytics_train as script  # noqa: E402
from comparison import assert_equal_batches, migrated  # noqa: E402


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.yolo(tmp_path_factory.mktemp("yolo"))


def test_validation_batches_are_equal(root: Path) -> None:
    assert_equal_batches(migrated(script.loader(root, mode="val")), script.loader(root, mode="val"))


def test_the_report_names_the_native_trainer(root: Path) -> None:
    report = str(migrated(script.loader(root)).report)
    assert "headrace.trainers.ultralytics.DetectionTrainer would be native" in report


def test_the_loop_runs_on_the_view(root: Path) -> None:
    view = migrated(script.loader(root)).torch()
    assert len(view.dataset) == len(view.sampler) == 36
    assert script.train_one_epoch(view) > 60

# SPDX-License-Identifier: Apache-2.0
"""Accelerate's GradientState knows a view's last batch: no update is lost, nothing counts twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import notes_of, output_of

import headrace as hr

torch = pytest.importorskip("torch")
accelerate = pytest.importorskip("accelerate")
from accelerate.state import GradientState  # noqa: E402


def view_of(count: int = 25, **options: Any) -> Any:
    return hr.Loader(hr.records(x=np.arange(count)), **{"batch_size": 1, **options}).torch()


def updates(view: Any) -> int:
    """For an epoch that accumulates three batches."""
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=3)
    net = torch.nn.Linear(1, 1)
    net = accelerator.prepare(net)
    made = 0
    for _ in view:
        with accelerator.accumulate(net):
            made += accelerator.sync_gradients
    return made


def test_the_last_update_of_an_epoch_is_made() -> None:
    view = view_of()
    assert [updates(view) for _ in range(2)] == [9, 9]
    assert updates(accelerate.skip_first_batches(view, 5)) == 7
    assert not GradientState().in_dataloader


def test_the_active_loader_is_the_one_queried() -> None:
    train, evaluation = view_of(), view_of(4)
    state = GradientState()
    batches = iter(train)
    for _ in range(25):
        next(batches)
    assert state.end_of_dataloader
    for _ in evaluation:
        assert not state.end_of_dataloader, "that of the evaluation, which is broken off"
        break
    assert state.end_of_dataloader, "the training's again"
    del batches
    assert not state.in_dataloader
    again = iter(train)
    other = iter(train)  # ends the first
    next(other)
    del again
    assert state.in_dataloader and not state.end_of_dataloader
    del other
    assert not state.in_dataloader


def test_the_remainder_is_the_record_count_of_the_last_batch() -> None:
    state = GradientState()
    for last, remainder in (("pad", 5), ("keep", 5), ("drop", 0)):
        batches = iter(view_of(45, batch_size=8, last_batch=last))
        next(batches)
        assert state.remainder == remainder
        del batches


def test_two_ranks_gather_each_record_once_and_resume_after_a_kill(tmp_path: Path) -> None:
    output_of("trainers/ranks_accelerate.py", tmp_path, cwd=tmp_path)
    for rank in range(2):
        whole, killed, resumed = (
            notes_of(tmp_path, name, rank) for name in ("whole", "killed", "resumed")
        )
        assert killed == whole[:5] and resumed == whole[3:]
        assert notes_of(tmp_path, "gathered", rank)[0] == list(range(45))


def test_an_accelerate_without_the_private_attribute_is_warned_about_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from headrace.frameworks import accelerate as adapter

    monkeypatch.setattr(adapter, "_warned", False)
    monkeypatch.delattr(GradientState, "_add_dataloader")
    view = view_of(2)
    with pytest.warns(hr.Warning, match="GradientState._add_dataloader"):
        assert len(list(view)) == 2
    assert len(list(view)) == 2

# SPDX-License-Identifier: Apache-2.0
"""Ranks whose loaders differ end with an error on each of them, that says what differs; ranks that
only do things in a different order do not.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import threading
from pathlib import Path

import numpy as np
import pytest
from forked import output_of

pytest.importorskip("torch")

DIFFERENT = {
    "data": "data: 64 records, fingerprint ",
    "seed": "seed: 0 on rank 0, 1 on rank 1",
    "order": "order: shuffle=True (fingerprint ",
    "batch_size": "batches: batch_size=4 (8 records over all ranks) on rank 0, batch_size=8 (16 ",
    "sampler": "pool=4) (fingerprint ",
    "transforms": "Flip(p=0.5)] on rank 0, [RandomHorizontalFlip(p=0.25)] on rank 1",
    "options": "strict=True on rank 1",
    "world_size": "world size: 2 on rank 0, 1 on rank 1",
    "position": "position: batch 2 of epoch 0 on rank 0, batch 3 of epoch 0 on rank 1",
    "position_after_seek": "position: batch 4 of epoch 0 on rank 0, batch 5 of epoch 0 on rank 1",
    "checkpoint_on_one_rank": "batch 0 of epoch 0 on rank 0, batch 3 of epoch 0 on rank 1",
    "group_without_a_loader": "seed: 0 on rank 0, 1 on rank 1",
    "stream_ends": ", 8 on rank 1",
    "stream_tail": "records of epoch 0: 8 on rank 0, 10 on rank 1",
    "stream_second_epoch": "records of epoch 1: 7 on rank 0, 6 on rank 1",
    "stream_in_a_collective": "records of epoch 0: at least 12 on rank 0, 8 on rank 1",
}
EQUAL = {
    "nothing": 8,
    "peek": 8,
    "peek_before_resume": 3,
    "equal_values": 8,
    "functions": 8,
    "retry": 6,
    "behind": None,
    "evaluation_on_one_rank": 16,
    "other_order": 16,
    "threads": 16,
    "own_parts": 24,
    "second_group": 16,
    "restart": 8,
    "stream": 7,
    "stream_peek": 5,
    "stream_slow": 4,
    "stream_again": 6,
    "streams_of_one_line": 8,
}


def test_loaders_that_differ_are_an_error_on_all_ranks_that_says_what(tmp_path: Path) -> None:
    text = output_of("ranks_that_disagree.py", 2, *DIFFERENT, cwd=tmp_path)
    for name, expected in DIFFERENT.items():
        assert f"{name} [0, 0]" in text, text
        for rank in (0, 1):
            lines = [line for line in text.splitlines() if line.startswith(f"{name} rank {rank}: ")]
            assert len(lines) == 1, text
            assert f"rank {rank}: HR0733: HR0733 ranks disagree: " in lines[0]
            assert expected in lines[0], lines[0]
            assert f"note: this is rank {rank} " in lines[0]


def test_the_error_names_the_ranks_that_differ(tmp_path: Path) -> None:
    text = output_of("ranks_that_disagree.py", 3, "transforms", "position", cwd=tmp_path)
    assert "transforms [0, 0, 0]" in text and "position [0, 0, 0]" in text, text
    assert text.count("(p=0.5)] on ranks 0 and 2, [RandomHorizontalFlip(p=0.25)] on rank 1") == 3
    assert text.count("batch 2 of epoch 0 on ranks 0 and 2, batch 3 of epoch 0 on rank 1") == 3


def test_ranks_of_a_group_are_compared_with_each_other(tmp_path: Path) -> None:
    text = output_of("ranks_that_disagree.py", 3, "group", "seed_in_group", cwd=tmp_path)
    fine = {line for line in text.splitlines() if line.endswith(": 16")}
    assert fine == {*(f"group rank {rank}: 16" for rank in range(3)), "seed_in_group rank 1: 16"}
    assert text.count("seed: 0 on rank 0, 2 on rank 2 |") == 2, text


def test_ranks_that_only_take_another_way_are_not_stopped(tmp_path: Path) -> None:
    text = output_of("ranks_that_disagree.py", 2, *EQUAL, cwd=tmp_path)
    for name, batches in EQUAL.items():
        assert f"{name} [0, 0]" in text, text
        if batches is not None:
            assert text.count(f"{name} rank 0: {batches}\n") == 1, text
            assert text.count(f"{name} rank 1: {batches}\n") == 1, text


def test_large_arrays_are_neither_copied_nor_hashed() -> None:
    text_of = importlib.import_module("headrace.loader.rank_card")._text
    large = np.broadcast_to(np.int64(3), 1 << 40)
    assert text_of(large) == "array (1099511627776,)"
    assert text_of(np.zeros(3)) != text_of(np.ones(3))


def test_threads_that_read_together_read_each_card_once() -> None:
    agreement = importlib.import_module("headrace.loader.agreement")
    together = threading.Barrier(2)
    cards = {
        f"place/1/{number}": json.dumps([str(number), {}, "", [], False]) for number in range(3)
    }

    class Store:
        def add(self, key: str, count: int) -> int:
            return 3

        def check(self, keys: list[str]) -> bool:
            return all(key in cards for key in keys)

        def get(self, key: str) -> str:
            with contextlib.suppress(threading.BrokenBarrierError):
                together.wait(0.2)  # until the other thread reads this card too, if it can
            return cards[key]

    board = agreement.Board(0, (0, 1), Store())
    threads = [threading.Thread(target=board.read, args=["place"]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [card.digest for card in board.place("place").others[1]] == ["0", "1", "2"]

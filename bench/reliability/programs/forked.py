# SPDX-License-Identifier: Apache-2.0
"""PHOTOS WAY: starts a child process in the middle of an epoch that uses Headrace."""

from __future__ import annotations

import multiprocessing
import sys

import headrace as hr
from headrace import transforms as T


def count(photos: str) -> int:
    with hr.Loader(photos, [T.Resize((16, 16))], batch_size=8) as loader:
        return sum(len(batch.label) for batch in loader)


def use(photos: str, answers: multiprocessing.SimpleQueue) -> None:  # type: ignore[type-arg]
    try:
        answers.put(count(photos))
    except hr.Error as problem:
        answers.put(problem.code)


def main(photos: str, way: str) -> None:
    loader = hr.Loader(photos, [T.Resize((16, 16))], batch_size=8, threads=2)
    iterator = iter(loader)
    rows = len(next(iterator).label)
    context = multiprocessing.get_context(way)
    answers = context.SimpleQueue()
    process = context.Process(target=use, args=(photos, answers))
    process.start()
    answer = answers.get()
    process.join(20)
    assert process.exitcode == 0, process.exitcode
    rows += sum(len(batch.label) for batch in iterator)
    print(answer, rows, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

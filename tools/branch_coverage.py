# SPDX-License-Identifier: Apache-2.0
"""Branches that the C++ tests take, per folder of the engine, and a list of those they do not take.

    python tools/branch_coverage.py build/coverage/coverage.lcov --list uncovered.txt

Reads what `llvm-cov export -format=lcov` writes. A branch is one outcome of a condition in the
source; what a compiler adds (exceptions, destructors) is none. A condition in a template counts
once: an outcome is taken if any instance takes it. Conditions in tests, fuzz targets and system
headers do not count.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

# Outcomes of a file's conditions, by (line, condition, outcome).
Outcomes = dict[tuple[int, int, int], bool]

ROOT = Path(__file__).resolve().parent.parent
NOT_COUNTED = re.compile(r"_test|_fuzz|fuzz_|test_")


def read_branches(lines: Iterable[str]) -> dict[str, Outcomes]:
    """{file, relative to the repository: outcomes}."""
    files: dict[str, Outcomes] = {}
    outcomes: Outcomes = {}
    for line in lines:
        kind, _, rest = line.strip().partition(":")
        if kind == "SF":
            path = Path(rest).resolve()
            name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else ""
            counted = name.startswith("headrace/") and not NOT_COUNTED.search(name)
            outcomes = files.setdefault(name, {}) if counted else {}
        elif kind == "BRDA":
            at, condition, outcome, taken = rest.split(",")
            place = (int(at), int(condition), int(outcome))
            outcomes[place] = outcomes.get(place, False) or taken not in ("-", "0")
    return files


def shares(files: dict[str, Outcomes]) -> list[tuple[str, int, int]]:
    """(folder of the engine, outcomes taken, outcomes), and the total."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, outcomes in files.items():
        parts = name.split("/")
        for folder in (parts[1] if len(parts) > 2 else ".", "total"):
            sums[folder][0] += sum(outcomes.values())
            sums[folder][1] += len(outcomes)
    total = sums.pop("total", [0, 0])
    rows = [(folder, taken, count) for folder, (taken, count) in sorted(sums.items()) if count]
    return [*rows, ("total", total[0], total[1])]


def uncovered(files: dict[str, Outcomes]) -> list[str]:
    """A line of text for each source line that has outcomes not taken."""
    out = []
    for name, outcomes in sorted(files.items()):
        source = (ROOT / name).read_text().splitlines()
        missing: dict[int, int] = defaultdict(int)
        for (line, _, _), taken in outcomes.items():
            missing[line] += not taken
        for line, count in sorted(missing.items()):
            if count:
                text = source[line - 1].strip() if line <= len(source) else ""
                out.append(f"{name}:{line}: {count} not taken: {text}")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lcov", type=Path)
    parser.add_argument("--list", type=Path, help="file for the branches that are not taken")
    given = parser.parse_args()
    with given.lcov.open() as lines:
        files = read_branches(lines)
    print(f"{'folder':12}{'branches':>10}{'taken':>10}{'share':>9}")
    for folder, taken, count in shares(files):
        print(f"{folder:12}{count:>10,}{taken:>10,}{100 * taken / max(count, 1):>8.1f}%")
    if given.list:
        lines_not_taken = uncovered(files)
        given.list.write_text("\n".join(lines_not_taken) + "\n")
        print(f"{len(lines_not_taken):,} lines with branches not taken: {given.list}")


if __name__ == "__main__":
    main()

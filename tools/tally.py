#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Summarizes a test run. The last line is `N passed, N failed` (and `, N skipped` if some were).

Usage: tally.py DIR. DIR/steps.txt has a line for everything that ran: `KIND STATUS NAME`, where
KIND is `step` (counts as one test), `skip` (a step that could not run here) or `suite` (its tests
are counted from the JUnit files in DIR/NAME/). Exit 1 if anything failed.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def count(report: Path) -> tuple[int, int, int]:
    """Passed, failed and skipped tests of one JUnit file (pytest's or GoogleTest's)."""
    passed = failed = skipped = 0
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        number = {key: int(suite.get(key) or 0) for key in ("tests", "failures", "errors")}
        left_out = int(suite.get("skipped") or 0) + int(suite.get("disabled") or 0)
        bad = number["failures"] + number["errors"]
        passed += number["tests"] - bad - left_out
        failed += bad
        skipped += left_out
    return passed, failed, skipped


def main(folder: Path) -> int:
    passed = failed = skipped = 0
    for line in (folder / "steps.txt").read_text().splitlines():
        kind, status, name = line.split(" ", 2)
        if kind == "skip":
            skipped += 1
            print(f"skipped: {name}")
            continue
        if kind == "step":
            counts = (1, 0, 0) if status == "0" else (0, 1, 0)
        else:
            reports = [count(report) for report in sorted((folder / name).glob("*.xml"))]
            counts = tuple(map(sum, zip(*reports, strict=True))) if reports else (0, 0, 0)
            # It crashed, or found nothing to run: a failure that is in no report.
            if counts[1] == 0 and (status != "0" or counts[0] == 0):
                counts = (counts[0], 1, counts[2])
        if counts[1]:
            print(f"failed: {name}")
        passed, failed, skipped = passed + counts[0], failed + counts[1], skipped + counts[2]
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

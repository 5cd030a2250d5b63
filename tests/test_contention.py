# SPDX-License-Identifier: Apache-2.0
"""Promise: on a machine that is busy with other programs the doctor says so, and draws no other
conclusion."""

from __future__ import annotations

import importlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from headrace.insight.measure.contention import Contention
from headrace.insight.measure.time_limit import Stuck, TimeLimit
from timing import with_longer_limits

TICK = 1 / os.sysconf("SC_CLK_TCK")


class Machine:
    """Two cores that belong to this process, and a third; counters in a simulated /proc."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.own = self.others = self.elsewhere = self.stolen = self.wall = 0.0
        self.lines: dict[str, float] | None = {"10": 0.0}
        (root / "proc").mkdir()
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 2})
        monkeypatch.setattr(time, "process_time", lambda: self.own)
        monkeypatch.setattr(time, "monotonic", lambda: self.wall)
        self.write()

    def write(self) -> None:
        def core(name: str, busy: float, stolen: float = 0.0) -> str:
            return f"{name} {busy / TICK:.0f} 0 0 999 0 0 0 {stolen / TICK:.0f} 0 0\n"

        busy = self.own + self.others
        text = core("cpu", busy + self.elsewhere, self.stolen) + core("cpu0", busy / 2)
        text += core("cpu1", self.elsewhere) + core("cpu2", busy / 2, self.stolen)
        (self.root / "proc" / "stat").write_text(text + "ctxt 7\n")
        for thread, seconds in (self.lines or {}).items():
            folder = self.root / "proc" / "self" / "task" / thread
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "schedstat").write_text(f"5 {1e9 * seconds:.0f} 3\n")

    def contention(self, **passes: Any) -> float:
        """What is observed over an interval of this length."""
        contention = Contention(str(self.root))
        with contention.watched():
            for name, value in passes.items():
                setattr(self, name, value)
            self.write()
        return contention.share


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_waiting_for_other_programs_counts_as_contention(machine: Machine) -> None:
    share = machine.contention(wall=10, own=6.0, others=14.0, lines={"10": 4.0})
    assert share == pytest.approx(0.4, abs=0.01)


def test_other_cores_and_low_priority_work_are_not_contention(machine: Machine) -> None:
    assert machine.contention(wall=10, own=6.0, elsewhere=10.0) == pytest.approx(0, abs=1e-9)
    assert machine.contention(wall=20, own=12.0, others=8.0, lines={"10": 0.001}) < 0.001


def test_threads_of_the_process_waiting_for_each_other_are_not_contention(machine: Machine) -> None:
    lines = {"10": 4.0, "11": 8.0, "12": 8.0}
    assert machine.contention(wall=10, own=20.0, lines=lines) == pytest.approx(0, abs=1e-9)


def test_time_stolen_by_the_hypervisor_counts_as_contention(machine: Machine) -> None:
    assert machine.contention(wall=10, own=9.0, stolen=3.0) == pytest.approx(0.25, abs=0.01)


def test_full_cores_are_contention_if_wait_counters_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, monkeypatch)
    (tmp_path / "proc" / "self" / "task" / "10" / "schedstat").unlink()
    seconds = {"wall": 10, "own": 2.0, "others": 4.0}
    assert machine.contention(**seconds, lines=None) == pytest.approx(0, abs=1e-9)
    assert machine.contention(wall=20, own=12.0, others=14.0) == pytest.approx(0.5, abs=0.01)


def test_missing_proc_entries_are_not_contention(tmp_path: Path) -> None:
    contention = Contention(str(tmp_path))
    with contention.watched():
        pass
    assert contention.share == 0


def test_importing_does_not_count_toward_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "slow_to_import.py"
    monkeypatch.syspath_prepend(str(tmp_path))

    def check(limit: float) -> None:
        module.write_text(
            f"import time\nstop = time.monotonic() + {3 * limit}\n"
            "while time.monotonic() < stop: pass\n"
        )
        sys.modules.pop("slow_to_import", None)
        importlib.invalidate_caches()
        with TimeLimit(limit) as patience:
            patience.begin("The script has done nothing")
            importlib.import_module("slow_to_import")
            assert not patience.expired
            with pytest.raises(Stuck, match="has done nothing for"):
                time.sleep(1000)

    with_longer_limits(check, (0.3, 2, 10))
    del sys.modules["slow_to_import"]


def test_a_script_that_trains_during_import_gets_the_full_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trains_on_import.py").write_text(
        "import time\n"
        "from headrace.insight.measure.time_limit import TimeLimit, Stuck\n"
        "with TimeLimit(0.3) as patience:\n"
        "    patience.begin('A step')\n"
        "    try:\n"
        "        time.sleep(1000)\n"
        "    except Stuck as stuck:\n"
        "        ended = str(stuck)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import trains_on_import

    assert trains_on_import.ended == "A step for 0.3 seconds"
    del sys.modules["trains_on_import"]

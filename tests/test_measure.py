# SPDX-License-Identifier: Apache-2.0
"""Samples of a process, and facts about its machine, on planted cases."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from headrace.insight.measure import instructions, machine
from headrace.insight.measure.process_sampler import (
    ProcessSampler,
    Reading,
    Requests,
    Thinned,
    at,
    growth,
    has_gil,
    vitals,
)
from headrace.insight.measure.processes import Processes
from headrace.insight.measure.stored import RawReader
from processes import printed_at_each_simd_level
from timing import with_longer_limits

import headrace as hr
from headrace import _core

needs_gil = pytest.mark.skipif(not has_gil(), reason="this interpreter has no GIL")


# The share of the GIL, on a real interpreter.


@contextmanager
def running(work: Callable[[], object]) -> Iterator[None]:
    """Repeats ``work`` on a separate thread."""
    done = threading.Event()

    def loop() -> None:
        while not done.is_set():
            work()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def count() -> None:
    sum(range(200))


def spin() -> None:
    """Half of the time in Python, half outside, by its own clock."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.01:
        pass
    time.sleep(time.perf_counter() - begin)


def requests_beside(work: Callable[[], object], seconds: float) -> Requests:
    with running(work):
        requests = Requests(*_core.ask_for_gil(seconds, 0.005))
    assert requests.asked >= 1
    return requests


def nothing() -> None:
    time.sleep(0.1)


DATA = bytes(1 << 25)


@needs_gil
@pytest.mark.parametrize(
    ("work", "least", "most"),
    [
        (count, 0.8, 1.0),
        (lambda: hashlib.sha256(DATA).digest(), 0.0, 0.1),
        (spin, 0.25, 0.75),
        (nothing, 0.0, 0.1),
    ],
    ids=["Python code", "code outside Python", "half of each", "idle"],
)
def test_the_share_of_time_in_which_the_gil_is_held(
    work: Callable[[], object], least: float, most: float
) -> None:
    def check(seconds: float) -> None:
        share, error = requests_beside(work, seconds).share
        assert share is None or error is None or least - 2 * error < share < most + 2 * error

    with_longer_limits(check, (2, 4, 8, 16))


def test_late_samples_widen_the_error_until_no_result_is_given() -> None:
    share, error = Requests(400.0, 100.0, 0.0).share
    assert (share, error) == (0.25, pytest.approx((0.25 * 0.75 / 400) ** 0.5))
    assert Requests(400.0, 100.0, 100.0).share[1] == pytest.approx(0.1, rel=0.05)
    assert Requests(400.0, 100.0, 401.0).share == (None, None)
    assert Requests(0.0, 0.0, 0.0).share == (None, None)


@pytest.mark.parametrize("arguments", [(-1.0, 0.1), (1.0, 0.0), (1.0, -1.0), (float("nan"), 1.0)])
def test_invalid_arguments_are_refused(arguments: tuple[float, float]) -> None:
    with pytest.raises(ValueError):
        _core.ask_for_gil(*arguments)


# The sampler.


def test_cpu_seconds_cover_the_whole_process() -> None:
    def check(seconds: float) -> None:
        with ProcessSampler(every=0.05) as sampler:
            begin, cpu = sampler.now(), time.process_time()
            while time.process_time() - cpu < seconds:
                pass
            spent, end = time.process_time() - cpu, sampler.now()
        lived = sampler.between(begin, end)
        assert lived.cpu_seconds == pytest.approx(spent, rel=0.5)
        assert lived.seconds == pytest.approx(end - begin)

    with_longer_limits(check, (0.5, 2, 8))
    assert not any(thread.name == "headrace-sampler" for thread in threading.enumerate())


BURN = "import time\nwhile time.process_time() < 0.6: pass\nprint('done', flush=True)\ninput()"


def test_processes_that_were_started_count_while_they_live_and_after() -> None:
    command = [sys.executable, "-c", BURN]
    before = Processes().children()[0]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout and child.stdin
        assert child.stdout.readline() == "done\n"
        if not Path(f"/proc/self/task/{threading.get_native_id()}/children").exists():
            pytest.skip("this kernel does not list a thread's children")
        seconds, memory = Processes().children()
        assert seconds - before >= 0.5 and memory > 1 << 20
        child.stdin.write("\n")
    seconds, memory = Processes().children()
    assert seconds - before >= 0.5


def test_touched_memory_is_counted() -> None:
    with ProcessSampler(every=0.05) as sampler:
        begin = sampler.readings[0]
        held = np.ones(1 << 25)
    assert sampler.readings[-1].resident_bytes - begin.resident_bytes > held.nbytes // 2


def reading(moment: float, cpu: float = 0.0, asked: float = 0.0, held: float = 0.0) -> Reading:
    return Reading(moment, cpu, 0.0, 1000, 0, asked, held)


def test_values_between_two_samples_are_interpolated() -> None:
    sampler = ProcessSampler()
    for one in (reading(0), reading(10, 4.0, 100, 50), reading(20, 5.0, 200, 60)):
        sampler._readings.add(one)
    lived = sampler.between(5, 15)
    assert lived.cpu_seconds == pytest.approx(2.5)
    assert lived.gil_share == pytest.approx((55 - 25) / 100)
    assert at(sampler.readings, -1) == reading(0) and at(sampler.readings, 99) == reading(
        20, 5.0, 200, 60
    )
    assert sampler.between(0, 0).gil_share is None


def test_the_list_of_samples_stays_short_and_evenly_spaced() -> None:
    kept: Thinned[int] = Thinned(100)
    for number in range(100_000):
        kept.add(number)
        assert kept.all()[-1] == number
    values = kept.all()
    assert 50 <= len(values) <= 101 and values[0] == 0 and values[-1] == 99_999
    assert len(set(np.diff(values[:-1]))) == 1


def test_memory_growth_is_a_fitted_slope_without_the_start() -> None:
    steps = np.arange(400)
    filled = 1e9 * np.minimum(steps, 40) / 40  # slots that are filled only once
    noise = np.random.default_rng(0).normal(0, 2e4, 400)
    assert growth(steps, filled + noise) == pytest.approx(0, abs=200)
    assert growth(steps, filled + noise + 5000 * steps) == pytest.approx(5000, abs=200)
    spike = np.where(steps == 390, 5e9, 0)
    assert growth(steps, filled + spike) == pytest.approx(0)
    assert growth([1, 2, 3], [1, 2, 3]) is None and growth([0] * 20, range(20)) is None


def test_vitals_of_a_loop_exclude_its_start() -> None:
    sampler = ProcessSampler()
    now = sampler.now()
    for number in range(41):
        moment = now - 4 + number / 10
        start = 30.0 if number >= 10 else 3.0 * number  # CPU time of the start-up, in the first
        # second
        cpu, asked = start + (moment - now + 4), float(number)
        sampler._readings.add(Reading(moment, cpu, 0.0, 1000 + 100 * number, 500, asked, asked / 4))
    loop = SimpleNamespace(first=1.0, batches=300, records=3000)
    seen = vitals(sampler, now - 4, loop)
    assert seen.cpu_seconds_per_1000 == pytest.approx(1.0, rel=0.05)
    assert seen.gil_share == pytest.approx(0.25)
    assert seen.memory[0][1] == pytest.approx(2500, abs=150)
    assert seen.memory_growth == pytest.approx(10.0, rel=0.05)  # 1,000 bytes per second, 100 steps


def test_the_doctors_report_has_cpu_gil_and_memory_figures() -> None:
    def step(batch: object) -> None:
        stop = time.thread_time() + 0.005
        while time.thread_time() < stop:
            pass

    skip = ["remedies", "cold", "storage", "decode", "copy", "cached"]
    report = hr.doctor([np.zeros((4, 2))] * 50, step, seconds=3, skip=skip)
    value = report.json()
    assert value["cpu_seconds_per_1000"] == pytest.approx(1.25, rel=0.5)
    assert value["gil_share"] is None or value["gil_share"] + value["gil_error"] > 0.5
    assert value["memory"] and all(size > 0 for _, size in value["memory"])
    assert "CPU " in str(report) and "per 1,000 records" in str(report)


@pytest.mark.parametrize("threads, batch_size", [(1, 1), (3, 7), (2, 100)])
def test_stored_records_keep_their_order_with_any_number_of_threads(
    threads: int, batch_size: int
) -> None:
    source = hr.open([{"x": number} for number in range(50)])
    order = np.random.default_rng(0).permutation(50)
    reader = RawReader(source, batch_size, threads, order)
    for _ in range(2):  # epochs
        assert [value for (column,) in reader for value in column] == order.tolist()
        next(iter(reader))  # one that is left early
    reader.close()
    with pytest.raises(ValueError, match="closed"):
        next(iter(reader))


# Files that are missing or not as expected.


def test_a_system_without_information_is_not_an_error(tmp_path: Path) -> None:
    there = Processes(tmp_path)
    assert there.memory() == 0
    times = os.times()
    assert there.children() == (
        pytest.approx(times.children_user + times.children_system, abs=1.0),
        0,
    )


def test_processes_of_processes_are_found_in_a_planted_tree(tmp_path: Path) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    page = os.sysconf("SC_PAGE_SIZE")

    def plant(process: str, children: str, name: str = "x", cpu: int = 0, pages: int = 0) -> None:
        task = tmp_path / "proc" / process / "task" / process
        task.mkdir(parents=True)
        (task / "children").write_text(children)
        rest = " ".join(["0"] * 10)
        stat = f"{process} ({name}) S {rest} {cpu} {cpu} 0 0 20 0"
        (tmp_path / "proc" / process / "stat").write_text(stat)
        (tmp_path / "proc" / process / "statm").write_text(f"{9 * pages} {pages} 1 1 0 1 0")

    plant("self", "11 12 ")
    plant("11", "13", "a) S 9 (b", cpu=ticks, pages=3)
    plant("12", "")
    plant("13", "11", cpu=2 * ticks, pages=4)  # a cycle, which does not occur on real systems
    times = os.times()
    ended = times.children_user + times.children_system
    seconds, memory = Processes(tmp_path).children()
    assert (seconds - ended, memory) == (pytest.approx(6.0, abs=0.5), 7 * page)


# The host, as described by simulated /proc and /sys trees.


def plant(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


MOUNT_V2 = "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw"


def test_the_tightest_memory_limit_of_version_2_applies(tmp_path: Path) -> None:
    top = "sys/fs/cgroup/"
    plant(tmp_path, {
        "proc/self/mountinfo": MOUNT_V2,
        "proc/self/cgroup": "0::/slice/job/task",
        top + "slice/memory.max": "max",
        top + "slice/job/memory.max": "8000000000",
        top + "slice/job/task/memory.max": "9000000000",
        top + "slice/cpu.max": "150000 100000",
        top + "slice/job/cpu.max": "max 100000",
    })  # fmt: skip
    assert machine.memory_limit(tmp_path) == 8_000_000_000
    assert machine.cpu_limit(tmp_path) == 1.5


def test_limits_of_version_1_and_of_both_versions_apply(tmp_path: Path) -> None:
    memory = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
    cpu = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct"
    unified = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"
    plant(tmp_path, {
        "proc/self/mountinfo": "\n".join([memory, cpu, unified]),
        "proc/self/cgroup": "4:memory:/docker/abc/job\n1:cpu,cpuacct:/a/b\n0::/a",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "4000000000",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "9223372036854771712",
        "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "300000",
        "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000",
        "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us": "-1",
        "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us": "100000",
    })  # fmt: skip
    assert machine.memory_limit(tmp_path) == 4_000_000_000
    assert machine.cpu_limit(tmp_path) == 3.0


@pytest.mark.parametrize("text", ["", "0::/../..", "nonsense", "0:::::", "4:memory:"])
def test_invalid_cgroups_have_no_limit(text: str, tmp_path: Path) -> None:
    files = {"proc/self/mountinfo": MOUNT_V2 + "\nx y\n- -", "proc/self/cgroup": text}
    plant(tmp_path, {**files, "sys/fs/cgroup/cpu.max": "1 0", "sys/fs/cgroup/memory.max": "much"})
    assert machine.memory_limit(tmp_path) is None and machine.cpu_limit(tmp_path) is None


MOUNTS = """\
20 1 259:2 / / rw - ext4 /dev/nvme0n1p2 rw
21 20 8:17 / /data rw - xfs /dev/sdb1 rw
22 20 0:50 / /data/far\\040away rw - nfs4 server:/x rw
23 20 0:51 / /dev/shm rw - tmpfs tmpfs rw
24 20 0:52 / /container rw - overlay overlay rw,lowerdir=/a,upperdir=/b
25 20 0:53 / /pool rw - btrfs /dev/sdb1 rw
26 20 254:0 / /cloud rw - ext4 /dev/vda rw
27 20 0:54 / /bucket ro - fuse.mount-s3 mountpoint-s3 ro"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me", "solid state"),
        ("/data/set", "rotating"),
        ("/database", "solid state"),
        ("/data/far away/set", "network (nfs4)"),
        ("/dev/shm/set", "memory (tmpfs)"),
        ("/container/set", "overlay"),
        ("/pool/set", "rotating"),
        ("/cloud", "virtual"),
        ("/bucket/a", "network (fuse.mount-s3)"),
    ],
)
def test_the_kind_of_a_disk_is_detected(path: str, kind: str, tmp_path: Path) -> None:
    plant(tmp_path, {
        "proc/self/mountinfo": MOUNTS,
        "sys/devices/pci/nvme/nvme0n1/queue/rotational": "0",
        "sys/devices/pci/nvme/nvme0n1/nvme0n1p2/partition": "2",
        "sys/devices/pci/ata1/sdb/queue/rotational": "1",
        "sys/devices/pci/ata1/sdb/sdb1/partition": "1",
        "sys/devices/pci/virtio1/vda/queue/rotational": "1",
    })  # fmt: skip
    for place, target in (
        ("sys/dev/block/259:2", "sys/devices/pci/nvme/nvme0n1/nvme0n1p2"),
        ("sys/dev/block/8:17", "sys/devices/pci/ata1/sdb/sdb1"),
        ("sys/class/block/sdb1", "sys/devices/pci/ata1/sdb/sdb1"),
        ("sys/dev/block/254:0", "sys/devices/pci/virtio1/vda"),
    ):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).symlink_to(tmp_path / target)
    assert machine.disk_kind(path, tmp_path) == kind


def test_numa_nodes_in_use_are_detected(tmp_path: Path) -> None:
    node = "sys/devices/system/node/node"
    plant(tmp_path, {node + "0/cpulist": "0-3,8", node + "1/cpulist": "4-7", node + "2/x": ""})
    assert machine.numa_nodes(tmp_path) == {0: {0, 1, 2, 3, 8}, 1: {4, 5, 6, 7}, 2: set()}
    assert machine.nodes_used(tmp_path, {8}) == [0]
    assert machine.nodes_used(tmp_path, {3, 4}) == [0, 1]
    (found,) = machine.remarks({"numa_nodes_used": 2})
    assert "2 NUMA nodes" in found
    assert machine.remarks({"numa_nodes_used": 1, "disk": None}) == []


def test_the_pcie_link_of_a_gpu_is_detected(tmp_path: Path) -> None:
    bus = "sys/bus/pci/devices/"
    gpu = {"vendor": "0x10de", "class": "0x030200", "current_link_speed": "16.0 GT/s PCIe",
           "current_link_width": "8", "max_link_width": "16", "numa_node": "1"}  # fmt: skip
    audio = {**gpu, "class": "0x040300"}
    disk = {**gpu, "vendor": "0x144d", "class": "0x010802"}
    hidden = {"vendor": "0x10de", "class": "0x030200"}
    for name, device in {
        "17:00.0": gpu,
        "17:00.1": audio,
        "18:00.0": disk,
        "19:00.0": hidden,
    }.items():
        plant(tmp_path, {f"{bus}0000:{name}/{key}": text for key, text in device.items()})
    (link,) = machine.gpu_links(tmp_path)
    assert str(link) == "NVIDIA 0000:17:00.0: 16.0 GT/s PCIe x8 of x16, NUMA node 1"
    assert machine.look([], tmp_path)["gpu_link"] == str(link)


def test_the_cpu_governor_is_detected(tmp_path: Path) -> None:
    cpu = "sys/devices/system/cpu/cpu"
    plant(tmp_path, {f"{cpu}{n}/cpufreq/scaling_governor": "powersave" for n in range(3)})
    assert machine.governor(tmp_path) == "powersave"
    assert "powersave" in machine.remarks(machine.look([], tmp_path))[0]


def test_shared_memory_too_small_for_the_workers_is_remarked() -> None:
    facts = {"shm_bytes": 64 << 20}
    text = machine.shared_memory_remark(facts, 8 * 2 * 38e6)
    assert text and "0.61 GB in /dev/shm, which has 0.07 GB free" in text
    assert machine.shared_memory_remark(facts, 1e6) is None
    assert machine.shared_memory_remark({}, 1e12) is None


def test_facts_are_none_on_a_machine_without_information(tmp_path: Path) -> None:
    facts = machine.look(["/somewhere"], tmp_path)
    assert {n for n, v in facts.items() if v is not None} <= {"cores", "gpu", "instructions"}
    assert machine.remarks(facts) == []


@pytest.mark.parametrize(
    ("level", "reason", "said"),
    [
        ("avx512", (False, "avx512", 0.0, ""), "AVX-512, the best level"),
        ("avx2", (False, "avx2", 1.0, "VBMI2, GFNI"), "AVX2: this CPU lacks VBMI2, GFNI; AVX-512"),
        ("avx2-slow-pdep", (False, "avx2-slow-pdep", 9.4, "AVX-512"), "takes 9 multiplications"),
        (
            "scalar",
            (False, "scalar", 0.0, "AVX2, FMA or BMI2"),
            "lacks AVX2, FMA or BMI2; AVX2 requires",
        ),
        ("avx2", (True, "avx512", 0.0, ""), "HEADRACE_SIMD; the default would be AVX-512"),
        ("scalar", (True, "scalar", 0.0, "x86-64"), "HEADRACE_SIMD; the default would be the same"),
        ("neon", (False, "neon", 0.0, ""), "NEON, which every 64-bit ARM has; x86 runs AVX2"),
        ("scalar", (True, "neon", 0.0, ""), "forced by HEADRACE_SIMD; the default would be NEON"),
    ],
)
def test_the_reason_for_the_instruction_set_is_given(
    level: str, reason: tuple[bool, str, float, str], said: str
) -> None:
    assert said in instructions.text(level, instructions.Reason(*reason))


def test_each_simd_form_can_be_forced_and_is_then_named() -> None:
    code = "from headrace.insight.measure import instructions as i; print(i.in_force(), i.text())"
    lines = printed_at_each_simd_level(code)
    assert {line.split()[0] for line in lines} == set(_core.simd_levels())
    assert all("forced by HEADRACE_SIMD" in line for line in lines)

# SPDX-License-Identifier: Apache-2.0
"""The machine: cores, memory, shared memory, NUMA nodes, the disk's kind, a GPU's link.

Only reads files, below a root that tests can replace; unknown values are None. Does not query
drivers or libraries.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from headrace import _core
from headrace.insight.measure import instructions

_NETWORK = ("nfs", "cifs", "smb", "ceph", "lustre", "beegfs", "gpfs", "9p", "virtiofs", "glusterfs",
            "wekafs", "afs", "orangefs", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone",
            "fuse.mount-s3", "fuse.juicefs", "fuse.blobfuse", "fuse.glusterfs")  # fmt: skip
_NO_LIMIT = 1 << 60  # the value of cgroups version 1 for no limit
_VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD"}
_DISPLAYS = ("0x0300", "0x0302", "0x0380", "0x1200")  # PCI classes: displays, accelerators


def look(paths: list[str], root: str | os.PathLike[str] = "/") -> dict[str, Any]:
    """Facts by name; unknown ones are None. ``paths``: where the data is."""
    top = Path(root)
    links = gpu_links(top)
    return {
        "cores": _core.allowed_cores(),
        "instructions": instructions.text(),
        "cpu_limit": cpu_limit(top),
        "governor": governor(top),
        "numa_nodes": len(numa_nodes(top)) or None,
        "numa_nodes_used": len(nodes_used(top)) or None,
        "memory_bytes": _meminfo(top, "MemTotal"),
        "memory_available_bytes": _meminfo(top, "MemAvailable"),
        "memory_limit_bytes": memory_limit(top),
        "shm_bytes": _size(top / "dev/shm", "free"),
        "shm_size_bytes": _size(top / "dev/shm", "total"),
        "disk": disk_kind(paths[0], top) if paths else None,
        "gpu": _gpu(top),
        "gpu_link": "; ".join(map(str, links)) or None,
    }


def remarks(facts: dict[str, Any]) -> list[str]:
    """Facts that are likely to reduce speed, as sentences."""
    found = []
    if (facts.get("numa_nodes_used") or 1) > 1:
        found.append(
            f"The process may run on {facts['numa_nodes_used']} NUMA nodes; memory of another node "
            "is slower. One process per node (numactl, or one rank per node) avoids that."
        )
    if facts.get("governor") == "powersave":
        found.append("The CPU frequency governor is 'powersave'; 'performance' may be faster.")
    if str(facts.get("disk")).startswith("network"):
        found.append(f"The data is on a {facts['disk']}: each file costs a round trip.")
    return found


def shared_memory_remark(facts: dict[str, Any], needed_bytes: float) -> str | None:
    """A remark if a DataLoader's batches in flight do not fit into /dev/shm, which kills its
    workers.
    """
    free = facts.get("shm_bytes")
    if free is None or needed_bytes <= free:
        return None
    return (
        f"The workers' batches may take {needed_bytes / 1e9:.2f} GB in /dev/shm, which has "
        f"{free / 1e9:.2f} GB free: otherwise a bus error ends the run. Enlarge it (docker run "
        "--shm-size), or lower num_workers or prefetch_factor."
    )


# Where the data is.


class _Mount(NamedTuple):
    device: str  # "8:1"
    root: str  # of the mounted file system
    place: str
    kind: str
    source: str
    options: str


def disk_kind(path: str, root: str | os.PathLike[str] = "/") -> str | None:
    """One of "solid state", "rotating", "virtual", "memory (tmpfs)", "network (nfs4)", the name of
    another file system ("overlay"), or None."""
    mount = _mount_of(os.path.realpath(path), Path(root))
    if mount is None:
        return None
    if mount.kind in ("tmpfs", "ramfs"):
        return f"memory ({mount.kind})"
    if mount.kind.startswith(_NETWORK):
        return f"network ({mount.kind})"
    block = Path(root) / "sys/dev/block" / mount.device
    if not block.exists():  # btrfs and others have their own device number
        block = Path(root) / "sys/class/block" / os.path.basename(mount.source)
    return _block_kind(block) or mount.kind


def _block_kind(block: Path) -> str | None:
    try:
        folder = block.resolve(strict=True)
    except OSError:
        return None
    if "virtio" in str(folder) or folder.name.startswith(("vd", "xvd")):
        return "virtual"  # their disks report that they rotate, regardless of the real storage
    for place in (folder, folder.parent):  # a partition has no queue, but its disk does
        text = text_of(place / "queue" / "rotational")
        if text is not None:
            return "rotating" if text == "1" else "solid state"
    return None


def _mount_of(path: str, root: Path) -> _Mount | None:
    best = None
    for mount in _mounts(root):
        inside = path == mount.place or path.startswith(mount.place.rstrip("/") + "/")
        if inside and (best is None or len(mount.place) >= len(best.place)):
            best = mount
    return best


def _mounts(root: Path) -> Iterator[_Mount]:
    for line in (text_of(root / "proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        fields, more = before.split(), after.split()
        if len(fields) >= 5 and len(more) >= 2:
            inner, place = (field.replace("\\040", " ") for field in fields[3:5])
            options = more[2] if len(more) > 2 else ""
            yield _Mount(fields[2], inner, place, more[0], more[1], options)


# Limits.


def memory_limit(root: str | os.PathLike[str] = "/") -> int | None:
    """The lowest memory limit of the process's cgroup and its parents, version 1 or 2."""
    values = [
        *_up_the_tree(Path(root), "cgroup2", "", "memory.max", _number),
        *_up_the_tree(Path(root), "cgroup", "memory", "memory.limit_in_bytes", _number),
    ]
    return min((int(v) for v in values if v < _NO_LIMIT), default=None)


def cpu_limit(root: str | os.PathLike[str] = "/") -> float | None:
    """The CPU limit, in cores, of the process's cgroup and its parents."""
    values = [
        *_up_the_tree(Path(root), "cgroup2", "", "cpu.max", _share_of_v2),
        *_up_the_tree(Path(root), "cgroup", "cpu", "cpu.cfs_quota_us", _share_of_v1),
    ]
    return min(values, default=None)


def _up_the_tree(
    root: Path, kind: str, controller: str, name: str, read: Callable[[Path], float | None]
) -> Iterator[float]:
    """Applies ``read`` to a file of the process's cgroup and of all its parents."""
    group = _group(root, controller)
    if group is None:
        return
    for mount in _mounts(root):
        if mount.kind != kind or (controller and controller not in mount.options.split(",")):
            continue
        top = root / mount.place.lstrip("/")
        # In a container, the group has its name on the host, but the mount starts at a subfolder.
        below = group[len(mount.root) :] if group.startswith(mount.root) else ""
        folder = top / below.lstrip("/")
        while True:
            value = read(folder / name)
            if value is not None:
                yield value
            if folder == top or top not in folder.parents:
                break
            folder = folder.parent


def _group(root: Path, controller: str) -> str | None:
    """The process's cgroup for a controller; "" is version 2."""
    for line in (text_of(root / "proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        names, _, group = rest.partition(":")
        if (controller in names.split(",")) if controller else number == "0":
            return group if ".." not in group.split("/") else "/"
    return None


def _share_of_v2(file: Path) -> float | None:
    quota, _, period = (text_of(file) or "max").partition(" ")
    try:
        return None if quota == "max" else int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None


def _share_of_v1(file: Path) -> float | None:
    quota, period = _number(file), _number(file.with_name("cpu.cfs_period_us"))
    return quota / period if quota is not None and quota > 0 and period else None


# Nodes, clocks, GPUs.


def numa_nodes(root: Path) -> dict[int, set[int]]:
    """The cores of each NUMA node that has memory or cores."""
    found = {}
    for folder in sorted(root.glob("sys/devices/system/node/node[0-9]*")):
        found[int(folder.name[4:])] = _cores_named(text_of(folder / "cpulist") or "")
    return found


def core_numbers() -> set[int]:
    """The cores that this process may use, even if OpenMP binds the calling thread to one of
    them."""
    return set(_core.cores_beyond_inherited()) or os.sched_getaffinity(0)


def nodes_used(root: Path, cores: set[int] | None = None) -> list[int]:
    """Nodes on which the process may run; ``cores``: default: those that it may use."""
    allowed = core_numbers() if cores is None else cores
    return [node for node, its in numa_nodes(root).items() if its & allowed]


def _cores_named(text: str) -> set[int]:
    """Parses "0-3,8": 0, 1, 2, 3, 8."""
    found: set[int] = set()
    try:
        for part in filter(None, text.split(",")):
            first, _, last = part.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    except ValueError:
        return set()
    return found


def governor(root: Path) -> str | None:
    """The cores' frequency governor: "performance", "powersave", ...; several if they differ."""
    files = root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
    names = sorted({name for name in map(text_of, files) if name})
    return ", ".join(names) or None


class Link(NamedTuple):
    """A GPU on PCI Express. Idle links slow down, so ``speed`` may rise under load."""

    maker: str
    address: str
    speed: str  # "16.0 GT/s PCIe"
    width: int
    width_possible: int
    numa_node: int | None

    def __str__(self) -> str:
        text = f"{self.maker} {self.address}: {self.speed} x{self.width}"
        if self.width < self.width_possible:
            text += f" of x{self.width_possible}"
        return text + (f", NUMA node {self.numa_node}" if self.numa_node is not None else "")


def gpu_links(root: Path) -> list[Link]:
    """The GPUs on the bus, with the current speed of their links."""
    found = []
    for folder in sorted(root.glob("sys/bus/pci/devices/*")):
        maker = _VENDORS.get(text_of(folder / "vendor") or "")
        if maker is None or not (text_of(folder / "class") or "").startswith(_DISPLAYS):
            continue
        width = _number(folder / "current_link_width")
        speed = text_of(folder / "current_link_speed")
        if not width or speed is None:  # not on PCI Express, as in some virtual machines
            continue
        node = _number(folder / "numa_node")
        possible = _number(folder / "max_link_width") or width
        node = None if node is None or node < 0 else node
        found.append(Link(maker, folder.name, speed, width, possible, node))
    return found


def _gpu(root: Path) -> str | None:
    """The GPU that torch sees. Only queried if the program has imported torch."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    try:
        names = sorted(os.listdir(root / "proc/driver/nvidia/gpus"))
    except OSError:
        return None
    return f"{len(names)} from NVIDIA" if names else None


# Files.


def _meminfo(root: Path, name: str) -> int | None:
    for line in (text_of(root / "proc/meminfo") or "").splitlines():
        key, _, rest = line.partition(":")
        if key == name and rest.split()[:1] and rest.split()[0].isdigit():
            return int(rest.split()[0]) * 1024
    return None


def _size(path: Path, what: str) -> int | None:
    try:
        return int(getattr(shutil.disk_usage(path), what))
    except OSError:
        return None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def text_of(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None

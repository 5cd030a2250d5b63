# SPDX-License-Identifier: Apache-2.0
"""A Ray cluster on the loopback interface, for tests and examples: two raylets on one machine,
cleaned up afterwards."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

# Set before Ray is imported. Loopback requires the first, an address for each node, and one for
# init().
os.environ.update(
    RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",
    RAY_raylet_start_wait_time_s="300",
    RAY_USAGE_STATS_ENABLED="0",
    RAY_health_check_timeout_ms="60000",
    RAY_prestart_worker_first_driver="0",
    RAY_worker_niceness="0",  # otherwise any other work on the machine starves them
    RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",
    RAY_TRAIN_HEALTH_CHECK_INTERVAL_S="0.5",  # timeout of report()
    OMP_NUM_THREADS="1",
    # other processes have a different sys.path
    PYTHONPATH=os.pathsep.join(
        [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    ),
)

import psutil
import ray
from ray.cluster_utils import Cluster

HERE = "127.0.0.1"


def _common(store: int) -> dict[str, Any]:
    return {"node_ip_address": HERE, "object_store_memory": store}


@contextlib.contextmanager
def two_nodes(
    cpus: Sequence[int] = (1, 1),
    resources: Sequence[Mapping[str, float]] = ({"near": 10}, {"far": 10}),
    store: int = 256 << 20,
) -> Iterator[Any]:
    """A head in this process, and a node next to it. Fails if a process outlives them."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    common = _common(store)
    head = {"num_cpus": cpus[0], "resources": dict(resources[0]), "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={**head, **common})
    try:
        for count, labels in zip(cpus[1:], resources[1:], strict=True):
            cluster.add_node(num_cpus=count, resources=dict(labels), **common)
        ray.init(address=cluster.address, _node_ip_address=HERE, log_to_driver=False)
        yield cluster
    finally:
        ours = [p for p in psutil.Process().children(recursive=True) if p.pid not in before]
        ray.shutdown()
        cluster.shutdown()
        _, left = psutil.wait_procs(ours, timeout=120)
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.terminate()
    assert not left, f"outlived the cluster: {left}"


@contextlib.contextmanager
def one_more_node(
    cluster: Any, cpus: int, resources: Mapping[str, float], store: int = 256 << 20
) -> Iterator[None]:
    """A node that joins the cluster, and leaves it as if its machine had failed."""
    node = cluster.add_node(num_cpus=cpus, resources=dict(resources), **_common(store))
    try:
        yield
    finally:
        cluster.remove_node(node, allow_graceful=False)


def makers() -> list[Any]:
    """The processes of a pool's actors."""
    return processes("ray::Maker")


def processes(name: str) -> list[Any]:
    """Ray's processes, by the prefixes of their names."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.name().startswith(name) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def spills(cluster: Any) -> list[str]:
    """The raylets' log lines about objects that were spilled to disk, one for each time."""
    logs = Path(cluster.head_node.get_session_dir_path(), "logs").glob("raylet*.out")
    lines = [line for log in logs for line in log.read_text(errors="replace").splitlines()]
    return [line for line in lines if "Spilled " in line]

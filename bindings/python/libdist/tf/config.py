# SPDX-License-Identifier: Apache-2.0
"""tf.config in the small: devices are names of places on this host."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import libdist

from ._cluster import ClusterResolver, ClusterSpec
from ._missing import missing
from ._resolver import TPUClusterResolver

__getattr__ = missing("tf.config")


class LogicalDevice(NamedTuple):
    """tf.config.LogicalDevice."""

    name: str
    device_type: str


def experimental_connect_to_cluster(
    cluster_spec_or_resolver: Any,
    job_name: str = "localhost",
    task_index: int = 0,
    protocol: Optional[str] = None,
    make_master_device_default: bool = True,
    cluster_device_filters: Any = None,
) -> None:
    """Nothing: the cluster is this process. ValueError where it is said to be more."""
    given = cluster_spec_or_resolver
    if isinstance(given, TPUClusterResolver):
        return
    spec = given.cluster_spec() if isinstance(given, ClusterResolver) else given
    if not isinstance(spec, ClusterSpec):
        raise ValueError(f"a cluster resolver or a tf.train.ClusterSpec is needed here, not {given!r}")
    if sum(spec.num_tasks(job) for job in spec.jobs) > 1:
        raise ValueError("a strategy is of one process in this version: a cluster of several cannot be connected to")


def list_logical_devices(device_type: Optional[str] = None) -> list[LogicalDevice]:
    """One for each CPU that this process may use."""
    count = libdist.Topology.from_host().num_devices_per_task
    found = [LogicalDevice(f"/device:CPU:{i}", "CPU") for i in range(count)]
    return found if device_type in (None, "CPU") else []


def list_physical_devices(device_type: Optional[str] = None) -> list[LogicalDevice]:
    """As list_logical_devices(), by TensorFlow's names for hardware."""
    return [LogicalDevice(f"/physical_{device.name[1:]}", "CPU") for device in list_logical_devices(device_type)]


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Nothing: functions are always run as they are."""


def functions_run_eagerly() -> bool:
    """True: nothing is compiled."""
    return True


__all__ = [
    "LogicalDevice",
    "experimental_connect_to_cluster",
    "functions_run_eagerly",
    "list_logical_devices",
    "list_physical_devices",
    "run_functions_eagerly",
]

# SPDX-License-Identifier: Apache-2.0
"""tf.config: the devices of this host. Devices are only names; a program can choose how many there are."""

from __future__ import annotations

import threading
from typing import Annotated, Any, NamedTuple, Optional, Sequence

import libdist
from libdist._arguments import OWN_CHECK, checked

from ._cluster import ClusterResolver, ClusterSpec
from ._missing import Namespace, missing
from ._resolver import TPUClusterResolver

__getattr__ = missing("tf.config")


class LogicalDevice(NamedTuple):
    """tf.config.LogicalDevice."""

    name: str
    device_type: str


class PhysicalDevice(NamedTuple):
    """tf.config.PhysicalDevice."""

    name: str
    device_type: str


class LogicalDeviceConfiguration(NamedTuple):
    """tf.config.LogicalDeviceConfiguration: one logical device of a physical one."""

    memory_limit: Optional[int] = None
    """Must be None: TensorFlow has limits only for GPUs."""
    experimental_priority: Optional[int] = None
    """Must be None."""
    experimental_device_ordinal: Optional[int] = None
    """Has no effect."""


_CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")
_lock = threading.Lock()
_configured: Optional[list[LogicalDeviceConfiguration]] = None


@checked
def experimental_connect_to_cluster(
    cluster_spec_or_resolver: Any,
    job_name: str = "localhost",
    task_index: int = 0,
    protocol: Optional[str] = None,
    make_master_device_default: bool = True,
    cluster_device_filters: Any = None,
) -> None:
    """Does nothing: the cluster is this process. Raises ValueError if the arguments describe more."""
    given = cluster_spec_or_resolver
    if isinstance(given, TPUClusterResolver):
        return
    spec = given.cluster_spec() if isinstance(given, ClusterResolver) else given
    if not isinstance(spec, ClusterSpec):
        raise ValueError(f"a cluster resolver or a tf.train.ClusterSpec is needed here, not {given!r}")
    if sum(spec.num_tasks(job) for job in spec.jobs) > 1:
        raise ValueError("a strategy is of one process in this version: a cluster of several cannot be connected to")


@checked
def list_logical_devices(device_type: Optional[str] = None) -> list[LogicalDevice]:
    """Returns the devices of set_logical_device_configuration(); otherwise one for each CPU that this process may use.
    """
    configured = configured_devices()
    count = libdist.Topology.from_host().num_devices_per_task if configured is None else configured
    found = [LogicalDevice(f"/device:CPU:{i}", "CPU") for i in range(count)]
    return found if device_type in (None, "CPU") else []


@checked
def list_physical_devices(device_type: Optional[str] = None) -> list[PhysicalDevice]:
    """Returns the host's CPUs, which are one device, as in TensorFlow."""
    return [_CPU] if device_type in (None, "CPU") else []


@checked
def set_logical_device_configuration(
    device: Annotated[PhysicalDevice, OWN_CHECK], logical_devices: Optional[Sequence[LogicalDeviceConfiguration]]
) -> None:
    """Divides the host's CPUs into logical devices; None restores the default.

    Strategies that are created later without device names have one replica for each logical device. Unlike in
    TensorFlow, this can be called at any time.
    """
    global _configured
    _check(device)
    if logical_devices is None:
        with _lock:
            _configured = None
        return
    given = list(logical_devices)
    if not given:
        raise ValueError("logical_devices is empty: pass one LogicalDeviceConfiguration for each logical device")
    for one in given:
        if one.memory_limit is not None:
            raise ValueError("Setting memory limit on CPU virtual devices is currently not supported")
        if one.experimental_priority is not None:
            raise ValueError("Setting experimental_priority on CPU virtual devices is currently not supported")
    with _lock:
        _configured = given


@checked
def get_logical_device_configuration(device: Annotated[PhysicalDevice, OWN_CHECK]) -> Optional[list[LogicalDeviceConfiguration]]:
    """Returns the configuration that was set, or None."""
    _check(device)
    with _lock:
        return None if _configured is None else list(_configured)


def configured_devices() -> Optional[int]:
    """Returns the number of logical devices that the program has set; None if it has not."""
    with _lock:
        return None if _configured is None else len(_configured)


def _check(device: Any) -> None:
    if device != _CPU:
        raise ValueError(f"Unrecognized device: {device!r}. tf.config.list_physical_devices() lists the devices")


@checked
def run_functions_eagerly(run_eagerly: bool) -> None:
    """Does nothing: functions always run as they are."""


def functions_run_eagerly() -> bool:
    """Returns True: nothing is compiled."""
    return True


experimental = Namespace(
    "tf.config.experimental",
    VirtualDeviceConfiguration=LogicalDeviceConfiguration,
    get_virtual_device_configuration=get_logical_device_configuration,
    list_logical_devices=list_logical_devices,
    list_physical_devices=list_physical_devices,
    set_virtual_device_configuration=set_logical_device_configuration,
)
"""tf.config.experimental."""

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "experimental",
    "experimental_connect_to_cluster",
    "functions_run_eagerly",
    "get_logical_device_configuration",
    "list_logical_devices",
    "list_physical_devices",
    "run_functions_eagerly",
    "set_logical_device_configuration",
]

# SPDX-License-Identifier: Apache-2.0
"""tf.tpu: topologies and device assignments. Devices are places for host threads; only their names say TPU."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated, Any, Optional, Sequence, Union

import numpy as np

import libdist
from libdist._arguments import OWN_CHECK, checked

from ._missing import Namespace, missing
from ._topology_proto import parsed, serialized


class DeviceOrderMode(enum.IntEnum):
    """The order in which DeviceAssignment.build() places replicas."""

    AUTO = 0
    RING = 1
    MESH = 2


_NATIVE_ORDER = {int(one): libdist.DeviceOrder[one.name] for one in DeviceOrderMode}


@checked
class Topology:
    """The positions (x, y, z, core) of devices in a mesh, and the task of each device."""

    _serialized: Optional[bytes] = None  # the bytes from which it was created

    def __init__(
        self, serialized: Optional[bytes] = None, mesh_shape: Any = None, device_coordinates: Any = None
    ) -> None:
        """Creates a topology from the bytes of serialized(), or from mesh_shape and device_coordinates.

        device_coordinates: position of each device, [tasks, devices of a task, 4].
        """
        if serialized is not None:
            self._native = parsed(serialized)
            self._serialized = bytes(serialized)
            return
        if mesh_shape is None or device_coordinates is None:
            raise ValueError("a topology is made of serialized, or of both mesh_shape and device_coordinates")
        self._native = libdist.Topology(mesh_shape, device_coordinates)

    @classmethod
    def _of(cls, native: libdist.Topology) -> Topology:
        topology = cls.__new__(cls)
        topology._native = native
        return topology

    @property
    def mesh_shape(self) -> Any:
        """The size of the mesh in each direction."""
        return np.array(self._native.mesh_shape, np.int32)

    @property
    def mesh_rank(self) -> int:
        """The number of dimensions of the mesh."""
        return self._native.mesh_rank

    @property
    def device_coordinates(self) -> Any:
        """The position of each device: [tasks, devices of a task, 4]."""
        return self._native.device_coordinates

    @property
    def missing_devices(self) -> Any:
        """The positions without a device: [number of such positions, 4]."""
        return self._native.missing_devices

    @property
    def num_tasks(self) -> int:
        """The number of tasks."""
        return self._native.num_tasks

    @property
    def num_tpus_per_task(self) -> int:
        """The number of devices of each task."""
        return self._native.num_devices_per_task

    def serialized(self) -> bytes:
        """Returns the bytes of a TopologyProto."""
        return self._serialized if self._serialized is not None else serialized(self._native)

    def task_ordinal_at_coordinates(self, device_coordinates: Sequence[int]) -> int:
        """Returns the task of the device at a position."""
        return self._native.task_at(device_coordinates)

    def tpu_device_ordinal_at_coordinates(self, device_coordinates: Sequence[int]) -> int:
        """Returns the index, within its task, of the device at a position."""
        return self._native.device_at(device_coordinates)

    def tpu_device_name_at_coordinates(self, device_coordinates: Sequence[int], job: Optional[str] = None) -> str:
        """Returns the name of the device at a position."""
        return self._native.device_name_at(device_coordinates, job)

    def cpu_device_name_at_coordinates(self, device_coordinates: Sequence[int], job: Optional[str] = None) -> str:
        """Returns the name of the host of the device at a position."""
        return self._native.host_name_at(device_coordinates, job)


@checked
class DeviceAssignment:
    """Assigns devices of a topology to the logical devices of each replica."""

    def __init__(self, topology: Annotated[Topology, OWN_CHECK], core_assignment: Any) -> None:
        """core_assignment: position of each logical device, [replicas, logical devices, 4]."""
        self._topology = _checked(topology)
        self._native = libdist.DeviceAssignment(topology._native, core_assignment)

    @staticmethod
    def build(
        topology: Annotated[Union[Topology, bytes], OWN_CHECK],
        computation_shape: Optional[Sequence[int]] = None,
        computation_stride: Optional[Sequence[int]] = None,
        num_replicas: int = 1,
        device_order_mode: Union[DeviceOrderMode, int] = DeviceOrderMode.AUTO,
    ) -> DeviceAssignment:
        """Gives each replica a block of computation_shape devices, computation_stride apart; None = 1 everywhere.

        topology: a Topology, or its bytes.

        device_order_mode: numbers that are not in DeviceOrderMode count as MESH.
        """
        on = Topology(serialized=topology) if isinstance(topology, bytes) else _checked(topology)
        native = libdist.DeviceAssignment.build(
            on._native, computation_shape, computation_stride, num_replicas, _NATIVE_ORDER.get(int(device_order_mode), libdist.DeviceOrder.MESH)
        )
        assignment = DeviceAssignment.__new__(DeviceAssignment)
        assignment._topology, assignment._native = on, native
        return assignment

    @property
    def topology(self) -> Topology:
        """The topology with which the assignment was created."""
        return self._topology

    @property
    def num_replicas(self) -> int:
        """The number of replicas."""
        return self._native.num_replicas

    @property
    def num_cores_per_replica(self) -> int:
        """The number of logical devices of each replica."""
        return self._native.num_logical_devices

    @property
    def core_assignment(self) -> Any:
        """The position of each logical device of each replica: [replicas, logical devices, 4]."""
        return self._native.core_assignment

    def coordinates(self, replica: int, logical_core: int) -> tuple[int, ...]:
        """Returns the position of one logical device."""
        return self._native.coordinates(replica, logical_core)

    def tpu_ordinal(self, replica: int = 0, logical_core: int = 0) -> int:
        """Returns the index of a logical device within its task."""
        return self._native.device(replica, logical_core)

    def tpu_device(self, replica: int = 0, logical_core: int = 0, job: Optional[str] = None) -> str:
        """Returns the name of a logical device."""
        return self._native.device_name(replica, logical_core, job)

    def host_device(self, replica: int = 0, logical_core: int = 0, job: Optional[str] = None) -> str:
        """Returns the name of the host of a logical device."""
        return self._native.host_name(replica, logical_core, job)

    def lookup_replicas(self, task_id: int, logical_core: int) -> list[int]:
        """Returns the replicas whose logical device of this number is in a task."""
        return self._native.lookup_replicas(task_id, logical_core)


def _checked(topology: Any) -> Topology:
    if not isinstance(topology, Topology):
        raise ValueError(f"topology must be a Topology object, got {type(topology)}")
    return topology


def initialize_tpu_system(cluster_resolver: Any = None) -> Topology:
    """Returns the topology of a TPUClusterResolver's devices; None = of the CPUs that this process may use."""
    from ._resolver import topology_of

    return topology_of(cluster_resolver)


def shutdown_tpu_system(cluster_resolver: Any = None) -> None:
    """Does nothing: the threads of a strategy end with it."""


@checked
@dataclass(frozen=True)
class XLAOptions:
    """tf.tpu.XLAOptions: accepted without effect, because nothing is compiled."""

    use_spmd_for_xla_partitioning: bool = True
    enable_xla_dynamic_padder: bool = True
    use_shardy_partitioner: bool = False


__getattr__ = missing("tf.tpu")

experimental = Namespace(
    "tf.tpu.experimental",
    DeviceAssignment=DeviceAssignment,
    DeviceOrderMode=DeviceOrderMode,
    Topology=Topology,
    initialize_tpu_system=initialize_tpu_system,
    shutdown_tpu_system=shutdown_tpu_system,
)
"""tf.tpu.experimental."""

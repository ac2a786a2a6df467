# SPDX-License-Identifier: Apache-2.0
"""tf.tpu: topologies and device assignments. The devices are places for host threads, TPU by name alone."""

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
    """In which order DeviceAssignment.build() lays replicas out."""

    AUTO = 0
    RING = 1
    MESH = 2


_NATIVE_ORDER = {int(one): libdist.DeviceOrder[one.name] for one in DeviceOrderMode}


@checked
class Topology:
    """Where devices are: positions (x, y, z, core) of a mesh, each device in a task."""

    _serialized: Optional[bytes] = None  # those that it was made of

    def __init__(
        self, serialized: Optional[bytes] = None, mesh_shape: Any = None, device_coordinates: Any = None
    ) -> None:
        """Of what serialized() gave, or of a mesh and device_coordinates: [tasks, devices of a task, 4]."""
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
        """Where each device is: [tasks, devices of a task, 4]."""
        return self._native.device_coordinates

    @property
    def missing_devices(self) -> Any:
        """The positions without a device: [how many, 4]."""
        return self._native.missing_devices

    @property
    def num_tasks(self) -> int:
        """How many tasks have devices."""
        return self._native.num_tasks

    @property
    def num_tpus_per_task(self) -> int:
        """How many devices each task has."""
        return self._native.num_devices_per_task

    def serialized(self) -> bytes:
        """A TopologyProto's bytes."""
        return self._serialized if self._serialized is not None else serialized(self._native)

    def task_ordinal_at_coordinates(self, device_coordinates: Sequence[int]) -> int:
        """Which task the device at a position belongs to."""
        return self._native.task_at(device_coordinates)

    def tpu_device_ordinal_at_coordinates(self, device_coordinates: Sequence[int]) -> int:
        """Which device of its task is at a position."""
        return self._native.device_at(device_coordinates)

    def tpu_device_name_at_coordinates(self, device_coordinates: Sequence[int], job: Optional[str] = None) -> str:
        """The name of the device at a position."""
        return self._native.device_name_at(device_coordinates, job)

    def cpu_device_name_at_coordinates(self, device_coordinates: Sequence[int], job: Optional[str] = None) -> str:
        """The name of the host of the device at a position."""
        return self._native.host_name_at(device_coordinates, job)


@checked
class DeviceAssignment:
    """Which devices of a topology are the logical devices of each replica."""

    def __init__(self, topology: Annotated[Topology, OWN_CHECK], core_assignment: Any) -> None:
        """core_assignment: [replicas, logical devices, 4]."""
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
        """Gives each replica a block of computation_shape devices, computation_stride apart; None: 1 everywhere.

        topology: or its bytes. device_order_mode: other numbers than those of DeviceOrderMode count as MESH.
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
        """The topology that it was made with."""
        return self._topology

    @property
    def num_replicas(self) -> int:
        """How many replicas it is for."""
        return self._native.num_replicas

    @property
    def num_cores_per_replica(self) -> int:
        """How many logical devices each replica has."""
        return self._native.num_logical_devices

    @property
    def core_assignment(self) -> Any:
        """Where each logical device of each replica is: [replicas, logical devices, 4]."""
        return self._native.core_assignment

    def coordinates(self, replica: int, logical_core: int) -> tuple[int, ...]:
        """Where one logical device is."""
        return self._native.coordinates(replica, logical_core)

    def tpu_ordinal(self, replica: int = 0, logical_core: int = 0) -> int:
        """Which device of its task a logical device is."""
        return self._native.device(replica, logical_core)

    def tpu_device(self, replica: int = 0, logical_core: int = 0, job: Optional[str] = None) -> str:
        """A logical device's name."""
        return self._native.device_name(replica, logical_core, job)

    def host_device(self, replica: int = 0, logical_core: int = 0, job: Optional[str] = None) -> str:
        """The name of a logical device's host."""
        return self._native.host_name(replica, logical_core, job)

    def lookup_replicas(self, task_id: int, logical_core: int) -> list[int]:
        """Which replicas have their logical device of this number in a task."""
        return self._native.lookup_replicas(task_id, logical_core)


def _checked(topology: Any) -> Topology:
    if not isinstance(topology, Topology):
        raise ValueError(f"topology must be a Topology object, got {type(topology)}")
    return topology


def initialize_tpu_system(cluster_resolver: Any = None) -> Topology:
    """The topology of a TPUClusterResolver's devices; of the CPUs that this process may use without one."""
    from ._resolver import topology_of

    return topology_of(cluster_resolver)


def shutdown_tpu_system(cluster_resolver: Any = None) -> None:
    """Nothing: a strategy's threads end with it."""


@checked
@dataclass(frozen=True)
class XLAOptions:
    """tf.tpu.XLAOptions: accepted, without effect, as nothing is compiled."""

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

# SPDX-License-Identifier: Apache-2.0
"""Topologies and device assignments: the positions of devices, and the devices that form each replica."""

from __future__ import annotations

from typing import Annotated, Any, Callable, Optional, Sequence

import numpy as np

from . import _cdist
from ._arguments import Rule, Unfit, checked
from ._native import Native
from ._tensors import Array
from .constants import DeviceOrder
from .errors import InvalidArgument

Coordinates = Sequence[int]
"""A position in the mesh: (x, y, z, core). -1 is the last position in its direction."""


def _fit_integers(given: Any) -> Any:
    try:
        array = np.asarray(given)
    except ValueError:  # lists of different lengths
        raise Unfit(given, _INTEGERS) from None
    if array.ndim == 0 or array.size and array.dtype.kind not in "iu":
        raise Unfit(given, _INTEGERS)
    return array


_INTEGERS = "an array of integers"
Integers = Annotated[Any, Rule(_fit_integers, _INTEGERS)]
"""An array of integers, or nested lists of integers."""


def _int32s(numbers: Any, what: str) -> Array:
    """Converts numbers to an int32 array. A number that does not fit raises InvalidArgument."""
    given = np.asarray(numbers)
    limits = np.iinfo(np.int32)
    if given.size and not (limits.min <= given.min() and given.max() <= limits.max):
        raise InvalidArgument(f"{what} has a number that 32 bits do not hold")
    return given.astype(np.int32)


def _array(fill: Callable[[Any], object], shape: tuple[int, ...]) -> Array:
    """Returns the numbers that the native layer fills in, as an array."""
    numbers = _cdist.Numbers()
    fill(numbers)
    return np.array([numbers.at(i) for i in range(numbers.size())], np.int32).reshape(shape)


@checked
class Topology(Native):
    """The positions (x, y, z, core) of devices in a mesh, and the task of each device. Immutable.

        topology = Topology.from_host()
        one_replica_of_two = DeviceAssignment.build(topology, [1, 1, 2, 1])
    """

    _owner: Any = None  # keeps a borrowed handle valid

    def __init__(self, mesh_shape: Sequence[int], device_coordinates: Integers) -> None:
        """Creates a topology from explicit coordinates. Positions without a device are missing devices.

        mesh_shape: size of the mesh in each of the 4 directions.

        device_coordinates: position of each device, [tasks, devices of a task, 4].
        """
        self._handle = 0
        mesh = _int32s(mesh_shape, "mesh_shape").ravel().tolist()
        given = _int32s(device_coordinates, "device_coordinates")
        if given.ndim != 3:
            raise InvalidArgument(
                f"device_coordinates has {given.ndim} dimensions, not 3: [tasks, devices of a task, {len(mesh)}]"
            )
        if given.shape[2] != len(mesh):
            raise InvalidArgument(
                f"device_coordinates has positions of {given.shape[2]} numbers, and the mesh {len(mesh)} dimensions"
            )
        flat = given.ravel().tolist() or None
        self._handle = _cdist.dist_topology_create(mesh, len(mesh), flat, given.shape[0], given.shape[1], None)

    @classmethod
    def _of(cls, handle: int, owner: Any = None) -> Topology:
        topology = cls.__new__(cls)
        topology._handle = handle
        topology._owner = owner
        return topology

    @classmethod
    def from_host(cls) -> Topology:
        """Creates a topology of the CPUs that this process may use.

        The directions are x = package, y = NUMA domain, z = core, core = hardware thread of the core.
        """
        options = _cdist.dist_topology_options()
        return cls._of(_cdist.dist_topology_from_host(options))

    # The default keeps the function: the names of the module are gone when the interpreter exits.
    def __del__(self, _destroy: Any = _cdist.dist_topology_destroy) -> None:
        if self._handle and self._owner is None:
            _destroy(self._handle)

    @property
    def mesh_rank(self) -> int:
        """The number of dimensions of the mesh: 4."""
        return int(_cdist.dist_topology_mesh_rank(self._handle))

    @property
    def mesh_shape(self) -> tuple[int, ...]:
        """The size of the mesh in each direction."""
        shape = _array(lambda numbers: numbers.topology_mesh_shape(self._handle), (-1,))
        return tuple(shape.tolist())

    @property
    def num_tasks(self) -> int:
        """The number of tasks."""
        return int(_cdist.dist_topology_num_tasks(self._handle))

    @property
    def num_devices_per_task(self) -> int:
        """The number of devices of each task."""
        return int(_cdist.dist_topology_num_devices_per_task(self._handle))

    @property
    def device_coordinates(self) -> Array:
        """The position of each device, as it was given: [tasks, devices of a task, 4]."""
        shape = (self.num_tasks, self.num_devices_per_task, self.mesh_rank)
        return _array(lambda numbers: numbers.topology_device_coordinates(self._handle), shape)

    @property
    def missing_devices(self) -> Array:
        """The positions without a device: [number of such positions, 4]."""
        shape = (_cdist.dist_topology_num_missing_devices(self._handle), self.mesh_rank)
        return _array(lambda numbers: numbers.topology_missing_devices(self._handle), shape)

    def task_at(self, coordinates: Coordinates) -> int:
        """Returns the task of the device at a position; -1 if the device is missing."""
        return int(_cdist.dist_topology_task_at(self._handle, self._position(coordinates)))

    def device_at(self, coordinates: Coordinates) -> int:
        """Returns the index, within its task, of the device at a position; -1 if the device is missing."""
        return int(_cdist.dist_topology_device_at(self._handle, self._position(coordinates)))

    def cpu_at(self, coordinates: Coordinates) -> int:
        """Returns the system's number of the CPU at a position of from_host(); -1 if it is missing."""
        return int(_cdist.dist_topology_cpu_at(self._handle, self._position(coordinates)))

    def device_name_at(self, coordinates: Coordinates, job: Optional[str] = None) -> str:
        """Returns the name of the device at a position: "/job:worker/task:0/device:TPU:1"."""
        return str(_cdist.dist_topology_device_name_at(self._handle, self._position(coordinates), job))

    def host_name_at(self, coordinates: Coordinates, job: Optional[str] = None) -> str:
        """Returns the name of the host of the device at a position: "/job:worker/task:0/device:CPU:0"."""
        return str(_cdist.dist_topology_host_name_at(self._handle, self._position(coordinates), job))

    def explain(self) -> str:
        """Describes the topology, in lines for human readers, which may change in any version.

        For the topology of a host, this includes how it was detected.
        """
        text = _cdist.Text()
        text.explain_topology(self._handle)
        return str(text.text())

    def _position(self, coordinates: Coordinates) -> list[int]:
        """Converts a position to as many numbers as C reads."""
        position: list[int] = _int32s(coordinates, "a position").ravel().tolist()
        if len(position) != self.mesh_rank:
            raise InvalidArgument(f"a position of this mesh has {self.mesh_rank} numbers, not {len(position)}")
        return position

    def __repr__(self) -> str:
        devices = self.num_tasks * self.num_devices_per_task
        return f"<libdist.Topology of {'x'.join(map(str, self.mesh_shape))} positions, {devices} devices>"


@checked
class DeviceAssignment(Native):
    """Assigns devices of a topology to logical devices 0, 1, ... of replicas 0, 1, ... Immutable."""

    def __init__(self, topology: Topology, core_assignment: Integers) -> None:
        """Creates an assignment from explicit coordinates.

        core_assignment: position of each logical device, [replicas, logical devices, 4].
        """
        self._handle = 0
        given = _int32s(core_assignment, "core_assignment")
        if given.ndim != 3:
            raise InvalidArgument(
                f"core_assignment has {given.ndim} dimensions, not 3: [replicas, logical devices, {topology.mesh_rank}]"
            )
        replicas, devices, rank = given.shape
        flat = given.ravel().tolist() or None
        self._handle = _cdist.dist_device_assignment_create(topology._handle, flat, replicas, devices, rank)

    @classmethod
    def _of(cls, handle: int) -> DeviceAssignment:
        assignment = cls.__new__(cls)
        assignment._handle = handle
        return assignment

    @classmethod
    def build(
        cls,
        topology: Topology,
        computation_shape: Optional[Sequence[int]] = None,
        computation_stride: Optional[Sequence[int]] = None,
        num_replicas: int = 1,
        device_order: DeviceOrder = DeviceOrder.AUTO,
    ) -> DeviceAssignment:
        """Gives each replica a block of devices.

        computation_shape: size of a block in each direction; None = 1 in each.

        computation_stride: distance between the devices of a block in each direction; None = 1 in each.
        """
        given = []
        for numbers, what in ((computation_shape, "computation_shape"), (computation_stride, "computation_stride")):
            given.append(None if numbers is None else _int32s(numbers, what).ravel().tolist())
        lengths = {len(numbers) for numbers in given if numbers is not None} or {topology.mesh_rank}
        if len(lengths) != 1:
            raise InvalidArgument(
                f"computation_shape has {len(given[0] or ())} numbers and computation_stride {len(given[1] or ())}: "
                f"both have one for each of the mesh's {topology.mesh_rank} dimensions"
            )
        arguments = (*given, lengths.pop(), num_replicas, int(device_order))
        return cls._of(_cdist.dist_device_assignment_build(topology._handle, *arguments))

    @classmethod
    def single(cls, topology: Topology) -> DeviceAssignment:
        """Creates an assignment with one replica of one logical device, at (0, 0, 0, 0)."""
        return cls._of(_cdist.dist_device_assignment_create_single(topology._handle))

    def __del__(self, _destroy: Any = _cdist.dist_device_assignment_destroy) -> None:
        if self._handle:
            _destroy(self._handle)

    @property
    def topology(self) -> Topology:
        """The topology with which the assignment was created."""
        return Topology._of(_cdist.dist_device_assignment_topology(self._handle), self)

    @property
    def num_replicas(self) -> int:
        """The number of replicas."""
        return int(_cdist.dist_device_assignment_num_replicas(self._handle))

    @property
    def num_logical_devices(self) -> int:
        """The number of logical devices of each replica."""
        return int(_cdist.dist_device_assignment_num_logical_devices(self._handle))

    @property
    def core_assignment(self) -> Array:
        """The position of each logical device of each replica: [replicas, logical devices, 4]."""
        shape = (self.num_replicas, self.num_logical_devices, self.topology.mesh_rank)
        return _array(lambda numbers: numbers.device_assignment_core_assignment(self._handle), shape)

    def coordinates(self, replica: int, logical_device: int) -> tuple[int, ...]:
        """Returns the position of one logical device. -1 is the last replica or device, as in Python."""
        numbers = _cdist.Numbers()
        numbers.device_assignment_coordinates(self._handle, replica, logical_device)
        return tuple(numbers.at(i) for i in range(numbers.size()))

    def device(self, replica: int = 0, logical_device: int = 0) -> int:
        """Returns the index of a logical device within its task (TensorFlow: tpu_ordinal); -1 if the device is missing.
        """
        return int(_cdist.dist_device_assignment_device(self._handle, replica, logical_device))

    def device_name(self, replica: int = 0, logical_device: int = 0, job: Optional[str] = None) -> str:
        """Returns the name of a logical device (TensorFlow: tpu_device)."""
        return str(_cdist.dist_device_assignment_device_name(self._handle, replica, logical_device, job))

    def host_name(self, replica: int = 0, logical_device: int = 0, job: Optional[str] = None) -> str:
        """Returns the name of the host of a logical device (TensorFlow: host_device)."""
        return str(_cdist.dist_device_assignment_host_name(self._handle, replica, logical_device, job))

    def lookup_replicas(self, task: int, logical_device: int) -> list[int]:
        """Returns the replicas whose logical device of this number is in a task, in ascending order."""
        numbers = _cdist.Numbers()
        numbers.device_assignment_lookup_replicas(self._handle, task, logical_device)
        return [numbers.at(i) for i in range(numbers.size())]

    def __repr__(self) -> str:
        return (
            f"<libdist.DeviceAssignment of {self.num_replicas} replicas of {self.num_logical_devices} logical devices>"
        )

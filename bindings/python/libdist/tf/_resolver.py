# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.cluster_resolver.TPUClusterResolver: the devices of this host as a mesh."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional, Sequence

import libdist
from libdist._arguments import checked

from ._cluster import ClusterResolver, ClusterSpec
from .tpu import Topology


class TPUSystemMetadata(NamedTuple):
    """tf.tpu.experimental.TPUSystemMetadata."""

    num_cores: int
    num_hosts: int
    num_of_cores_per_host: int
    topology: Topology
    devices: list[str]


@checked
class TPUClusterResolver(ClusterResolver):
    """The virtual devices of this host as a mesh. A device is a thread; it has the type TPU only in its name."""

    _tf_name = "tf.distribute.cluster_resolver.TPUClusterResolver"

    def __init__(
        self,
        tpu: Optional[str] = None,
        zone: Optional[str] = None,
        project: Optional[str] = None,
        job_name: str = "worker",
        coordinator_name: Optional[str] = None,
        coordinator_address: Optional[str] = None,
        credentials: Any = "default",
        service: Any = None,
        discovery_url: Optional[str] = None,
        *,
        mesh_shape: Sequence[int] = (1, 2, 2, 2),
    ) -> None:
        """tpu: '', "local" or None = this host.

        mesh_shape: shape of the mesh of devices, (x, y, z, core). Not in TensorFlow.

        The other arguments have no effect.
        """
        if tpu not in (None, "", "local"):
            raise ValueError(f"tpu={tpu!r}: there is no service to ask, the devices are this host's CPUs: tpu=''")
        sizes = [int(size) for size in mesh_shape]
        if len(sizes) != 4 or min(sizes) < 1:
            raise ValueError(f"mesh_shape={tuple(mesh_shape)}: four sizes of at least 1: (x, y, z, core)")
        places = [[]]  # type: list[list[int]]
        for size in sizes:
            places = [[*place, i] for place in places for i in range(size)]
        self._job_name = job_name
        self.topology = Topology(mesh_shape=sizes, device_coordinates=[places])
        """The topology of the devices."""
        self.num_devices = math.prod(sizes)
        """The number of devices."""
        self.task_type = job_name
        self.task_id = 0

    @staticmethod
    def connect(tpu: Optional[str] = None, zone: Optional[str] = None, project: Optional[str] = None) -> Any:
        """Returns a resolver. No connection is made."""
        return TPUClusterResolver(tpu, zone, project)

    def cluster_spec(self) -> ClusterSpec:
        """Returns an empty cluster: there is only this process."""
        return ClusterSpec({})

    def master(
        self, task_type: Optional[str] = None, task_id: Optional[int] = None, rpc_layer: Optional[str] = None
    ) -> str:
        """Returns "": this process."""
        return ""

    def get_master(self) -> str:
        """Returns "": this process."""
        return self.master()

    def get_job_name(self) -> str:
        """Returns the name of the job."""
        return self._job_name

    def get_coordination_service_leader(self) -> str:
        """Returns the task that leads the coordination."""
        return f"/job:{self._job_name}/replica:0/task:0"

    def num_accelerators(
        self, task_type: Optional[str] = None, task_id: Optional[int] = None, config_proto: Any = None
    ) -> dict[str, int]:
        """Returns the number of devices, for example {"TPU": 8}."""
        return {"TPU": self.num_devices}

    def get_tpu_system_metadata(self) -> TPUSystemMetadata:
        """Returns the number and the names of the devices."""
        names = [self.topology.tpu_device_name_at_coordinates(at) for at in self.topology.device_coordinates[0]]
        return TPUSystemMetadata(self.num_devices, 1, self.num_devices, self.topology, names)

    def set_tpu_topology(self, serialized_tpu_topology: bytes) -> None:
        """Sets another topology, from the bytes of Topology.serialized()."""
        self.topology = Topology(serialized=serialized_tpu_topology)
        self.num_devices = self.topology.num_tasks * self.topology.num_tpus_per_task


def topology_of(resolver: Any) -> Topology:
    """Returns the topology of a resolver's devices, for initialize_tpu_system(); None = the CPUs of this host."""
    if resolver is None:
        return Topology._of(libdist.Topology.from_host())
    if not isinstance(resolver, TPUClusterResolver):
        raise ValueError(f"{resolver!r} is no TPUClusterResolver: there is no service to ask, tpu='' is this host")
    return resolver.topology

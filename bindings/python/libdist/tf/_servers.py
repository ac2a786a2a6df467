# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.Server: a parameter server or worker of a ParameterServerStrategy's job, with libdist.Server."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional, Union

import libdist
from libdist._arguments import checked

from . import _closures
from ._cluster import ClusterSpec
from ._missing import Refusing


class ServerDef(NamedTuple):
    """The arguments with which a server was created."""

    cluster: Optional[ClusterSpec]
    job_name: str
    task_index: int
    protocol: str


_started: set[Server] = set()  # as in TensorFlow, a server continues if nothing refers to it


@checked
class Server(Refusing):
    """A task of a cluster: a parameter server, or a worker, which runs the program's tf.functions.

        server = tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id)
        server.join()      # after creating the strategy, its variables and the functions, as every process does

    It looks for a function when the coordinator schedules it, so the function may be created after the server.
    """

    _tf_name = "tf.distribute.Server"

    def __init__(
        self,
        server_or_cluster_def: Union[ClusterSpec, ServerDef, Mapping[str, Any]],
        job_name: Optional[str] = None,
        task_index: Optional[int] = None,
        protocol: Optional[str] = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        """job_name, task_index: select a task of the cluster; None = the only one. config: accepted without effect."""
        if isinstance(server_or_cluster_def, ServerDef):
            given = server_or_cluster_def
            job_name = given.job_name if job_name is None else job_name
            task_index = given.task_index if task_index is None else task_index
            protocol = given.protocol if protocol is None else protocol
            cluster = given.cluster or ClusterSpec({})
        else:
            cluster = ClusterSpec(server_or_cluster_def)
        if job_name is None:
            if len(cluster.jobs) != 1:
                raise ValueError("You must specify an explicit `job_name`.")
            job_name = cluster.jobs[0]
        if task_index is None:
            if cluster.num_tasks(job_name) != 1:
                raise ValueError("You must specify an explicit `task_index`.")
            task_index = cluster.task_indices(job_name)[0]
        _check_protocol(protocol)
        self._begin(libdist.Server(cluster._native, job_name, task_index), (cluster, job_name, task_index), start)

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """Creates a server on 127.0.0.1 and a port that the system chooses, for any task of a cluster."""
        server: Server = Server.__new__(Server)
        server._begin(libdist.Server.local(), (None, "local", 0), start)
        return server

    def _begin(self, native: libdist.Server, task: tuple[Optional[ClusterSpec], str, int], start: bool) -> None:
        self._native = native
        self._def = ServerDef(*task, "grpc")
        self._is_started = False
        _closures.serve(native)
        if start:
            self.start()

    def start(self) -> None:
        """Starts to listen. Further calls have no effect."""
        if not self._is_started:
            self._native.start()
            self._is_started = True
            _started.add(self)

    def join(self) -> None:
        """Waits until the coordinator of the job ends. TensorFlow's servers wait forever.

        Raises libdist.Unavailable if the coordinator has been silent for two leases.
        """
        self._native.join()

    @property
    def server_def(self) -> ServerDef:
        """The cluster, job_name, task_index and protocol of the server."""
        return self._def

    @property
    def target(self) -> str:
        """The address for coordinators: "grpc://host:port"."""
        return self._native.target

    def close(self) -> None:
        """Stops the server now instead of at the end of the process. Not in TensorFlow."""
        _started.discard(self)
        self._native.close()

    def __repr__(self) -> str:
        return f"<tf.distribute.Server /job:{self._def.job_name}/task:{self._def.task_index}>"


def _check_protocol(protocol: Optional[str]) -> None:
    if protocol not in (None, "", "grpc"):
        raise libdist.NotFound(f"no server is there for the protocol {protocol!r}: 'grpc' is the one")

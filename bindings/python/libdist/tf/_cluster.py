# SPDX-License-Identifier: Apache-2.0
"""tf.train.ClusterSpec, and the resolvers of tf.distribute.cluster_resolver that query no service."""

from __future__ import annotations

import functools
import json
import os
from dataclasses import replace
from typing import Annotated, Any, Mapping, Optional, Sequence, Union

import libdist
from libdist._arguments import OWN_CHECK, checked
from libdist.cluster import TaskId

from ._missing import Refusing

Tasks = Union[Sequence[str], Mapping[int, str]]


def _text(given: Any, what: str) -> str:
    """Returns a text, decoded from bytes if necessary. Raises TypeError for other types."""
    if isinstance(given, bytes):
        return given.decode()
    if not isinstance(given, str):
        raise TypeError(f"{what} {given!r} must be bytes or unicode")
    return given


@checked
class ClusterSpec(Refusing):
    """tf.train.ClusterSpec: the jobs of a cluster and the addresses of their tasks."""

    _tf_name = "tf.train.ClusterSpec"
    _native: libdist.ClusterSpec

    def __init__(self, cluster: Annotated[Union[ClusterSpec, Mapping[str, Tasks]], OWN_CHECK]) -> None:
        if isinstance(cluster, ClusterSpec):
            self._native = cluster._native
            return
        if not isinstance(cluster, Mapping):
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network addresses, or a "
                f"`ClusterSpec`, got {cluster!r}"
            )
        jobs: dict[str, Tasks] = {}
        for job, tasks in cluster.items():
            if isinstance(tasks, Mapping):
                addresses = {int(index): _text(address, "Task address") for index, address in tasks.items()}
                jobs[_text(job, "Job name")] = addresses
            elif isinstance(tasks, (list, tuple)):
                jobs[_text(job, "Job name")] = [_text(address, "Task address") for address in tasks]
            else:
                raise TypeError(f"The tasks for job {job!r} must be a list or a dictionary from integers to strings.")
        self._native = libdist.ClusterSpec(jobs)

    @classmethod
    def _of(cls, native: libdist.ClusterSpec) -> ClusterSpec:
        spec = cls.__new__(cls)
        spec._native = native
        return spec

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return self._native.jobs

    def num_tasks(self, job_name: str) -> int:
        """Returns the number of tasks of a job."""
        return self._native.num_tasks(job_name)

    def task_indices(self, job_name: str) -> list[int]:
        """Returns the indices of a job's tasks."""
        return self._native.task_indices(job_name)

    def task_address(self, job_name: str, task_index: int) -> str:
        """Returns the address of a task."""
        return self._native.task_address(job_name, task_index)

    def job_tasks(self, job_name: str) -> list[Optional[str]]:
        """Returns the addresses of a job's tasks as a list by index; None if there is no such task."""
        indices = self.task_indices(job_name)
        if indices and indices[0] < 0:
            raise IndexError(f"job {job_name!r} has a task {indices[0]}, which has no place in a list")
        addresses: list[Optional[str]] = [None] * (max(indices, default=-1) + 1)
        for index in indices:
            addresses[index] = self.task_address(job_name, index)
        return addresses

    def as_dict(self) -> dict[str, Any]:
        """Returns the jobs as a dictionary.

        A job with tasks 0, 1, ... is a list of addresses, any other job a dictionary.
        """
        return self._native.as_dict()

    def __bool__(self) -> bool:
        return bool(self._native)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._native == other._native

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        jobs = self.as_dict()
        return "ClusterSpec({" + ", ".join(f"{job!r}: {jobs[job]!r}" for job in sorted(jobs)) + "})"


@checked
class ClusterResolver(Refusing):
    """The base class of resolvers. A resolver of your own overrides cluster_spec() and master().

    Assign it to extended._cluster_resolver of its strategy.
    """

    _tf_name = "tf.distribute.cluster_resolver.ClusterResolver"
    _task_type: Optional[str] = None
    _task_id: Optional[int] = None

    @property
    def task_type(self) -> Optional[str]:
        """The job of this process, for example "worker"."""
        return self._task_type

    @task_type.setter
    def task_type(self, task_type: Optional[str]) -> None:
        self._task_type = task_type

    @property
    def task_id(self) -> Optional[int]:
        """The index of this process in its job."""
        return self._task_id

    @task_id.setter
    def task_id(self, task_id: TaskId) -> None:
        self._task_id = task_id

    def cluster_spec(self) -> ClusterSpec:
        """Returns the cluster."""
        raise NotImplementedError("cluster_spec() is the subclass's")

    def master(
        self, task_type: Optional[str] = None, task_id: TaskId = None, rpc_layer: Optional[str] = None
    ) -> str:
        """Returns the address of a task."""
        raise NotImplementedError("master() is the subclass's")

    def num_accelerators(
        self, task_type: Optional[str] = None, task_id: TaskId = None, config_proto: Any = None
    ) -> dict[str, int]:
        """Returns the number of devices of each kind of a task. There are only CPUs."""
        return {}

    @property
    def environment(self) -> Optional[str]:
        """The platform on which the cluster runs."""
        return ""


class _Functions(libdist.ResolverFunctions):
    """Converts a resolver of your own to functions that libdist calls."""

    def __init__(self, resolver: ClusterResolver) -> None:
        self._resolver = resolver

    def spec(self) -> libdist.ClusterSpec:
        spec = self._resolver.cluster_spec()
        if not isinstance(spec, ClusterSpec):
            raise TypeError(f"cluster_spec() gave {spec!r}, which is no tf.train.ClusterSpec")
        return spec._native

    def task_type(self) -> Optional[str]:
        return self._resolver.task_type

    def task_id(self) -> Optional[int]:
        return self._resolver.task_id

    def rpc_layer(self) -> Optional[str]:
        layer: Optional[str] = getattr(self._resolver, "rpc_layer", None)
        return layer

    def environment(self) -> Optional[str]:
        return self._resolver.environment

    def master(self, task_type: Optional[str], task_id: TaskId, rpc_layer: Optional[str]) -> str:
        return self._resolver.master(task_type, task_id, rpc_layer)

    def num_accelerators(self, task_type: Optional[str], task_id: TaskId) -> int:
        return sum(self._resolver.num_accelerators(task_type, task_id).values())


def native_of(resolver: Any) -> Optional[libdist.ClusterResolver]:
    """Returns the libdist resolver for a resolver; None for other objects."""
    if isinstance(resolver, Resolved):
        return resolver._native
    if isinstance(resolver, ClusterResolver):
        return libdist.ClusterResolver.host(_Functions(resolver))
    return None


@checked
class Resolved(ClusterResolver):
    """A resolver that libdist implements. Setting an attribute creates the libdist resolver again, with another option.
    """

    _base: libdist.ClusterResolver

    def __init__(self, options: libdist.ClusterResolverOptions) -> None:
        self._options = options
        self._native = self._make(options)

    @classmethod
    def _of(cls, native: libdist.ClusterResolver) -> Resolved:
        """Returns a resolver for a libdist strategy that was created with it."""
        resolver = cls.__new__(cls)
        resolver._options = libdist.ClusterResolverOptions()
        resolver._base = resolver._native = native
        return resolver

    def _make(self, options: libdist.ClusterResolverOptions) -> libdist.ClusterResolver:
        return libdist.ClusterResolver.union([self._base], options)

    def _set(self, **given: Any) -> None:
        options = replace(self._options, **given)
        self._native = self._make(options)
        self._options = options

    @property
    def task_type(self) -> Optional[str]:
        """The job of this process, for example "worker"."""
        return self._native.task_type

    @task_type.setter
    def task_type(self, task_type: Optional[str]) -> None:
        self._set(task_type=task_type)

    @property
    def task_id(self) -> Optional[int]:
        """The index of this process in its job."""
        return self._native.task_id

    @task_id.setter
    def task_id(self, task_id: TaskId) -> None:
        self._set(task_id=task_id)

    @property
    def rpc_layer(self) -> Optional[str]:
        """The RPC layer, which is prefixed to addresses with "://"."""
        return self._native.rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: Optional[str]) -> None:
        self._set(rpc_layer=rpc_layer)

    @property
    def environment(self) -> Optional[str]:
        """The platform on which the cluster runs; None if it is not set."""
        return self._native.environment

    def cluster_spec(self) -> ClusterSpec:
        """Returns the cluster."""
        return ClusterSpec._of(self._native.spec())

    def master(
        self, task_type: Optional[str] = None, task_id: TaskId = None, rpc_layer: Optional[str] = None
    ) -> str:
        """Returns the address of a task, or of this process."""
        return self._native.master(task_type, task_id, rpc_layer or None)

    def num_accelerators(
        self, task_type: Optional[str] = None, task_id: TaskId = None, config_proto: Any = None
    ) -> dict[str, int]:
        """Returns the number of devices of each kind of a task, as given in the options."""
        count = self._native.num_accelerators(task_type, task_id)
        return {"GPU": count} if count else {}


@checked
class SimpleClusterResolver(Resolved):
    """A resolver for a given tf.train.ClusterSpec."""

    _tf_name = "tf.distribute.cluster_resolver.SimpleClusterResolver"

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: Optional[str] = None,
        task_id: TaskId = None,
        environment: str = "",
        num_accelerators: Optional[Mapping[str, int]] = None,
        rpc_layer: Optional[str] = None,
    ) -> None:
        """master: the address if no task is selected.

        num_accelerators: number of devices of each kind, for example {"GPU": 2}.
        """
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError("cluster_spec must be a `tf.train.ClusterSpec`.")
        if not isinstance(master, str):
            raise TypeError("master must be a string.")
        self._spec = cluster_spec._native
        self._accelerators = None if num_accelerators is None else dict(num_accelerators)
        super().__init__(
            libdist.ClusterResolverOptions(
                task_type=task_type,
                task_id=task_id,
                num_accelerators=sum((self._accelerators or {}).values()),
                rpc_layer=rpc_layer,
                environment=environment,
                session_address=master,
            )
        )

    def _make(self, options: libdist.ClusterResolverOptions) -> libdist.ClusterResolver:
        return libdist.ClusterResolver.simple(self._spec, options)

    def num_accelerators(
        self, task_type: Optional[str] = None, task_id: TaskId = None, config_proto: Any = None
    ) -> dict[str, int]:
        """Returns the numbers that were passed to the constructor."""
        return dict(self._accelerators or {})


@functools.lru_cache(maxsize=1)
def _plain(text: str) -> str:
    """Converts TF_CONFIG to a form that libdist accepts. TensorFlow applies str() to types and int() to indices.

    What cannot be converted stays unchanged, and libdist reports the error.
    """
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        return text
    known = ("cluster", "task", "rpc_layer", "session_master")
    if isinstance(config, (str, list)) and not any(key in config for key in known):
        return "{}"
    if not isinstance(config, dict):
        return text
    plain = dict(config)
    task, cluster = config.get("task"), config.get("cluster")
    if isinstance(task, (str, list)) and "type" not in task and "index" not in task:
        del plain["task"]
    if isinstance(task, dict):
        plain["task"] = dict(task)
        if "type" in task and not isinstance(task["type"], (str, list, dict)):
            plain["task"]["type"] = str(task["type"])
        if isinstance(task.get("index"), (str, float, bool)):
            plain["task"]["index"] = _index(task["index"])
    if isinstance(cluster, dict):
        plain["cluster"] = {
            job: {str(_index(key)): address for key, address in tasks.items()} if isinstance(tasks, dict) else tasks
            for job, tasks in cluster.items()
        }
    return text if repr(plain) == repr(config) else json.dumps(plain)


def _index(given: Any) -> Any:
    try:
        return int(given)
    except (ValueError, OverflowError):
        return given


@checked
class TFConfigClusterResolver(Resolved):
    """A resolver for the environment variable TF_CONFIG, which it reads at each query."""

    _tf_name = "tf.distribute.cluster_resolver.TFConfigClusterResolver"

    def __init__(
        self,
        task_type: Optional[str] = None,
        task_id: TaskId = None,
        rpc_layer: Optional[str] = None,
        environment: Optional[str] = None,
    ) -> None:
        """Arguments take precedence over the environment variable."""
        super().__init__(
            libdist.ClusterResolverOptions(
                task_type=task_type, task_id=task_id, rpc_layer=rpc_layer, environment=environment
            )
        )

    def _make(self, options: libdist.ClusterResolverOptions) -> libdist.ClusterResolver:
        return libdist.ClusterResolver.tf_config(options)

    @property
    def _native(self) -> libdist.ClusterResolver:
        text = os.environ.get("TF_CONFIG", "{}")
        plain = _plain(text)
        return self._reader if plain == text else self._make(replace(self._options, tf_config=plain))

    @_native.setter
    def _native(self, reader: libdist.ClusterResolver) -> None:
        self._reader = reader


@checked
class SlurmClusterResolver(Resolved):
    """A resolver for a Slurm step. It determines the task of this process when it is created."""

    _tf_name = "tf.distribute.cluster_resolver.SlurmClusterResolver"

    def __init__(
        self,
        jobs: Optional[Mapping[str, int]] = None,
        port_base: int = 8888,
        gpus_per_node: Optional[int] = None,
        gpus_per_task: Optional[int] = None,
        tasks_per_node: Union[None, int, Mapping[str, int]] = None,
        auto_set_gpu: bool = True,
        rpc_layer: str = "grpc",
    ) -> None:
        """tasks_per_node: number of tasks of every host, or a dictionary by host name; None = as in the environment.

        gpus_per_node: None = no GPUs.

        auto_set_gpu: no effect, because the environment is never changed. gpu_ids() returns the value for
        CUDA_VISIBLE_DEVICES.
        """
        hosts = tasks_per_node if isinstance(tasks_per_node, Mapping) else None
        self._slurm = libdist.SlurmOptions(
            host_list=None if hosts is None else ",".join(hosts),
            tasks_per_node=None if hosts is None else ",".join(str(int(count)) for count in hosts.values()),
            tasks_on_each_host=tasks_per_node if isinstance(tasks_per_node, int) else 0,
            port_base=port_base,
            gpus_per_host=gpus_per_node or 0,
            gpus_per_task=gpus_per_task or 0,
            jobs=jobs,
        )
        super().__init__(libdist.ClusterResolverOptions(rpc_layer=rpc_layer))

    def _make(self, options: libdist.ClusterResolverOptions) -> libdist.ClusterResolver:
        return libdist.ClusterResolver.slurm(self._slurm, options)

    def get_task_info(self) -> tuple[Optional[str], Optional[int]]:
        """Returns (task_type, task_id) of this process."""
        return self.task_type, self.task_id

    def gpu_ids(self) -> str:
        """Returns the GPUs of this process, "2,3". Not in TensorFlow."""
        return self._native.gpu_ids()

    def num_accelerators(
        self, task_type: Optional[str] = None, task_id: TaskId = None, config_proto: Any = None
    ) -> dict[str, int]:
        """Returns the number of GPUs of a task."""
        return {"GPU": self._native.num_accelerators(task_type, task_id)}


@checked
class KubernetesClusterResolver(Resolved):
    """A resolver for the pods of a StatefulSet or an Indexed Job. It queries no API server."""

    _tf_name = "tf.distribute.cluster_resolver.KubernetesClusterResolver"

    def __init__(
        self,
        job_to_label_mapping: Any = None,
        tf_server_port: int = 8470,
        rpc_layer: str = "grpc",
        override_client: Any = None,
        executable_location: Any = None,
        *,
        pods: Optional[libdist.KubernetesOptions] = None,
    ) -> None:
        """pods: a KubernetesOptions, for values that the environment does not set. Not in TensorFlow.

        Arguments that select an API server are rejected.
        """
        given = {
            "job_to_label_mapping": job_to_label_mapping,
            "override_client": override_client,
            "executable_location": executable_location,
        }
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"{name}: no API server is asked, pods are found by their names: pods=...")
        self._pods = replace(pods or libdist.KubernetesOptions(), port=(pods and pods.port) or tf_server_port)
        super().__init__(libdist.ClusterResolverOptions(rpc_layer=rpc_layer))

    def _make(self, options: libdist.ClusterResolverOptions) -> libdist.ClusterResolver:
        return libdist.ClusterResolver.kubernetes(self._pods, options)


@checked
class UnionResolver(Resolved):
    """A union of several resolvers: the spec is that of all together, and the rest comes from the first one."""

    _tf_name = "tf.distribute.cluster_resolver.UnionResolver"

    def __init__(self, *args: ClusterResolver, **kwargs: Any) -> None:
        """kwargs: task_type, task_id and rpc_layer replace those of the first resolver."""
        names = ("task_type", "task_id", "rpc_layer")
        unexpected = {name: value for name, value in kwargs.items() if name not in names}
        if unexpected:
            raise ValueError(f"Unexpected kwargs provided {unexpected!r}")
        if not args:
            raise ValueError("At least one ClusterResolver is required.")
        members = [native_of(one) for one in args]
        if None in members:
            raise TypeError("All arguments must be a sub-class of `ClusterResolver.`")
        self._first = args[0]
        self._members = [one for one in members if one is not None]
        super().__init__(libdist.ClusterResolverOptions(**kwargs))

    def _make(self, options: libdist.ClusterResolverOptions) -> libdist.ClusterResolver:
        return libdist.ClusterResolver.union(self._members, options)

    def num_accelerators(
        self, task_type: Optional[str] = None, task_id: TaskId = None, config_proto: Any = None
    ) -> dict[str, int]:
        """Returns the numbers of the first resolver."""
        return self._first.num_accelerators(task_type, task_id, config_proto)

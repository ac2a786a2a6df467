# SPDX-License-Identifier: Apache-2.0
"""Cluster resolvers: who says which cluster a process is part of, and which task of it the process is."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional, Sequence

from . import _calls, _cdist
from ._arguments import Timeout, checked, nanoseconds
from ._interrupt import Watch
from ._native import Native
from .cancel import Cancel, handle_of
from .cluster import TASK_UNSET, ClusterSpec, TaskId, check_id, id_number
from .constants import MAX_CLUSTER_TASKS


@checked
@dataclass(frozen=True)
class ClusterResolverOptions:
    """What is given counts before what a resolver finds. None: not given."""

    task_type: Optional[str] = None
    """The job of this process."""
    task_id: TaskId = None
    """Its index in the job."""
    num_accelerators: int = 0
    """Of this process; 0: none, or those that Slurm's options give."""
    rpc_layer: Optional[str] = None
    """What stands before addresses, with ://; "": nothing."""
    environment: Optional[str] = None
    """A word for where the cluster runs."""
    session_address: Optional[str] = None
    """What master() gives where no task is asked for; of simple() alone."""
    tf_config: Optional[str] = None
    """TF_CONFIG; None: the environment variable."""

    def _native(self) -> Any:
        native = _cdist.dist_cluster_resolver_options()
        native.set_task_type(self.task_type)
        if self.task_id is not None:
            native.has_task_id, native.task_id = 1, self.task_id
        native.num_accelerators = self.num_accelerators
        native.set_rpc_layer(self.rpc_layer)
        native.environment, native.session_address = self.environment, self.session_address
        native.tf_config = self.tf_config
        return native


@checked
@dataclass(frozen=True)
class SlurmOptions:
    """What Slurm says of a step. What is not given is read of the environment."""

    rank: Optional[int] = None
    """Of this process in the step."""
    num_tasks: int = 0
    """Of the step; 0: as the environment says, where no jobs are given."""
    host_list: Optional[str] = None
    """As Slurm writes it: "n[01-03,7],m1"."""
    tasks_per_node: Optional[str] = None
    """As Slurm writes it, by the order of hosts: "2(x3),1"."""
    tasks_on_each_host: int = 0
    """0: as tasks_per_node says."""
    port_base: int = 0
    """The port of the first task of a host; 0: 8888."""
    gpus_per_host: int = 0
    """0: none, and they are not shared out."""
    gpus_per_task: int = 0
    """0: as many as all tasks of a host can have."""
    jobs: Optional[Mapping[str, int]] = None
    """How many tasks each job has; None: one job, "worker", of all tasks."""


@checked
@dataclass(frozen=True)
class KubernetesOptions:
    """What the names of Kubernetes' pods say. What is not given is read of the environment."""

    index: Optional[int] = None
    """Of this pod; None: as the environment says, or the number at the end of the host's name."""
    num_workers: int = 0
    """0: WORLD_SIZE of the environment."""
    first_index: int = 0
    """Of the pods."""
    port: int = 0
    """Of every worker; 0: 8888."""
    host_name: Optional[str] = None
    """Of this pod, "trainer-2"."""
    service: Optional[str] = None
    """The headless service; None: pods are found by their host's name alone."""
    namespace: Optional[str] = None
    """Of the service."""
    domain: Optional[str] = None
    """Of the Kubernetes cluster, "cluster.local"; None: left out."""


@checked
@dataclass(frozen=True)
class RendezvousOptions:
    """A job whose workers meet at one address. Values that are None or 0 are read from the environment."""

    rank: Optional[int] = None
    """Number of this worker, from 0 to size - 1. None selects the rank that the launcher has set."""
    size: int = 0
    """Number of workers. 0 selects the number that the launcher has set."""
    address: Optional[str] = None
    """Address of worker 0, "host:port". None selects DIST_RENDEZVOUS, or MASTER_ADDR and the port after MASTER_PORT."""
    job_name: Optional[str] = None
    """A name that all workers of the job share. None selects DIST_JOB_NAME, or the name that the launcher has set."""
    timeout: Timeout = None
    """Limit of the wait in seconds. None selects 600 s; a negative value means no limit."""


@checked
class ResolverFunctions:
    """A resolver of the program's own: a subclass overrides spec(), and of the others those that it answers.

    What it does not override is an option, or else not known. Several threads may ask at once.
    """

    def spec(self) -> ClusterSpec:
        """The cluster."""
        raise NotImplementedError("spec() is the subclass's")

    def task_type(self) -> Optional[str]:
        """The job of this process; None: not known."""
        return None

    def task_id(self) -> Optional[int]:
        """The index of this process in its job; None: not known."""
        return None

    def rpc_layer(self) -> Optional[str]:
        """What stands before addresses; None: nothing is known."""
        return None

    def environment(self) -> Optional[str]:
        """A word for where the cluster runs; None: none."""
        return None

    def master(self, task_type: Optional[str], task_id: Optional[int], rpc_layer: Optional[str]) -> str:
        """Where to connect to."""
        return ""

    def num_accelerators(self, task_type: Optional[str], task_id: Optional[int]) -> int:
        """How many accelerators a task has."""
        return 0

    def _answered(self) -> int:
        """One bit for each method that is overridden, and for spec()."""
        bits: int = 1 << _cdist.RESOLVER_SPEC
        for question, name in _METHODS.items():
            if getattr(type(self), name) is not getattr(ResolverFunctions, name):
                bits |= 1 << question
        return bits


_METHODS = {
    _cdist.RESOLVER_TASK_TYPE: "task_type",
    _cdist.RESOLVER_TASK_ID: "task_id",
    _cdist.RESOLVER_RPC_LAYER: "rpc_layer",
    _cdist.RESOLVER_ENVIRONMENT: "environment",
    _cdist.RESOLVER_ADDRESS: "master",
    _cdist.RESOLVER_NUM_ACCELERATORS: "num_accelerators",
}


class _Asking(threading.local):
    """What functions of the program's raised in the question that this thread asks."""

    failures: Optional[_calls.Failures] = None


_asking = _Asking()


def _ask(native: Callable[..., Any], *arguments: Any) -> Any:
    """A question; what a function of the program's raised comes out as it is."""
    before, failures = _asking.failures, _calls.Failures()
    _asking.failures = failures
    try:
        return _calls.call(failures, native, *arguments)
    finally:
        _asking.failures = before


class _ResolverCallbacks(_cdist.ResolverCallbacks):
    """Answers for all resolvers of the program's own."""

    def answer(
        self,
        token: int,
        question: int,
        task_type: Optional[str],
        task_id: int,
        rpc_layer: Optional[str],
        answer: Any,
    ) -> int:
        try:
            functions: ResolverFunctions = _calls.target_of(token)
            task = None if task_id == TASK_UNSET else task_id
            if question == _cdist.RESOLVER_SPEC:
                spec = functions.spec()
                if not isinstance(spec, ClusterSpec):
                    raise TypeError(f"spec() gave {spec!r}, which is no libdist.ClusterSpec")
                answer.set_spec(ClusterSpec.union([spec])._hand_over())
            elif question == _cdist.RESOLVER_TASK_ID:
                answer.set_number(id_number(check_id(functions.task_id())))
            elif question == _cdist.RESOLVER_NUM_ACCELERATORS:
                answer.set_number(functions.num_accelerators(task_type, task))
            elif question == _cdist.RESOLVER_ADDRESS:
                answer.set_text(functions.master(task_type, task, rpc_layer))
            else:
                answer.set_text(getattr(functions, _METHODS[question])())
            return 0
        except BaseException as error:
            failures = _asking.failures
            return _calls.tell(error) if failures is None else failures.add(error)


# Never ended, as libdist's other calls back.
_cdist.set_resolver_callbacks(_ResolverCallbacks().__disown__())


@checked
class ClusterResolver(Native):
    """Says which cluster a process is part of, and which task of it the process is. Immutable.

    resolver = ClusterResolver.tf_config()
    resolver.spec().should_save_checkpoint(resolver.task_type, resolver.task_id)
    """

    _handle: int = 0

    def __init__(self) -> None:
        raise TypeError(
            "a resolver is made by simple(), tf_config(), slurm(), kubernetes(), rendezvous(), "
            "union() or host()"
        )

    @classmethod
    def _of(cls, handle: int) -> ClusterResolver:
        resolver = cls.__new__(cls)
        resolver._handle = handle
        return resolver

    @classmethod
    def simple(
        cls, spec: ClusterSpec, options: ClusterResolverOptions = ClusterResolverOptions()
    ) -> ClusterResolver:
        """Of a spec that is given."""
        return cls._of(_cdist.dist_cluster_resolver_create_simple(spec._handle, options._native()))

    @classmethod
    def tf_config(cls, options: ClusterResolverOptions = ClusterResolverOptions()) -> ClusterResolver:
        """Of TF_CONFIG, which is read at each question."""
        return cls._of(_cdist.dist_cluster_resolver_create_tf_config(options._native()))

    @classmethod
    def slurm(
        cls, slurm: SlurmOptions = SlurmOptions(), options: ClusterResolverOptions = ClusterResolverOptions()
    ) -> ClusterResolver:
        """Creates a resolver for a Slurm step. It reads the environment once, during this call.

        The ranks are placed on the hosts as SLURM_DISTRIBUTION specifies: block (the default), cyclic or plane=N. Any
        other distribution over several hosts raises FailedPrecondition.
        """
        native = _cdist.dist_slurm_options()
        if slurm.rank is not None:
            native.has_rank, native.rank = 1, slurm.rank
        native.num_tasks, native.host_list = slurm.num_tasks, slurm.host_list
        native.tasks_per_node, native.tasks_on_each_host = slurm.tasks_per_node, slurm.tasks_on_each_host
        native.port_base = slurm.port_base
        native.gpus_per_host, native.gpus_per_task = slurm.gpus_per_host, slurm.gpus_per_task
        jobs = _cdist.ClusterJobs()
        for name, num_tasks in (slurm.jobs or {}).items():
            jobs.add(name, None, None, num_tasks)
        if slurm.jobs is not None:
            native.set_jobs(jobs)
        return cls._of(_cdist.dist_cluster_resolver_create_slurm(native, options._native()))

    @classmethod
    def kubernetes(
        cls, pods: KubernetesOptions = KubernetesOptions(), options: ClusterResolverOptions = ClusterResolverOptions()
    ) -> ClusterResolver:
        """Of the names of Kubernetes' pods. What the environment says is read here."""
        native = _cdist.dist_kubernetes_options()
        if pods.index is not None:
            native.has_index, native.index = 1, pods.index
        native.num_workers, native.first_index, native.port = pods.num_workers, pods.first_index, pods.port
        native.host_name, native.service = pods.host_name, pods.service
        native.name_space, native.domain = pods.namespace, pods.domain
        return cls._of(_cdist.dist_cluster_resolver_create_kubernetes(native, options._native()))

    @classmethod
    def rendezvous(
        cls,
        workers: RendezvousOptions = RendezvousOptions(),
        options: ClusterResolverOptions = ClusterResolverOptions(),
        *,
        cancel: Optional[Cancel] = None,
    ) -> ClusterResolver:
        """Waits until all workers of a job have met at one address, and creates a resolver for their cluster.

        Every worker listens on a port that the system chooses. The ranks come from the options, or from DIST_RANK and
        DIST_SIZE, torchrun, Open MPI, PMI or srun. Raises DeadlineExceeded, with the missing ranks, if not all
        workers have registered in time. Ctrl-C and cancel end the wait.
        """
        native = _cdist.dist_rendezvous_options()
        if workers.rank is not None:
            native.has_rank, native.rank = 1, workers.rank
        native.size, native.address, native.job_name = workers.size, workers.address, workers.job_name
        native.timeout_ns = nanoseconds(workers.timeout)
        cancel = Cancel() if cancel is None else cancel
        native.cancel = handle_of(cancel)
        with Watch(cancel.signal):
            return cls._of(_cdist.dist_cluster_resolver_create_rendezvous(native, options._native()))

    @classmethod
    def union(
        cls, resolvers: Sequence[ClusterResolver], options: ClusterResolverOptions = ClusterResolverOptions()
    ) -> ClusterResolver:
        """One of several: the spec is that of all together, the rest the first one's."""
        handles = [resolver._handle for resolver in resolvers]
        return cls._of(_cdist.dist_cluster_resolver_create_union(handles, len(handles), options._native()))

    @classmethod
    def host(
        cls, functions: ResolverFunctions, options: ClusterResolverOptions = ClusterResolverOptions()
    ) -> ClusterResolver:
        """Of functions of the program's own."""
        token = _calls.keep(functions)
        try:
            handle = _cdist.cluster_resolver_create_host(token, functions._answered(), options._native())
        except BaseException:
            _calls.release(token)
            raise
        return cls._of(handle)

    def __del__(self, _destroy: Any = _cdist.dist_cluster_resolver_destroy) -> None:
        if self._handle:
            _destroy(self._handle)

    # ---- what it answers -------------------------------------------------------------------------------------------

    def spec(self) -> ClusterSpec:
        """The cluster."""
        return ClusterSpec._of(_ask(_cdist.dist_cluster_resolver_spec, self._handle))

    @property
    def task_type(self) -> Optional[str]:
        """The job of this process; None: not known."""
        return self._text(_cdist.dist_cluster_resolver_task_type)

    @property
    def task_id(self) -> Optional[int]:
        """The index of this process in its job; None: not known."""
        number = int(_ask(_cdist.dist_cluster_resolver_task_id, self._handle))
        return None if number == TASK_UNSET else number

    @property
    def rpc_layer(self) -> Optional[str]:
        """What stands before addresses; None: nothing is known."""
        return self._text(_cdist.dist_cluster_resolver_rpc_layer)

    @property
    def environment(self) -> Optional[str]:
        """A word for where the cluster runs; None: none."""
        return self._text(_cdist.dist_cluster_resolver_environment)

    def master(
        self, task_type: Optional[str] = None, task_id: TaskId = None, rpc_layer: Optional[str] = None
    ) -> str:
        """Where to connect to: "grpc://host:port". rpc_layer: None: the resolver's; "": none."""
        arguments = (task_type, id_number(task_id), rpc_layer)
        return str(_ask(_cdist.dist_cluster_resolver_master, self._handle, *arguments))

    def num_accelerators(self, task_type: Optional[str] = None, task_id: TaskId = None) -> int:
        """How many accelerators a task has, or this process."""
        arguments = (task_type, id_number(task_id))
        return int(_ask(_cdist.dist_cluster_resolver_num_accelerators, self._handle, *arguments))

    def gpu_ids(self) -> str:
        """The GPUs of this process as CUDA_VISIBLE_DEVICES has them, "2,3"; libdist does not set it."""
        return str(_ask(_cdist.dist_cluster_resolver_gpu_ids, self._handle))

    def explain(self) -> str:
        """What was decided, and from where: lines for people."""
        text = _cdist.Text()
        text.explain_cluster(self._handle)
        return str(text.text())

    def _text(self, native: Callable[..., Any]) -> Optional[str]:
        text, is_set = _ask(native, self._handle)
        return str(text) if is_set else None


@checked
def slurm_hosts(host_list: str) -> list[str]:
    """Returns the hosts of a Slurm host list such as "n[01-03],m1", in the order of scontrol show hostnames."""
    text = _cdist.Text()
    text.expand_host_list(host_list)
    return str(text.text()).split("\n")[:-1]


@checked
def slurm_tasks_per_node(tasks_per_node: str) -> list[int]:
    """The numbers of a list as Slurm writes them: "2(x3),1" is 2, 2, 2, 1."""
    return list(_cdist.dist_slurm_expand_tasks_per_node(tasks_per_node, MAX_CLUSTER_TASKS))

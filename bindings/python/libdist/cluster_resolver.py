# SPDX-License-Identifier: Apache-2.0
"""Cluster resolvers, which find the cluster that a process belongs to and the task that the process is."""

from __future__ import annotations

import threading
from typing import Any, Callable, Optional, Sequence

from . import _calls, _cdist
from ._arguments import checked
from ._callbacks import Kept
from ._interrupt import Watch
from ._native import Native
from ._option_fields import ClusterResolverOptions, KubernetesOptions, RendezvousOptions, SlurmOptions
from .cancel import Cancel, handle_of
from .cluster import TASK_UNSET, ClusterSpec, TaskId, check_id, id_number
from .constants import MAX_CLUSTER_TASKS


@checked
class ResolverFunctions:
    """A resolver of your own: a subclass overrides spec(), and other methods that it can answer.

        class MyResolver(libdist.ResolverFunctions):
            def spec(self):
                return libdist.ClusterSpec({"worker": ["a:1", "b:2"]})

            def task_id(self):
                return 0

        resolver = libdist.ClusterResolver.host(MyResolver())

    For a method that is not overridden, the resolver uses its options. Several threads may call the methods at the same
    time.
    """

    def spec(self) -> ClusterSpec:
        """Returns the cluster."""
        raise NotImplementedError("spec() is the subclass's")

    def task_type(self) -> Optional[str]:
        """Returns the job of this process; None if it is not known."""
        return None

    def task_id(self) -> Optional[int]:
        """Returns the index of this process in its job; None if it is not known."""
        return None

    def rpc_layer(self) -> Optional[str]:
        """Returns the RPC layer, which is prefixed to addresses; None if it is not set."""
        return None

    def environment(self) -> Optional[str]:
        """Returns the name of the platform on which the cluster runs; None if it is not set."""
        return None

    def master(self, task_type: Optional[str], task_id: Optional[int], rpc_layer: Optional[str]) -> str:
        """Returns the address to connect to."""
        return ""

    def num_accelerators(self, task_type: Optional[str], task_id: Optional[int]) -> int:
        """Returns the number of accelerators of a task."""
        return 0

    def _answered(self) -> int:
        """Returns one bit for spec() and for each method that is overridden."""
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
    """Collects the exceptions of resolver functions during the query that this thread makes."""

    failures: Optional[_calls.Failures] = None


_asking = _Asking()


def _ask(native: Callable[..., Any], *arguments: Any) -> Any:
    """Makes a query. If a function of your own raises, the query raises the same exception."""
    before, failures = _asking.failures, _calls.Failures()
    _asking.failures = failures
    try:
        return _calls.call(failures, native, *arguments)
    finally:
        _asking.failures = before


class _ResolverCallbacks(_cdist.ResolverCallbacks):
    """Receives libdist's calls for all resolvers of your own."""

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


# Never destroyed, like the other objects that receive calls from libdist.
_cdist.set_resolver_callbacks(_ResolverCallbacks().__disown__())


@checked
class ClusterResolver(Native):
    """Finds the cluster that a process belongs to and the task that the process is. Immutable.

        resolver = ClusterResolver.tf_config()
        resolver.spec().should_save_checkpoint(resolver.task_type, resolver.task_id)

    Create it with simple(), tf_config(), slurm(), kubernetes(), rendezvous(), union() or host().
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
        """Creates a resolver for a given spec."""
        return cls._of(_cdist.dist_cluster_resolver_create_simple(spec._handle, options._native()))

    @classmethod
    def tf_config(cls, options: ClusterResolverOptions = ClusterResolverOptions()) -> ClusterResolver:
        """Creates a resolver for TF_CONFIG. The environment variable is read at each query."""
        return cls._of(_cdist.dist_cluster_resolver_create_tf_config(options._native()))

    @classmethod
    def slurm(
        cls, slurm: SlurmOptions = SlurmOptions(), options: ClusterResolverOptions = ClusterResolverOptions()
    ) -> ClusterResolver:
        """Creates a resolver for a Slurm step. It reads the environment once, during this call.

        The ranks are placed on the hosts as SLURM_DISTRIBUTION specifies: block (the default), cyclic or plane=N. Any
        other distribution over several hosts raises FailedPrecondition.
        """
        kept = Kept()
        return cls._of(_cdist.dist_cluster_resolver_create_slurm(slurm._native(kept), options._native()))

    @classmethod
    def kubernetes(
        cls, pods: KubernetesOptions = KubernetesOptions(), options: ClusterResolverOptions = ClusterResolverOptions()
    ) -> ClusterResolver:
        """Creates a resolver for the pods of a StatefulSet or an Indexed Job.

        It reads the environment once, during this call.
        """
        return cls._of(_cdist.dist_cluster_resolver_create_kubernetes(pods._native(), options._native()))

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
        native = workers._native()
        cancel = Cancel() if cancel is None else cancel
        native.cancel = handle_of(cancel)
        with Watch(cancel.signal):
            return cls._of(_cdist.dist_cluster_resolver_create_rendezvous(native, options._native()))

    @classmethod
    def union(
        cls, resolvers: Sequence[ClusterResolver], options: ClusterResolverOptions = ClusterResolverOptions()
    ) -> ClusterResolver:
        """Creates a union of several resolvers.

        The spec is the union of their specs. Everything else comes from the first resolver, unless an option sets it.
        """
        handles = [resolver._handle for resolver in resolvers]
        return cls._of(_cdist.dist_cluster_resolver_create_union(handles, len(handles), options._native()))

    @classmethod
    def host(
        cls, functions: ResolverFunctions, options: ClusterResolverOptions = ClusterResolverOptions()
    ) -> ClusterResolver:
        """Creates a resolver from functions of your own."""
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

    # ---- queries -----------------------------------------------------------------------------------------------------

    def spec(self) -> ClusterSpec:
        """Returns the spec of the cluster."""
        return ClusterSpec._of(_ask(_cdist.dist_cluster_resolver_spec, self._handle))

    @property
    def task_type(self) -> Optional[str]:
        """The job of this process; None if it is not known."""
        return self._text(_cdist.dist_cluster_resolver_task_type)

    @property
    def task_id(self) -> Optional[int]:
        """The index of this process in its job; None if it is not known."""
        number = int(_ask(_cdist.dist_cluster_resolver_task_id, self._handle))
        return None if number == TASK_UNSET else number

    @property
    def rpc_layer(self) -> Optional[str]:
        """The RPC layer, which is prefixed to addresses; None if it is not set."""
        return self._text(_cdist.dist_cluster_resolver_rpc_layer)

    @property
    def environment(self) -> Optional[str]:
        """The name of the platform on which the cluster runs; None if it is not set."""
        return self._text(_cdist.dist_cluster_resolver_environment)

    def master(
        self, task_type: Optional[str] = None, task_id: TaskId = None, rpc_layer: Optional[str] = None
    ) -> str:
        """Returns the address to connect to: "grpc://host:port", or "host:port" without an RPC layer.

        task_type, task_id: select a task; None = this process, or what the resolver was created with.

        rpc_layer: "" = no layer; None = that of the resolver.
        """
        arguments = (task_type, id_number(task_id), rpc_layer)
        return str(_ask(_cdist.dist_cluster_resolver_master, self._handle, *arguments))

    def num_accelerators(self, task_type: Optional[str] = None, task_id: TaskId = None) -> int:
        """Returns the number of accelerators of a task, or of this process."""
        arguments = (task_type, id_number(task_id))
        return int(_ask(_cdist.dist_cluster_resolver_num_accelerators, self._handle, *arguments))

    def gpu_ids(self) -> str:
        """Returns the GPUs of this process in the format of CUDA_VISIBLE_DEVICES, for example "2,3".

        libdist does not set the variable.
        """
        return str(_ask(_cdist.dist_cluster_resolver_gpu_ids, self._handle))

    def explain(self) -> str:
        """Describes each decision and its source, in lines for human readers, which may change in any version."""
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
    """Returns the numbers of a Slurm list of task counts: "2(x3),1" becomes 2, 2, 2, 1."""
    return list(_cdist.dist_slurm_expand_tasks_per_node(tasks_per_node, MAX_CLUSTER_TASKS))

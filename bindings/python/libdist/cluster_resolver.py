# SPDX-License-Identifier: Apache-2.0
"""Cluster resolvers: who says which cluster a process is part of, and which task of it the process is."""

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
        kept = Kept()
        return cls._of(_cdist.dist_cluster_resolver_create_slurm(slurm._native(kept), options._native()))

    @classmethod
    def kubernetes(
        cls, pods: KubernetesOptions = KubernetesOptions(), options: ClusterResolverOptions = ClusterResolverOptions()
    ) -> ClusterResolver:
        """Of the names of Kubernetes' pods. What the environment says is read here."""
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

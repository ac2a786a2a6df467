# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.ParameterServerStrategy: variables on parameter servers, with libdist.Coordinator."""

from __future__ import annotations

import itertools
import logging
import threading
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional, Sequence, Union

import numpy as np

import libdist
from libdist._arguments import checked

from . import _closures
from ._cluster import ClusterResolver, ClusterSpec, native_of
from ._extended import StrategyExtended
from ._job import JobCoordinator
from ._nest import map_leaves
from ._numbers import convert_to_tensor
from ._options import ReduceOp, RunOptions, VariableAggregation, VariableSynchronization
from ._remote import CachingVariable, Description, RemoteVariable, ShardedVariable, ShardVariable
from ._strategy import Strategy
from ._tensor import plain

if TYPE_CHECKING:
    from ._coordinator import ClusterCoordinator

SERVERS = ("ps", "worker")
"""The jobs whose tasks are servers, in which only scheduled functions can read and change variables."""

_JOBS = ("chief", "worker", "evaluator", "ps")

_numbers = itertools.count()
_log = logging.getLogger("libdist.tf")


def _check_cluster(resolver: ClusterResolver) -> ClusterSpec:
    """Checks the cluster like TensorFlow, with its messages."""
    spec = resolver.cluster_spec()
    if not spec:
        raise ValueError("Cluster spec must be non-empty in `tf.distribute.cluster_resolver.ClusterResolver`.")
    task_type, task_id = resolver.task_type or None, resolver.task_id
    if any(job not in _JOBS for job in spec.jobs):
        raise ValueError(
            f"Disallowed task type found in cluster spec. Allowed types are {_JOBS} and the cluster spec is {spec}."
        )
    if task_type is not None and task_type not in _JOBS:
        raise ValueError(f"Unrecognized task_type: {task_type}, valid task types are: {', '.join(_JOBS)}")
    if task_type is not None and task_type not in spec.jobs and task_type != "evaluator":
        raise ValueError(f"`task_type` {task_type!r} not found in cluster_spec.")
    for job in ("chief", "evaluator"):
        if job in spec.jobs and spec.num_tasks(job) > 1:
            raise ValueError(f"There must be at most one {job!r} job.")
    if task_type in spec.jobs and (task_id or 0) >= spec.num_tasks(task_type):
        raise ValueError(f"The `task_id` {task_id} exceeds the maximum id of {task_type}.")
    for job, what in (("ps", "ps"), ("worker", "worker")):
        if job not in spec.jobs or spec.num_tasks(job) < 1:
            raise ValueError(f"There must be at least one {what}.")
    return spec


class _Extended(StrategyExtended):
    """The functions for libraries. Variables have no copies, so update functions get the variable itself."""

    def _update(self, var: Any, fn: Callable[..., Any], args: Any, kwargs: dict[str, Any], group: bool) -> Any:
        if not isinstance(var, RemoteVariable):
            return super()._update(var, fn, args, kwargs, group)
        result = fn(var, *args, **kwargs)
        return result if group else map_leaves(lambda leaf: (leaf,), result)

    def colocate_vars_with(self, colocate_with_variable: Any) -> AbstractContextManager[None]:
        """Places new variables on the parameter servers of another variable, part by part, in a `with` block.

        If the other variable is one part of a divided variable, a new variable is placed on the server of that part as
        a whole.
        """
        if not isinstance(colocate_with_variable, RemoteVariable):
            return super().colocate_vars_with(colocate_with_variable)
        return _beside(colocate_with_variable)

    def variable_created_in_scope(self, v: Any) -> bool:
        """Returns whether this strategy created a variable, or the variable to which a part belongs."""
        if isinstance(v, RemoteVariable):
            return v._owner is self._made
        return super().variable_created_in_scope(v)


class _Thread(threading.local):
    beside: Optional[RemoteVariable] = None


_thread = _Thread()


@contextmanager
def _beside(variable: RemoteVariable) -> Iterator[None]:
    before, _thread.beside = _thread.beside, variable
    try:
        yield
    finally:
        _thread.beside = before


@checked
class ParameterServerStrategy(Strategy):
    """Variables on the tasks of job "ps", and functions that run on the tasks of job "worker"; see ClusterCoordinator.

    All processes of the job run the same program: they create the strategy, the same variables in its scope, and the
    same functions. A task of job "ps" or "worker" then creates a tf.distribute.Server and waits in its join(). The
    process of the coordinator continues.
    """

    def __init__(
        self,
        cluster_resolver: ClusterResolver,
        variable_partitioner: Optional[Callable[..., Sequence[int]]] = None,
    ) -> None:
        """cluster_resolver: the servers, and the task of this process.

        variable_partitioner: an object of tf.distribute.experimental.partitioners, or a function of a shape and a
        dtype; None = variables are not divided.
        """
        if not cluster_resolver:
            raise ValueError("ClusterResolver must be passed.")
        found = native_of(cluster_resolver)
        spec = _check_cluster(cluster_resolver)
        kind = libdist.StrategyKind.PARAMETER_SERVER
        extended = _Extended._of(libdist.Strategy(kind=kind, cluster_resolver=found))
        extended._cluster_resolver = cluster_resolver
        super().__init__(extended)
        self._num_ps = spec.num_tasks("ps")
        self._task = (cluster_resolver.task_type, cluster_resolver.task_id)
        self._partitioner = variable_partitioner
        self._number = next(_numbers)
        self._lock = threading.RLock()
        self._described: dict[str, tuple[Description, int]] = {}
        self._keys: dict[str, Optional[tuple[int, int]]] = {}  # on a server: first part's server, number of parts
        self._next_ps = 0
        self._native_coordinator: Optional[libdist.Coordinator] = None
        self._cluster_coordinator: Optional[ClusterCoordinator] = None
        _closures.strategies[self._number] = self

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Optional[Mapping[str, Any]] = None,
        options: Optional[RunOptions] = None,
    ) -> Any:
        """Calls fn(*args, **kwargs) on this process's only replica, also inside a function on a worker."""
        self._warn_if_local()
        return map_leaves(_tensor, super().run(fn, args, kwargs, options))

    def reduce(self, reduce_op: Union[ReduceOp, str], value: Any, axis: Union[None, int, Sequence[int]] = None) -> Any:
        """Reduces a value like Strategy.reduce(), over this process's only replica."""
        self._warn_if_local()
        return super().reduce(reduce_op, value, axis)

    def _warn_if_local(self) -> None:
        """Logs TensorFlow's warning."""
        if _closures.running() is None:
            _log.warning(
                "It is detected that a function used with `tf.distribute.experimental.ParameterServerStrategy` is executed "
                "locally on the coordinator. This is inefficient but may be valid for one-off tasks such as inferring "
                "output signature. To properly distribute functions to run on workers, `run` or `reduce` should be used "
                "within a function passed to `tf.distribute.experimental.coordinator.ClusterCoordinator.schedule`."
            )

    # ---- variables --------------------------------------------------------------------------------------------------

    def _is_server(self) -> bool:
        return self._task[0] in SERVERS

    def _job(self, what: str) -> libdist.Coordinator:
        """Returns the coordinator of the job, if this is its process."""
        if self._is_server():
            raise libdist.FailedPrecondition(
                f"{what}: this process is /job:{self._task[0]}/task:{self._task[1]}, which reaches the job's variables inside "
                "the functions that it runs for the coordinator"
            )
        with self._lock:
            if self._native_coordinator is None:
                self._native_coordinator = JobCoordinator(self._native)
            return self._native_coordinator

    def _make_variable(
        self,
        initial_value: Any = None,
        trainable: Optional[bool] = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: Optional[str] = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Optional[Callable[[Any], Any]] = None,
        synchronization: Optional[VariableSynchronization] = VariableSynchronization.AUTO,
        aggregation: Optional[VariableAggregation] = VariableAggregation.NONE,
        shape: Any = None,
        experimental_enable_variable_lifting: bool = True,
    ) -> RemoteVariable:
        """Implements tf.Variable() in this strategy's scope."""
        if _closures.running() is not None:
            raise ValueError(
                "a function that a worker runs makes no variables of the strategy: make them in strategy.scope(), in every "
                "process"
            )
        if initial_value is None:
            raise ValueError("The `initial_value` arg to `tf.Variable` cannot be None")
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be None or a callable.")
        array = plain(convert_to_tensor(initial_value() if callable(initial_value) else initial_value, dtype))
        with self._lock:
            beside = _thread.beside
            if beside is None:
                num_parts = self._num_parts(array)
            else:
                num_parts = 1 if isinstance(beside, ShardVariable) else self._parts_of(beside._is.key)
            described = Description(
                self._new_key(name or "Variable"),
                name or "Variable",
                array.dtype,
                tuple(array.shape),
                trainable is None or bool(trainable),
                constraint,
                synchronization or VariableSynchronization.AUTO,
                aggregation or VariableAggregation.NONE,
            )
            try:
                self._place(described.key, array, num_parts, beside)
            except BaseException:
                del self._keys[described.key]
                raise
            self._described[described.key] = (described, num_parts)
            variable: RemoteVariable = self._variable(described.key)
        return variable

    def _num_parts(self, array: Any) -> int:
        """Returns the number of parts, by TensorFlow's rules and with its messages."""
        if self._partitioner is None or array.ndim == 0:
            return 1
        given = self._partitioner(shape=array.shape, dtype=array.dtype)
        if not given or given[0] == 0 or any(number != 1 for number in given[1:]):
            raise ValueError(
                "variable_partitioner must return a list/tuple whose elements are 1 besides the first element (non-zero), "
                f"got: {given!r}"
            )
        return int(given[0])

    def _new_key(self, name: str) -> str:
        key = name
        for number in itertools.count(1):
            if key not in self._keys:
                break
            key = f"{name}_{number}"
        self._keys[key] = None
        return key

    def _place(self, key: str, array: Any, num_parts: int, beside: Optional[RemoteVariable]) -> None:
        """Creates the variable. In the process of a server, only records where the coordinator places it."""
        if not self._is_server():
            self._job(f"variable {key}").create_variable(
                key,
                array,
                partitions=[num_parts] + [1] * (array.ndim - 1) if array.ndim and beside is None else None,
                colocate_with=None if beside is None else _place_name(beside),
            )
        elif beside is None:
            self._keys[key] = (self._next_ps, num_parts)
            self._next_ps += num_parts
        else:
            place = self._keys[beside._is.key]
            if isinstance(beside, ShardVariable) and place is not None:
                place = (place[0] + beside._part, 1)
            self._keys[key] = place

    def _parts_of(self, key: str) -> int:
        place = self._keys[key]
        return self._job(key).variable_spec(key).num_parts if place is None else place[1]

    def _device(self, key: str, part: int) -> str:
        place = self._keys[key]
        if place is None:
            return self._job(key).variable_part(key, part).device
        return f"/job:ps/replica:0/task:{(place[0] + part) % self._num_ps}/device:CPU:0"

    def _variable(self, key: str) -> Any:
        """Returns a variable by its name on the servers."""
        if key not in self._described:
            raise libdist.NotFound(
                f"this process has no variable {key}: the program that runs here has to make it in strategy.scope(), in the same "
                "order, before server.join()"
            )
        described, num_parts = self._described[key]
        if num_parts == 1:
            return CachingVariable(self, described)
        return ShardedVariable(self, described, num_parts)

    def __repr__(self) -> str:
        return f"<ParameterServerStrategy with {self._num_ps} parameter servers>"


def _place_name(beside: RemoteVariable) -> str:
    """Returns libdist's name of the variable or part with which to colocate."""
    key = beside._is.key
    return f"{key}/part_{beside._part}" if isinstance(beside, ShardVariable) else key


def _tensor(leaf: Any) -> Any:
    return convert_to_tensor(leaf) if isinstance(leaf, (bool, int, float, complex, np.generic)) else leaf

# SPDX-License-Identifier: Apache-2.0
"""Strategy: R replicas, their threads, and all that a program does with them from outside."""

from __future__ import annotations

import logging
import threading
import weakref
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional, Sequence, Union

from . import _calls, _cdist, checkpoint, values
from ._arguments import Delay, Limit, Timeout, Wait, checked, limit, nanoseconds, wait_limit
from ._exit import finalizing
from ._input import Input
from ._inspection import Inspection
from ._interrupt import Watch
from ._native import Native
from ._outside import Outside
from ._runs import Run, current, current_replica
from .batch import Batching
from .budget import Budget, give_budget, give_executor
from .cancel import Cancel, handle_of
from .cluster_resolver import ClusterResolver
from .checkpoint import Path, Variables
from .communication import CommunicationOptions
from .constants import (
    Aggregation,
    LogLevel,
    MetricKind,
    Numerics,
    Placement,
    Reform,
    Status,
    StrategyKind,
    Synchronization,
    Threads,
    Transport,
)
from .coordinator import Coordinator, CoordinatorOptions
from .cross_device import CrossDevice, HostFunctions
from .dataset import Position
from .errors import DeadlineExceeded, DistError, FailedPrecondition
from .group import Group
from .metric import Metric
from .network import Network
from .preemption import PreemptionHandler
from .replica import Replica
from .serve import Serving, settle_requests
from .topology import DeviceAssignment
from .values import Arguments, Keywords
from .variables import Initial, Variable, create

if TYPE_CHECKING:
    from typing_extensions import Unpack

LogFn = Callable[[int, str], None]
"""log(level, message): takes one line; level is a LogLevel. Called from any thread; must not call libdist."""


def _log_to(logger: logging.Logger) -> LogFn:
    return lambda level, message: logger.log(getattr(logging, LogLevel(level).name), "%s", message)


@checked
class Strategy(Native, Outside, Input, Inspection, Serving, Batching):
    """R replicas: threads that run the same function, each on its part of the input, and meet in collectives.

    with libdist.Strategy(4) as strategy:
        totals = strategy.run(lambda replica: replica.all_reduce(ReduceOp.SUM, np.ones(3)))
    """

    _device_assignment: Optional[DeviceAssignment] = None

    def __init__(
        self,
        num_replicas: int = 0,
        *,
        kind: StrategyKind = StrategyKind.MIRRORED,
        devices: Optional[Sequence[str]] = None,
        threads: Threads = Threads.CALLER,
        placement: Placement = Placement.FREE,
        timeout: Timeout = None,
        log: Union[None, logging.Logger, LogFn] = None,
        parameter_device: Optional[str] = None,
        communication: Optional[CommunicationOptions] = None,
        cross_device: Optional[CrossDevice] = None,
        functions: Optional[HostFunctions] = None,
        device_assignment: Optional[DeviceAssignment] = None,
        axes: Union[None, Mapping[str, int], Sequence[tuple[str, int]]] = None,
        use_spmd_partitioning: bool = False,
        stack_size_bytes: int = 0,
        async_bytes: int = 0,
        cluster_resolver: Optional[ClusterResolver] = None,
        numerics: Numerics = Numerics.ORDERED,
        network: Optional[Network] = None,
        transport: Transport = Transport.AUTO,
        reform: Reform = Reform.EXPLICIT,
        replicas_of_workers: Optional[Sequence[int]] = None,
        staging_bytes: int = 0,
        cpus: Optional[Sequence[int]] = None,
        move_host_threads: bool = False,
        budget: Optional[Budget] = None,
        executor: Optional[Executor] = None,
        max_workers: Optional[int] = None,
        helper_threads: bool = False,
        recorded_events: int = 0,
    ) -> None:
        """Makes the replicas' threads, which sleep until the first run.

        num_replicas: 0: as many as this process may use CPUs. timeout: seconds, the longest wait for a peer in one collective;
        None: 600, negative: no limit. communication: how collectives are to be done. cross_device: who reduces values from
        outside. log: a logger, or a function. functions: a strategy of the program's own. stack_size_bytes: of each of libdist's threads; 0: the system's
        default. async_bytes: the most that asynchronous collectives may take that are under way; 0: libdist's choice. cpus:
        where its threads may be, by the system's numbers: placement chooses among them, and num_replicas 0 counts them; None:
        the calling thread's affinity mask. move_host_threads: a thread of the program's that is a replica and keeps meeting
        another one on its CPU is moved to one that no replica is on; where it may run stays as it is. cluster_resolver: what
        describes the cluster; the strategy stays of one process, unless it is of MULTI_WORKER_MIRRORED. numerics: what the bits
        of sums depend on where a call does not say, and those of sums from outside: reduce() and the like, and variables.
        budget: whose threads its runs and requests take, as other strategies' do. executor: its threads share loops, in place
        of oneTBB's; its submit() is called where a loop begins, for each thread that may help, and what it raises is a refusal.
        max_workers: how many help at most; None: one less than usable CPUs. helper_threads: with Threads.HOST, oneTBB's may.
        recorded_events: events of each replica in write_trace(): at most 2**20, rounded up to a power of two; 0: 1,024.

        Of StrategyKind.MULTI_WORKER_MIRRORED: cluster_resolver says where the strategy is in the cluster; None is TF_CONFIG.
        network: how the other workers are reached; None: as transport says. transport: how workers that are other processes are
        reached. reform: when its workers re-form. replicas_of_workers: how many each has; None: all as many as this one.
        staging_bytes: most of tensors that are on their way at a time, with the same bits; 0: 64 MiB.

        Of StrategyKind.MESH: device_assignment says how many replicas and logical devices there are. axes: in which
        directions a replica's devices lie, and how many, the last running fastest: {"rows": 2, "columns": 4}.
        use_spmd_partitioning: one program runs on all devices, so that assign_to_logical_device() is refused.
        """
        self._prepare(0)  # what __del__ looks at, whatever fails below
        options = _cdist.dist_strategy_options()
        options.kind, options.num_replicas = int(kind), num_replicas
        options.threads, options.placement = int(threads), int(placement)
        options.numerics = int(numerics)
        options.move_host_threads = int(move_host_threads)
        options.transport = int(transport)
        options.reform = int(reform)
        options.timeout_ns = nanoseconds(timeout)
        options.parameter_device = parameter_device
        if devices is not None:
            options.set_devices(list(devices), len(devices))
        native = communication._native() if communication is not None else None
        if native is not None:
            options.communication = native
        if cross_device is not None:
            options.cross_device = cross_device._native()
        if log is not None:
            self._tokens.append(_calls.keep(_calls.Log(_log_to(log) if isinstance(log, logging.Logger) else log)))
            options.set_log(self._tokens[-1])
        if functions is not None:
            self._tokens.append(_calls.keep(functions))
            functions._set(options, self._tokens[-1])
        if device_assignment is not None:
            options.device_assignment = device_assignment._handle
        if axes is not None:
            named = list(axes.items() if isinstance(axes, Mapping) else axes)
            options.set_axes([name for name, _ in named], [size for _, size in named], len(named))
        options.use_spmd_partitioning = int(use_spmd_partitioning)
        if stack_size_bytes:
            options.stack_size_bytes = stack_size_bytes
        if staging_bytes:
            options.staging_bytes = staging_bytes
        if async_bytes:
            options.async_bytes = async_bytes
        if cluster_resolver is not None:
            options.cluster_resolver = cluster_resolver._handle
        joined = network._hold("Strategy") if network is not None else None
        if joined is not None:
            options.network = joined.handle
        shared = give_budget(options, budget)
        options.helper_threads, options.recorded_events = int(helper_threads), recorded_events
        options.late_destroys = 1  # garbage collection destroys objects at any time
        if cpus:
            options.set_cpus(list(cpus), len(cpus))
        if replicas_of_workers is not None:
            options.set_replicas_of_workers(list(replicas_of_workers), len(replicas_of_workers))
        self._device_assignment = device_assignment
        self._cluster_resolver = cluster_resolver
        self._kept = (cross_device, functions)
        if functions is not None:
            self._host_failures = functions._failures
        elif cross_device is not None:
            self._host_failures = cross_device._failures
        self._owned = True
        try:
            give_executor(options, executor, max_workers, self._tokens)
            self._handle = _cdist.dist_strategy_create(options)
        except BaseException:
            self._release_tokens()
            raise
        del joined, shared  # held until here, whoever closes the network or the budget meanwhile
        self._local_replicas = range(self.num_replicas)
        if kind == StrategyKind.MULTI_WORKER_MIRRORED:
            place = self.query()
            self._local_replicas = range(place.first_replica, place.first_replica + place.num_local_replicas)
            self._has_peers = place.num_workers > 1
        _strategies[self._handle] = self

    def _prepare(self, handle: int) -> None:
        self._handle = handle
        self._owned = False
        self._local_replicas = range(1)  # a default strategy's
        self._has_peers = False  # other workers
        self._cluster_resolver: Optional[ClusterResolver] = None
        self._alive: Optional[weakref.ref[Any]] = None
        self._host_failures: Optional[_calls.Failures] = None
        self._tokens: list[int] = []
        self._children: weakref.WeakSet[Any] = weakref.WeakSet()
        self._lock = threading.RLock()
        self._shared = values.Shared()  # of host threads, which have no run in common

    @classmethod
    def _borrowed(cls, handle: int) -> Strategy:
        """The thread's default strategy, which ends with the thread."""
        strategy = cls.__new__(cls)
        strategy._prepare(handle)
        strategy._alive = weakref.ref(current.thread)
        return strategy

    def __repr__(self) -> str:
        if not self._handle:
            return "<libdist.Strategy, closed>"
        kind, replicas = self.kind.name, self.num_replicas
        return f"<libdist.Strategy {kind} of {replicas} replica{'s' if replicas != 1 else ''}>"

    # ---- its end -------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the threads, groups and works; FailedPrecondition while a run is under way. Values stay readable."""
        if not self._handle or not self._owned:
            return
        for child in list(self._children):
            child.close()
        settle_requests(self)
        _cdist.dist_strategy_destroy(self._handle)
        self._gone()

    def shutdown(self, timeout: Wait = None) -> None:
        """Ends the strategy whatever its replicas do: refuses new runs, cancels those that wait and the one under way.

        timeout: seconds, for the functions to return; None, negative or inf: no limit; 0: not at all. DeadlineExceeded
        names the replicas that have not; the strategy is closed for the program then too, and what those threads may
        come back to is kept for them.
        """
        handle = self._native("Strategy.shutdown")
        if not self._owned:
            raise FailedPrecondition("Strategy.shutdown(): this is the thread's default strategy, which ends with its thread")
        patience = wait_limit(timeout)
        try:
            with Watch(self._cancel_quietly):
                _cdist.dist_strategy_shutdown(handle, patience)
        except DeadlineExceeded:
            self._tokens = []  # a function that is inside still may log, or reduce
            self._gone()
            raise
        self._gone()
        for child in list(self._children):
            child.close()

    def _gone(self) -> None:
        for child in list(self._children):
            if isinstance(child, Group):
                child._handle = 0  # groups end with their strategy
        _strategies.pop(self._handle, None)
        self._handle = 0
        self._release_tokens()
        self._end_instance_functions()

    def __enter__(self) -> Strategy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, _late: Any = finalizing) -> None:
        if self._handle and self._owned and not _late():
            try:
                self.close()
            except DistError:  # a run that was given up after its deadline is not over
                pass

    def _release_tokens(self) -> None:
        for token in self._tokens:
            _calls.release(token)
        self._tokens = []

    def _native(self, name: str = "Strategy") -> int:
        if not self._handle:
            raise FailedPrecondition(f"{name}(): the strategy is closed")
        if self._alive is not None and self._alive() is None:
            raise FailedPrecondition(f"{name}(): this was the default strategy of a thread that has ended")
        return self._handle

    # ---- running -------------------------------------------------------------------------------------------

    def run(
        self, fn: Callable[[Replica], Any], *, timeout: Limit = None, cancel: Optional[Cancel] = None
    ) -> list[Any]:
        """Calls `fn(replica)` once on every replica of this worker, at the same time: what each returned, by its id.

        If a replica raises, its peers' collectives end at once, and run() raises that very exception. Runs of several
        threads take turns, first come, first served. timeout: seconds, of waiting for earlier runs and of the run.
        cancel: ends this run, and no other, also while it waits for its turn.

        Each call of fn runs in a copy of the caller's context (contextvars, np.errstate), as with asyncio.to_thread().
        """
        handle = self._native("Strategy.run")
        options = _run_options(timeout, cancel)
        run = Run(self, fn)
        abandoned = False
        try:
            with Watch(self._cancel_quietly):
                _calls.call(run.failures, _cdist.dist_run, handle, run.token, options)
        except DeadlineExceeded:
            abandoned = True
            raise
        finally:
            run.end(abandoned)
        return run.results

    def run_values(
        self,
        fn: Callable[..., Any],
        args: Arguments = (),
        kwargs: Keywords = None,
        *,
        timeout: Limit = None,
        cancel: Optional[Cancel] = None,
        enable_dynamic_batch_size: Optional[bool] = None,
        bucketizing_dynamic_shape: bool = False,
    ) -> Any:
        """Calls `fn(replica, *args, **kwargs)`: of per-replica values, at any depth, each replica gets its own.

        What the replicas return is merged leaf by leaf: the same object as it is, otherwise a per-replica Value.
        timeout and cancel: as in run().
        """
        handle = self._native("Strategy.run_values")
        options = _run_options(timeout, cancel) or _cdist.dist_run_options()
        run = Run(self, fn)
        abandoned = False
        try:
            given = values.arguments(handle, args, run.seen)
            named = values.make(handle, kwargs, run.seen) if kwargs is not None else None
            if enable_dynamic_batch_size is not None:
                options.enable_dynamic_batch_size = 1 if enable_dynamic_batch_size else -1
            options.bucketizing_dynamic_shape = int(bucketizing_dynamic_shape)
            arguments = (values.handle_of(given), values.handle_of(named), options)
            with Watch(self._cancel_quietly):
                result = _calls.call(run.failures, _cdist.dist_run_values, handle, run.token, *arguments)
        except DeadlineExceeded:
            abandoned = True
            raise
        finally:
            run.end(abandoned)
        return values.owned(result, run.seen)

    @contextmanager
    def enter(self, replica_id: int) -> Iterator[Replica]:
        """This thread becomes a replica, of a strategy with Threads.HOST; on leaving it waits for all the others.

        An exception inside is the replica's failure, and goes on; the others raise what libdist says of it.
        """
        handle = _cdist.dist_replica_enter(self._native("Strategy.enter"), replica_id)
        replica = Replica(handle, self, self._shared)
        current.replicas.append(replica)
        status = int(Status.OK)
        try:
            yield replica
        except BaseException as error:
            status = _calls.tell(error)
            raise
        finally:
            replica._over = True
            current.replicas.pop()
            try:
                _cdist.dist_replica_leave(handle, status)
            except DistError:
                if status == Status.OK:
                    raise

    def cancel(self) -> None:
        """Ends the run that is under way: Cancelled on every replica that waits. From any thread."""
        _cdist.dist_strategy_cancel(self._native("Strategy.cancel"))

    def reform(
        self, *, min_workers: int = 0, window: Timeout = None, timeout: Timeout = None
    ) -> None:
        """Goes on with the workers that are there: without those that are lost, with those that have come.

        Replicas are numbered anew, in the order of the workers; each worker keeps how many it has. workers.h says when
        to call it, and what stays: plans and datasets do not, and are to be made again. cancel(), and Ctrl-C, end it.
        After an error the strategy has no way to the others, and this may be called again; Unavailable: worker 0, which
        says who takes part, is lost, and the job has ended.

        min_workers: fewer do not go on, and wait for more; 0: 1. window: seconds that worker 0 waits for workers that
        are not known to be lost; None: a lease. timeout: seconds, to wait in all; None: the strategy's; negative: no
        limit.
        """
        handle = self._native("Strategy.reform")
        options = _cdist.dist_reform_options()
        options.min_workers = min_workers
        options.window_ns, options.timeout_ns = nanoseconds(window), nanoseconds(timeout)
        with self._waiting():
            _cdist.dist_strategy_reform(handle, options)

    def reform_due(self) -> bool:
        """Whether the workers are to re-form before the next run: some are lost, or others have come.

        All workers that have made the same runs get the same answer, for which those other than worker 0 wait until
        worker 0 has ended the latest one. With Reform.AT_NEXT_RUN runs ask for it by themselves.
        """
        handle = self._native("Strategy.reform_due")
        with self._waiting():
            return bool(_cdist.dist_strategy_reform_due(handle))

    def _cancel_quietly(self) -> None:
        if self._handle:
            _cdist.dist_strategy_cancel(self._handle)

    def group(self, replica_ids: Sequence[int]) -> Group:
        """Some of the replicas, in ascending order, for collectives among them. Not while a run is under way."""
        return Group(self, replica_ids)

    # ---- logical devices -----------------------------------------------------------------------------------

    @property
    def num_logical_devices(self) -> int:
        """How many logical devices each replica has: 1, unless it is of StrategyKind.MESH."""
        return int(_cdist.dist_strategy_num_logical_devices(self._native("Strategy.num_logical_devices")))

    @property
    def device_assignment(self) -> Optional[DeviceAssignment]:
        """The device assignment that it was made with."""
        handle = self._native("Strategy.device_assignment")
        return self._device_assignment if _cdist.dist_strategy_device_assignment(handle) else None

    # ---- variables, metrics --------------------------------------------------------------------------------

    def variable(
        self,
        initial: Initial = None,
        *,
        name: Optional[str] = None,
        aggregation: Aggregation = Aggregation.NONE,
        synchronization: Synchronization = Synchronization.AUTO,
    ) -> Variable:
        """A variable whose copies are all equal to `initial`, a tensor or a function that gives one.

        aggregation: what an assignment inside replicas does. synchronization: when the copies are brought together.
        """
        return create(self, initial, name, aggregation, synchronization)

    def metric(self, kind: MetricKind = MetricKind.MEAN, name: Optional[str] = None) -> Metric:
        """A metric, to which replicas add by Replica.update_metric()."""
        return Metric(self, kind, name)

    # ---- checkpoints, preemption, parameter servers ------------------------------------------------------------

    def save_checkpoint(
        self,
        path: Path,
        variables: Variables,
        *,
        position: Optional[Position] = None,
        metadata: Optional[Mapping[str, str]] = None,
        sharded: bool = False,
    ) -> None:
        """Writes a checkpoint, in one step: the old file or the new one is there, whole.

        position: where the input is. metadata: texts of the program's, each under a key. sharded: `path` becomes an index,
        and each worker writes the shard of its part of the variables.
        """
        checkpoint.save(self, path, variables, position=position, metadata=metadata, sharded=sharded)

    def load_checkpoint(self, path: Path, variables: Variables, *, position: bool = False) -> Optional[Position]:
        """Gives variables the values that a file has for them; with position=True it returns where the input was."""
        return checkpoint.load(self, path, variables, position=position)

    def open_checkpoint(self, path: Path) -> checkpoint.Checkpoint:
        """Opens a checkpoint for reading."""
        return checkpoint.Checkpoint(self, path)

    def preemption_handler(
        self, path: Optional[Path] = None, variables: Sequence[Variable] = (), *, grace: Delay = None
    ) -> PreemptionHandler:
        """Where the checkpoint is there, its values come to the variables, and its number of runs to the handler.

        path: of the checkpoint, one file for all workers; None: the program saves. grace: seconds, how long the job may
        go on after the notice; None: it saves and ends.
        """
        return PreemptionHandler(self, path, variables, grace=grace)

    def coordinator(self, **options: Unpack[CoordinatorOptions]) -> Coordinator:
        """The coordinator of a strategy of StrategyKind.PARAMETER_SERVER. It does not wait for the servers.

        A strategy has one coordinator. If it already exists, the options are not read.
        """
        return Coordinator(self, **options)

    # ---- scopes ------------------------------------------------------------------------------------------------

    @contextmanager
    def scope(self) -> Iterator[Strategy]:
        """Inside, this is the thread's current strategy: get_strategy()."""
        handle = self._native("Strategy.scope")
        _cdist.dist_scope_enter(handle)
        try:
            yield self
        finally:
            _cdist.dist_scope_exit(handle)

    @contextmanager
    def colocate(self, variable: Any) -> Iterator[None]:
        """Inside, this thread's new variables are placed with a variable (TensorFlow: colocate_vars_with)."""
        handle = self._native("Strategy.colocate")
        given = values.make(handle, variable)
        _cdist.dist_colocate_enter(handle, given._handle)
        try:
            yield
        finally:
            _cdist.dist_colocate_exit(handle)


def _run_options(timeout: Optional[float], cancel: Optional[Cancel]) -> Any:
    """Options of a run; None where there are none."""
    if timeout is None and cancel is None:
        return None
    options = _cdist.dist_run_options()
    options.timeout_ns = limit(timeout)
    options.cancel = handle_of(cancel)
    return options


_strategies: weakref.WeakValueDictionary[int, Strategy] = weakref.WeakValueDictionary()


def strategy_of(handle: int) -> Strategy:
    """The object of a handle; of this thread's default strategy where it is none of the program's."""
    known = _strategies.get(handle)
    if known is not None:
        return known
    if current.default is None or current.default._handle != handle:
        current.default = Strategy._borrowed(handle)
    return current.default


def current_strategy() -> Strategy:
    """get_strategy() of this thread."""
    return strategy_of(_cdist.dist_get_strategy())


def replica_of(handle: int) -> Optional[Replica]:
    """The object of a replica's handle; None for NULL."""
    if not handle:
        return None
    return current_replica(handle) or Replica(handle, strategy_of(_cdist.dist_replica_strategy(handle)))

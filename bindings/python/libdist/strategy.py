# SPDX-License-Identifier: Apache-2.0
"""Strategy: the replicas, their threads, and what a program does with them from outside."""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, Sequence

from . import _calls, _cdist, checkpoint, values
from ._arguments import Wait, checked, wait_limit
from ._callbacks import Kept
from ._exit import finalizing
from ._input import Input
from ._inspection import Inspection
from ._interrupt import Watch
from ._native import Native
from ._option_fields import (
    CheckpointOptions,
    CoordinatorOptions,
    PreemptionOptions,
    ReformOptions,
    RunOptions,
    StrategyOptions,
    VariableOptions,
    reform_options,
    run_options,
    strategy_options,
)
from ._outside import Outside
from ._runs import Run, current, current_replica
from .batch import Batching
from .cluster_resolver import ClusterResolver
from .checkpoint import Path, Variables
from .constants import MetricKind, Status, StrategyKind
from .coordinator import Coordinator
from .dataset import Position
from .errors import DeadlineExceeded, DistError, FailedPrecondition
from .group import Group
from .metric import Metric
from .preemption import PreemptionHandler
from .replica import Replica
from .serve import Serving, settle_requests
from .topology import DeviceAssignment
from .values import Arguments, Keywords
from .variables import Initial, Variable, create

if TYPE_CHECKING:
    from typing_extensions import Unpack

@checked
class Strategy(Native, Outside, Input, Inspection, Serving, Batching):
    """R replicas: threads that run the same function at the same time and communicate through collectives.

        with libdist.Strategy(4) as strategy:
            totals = strategy.run(lambda replica: replica.all_reduce(libdist.ReduceOp.SUM, np.ones(3)))

    A process can have any number of strategies.
    """

    _device_assignment: Optional[DeviceAssignment] = None

    def __init__(self, num_replicas: int = 0, **options: Unpack[StrategyOptions]) -> None:
        """Creates the replicas' threads, which sleep until the first run.

        num_replicas: number of replicas of this process; 0 = number of CPUs available to the process.
        """
        self._prepare(0)  # for __del__(), whatever fails below
        functions, cross_device = options.get("functions"), options.get("cross_device")
        self._device_assignment = options.get("device_assignment")
        self._cluster_resolver = options.get("cluster_resolver")
        self._used = (cross_device, functions)
        if functions is not None:
            self._host_failures = functions._failures
        elif cross_device is not None:
            self._host_failures = cross_device._failures
        self._owned = True
        try:
            native = strategy_options(self._kept, num_replicas=num_replicas, **options)
            native.late_destroys = 1  # garbage collection destroys objects at any time
            self._handle = _cdist.dist_strategy_create(native)
        except BaseException:
            self._kept.release()
            raise
        self._kept.made()
        self._local_replicas = range(self.num_replicas)
        if self.kind == StrategyKind.MULTI_WORKER_MIRRORED:
            place = self.query()
            self._local_replicas = range(place.first_replica, place.first_replica + place.num_local_replicas)
            self._has_peers = place.num_workers > 1
        _strategies[self._handle] = self

    def _prepare(self, handle: int) -> None:
        self._handle = handle
        self._owned = False
        self._local_replicas = range(1)  # of a default strategy
        self._has_peers = False  # other workers
        self._cluster_resolver: Optional[ClusterResolver] = None
        self._alive: Optional[weakref.ref[Any]] = None
        self._host_failures: Optional[_calls.Failures] = None
        self._kept = Kept()
        self._children: weakref.WeakSet[Any] = weakref.WeakSet()
        self._lock = threading.RLock()
        self._shared = values.Shared()  # for host threads, which have no run in common

    @classmethod
    def _borrowed(cls, handle: int) -> Strategy:
        """Returns the thread's default strategy, which ends with the thread."""
        strategy = cls.__new__(cls)
        strategy._prepare(handle)
        strategy._alive = weakref.ref(current.thread)
        return strategy

    def __repr__(self) -> str:
        if not self._handle:
            return "<libdist.Strategy, closed>"
        kind, replicas = self.kind.name, self.num_replicas
        return f"<libdist.Strategy {kind} of {replicas} replica{'s' if replicas != 1 else ''}>"

    # ---- closing -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the threads, and closes groups and works. Values stay readable.

        Raises FailedPrecondition while a run or a request is in progress.
        """
        if not self._handle or not self._owned:
            return
        for child in list(self._children):
            child.close()
        settle_requests(self)
        _cdist.dist_strategy_destroy(self._handle)
        self._gone()

    def shutdown(self, timeout: Wait = None) -> None:
        """Stops the strategy even if replica functions do not return.

        It rejects new runs, cancels queued runs and the one in progress, and waits for their functions.

        timeout: seconds; 0 = do not wait; None, negative or infinite = no limit. If it expires, raises
        DeadlineExceeded, which names the replicas whose functions have not returned. The strategy is closed in this
        case too, and everything that those functions use stays valid until they return.
        """
        handle = self._native("Strategy.shutdown")
        if not self._owned:
            raise FailedPrecondition("Strategy.shutdown(): this is the thread's default strategy, which ends with its thread")
        patience = wait_limit(timeout)
        try:
            with Watch(self._cancel_quietly):
                _cdist.dist_strategy_shutdown(handle, patience)
        except DeadlineExceeded:
            self._kept.tokens = []  # a function that is still running may log or reduce
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
        self._kept.release()
        self._end_instance_functions()

    def __enter__(self) -> Strategy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, _late: Any = finalizing) -> None:
        if self._handle and self._owned and not _late():
            try:
                self.close()
            except DistError:  # functions of a run that returned at its deadline are still running
                pass

    def _native(self, name: str = "Strategy") -> int:
        if not self._handle:
            raise FailedPrecondition(f"{name}(): the strategy is closed")
        if self._alive is not None and self._alive() is None:
            raise FailedPrecondition(f"{name}(): this was the default strategy of a thread that has ended")
        return self._handle

    # ---- running -------------------------------------------------------------------------------------------

    def run(self, fn: Callable[[Replica], Any], **options: Unpack[RunOptions]) -> list[Any]:
        """Calls `fn(replica)` once on every replica of this worker, at the same time, and returns the list of results.

        If a replica raises, the collectives of its peers fail at once, and run() raises the same exception. Calls from
        several threads run one after another, in the order of arrival.

        Each call of fn runs in a copy of the caller's context (contextvars, np.errstate), as with asyncio.to_thread().
        """
        handle = self._native("Strategy.run")
        native = run_options(**options) if options else None
        run = Run(self, fn)
        abandoned = False
        try:
            with Watch(self._cancel_quietly):
                _calls.call(run.failures, _cdist.dist_run, handle, run.token, native)
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
        **options: Unpack[RunOptions],
    ) -> Any:
        """Calls `fn(replica, *args, **kwargs)` on every replica and merges the results.

        Each per-replica value in the arguments, at any depth, is replaced by the replica's component. The results must
        have the same structure and are merged leaf by leaf: a leaf is one object if all replicas returned the same
        object, and otherwise a per-replica Value.
        """
        handle = self._native("Strategy.run_values")
        native = run_options(**options) if options else None
        run = Run(self, fn)
        abandoned = False
        try:
            given = values.arguments(handle, args, run.seen)
            named = values.make(handle, kwargs, run.seen) if kwargs is not None else None
            arguments = (values.handle_of(given), values.handle_of(named), native)
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
        """Makes this thread replica `replica_id` of a strategy with Threads.HOST, for a `with` block.

        All replicas must enter, each on a thread of its own. At its end, the block waits until all of them have left.
        An exception in the block counts as the replica's failure and leaves the block; the other replicas raise
        libdist's report.
        """
        handle = _cdist.dist_replica_enter(self._native("Strategy.enter"), replica_id)
        replica = Replica._of(handle, self, self._shared)
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
        """Cancels the run in progress. Replicas that wait in a collective raise Cancelled. Any thread may call it."""
        _cdist.dist_strategy_cancel(self._native("Strategy.cancel"))

    def reform(self, **options: Unpack[ReformOptions]) -> None:
        """Continues with the available workers: without those that are lost, and with those that have joined.

        Replicas are numbered again in the order of the workers, and each worker keeps its number of replicas. Create
        plans and datasets again afterwards. cancel() and Ctrl-C end the wait.

        After an error the strategy is not connected to the other workers, and you can call reform() again. Raises
        Unavailable if worker 0, which decides who takes part, is lost: the job has then ended.
        """
        handle = self._native("Strategy.reform")
        native = reform_options(**options)
        with self._waiting():
            _cdist.dist_strategy_reform(handle, native)

    def reform_due(self) -> bool:
        """Returns whether the workers should re-form before the next run.

        This is so if workers were lost or others want to join.

        All workers that have made the same runs get the same answer. Workers other than worker 0 wait until worker 0
        has ended the latest run. With Reform.AT_NEXT_RUN, runs check this themselves.
        """
        handle = self._native("Strategy.reform_due")
        with self._waiting():
            return bool(_cdist.dist_strategy_reform_due(handle))

    def _cancel_quietly(self) -> None:
        if self._handle:
            _cdist.dist_strategy_cancel(self._handle)

    def group(self, replica_ids: Sequence[int]) -> Group:
        """Creates a group of some replicas, given by their ids in ascending order. Call this between runs."""
        return Group(self, replica_ids)

    # ---- logical devices ---------------------------------------------------------------------------------------

    @property
    def num_logical_devices(self) -> int:
        """The number of logical devices of each replica: 1, except for StrategyKind.MESH."""
        return int(_cdist.dist_strategy_num_logical_devices(self._native("Strategy.num_logical_devices")))

    @property
    def device_assignment(self) -> Optional[DeviceAssignment]:
        """The device assignment with which the strategy was created; None if it has none."""
        handle = self._native("Strategy.device_assignment")
        return self._device_assignment if _cdist.dist_strategy_device_assignment(handle) else None

    # ---- variables, metrics --------------------------------------------------------------------------------

    def variable(
        self,
        initial: Initial = None,
        *,
        name: Optional[str] = None,
        **options: Unpack[VariableOptions],
    ) -> Variable:
        """Creates a variable whose copies are all equal to `initial`, a tensor or a function that returns one.

        name: the variable's name; None = "Variable".
        """
        return create(self, initial, name, options)

    def metric(self, kind: MetricKind = MetricKind.MEAN, name: Optional[str] = None) -> Metric:
        """Creates a metric, to which replicas add with Replica.update_metric().

        name: used in messages; None = name of the kind.
        """
        return Metric(self, kind, name)

    # ---- checkpoints, preemption, parameter servers ------------------------------------------------------------

    def save_checkpoint(
        self,
        path: Path,
        variables: Variables,
        **options: Unpack[CheckpointOptions],
    ) -> None:
        """Writes a checkpoint in one step: the path has either the old file or the complete new one.

        variables: a sequence of variables, or a dictionary from the names in the file to variables.
        """
        checkpoint.save(self, path, variables, options)

    def load_checkpoint(self, path: Path, variables: Variables, *, position: bool = False) -> Optional[Position]:
        """Loads the values of variables from a checkpoint. If the file does not fit, no variable changes.

        variables: a sequence of variables, or a dictionary from the names in the file to variables.

        position: True = return the input position that was saved with the variables; False = return None.
        """
        return checkpoint.load(self, path, variables, position=position)

    def open_checkpoint(self, path: Path) -> checkpoint.Checkpoint:
        """Opens a safetensors file, or the index of several, to inspect and read its tensors."""
        return checkpoint.Checkpoint(self, path)

    def preemption_handler(
        self, path: Optional[Path] = None, variables: Sequence[Variable] = (), **options: Unpack[PreemptionOptions]
    ) -> PreemptionHandler:
        """Creates a preemption handler. If the checkpoint exists, it restores the variables and the number of runs.

        path: path of the checkpoint, one file for all workers; None = the program saves.

        variables: variables in the checkpoint.
        """
        return PreemptionHandler(self, path, variables, **options)

    def coordinator(self, **options: Unpack[CoordinatorOptions]) -> Coordinator:
        """Returns the coordinator of a strategy of StrategyKind.PARAMETER_SERVER. Does not wait for the servers.

        A strategy has one coordinator. If it already exists, the options are ignored.
        """
        return Coordinator(self, **options)

    # ---- scopes ------------------------------------------------------------------------------------------------

    @contextmanager
    def scope(self) -> Iterator[Strategy]:
        """Makes this strategy the thread's current strategy in a `with` block; see get_strategy()."""
        handle = self._native("Strategy.scope")
        _cdist.dist_scope_enter(handle)
        try:
            yield self
        finally:
            _cdist.dist_scope_exit(handle)

    @contextmanager
    def colocate(self, variable: Any) -> Iterator[None]:
        """Places this thread's new variables with another variable in a `with` block (TensorFlow: colocate_vars_with).

        This has no effect on placement, because copy r of every variable belongs to replica r; it checks that
        colocation is possible.
        """
        handle = self._native("Strategy.colocate")
        given = values.make(handle, variable)
        _cdist.dist_colocate_enter(handle, given._handle)
        try:
            yield
        finally:
            _cdist.dist_colocate_exit(handle)


_strategies: weakref.WeakValueDictionary[int, Strategy] = weakref.WeakValueDictionary()


def strategy_of(handle: int) -> Strategy:
    """Returns the strategy with this handle, or this thread's default strategy if the program has not created it."""
    known = _strategies.get(handle)
    if known is not None:
        return known
    if current.default is None or current.default._handle != handle:
        current.default = Strategy._borrowed(handle)
    return current.default


def current_strategy() -> Strategy:
    """Returns the current strategy of this thread."""
    return strategy_of(_cdist.dist_get_strategy())


def replica_of(handle: int) -> Optional[Replica]:
    """Returns the replica with this handle; None for NULL."""
    if not handle:
        return None
    return current_replica(handle) or Replica._of(handle, strategy_of(_cdist.dist_replica_strategy(handle)))

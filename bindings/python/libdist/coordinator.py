# SPDX-License-Identifier: Apache-2.0
"""The coordinator of a job with parameter servers (TensorFlow: ClusterCoordinator with a ParameterServerStrategy).

It keeps variables on the tasks of job "ps" and runs closures on the tasks of job "worker"; see server.py. The header
dist/experimental/coordinator.h describes what happens if a worker or a parameter server is lost.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Sequence

from . import _calls, _cdist, _tensors, values
from ._arguments import Wait, checked, wait_limit
from ._callbacks import Kept, partitioning
from ._exit import COORDINATOR, close_at_exit, finalizing
from ._interrupt import Watch, interruptible
from ._native import Native
from ._option_fields import (
    CoordinatorOptions,
    PsVariableOptions,
    ScheduleOptions,
    coordinator_options,
    ps_variable_options,
    schedule_options,
)
from ._tensors import Array, TensorLike
from .cancel import Cancel
from .checkpoint import Path
from .constants import Assign, DType, Scatter
from .errors import FailedPrecondition
from .rpc import RemoteValue
from .server import Reader, arguments_of, slices_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .strategy import Strategy

class VariableSpec(NamedTuple):
    """The dtype, shape and number of parts of a variable on parameter servers."""

    dtype: DType
    shape: tuple[int, ...]
    num_parts: int
    """Number of parts into which the first dimension is divided."""


class VariablePart(NamedTuple):
    """A part of a variable: the rows begin .. begin + rows - 1."""

    device: str
    """Device that holds the part: "/job:ps/replica:0/task:1/device:CPU:0"."""
    begin: int
    rows: int


class CoordinatorStats(NamedTuple):
    """The counters of a coordinator."""

    num_ps: int
    num_workers: int
    workers_up: int
    """Workers that have closures or can take some."""
    queued: int
    """Closures that no worker has."""
    in_flight: int
    """Closures that a worker has."""
    scheduled: int
    """Closures scheduled in total."""
    completed: int
    """Closures that have finished without an error."""
    failed: int
    cancelled: int
    losses: int
    """How often a closure was lost with its worker."""
    mark: int
    """All closures with lower numbers have finished."""
    bytes_sent: int
    """Message bytes sent to all servers, without the overhead of gRPC."""
    bytes_received: int


class _Shared(Kept):
    """The partitioner that the Coordinators of one strategy share; it is used until the last of them is closed."""

    def __del__(self, _release: Any = _calls.release) -> None:
        for token in self.tokens:
            _release(token)


_shared: weakref.WeakValueDictionary[int, _Shared] = weakref.WeakValueDictionary()
_creating = threading.Lock()


@checked
class Coordinator(Native, Reader):
    """Keeps variables on parameter servers and runs closures on workers; Strategy.coordinator() creates it.

        strategy = libdist.Strategy(kind=libdist.StrategyKind.PARAMETER_SERVER)   # TF_CONFIG lists the servers
        with strategy.coordinator() as coordinator:
            coordinator.create_variable("w", np.zeros(10))
            for batch in batches:
                coordinator.schedule("train", batch)
            coordinator.join()
            print(coordinator.read("w"))

    Closures run concurrently and do not wait for each other. The effects of a closure are applied exactly once on each
    parameter server, even if the closure runs again because its worker was lost. If a parameter server is lost, further
    calls raise Aborted.
    """

    def __init__(self, strategy: Strategy, **options: Unpack[CoordinatorOptions]) -> None:
        self._handle = 0
        self._strategy = strategy
        shared = _Shared()
        native = coordinator_options(shared, **options)
        handle = strategy._native("Strategy.coordinator")
        with _creating:
            self._handle = _cdist.dist_coordinator_create(handle, native)
            self._kept: Optional[_Shared] = _shared.setdefault(self._handle, shared)
        strategy._children.add(self)
        close_at_exit(self, COORDINATOR)

    @property
    def strategy(self) -> Strategy:
        """The strategy to which the coordinator belongs."""
        return self._strategy

    # ---- variables -------------------------------------------------------------------------------------------------

    def create_variable(
        self,
        name: str,
        initial: TensorLike,
        **options: Unpack[PsVariableOptions],
    ) -> None:
        """Creates a variable on the parameter servers.

        Variables, and the parts of divided variables, are placed on the servers in turn, in the order of creation.
        Waits until the servers are available, at most for the coordinator's timeout.

        initial: initial value, which sets the shape and the dtype.
        """
        handle = self._native()
        native = ps_variable_options(**options)
        given = [_tensors.give(initial)]

        def create() -> None:
            partitioning.failures = failures = _calls.Failures()
            try:
                _calls.call(failures, _cdist.dist_coordinator_create_variable, handle, name, given, native)
            finally:
                partitioning.failures = None

        interruptible(create)

    @property
    def variables(self) -> list[str]:
        """The names of the variables, in the order of creation."""
        handle = self._native()
        count = _cdist.dist_coordinator_num_variables(handle)
        return [str(_cdist.dist_coordinator_variable_name(handle, index)) for index in range(count)]

    def variable_spec(self, name: str) -> VariableSpec:
        """Returns the dtype, the shape and the number of parts of a variable."""
        (_, dtype, shape, *_), num_parts = _cdist.dist_coordinator_variable_spec(self._native(), name)
        return VariableSpec(DType(dtype), tuple(shape), int(num_parts))

    def variable_part(self, name: str, part: int) -> VariablePart:
        """Returns the device of a part of a variable, and the rows that it has."""
        return VariablePart(*_cdist.dist_coordinator_variable_part(self._native(), name, part))

    def _read(self, names: Sequence[str]) -> list[Any]:
        handle = self._native()

        def read() -> list[Any]:
            return [values.owned(value) for value in _cdist.dist_coordinator_read(handle, names, len(names))]

        result: list[Any] = interruptible(read)
        return result

    def read_rows(self, name: str, indices: Any) -> Array:
        """Reads rows of a variable, for example of an embedding.

        indices: row numbers, int32 or int64 [k]. The result has the shape [k, ...].
        """
        handle, given = self._native(), values.make_tensor(_cdist.dist_get_strategy(), indices)
        rows: Array = interruptible(
            lambda: values.owned(_cdist.dist_coordinator_read_rows(handle, name, given._handle))
        )
        return rows

    def assign(self, name: str, value: Any, how: Assign = Assign.SET) -> None:
        """Assigns a value to a variable immediately, or adds or subtracts it; `how` is an Assign."""
        handle, given = self._native(), values.make_tensor(_cdist.dist_get_strategy(), value)
        interruptible(lambda: _cdist.dist_coordinator_assign(handle, name, int(how), given._handle))

    def scatter(self, name: str, how: Scatter, slices: Any) -> None:
        """Changes rows of a variable immediately.

        how: a Scatter.

        slices: a pair of values [k, ...] and indices [k], or the result of Strategy.indexed_slices().
        """
        handle, given = self._native(), slices_of(slices)
        interruptible(lambda: _cdist.dist_coordinator_scatter(handle, name, int(how), given._handle))

    def update(self, function: str, names: Sequence[str], *arguments: Any) -> None:
        """Updates colocated variables immediately with a function that was registered with Server.register_update()."""
        handle, given, all_names = self._native(), arguments_of(arguments), list(names)
        native = _cdist.dist_coordinator_update
        interruptible(lambda: native(handle, function, all_names, len(all_names), values.handle_of(given)))

    def save(self, path: Path) -> None:
        """Writes a checkpoint of all variables. Closures continue meanwhile.

        For each parameter server, the file has the variables of a single moment, and records which closures they
        include.
        """
        handle, where = self._native(), os.fspath(path)
        interruptible(lambda: _cdist.dist_coordinator_save(handle, where))

    def restore(self, path: Path) -> int:
        """Restores all variables from a checkpoint. Call this before scheduling the first closure.

        Returns the number of the first closure to schedule again. Schedule the closures again from there, in the same
        order: effects that the file already includes are not applied a second time. The result is 0 for files of other
        programs.
        """
        handle, where = self._native(), os.fspath(path)
        return int(interruptible(lambda: _cdist.dist_coordinator_restore(handle, where)))

    # ---- closures --------------------------------------------------------------------------------------------------

    def schedule(self, function: str, *arguments: Any, **options: Unpack[ScheduleOptions]) -> RemoteValue:
        """Schedules a closure on a worker, and returns its future result.

        Waits while there are max_queued unfinished closures. If an earlier closure has failed, raises its error, once,
        and schedules nothing.

        function: the name under which the workers have registered the closure.

        arguments: values that can be sent: tensors, texts, None, and lists, tuples and dictionaries of them. Do not
        change an array before the closure has finished.
        """
        given = arguments_of(arguments)
        options["cancel"] = cancel = options.get("cancel") or Cancel()
        native = schedule_options(**options)
        with Watch(cancel.signal):
            remote = _cdist.dist_coordinator_schedule(self._native(), function, values.handle_of(given), native)
        return RemoteValue._of(remote, self)

    def join(self, timeout: Wait = None, cancel: Optional[Cancel] = None) -> None:
        """Waits until all closures have finished. If one has failed, raises its error, once.

        timeout: seconds; None or negative = no limit. Raises DeadlineExceeded, which names a server that is not
        available.
        """
        cancel = Cancel() if cancel is None else cancel
        with Watch(cancel.signal):
            _cdist.dist_coordinator_join(self._native(), wait_limit(timeout), cancel._native())

    def done(self) -> bool:
        """Returns whether all closures have finished. If one has failed, raises its error, once."""
        return bool(_cdist.dist_coordinator_done(self._native()))

    def create_per_worker(self, name: str, function: str, *arguments: Any) -> None:
        """Runs the closure `function` once on each worker, and keeps its result there.

        Closures get it with Closure.per_worker(name). The result is not sent and can be any object. A worker that
        returns after a failure runs the function again.
        """
        handle, given = self._native(), arguments_of(arguments)
        native = _cdist.dist_coordinator_create_per_worker
        interruptible(lambda: native(handle, name, function, values.handle_of(given)))

    def query(self) -> CoordinatorStats:
        """Returns the counters of the coordinator."""
        record = _cdist.dist_coordinator_stats()
        _cdist.dist_coordinator_query(self._native(), record)
        return CoordinatorStats(*(getattr(record, name) for name in CoordinatorStats._fields))

    def write_trace(self) -> str:
        """Returns the latest closures as a JSON trace for Perfetto or chrome://tracing, with one row for each worker.
        """
        text = _cdist.Text()
        text.write_coordinator_trace(self._native())
        return str(text.text())

    # ---- closing -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Closes the coordinator, once all Coordinators of its strategy are closed.

        Unfinished closures fail with Cancelled, and the servers are asked to stop. Remote values stay readable.
        """
        self._end(_cdist.dist_coordinator_destroy)
        self._kept = None

    def __enter__(self) -> Coordinator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, _destroy: Any = _cdist.dist_coordinator_destroy, _late: Any = finalizing) -> None:
        if self._handle and not _late():
            _destroy(self._handle)

    def _native(self) -> int:
        if not self._handle:
            raise FailedPrecondition("the coordinator is closed")
        return self._handle

# SPDX-License-Identifier: Apache-2.0
"""The coordinator of a job with parameter servers (TensorFlow: ClusterCoordinator with a ParameterServerStrategy).

It keeps variables on the tasks of job "ps", and gives closures to those of job "worker": server.py. What is promised of
workers that are lost is in libdist's headers, coordinator.h.
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
    """What a variable on parameter servers is like."""

    dtype: DType
    shape: tuple[int, ...]
    num_parts: int
    """Into how many parts its first dimension is divided."""


class VariablePart(NamedTuple):
    """A part of a variable: its rows begin .. begin + rows - 1."""

    device: str
    """Where it lies: "/job:ps/replica:0/task:1/device:CPU:0"."""
    begin: int
    rows: int


class CoordinatorStats(NamedTuple):
    """What a coordinator does, in numbers."""

    num_ps: int
    num_workers: int
    workers_up: int
    """That have work, or may have it."""
    queued: int
    """Closures that no worker has."""
    in_flight: int
    """That one has."""
    scheduled: int
    """In all."""
    completed: int
    """That ended well."""
    failed: int
    cancelled: int
    losses: int
    """How often a closure came back from a worker."""
    mark: int
    """All closures below have ended."""
    bytes_sent: int
    """To all servers: messages, without what gRPC adds."""
    bytes_received: int


class _Shared(Kept):
    """What the Coordinators of one strategy share: the partitioner, which is used until the last of them is closed."""

    def __del__(self, _release: Any = _calls.release) -> None:
        for token in self.tokens:
            _release(token)


_shared: weakref.WeakValueDictionary[int, _Shared] = weakref.WeakValueDictionary()
_creating = threading.Lock()


@checked
class Coordinator(Native, Reader):
    """Keeps variables on parameter servers, and has workers run closures side by side; Strategy.coordinator() makes it.

    strategy = libdist.Strategy(kind=StrategyKind.PARAMETER_SERVER)   # TF_CONFIG says which servers there are
    with strategy.coordinator() as coordinator:
        coordinator.create_variable("w", np.zeros(10))
        for batch in batches:
            coordinator.schedule("train", batch)
        coordinator.join()
        print(coordinator.read("w"))
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
        """Whose coordinator it is."""
        return self._strategy

    # ---- variables -------------------------------------------------------------------------------------------------

    def create_variable(
        self,
        name: str,
        initial: TensorLike,
        **options: Unpack[PsVariableOptions],
    ) -> None:
        """Creates a variable; the parameter servers get variables, and parts of divided ones, in turn."""
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
        """The names of the variables, in the order of their creation."""
        handle = self._native()
        count = _cdist.dist_coordinator_num_variables(handle)
        return [str(_cdist.dist_coordinator_variable_name(handle, index)) for index in range(count)]

    def variable_spec(self, name: str) -> VariableSpec:
        """What a variable is like."""
        (_, dtype, shape, *_), num_parts = _cdist.dist_coordinator_variable_spec(self._native(), name)
        return VariableSpec(DType(dtype), tuple(shape), int(num_parts))

    def variable_part(self, name: str, part: int) -> VariablePart:
        """Where a part of a variable lies, and which rows it has."""
        return VariablePart(*_cdist.dist_coordinator_variable_part(self._native(), name, part))

    def _read(self, names: Sequence[str]) -> list[Any]:
        handle = self._native()

        def read() -> list[Any]:
            return [values.owned(value) for value in _cdist.dist_coordinator_read(handle, names, len(names))]

        result: list[Any] = interruptible(read)
        return result

    def read_rows(self, name: str, indices: Any) -> Array:
        """Rows of a variable, as an embedding is looked up: indices are int32 or int64 [k]."""
        handle, given = self._native(), values.make_tensor(_cdist.dist_get_strategy(), indices)
        rows: Array = interruptible(
            lambda: values.owned(_cdist.dist_coordinator_read_rows(handle, name, given._handle))
        )
        return rows

    def assign(self, name: str, value: Any, how: Assign = Assign.SET) -> None:
        """Changes a variable at once: `how` is an Assign."""
        handle, given = self._native(), values.make_tensor(_cdist.dist_get_strategy(), value)
        interruptible(lambda: _cdist.dist_coordinator_assign(handle, name, int(how), given._handle))

    def scatter(self, name: str, how: Scatter, slices: Any) -> None:
        """Changes rows at once: `how` is a Scatter, slices are (values [k, ...], indices [k])."""
        handle, given = self._native(), slices_of(slices)
        interruptible(lambda: _cdist.dist_coordinator_scatter(handle, name, int(how), given._handle))

    def update(self, function: str, names: Sequence[str], *arguments: Any) -> None:
        """Changes variables that lie alike, at once, by what the parameter servers have: Server.register_update()."""
        handle, given, all_names = self._native(), arguments_of(arguments), list(names)
        native = _cdist.dist_coordinator_update
        interruptible(lambda: native(handle, function, all_names, len(all_names), values.handle_of(given)))

    def save(self, path: Path) -> None:
        """Writes a checkpoint of all variables. Closures go on meanwhile: which of them are in it, it knows."""
        handle, where = self._native(), os.fspath(path)
        interruptible(lambda: _cdist.dist_coordinator_save(handle, where))

    def restore(self, path: Path) -> int:
        """Gives all variables the values of a checkpoint, before the first closure.

        It gives the number of the first closure to schedule again, in the same order: those after it whose effects are
        in the file already change nothing a second time. 0 for files of other programs.
        """
        handle, where = self._native(), os.fspath(path)
        return int(interruptible(lambda: _cdist.dist_coordinator_restore(handle, where)))

    # ---- closures --------------------------------------------------------------------------------------------------

    def schedule(self, function: str, *arguments: Any, **options: Unpack[ScheduleOptions]) -> RemoteValue:
        """Has a worker run what it has registered as `function`: what that comes to, later.

        Raises what an earlier closure failed with, once; nothing is scheduled then. The memory of arrays is used until
        the closure has ended.
        """
        given = arguments_of(arguments)
        options["cancel"] = cancel = options.get("cancel") or Cancel()
        native = schedule_options(**options)
        with Watch(cancel.signal):
            remote = _cdist.dist_coordinator_schedule(self._native(), function, values.handle_of(given), native)
        return RemoteValue._of(remote, self)

    def join(self, timeout: Wait = None, cancel: Optional[Cancel] = None) -> None:
        """Waits until all closures have ended; raises what one failed with, once.

        timeout: seconds; None or negative: no limit. DeadlineExceeded names a server that is not there.
        """
        cancel = Cancel() if cancel is None else cancel
        with Watch(cancel.signal):
            _cdist.dist_coordinator_join(self._native(), wait_limit(timeout), cancel._native())

    def done(self) -> bool:
        """Whether all closures have ended; raises what one failed with, once."""
        return bool(_cdist.dist_coordinator_done(self._native()))

    def create_per_worker(self, name: str, function: str, *arguments: Any) -> None:
        """Has each worker run `function` once, and keep what it returns for its closures: Closure.per_worker(name).

        That may be any object: it is not sent. A worker that returns runs it again.
        """
        handle, given = self._native(), arguments_of(arguments)
        native = _cdist.dist_coordinator_create_per_worker
        interruptible(lambda: native(handle, name, function, values.handle_of(given)))

    def query(self) -> CoordinatorStats:
        """What the coordinator does now, in numbers."""
        record = _cdist.dist_coordinator_stats()
        _cdist.dist_coordinator_query(self._native(), record)
        return CoordinatorStats(*(getattr(record, name) for name in CoordinatorStats._fields))

    def write_trace(self) -> str:
        """The latest closures as a trace for Perfetto or chrome://tracing, a row for each worker: JSON."""
        text = _cdist.Text()
        text.write_coordinator_trace(self._native())
        return str(text.text())

    # ---- its end ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the coordinator, once all Coordinators of its strategy are closed.

        Closures that have no end are Cancelled, and the servers end. Remote values stay readable.
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

# SPDX-License-Identifier: Apache-2.0
"""Preemption: save a checkpoint and stop before a machine is taken away."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, Sequence

from . import _cdist
from ._arguments import checked
from ._exit import finalizing
from ._native import Native
from ._option_fields import PreemptionOptions, RunOptions, preemption_options
from .cancel import Cancel, handle_of
from .checkpoint import Path
from .constants import PreemptionState
from .errors import FailedPrecondition
from .variables import Variable

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .replica import Replica
    from .strategy import Strategy


@checked
class PreemptionHandler(Native):
    """Saves a checkpoint before a worker is preempted; Strategy.preemption_handler() creates it.

        while handler.total_run_calls < steps:
            handler.run(train_step)  # Cancelled: all is saved, end the program

    All workers must make the same calls of these methods, except notify(). They save between the same two runs.
    """

    def __init__(
        self,
        strategy: Strategy,
        path: Optional[Path] = None,
        variables: Sequence[Variable] = (),
        **options: Unpack[PreemptionOptions],
    ) -> None:
        self._handle = 0
        self._strategy = strategy
        self._variables = list(variables)
        handle = strategy._native("Strategy.preemption_handler")
        given = [variable._native() for variable in self._variables]
        where = None if path is None else os.fspath(path)
        native = preemption_options(path=where, variables=given, **options)
        with strategy._waiting():
            self._handle = _cdist.dist_preemption_handler_create(handle, native)
        strategy._children.add(self)

    def notify(self) -> None:
        """Announces that this worker will be preempted.

        It can be called on any thread, in a signal handler, and repeatedly.
        """
        _cdist.dist_preemption_notify(self._native())

    def run(self, fn: Callable[[Replica], Any], **options: Unpack[RunOptions]) -> list[Any]:
        """Runs one step of the loop: calls save_if_preempted(), Strategy.run() and, if that succeeds, count_run().

        Raises Cancelled if the job is preempted and its checkpoint is saved. Nothing was run then: end the program.
        """
        if self.save_if_preempted(cancel=options.get("cancel")) == PreemptionState.OVER:
            # libdist raises the error for a preempted job, and runs nothing.
            _cdist.dist_preemption_run(self._native(), 0, None)
        results = self._strategy.run(fn, **options)
        self.count_run()
        return results

    def save_if_preempted(self, *, cancel: Optional[Cancel] = None) -> PreemptionState:
        """Saves the checkpoint if the job is preempted, and returns the state, which is the same on all workers.

        It saves once when the notice arrives and once when the grace period ends. Without a path, the program must save
        when the state changes.

        cancel: cancels the wait for worker 0; may be None.
        """
        handle = self._native()
        self._strategy._native("PreemptionHandler.save_if_preempted")
        with self._strategy._waiting():
            return PreemptionState(_cdist.dist_preemption_save_if_preempted(handle, handle_of(cancel)))

    @contextmanager
    def watch_preemption_scope(self) -> Iterator[PreemptionHandler]:
        """Returns a context manager that calls save_if_preempted() at its end, unless an exception leaves it."""
        yield self
        self.save_if_preempted()

    def count_run(self) -> None:
        """Counts a run that was not made with run(), but for example with Strategy.run_values()."""
        _cdist.dist_preemption_count_run(self._native())

    @property
    def total_run_calls(self) -> int:
        """The number of counted runs, including those of earlier program starts that the checkpoint recorded."""
        return int(_cdist.dist_preemption_total_run_calls(self._native()))

    def close(self) -> None:
        """Closes the handler. Closing the strategy does this too."""
        self._end(_cdist.dist_preemption_handler_destroy)

    def __enter__(self) -> PreemptionHandler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, _destroy: Any = _cdist.dist_preemption_handler_destroy, _late: Any = finalizing) -> None:
        if self._handle and not _late():
            _destroy(self._handle)

    def _native(self) -> int:
        if not self._handle:
            raise FailedPrecondition("the preemption handler is closed")
        return self._handle

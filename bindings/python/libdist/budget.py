# SPDX-License-Identifier: Apache-2.0
"""Budgets, which limit the threads of several strategies, and executors, whose threads help with loops."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Executor, Future
from typing import Any, Optional

from . import _cdist
from ._arguments import checked, wrong
from ._callbacks import Kept
from ._native import Native
from .errors import FailedPrecondition


class Held:
    """The native budget. It is destroyed when the Budget is closed and no call uses it any more."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __del__(self, _destroy: Any = _cdist.dist_budget_destroy) -> None:
        _destroy(self.handle)


@checked
class Budget(Native):
    """Limits how many threads several strategies use at the same time.

        with libdist.Budget(8) as budget:
            small, large = libdist.Strategy(2, budget=budget), libdist.Strategy(8, budget=budget)

    A run acquires as many threads as it has replicas, but at most the number of CPUs available to its strategy. A
    request acquires one. A call that needs more threads than the budget has acquires all of them. If too few are free,
    the call waits until its own deadline expires or it is cancelled. All strategies share one queue, in order of
    arrival.

    A call from inside a function that libdist has called acquires no threads. Such a function must not wait, with your
    own locks or condition variables, for a run or request that another thread has started with a budget.
    """

    def __init__(self, threads: int) -> None:
        self._held: Optional[Held] = None
        self._held = Held(_cdist.dist_budget_create(None, threads))

    def close(self) -> None:
        """Closes the budget. Strategies that use it keep it."""
        self._held = None

    def __enter__(self) -> Budget:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<libdist.Budget>" if self._held else "<libdist.Budget, closed>"

    def _hold(self, name: str) -> Held:
        held = self._held
        if held is None:
            raise FailedPrecondition(f"{name}(): the budget is closed")
        return held


class _Task:
    """One helper's part of a loop: a C function, which is either called once or refused."""

    __slots__ = ("_function", "_data", "_taken")

    def __init__(self, function: int, data: int) -> None:
        self._function, self._data = function, data
        self._taken = threading.Lock()  # acquired once and never released

    def __call__(self) -> None:
        if self.take():
            _cdist.run_task(self._function, self._data)  # without the GIL

    def take(self) -> bool:
        """Claims the task. Returns whether it had not been called or refused before."""
        return self._taken.acquire(blocking=False)

    def __reduce__(self) -> Any:
        raise TypeError("a task of libdist's stays in its process: the executor has to be one of threads")

    def dropped(self, _: Future[None]) -> None:
        """Called when the future is done. If the executor has dropped the task, a new thread calls it.

        The executor may hold its locks here, and the C function must not run under them.
        """
        if not self._taken.locked():
            try:
                threading.Thread(target=self, name="libdist-task", daemon=True).start()
            except RuntimeError:  # no thread can be created, and the task's memory is not freed
                pass


class Loops:
    """The executor of a strategy, which libdist calls when a loop starts."""

    def __init__(self, executor: Executor, max_workers: Optional[int]) -> None:
        self.executor = executor
        self.max_workers = max(1, len(os.sched_getaffinity(0)) - 1) if max_workers is None else max_workers

    def on_execute(self, function: int, data: int) -> int:
        task = _Task(function, data)
        try:
            self.executor.submit(task).add_done_callback(task.dropped)
        except BaseException:  # no caller could receive it; the loop runs without this helper
            return int(task.take())  # 0 if the executor has called the task nevertheless
        return 0


def set_executor(native: Any, executor: Optional[Executor], max_workers: Optional[int], kept: Kept) -> None:
    """Sets the `executor` of a strategy."""
    if executor is None:
        if max_workers is not None:
            wrong("Strategy", "max_workers is given without executor")
        return
    loops = Loops(executor, max_workers)
    native.set_executor(kept.token(loops), loops.max_workers)

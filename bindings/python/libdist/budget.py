# SPDX-License-Identifier: Apache-2.0
"""Budget: how many threads of several strategies work at the same time. And executors, whose threads share loops."""

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
    """The native budget: it ends when the Budget is closed and nobody makes a strategy with it any more."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __del__(self, _destroy: Any = _cdist.dist_budget_destroy) -> None:
        _destroy(self.handle)


@checked
class Budget(Native):
    """A number of threads that strategies share: Strategy(budget=...).

    with libdist.Budget(8) as budget:
        small, large = libdist.Strategy(2, budget=budget), libdist.Strategy(8, budget=budget)

    A run takes as many as it has replicas that work side by side, or all where that is more; a request takes one. Where too few
    are free they wait, first come, first served, whatever their strategy, within their own timeout. What begins inside a
    function that libdist has called takes nothing. A function must not wait, by a lock of the program's, for a run or request
    that somebody else has begun.
    """

    def __init__(self, threads: int) -> None:
        self._held: Optional[Held] = None
        self._held = Held(_cdist.dist_budget_create(None, threads))

    def close(self) -> None:
        """Gives the budget up; strategies that have it keep it."""
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
    """A thread's part in a loop: C's function, which is called once, or refused."""

    __slots__ = ("_function", "_data", "_taken")

    def __init__(self, function: int, data: int) -> None:
        self._function, self._data = function, data
        self._taken = threading.Lock()  # taken for good

    def __call__(self) -> None:
        if self.take():
            _cdist.run_task(self._function, self._data)  # without the GIL

    def take(self) -> bool:
        """Whether nobody has called it, or refused it, before."""
        return self._taken.acquire(blocking=False)

    def __reduce__(self) -> Any:
        raise TypeError("a task of libdist's stays in its process: the executor has to be one of threads")

    def dropped(self, _: Future[None]) -> None:
        """The future is done. Where that is without a call, C gets it now, on a thread that holds no lock of the executor's."""
        if not self._taken.locked():
            try:
                threading.Thread(target=self, name="libdist-task", daemon=True).start()
            except RuntimeError:  # no more threads: the task's memory is lost
                pass


class Loops:
    """What is called when a loop begins: an executor, for libdist."""

    def __init__(self, executor: Executor, max_workers: Optional[int]) -> None:
        self.executor = executor
        self.max_workers = max(1, len(os.sched_getaffinity(0)) - 1) if max_workers is None else max_workers

    def on_execute(self, function: int, data: int) -> int:
        task = _Task(function, data)
        try:
            self.executor.submit(task).add_done_callback(task.dropped)
        except BaseException:  # nobody is there to be told: the loop does without
            return int(task.take())  # unless it has been called all the same
        return 0


def set_executor(native: Any, executor: Optional[Executor], max_workers: Optional[int], kept: Kept) -> None:
    """`executor` of a strategy."""
    if executor is None:
        if max_workers is not None:
            wrong("Strategy", "max_workers is given without executor")
        return
    loops = Loops(executor, max_workers)
    native.set_executor(kept.token(loops), loops.max_workers)

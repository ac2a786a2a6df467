# SPDX-License-Identifier: Apache-2.0
"""Work: handles of asynchronous and planned collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from . import _cdist
from ._arguments import Wait, checked, wait_limit
from ._collectives import Collectives, Issue
from ._exit import finalizing
from ._native import Native
from .errors import FailedPrecondition

if TYPE_CHECKING:
    from .replica import Replica


@checked
class Work(Native):
    """A collective that `replica.begin` started or `replica.plan` planned. It keeps its tensors alive.

        work = replica.begin.all_reduce(libdist.ReduceOp.SUM, gradient, out=gradient)
        ...                     # compute something else
        work.result()

    Only the replica that created it may use its methods. Do not use the tensors until the work has completed. If a
    replica function returns while works are in progress, libdist completes them before the replica ends.
    """

    def __init__(self, replica: Replica, issue: Issue) -> None:
        self._handle = 0
        options = issue.some_options()
        options.begin_work()
        # Without NumPy's check of the buffers: they belong to libdist until the work has completed.
        issue.call(replica._handle)
        self._handle = int(options.work())
        self._issue = issue
        self._strategy = replica.strategy
        self._strategy._children.add(self)

    def start(self) -> None:
        """Starts a round of planned work. All tensors that are not ready yet become ready."""
        _cdist.dist_work_start(self._native("Work.start"))

    def ready(self, tensor: int) -> None:
        """Declares one tensor of the planned list ready, given by its index. The first call of a round starts it."""
        _cdist.dist_work_ready(self._native("Work.ready"), tensor)

    def done(self) -> bool:
        """Returns whether the work has completed, or raises its error. If there is a part of the work to do, does it.
        """
        return bool(_cdist.dist_work_test(self._native("Work.done")))

    def result(self, timeout: Wait = None) -> Any:
        """Waits until the work has completed, and returns the results or raises its error.

        timeout: seconds; 0 = do not wait; None = no limit. If it expires, raises DeadlineExceeded, and the work
        continues.
        """
        _cdist.dist_work_wait(self._native("Work.result"), wait_limit(timeout))
        self._check_operator()
        return self._issue.result

    @staticmethod
    def wait_any(works: Sequence[Work], timeout: Wait = None) -> int:
        """Waits until one of the works has completed, and returns its index.

        If that work has failed, raises its error; done() shows which one it was.

        timeout: seconds; 0 = do not wait; None = no limit.
        """
        handles = [work._native("Work.wait_any") for work in works]
        index: int = _cdist.dist_work_wait_any(handles, len(handles), wait_limit(timeout))
        return index

    def cancel(self) -> None:
        """Cancels the work, and with it all rounds of its group in this run, on every member."""
        _cdist.dist_work_cancel(self._native("Work.cancel"))

    def close(self) -> None:
        """Closes the work. If it is in progress, waits until it has completed."""
        if self._handle:
            self._end(_cdist.dist_work_destroy)
            if self._issue.operator is not None:
                self._issue.operator.end()

    def __enter__(self) -> Work:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, _late: Any = finalizing) -> None:
        if self._handle and self._strategy._handle and not _late():  # otherwise the strategy has closed it
            self.close()

    def _native(self, name: str) -> int:
        if not self._handle:
            raise FailedPrecondition(f"{name}(): the work is closed")
        return self._handle

    def _check_operator(self) -> None:
        operator = self._issue.operator
        if operator is not None and operator.failures.all:
            operator.failures.raise_for(None)


class _Later(Collectives[Work]):
    """The collectives of Begin and Plan, which return a Work."""

    _planned = False

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def _call(self, issue: Issue) -> Work:
        self._replica._check(issue.name)
        if self._planned:
            issue.some_options().planned = 1
        return Work(self._replica, issue)

    def _members(self, options: Any) -> int:
        return self._replica._members(options)

    def _is_root(self, root: int, options: Any) -> bool:
        return self._replica._is_root(root, options)


class Begin(_Later):
    """The collectives in asynchronous form: `replica.begin`. Each call returns a Work at once."""


class Plan(_Later):
    """The collectives in planned form: `replica.plan`. Work.start() and Work.ready() start a planned collective."""

    _planned = True

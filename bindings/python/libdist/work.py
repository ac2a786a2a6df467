# SPDX-License-Identifier: Apache-2.0
"""Work: a collective that is under way, or planned."""

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
    """A collective that replica.begin began or replica.plan planned; it keeps its tensors.

    Its methods are for the replica that made it. What a function leaves under way is ended before its replica is.
    """

    def __init__(self, replica: Replica, issue: Issue) -> None:
        self._handle = 0
        options = issue.some_options()
        options.begin_work()
        # Without a check of the buffers by NumPy: they are libdist's until the work has ended.
        issue.call(replica._handle)
        self._handle = int(options.work())
        self._issue = issue
        self._strategy = replica.strategy
        self._strategy._children.add(self)

    def start(self) -> None:
        """Begins a round of planned work: all tensors that are not ready yet are from now on."""
        _cdist.dist_work_start(self._native("Work.start"))

    def ready(self, tensor: int) -> None:
        """One tensor of the planned list is ready; the first of a round begins it."""
        _cdist.dist_work_ready(self._native("Work.ready"), tensor)

    def done(self) -> bool:
        """Whether it has ended; raises how it failed. Does a part of it where there is one to do."""
        return bool(_cdist.dist_work_test(self._native("Work.done")))

    def result(self, timeout: Wait = None) -> Any:
        """Waits until it has completed, and returns the results or raises its error. If the timeout expires first, raises
        DeadlineExceeded, and the work continues."""
        _cdist.dist_work_wait(self._native("Work.result"), wait_limit(timeout))
        self._check_operator()
        return self._issue.result

    @staticmethod
    def wait_any(works: Sequence[Work], timeout: Wait = None) -> int:
        """Waits until one of the works has ended: its index. If that failed, raises how; done() says which."""
        handles = [work._native("Work.wait_any") for work in works]
        index: int = _cdist.dist_work_wait_any(handles, len(handles), wait_limit(timeout))
        return index

    def cancel(self) -> None:
        """Ends it, and all rounds of its group in this run, on every member."""
        _cdist.dist_work_cancel(self._native("Work.cancel"))

    def close(self) -> None:
        """Gives up the work, after it has ended."""
        if self._handle:
            self._end(_cdist.dist_work_destroy)
            if self._issue.operator is not None:
                self._issue.operator.end()

    def __enter__(self) -> Work:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, _late: Any = finalizing) -> None:
        if self._handle and self._strategy._handle and not _late():  # the strategy's end has closed it, otherwise
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
    """Collectives that give Work."""

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
    """replica.begin: collectives that are under way when the call returns."""


class Plan(_Later):
    """replica.plan: collectives that are planned once and begun any number of times: Work.start(), Work.ready()."""

    _planned = True

# SPDX-License-Identifier: Apache-2.0
"""The state of one call of Strategy.run(), run_values() or Replica.run_on_devices() while functions are running."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _calls, _cdist, values
from ._context import Context
from .replica import Replica

if TYPE_CHECKING:
    from .strategy import Strategy


class _Thread:
    """An object that is freed when its thread ends."""

    __slots__ = ("__weakref__",)


class _Current(threading.local):
    """The replicas whose functions this thread is in, the innermost last, and the thread's default strategy."""

    def __init__(self) -> None:
        self.replicas: list[Replica] = []
        self.thread = _Thread()
        self.default: Optional[Strategy] = None


current = _Current()


class Run:
    """The function of one run, and the results and exceptions of its replicas."""

    def __init__(self, strategy: Strategy, fn: Callable[..., Any], num_devices: Optional[int] = None) -> None:
        """num_devices: number of logical devices, for a run on devices."""
        self.strategy = strategy
        self.fn = fn
        self.context = Context()
        self.token = _calls.keep(self)
        self.failures = _calls.Failures(of_devices=num_devices is not None)
        ids = strategy.local_replicas if num_devices is None else range(num_devices)
        self.first = ids.start
        self.results: list[Any] = [None] * len(ids)
        self.seen = values.Seen()
        self.shared = values.Shared()
        self._lock = threading.Lock()
        self._of_devices = num_devices is not None
        self._begun = 0
        self._left = 0
        self._given_up = False

    def on_replica(self, handle: int) -> int:
        replica = self._begin(handle)
        try:
            self.results[replica.id - self.first] = self.context.call(self.fn, replica)
            return 0
        except BaseException as error:
            return self.failures.add(error, replica.id)
        finally:
            self._leave(replica)

    def on_values(self, handle: int, args: int, kwargs: int) -> int:
        replica = self._begin(handle)
        try:
            positional = values.borrowed(args, self.seen) or ()
            named = values.borrowed(kwargs, self.seen) or {}
            result = self.context.call(self.fn, replica, *positional, **named)
            return values.hand_over(self.strategy._handle, result, self.seen)
        except BaseException as error:
            return -self.failures.add(error, replica.id)
        finally:
            self._leave(replica)

    def end(self, abandoned: bool) -> None:
        """Call this when the native call has returned. After a timeout, the last function to return ends the run.

        A replica that starts even later finds no run and is told that the run was abandoned; see _given_up() in
        _calls.py.
        """
        with self._lock:
            self._given_up = abandoned
            over = not abandoned or self._left == self._begun
        if over:
            _calls.release(self.token)

    def _begin(self, handle: int) -> Replica:
        with self._lock:
            if self._begun == 0 and not self._of_devices:
                self.first = self._first_replica(handle)
            self._begun += 1
        replica = Replica._of(handle, self.strategy, self.shared)
        current.replicas.append(replica)
        return replica

    def _first_replica(self, handle: int) -> int:
        """Returns the id of this worker's first replica, which can change when a run starts (Reform.AT_NEXT_RUN)."""
        if not self.strategy._has_peers:
            return self.first
        place = _cdist.dist_strategy_properties()
        _cdist.dist_strategy_query(_cdist.dist_replica_strategy(handle), place)
        return int(place.first_replica)

    def _leave(self, replica: Replica) -> None:
        replica._over = True
        current.replicas.pop()
        with self._lock:
            self._left += 1
            last = self._given_up and self._left == self._begun
        if last:
            _calls.release(self.token)


def current_replica(handle: int) -> Optional[Replica]:
    """Returns the replica with this handle if this thread is in its function; otherwise None."""
    for replica in reversed(current.replicas):
        if replica._handle == handle:
            return replica
    return None

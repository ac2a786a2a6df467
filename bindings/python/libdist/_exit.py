# SPDX-License-Identifier: Apache-2.0
"""The interpreter's exit: cancels calls in progress, waits for them for a bounded time, and closes what it can.

Threads that are still inside a Python function afterwards block when they next need the GIL, and the process exits
without them: see "Threads and the interpreter's end" in dist_python.i.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
import weakref
from typing import Any

from . import _cdist

PATIENCE = 5.0  # seconds that the exit waits for functions to return, in total

COORDINATOR, SERVER, RPC_SERVER, RPC_CLIENT, ITERATOR = range(5)  # destroyed in this order; as in dist_python.i

finalizing = sys.is_finalizing
"""Returns whether the interpreter exits, so that a __del__() could wait for threads that are blocked."""

_owners: list[weakref.WeakSet[Any]] = [weakref.WeakSet() for _ in range(5)]


def close_at_exit(owner: Any, kind: int) -> None:
    """Destroys owner._handle at exit, unless it is 0 by then."""
    _owners[kind].add(owner)


def _nanoseconds_until(deadline: float) -> int:
    """Returns the time until the deadline in nanoseconds; 0 if it has passed."""
    return max(0, int((deadline - time.monotonic()) * 1e9))


def _quiet() -> bool:
    """Returns whether no thread of the program is inside a Python function."""
    own = [thread.ident for thread in threading.enumerate() if thread.name.startswith("libdist-")]
    return sys._current_frames().keys() <= {threading.get_ident(), *own}


@atexit.register
def _exit() -> None:
    deadline = time.monotonic() + PATIENCE
    try:
        _cancel_all(deadline)
        quiet = _quiet()
        for kind, owners in enumerate(_owners):
            # Otherwise another thread may be about to use an object. Peers wait for the end of these three kinds.
            if quiet or kind in (COORDINATOR, SERVER, RPC_SERVER):
                _destroy(kind, list(owners), deadline)
        _shut_down_all(deadline, quiet)
    finally:
        _cdist.finalize_here()


def _destroy(kind: int, owners: list[Any], deadline: float) -> None:
    handles = []
    for owner in owners:
        handle, owner._handle = owner._handle, 0
        if handle:
            handles.append(handle)
    if handles:
        _cdist.destroy_within(kind, handles, len(handles), _nanoseconds_until(deadline))


def _cancel_all(deadline: float) -> None:
    """Cancels runs and requests, and waits for them."""
    from . import _calls
    from ._arrivals import take_here
    from ._runs import Run
    from .errors import DistError
    from .serve import Request
    from .strategy import _strategies

    begun = [token for token, target in list(_calls._targets.items()) if isinstance(target, (Run, Request))]
    for strategy in list(_strategies.values()):
        try:
            strategy._cancel_quietly()
            if strategy._handle:
                _cdist.dist_instances_close(strategy._handle, 0)
        except DistError:  # raised if requests were cancelled
            pass
    while time.monotonic() < deadline and any(map(_calls.known, begun)):
        if not take_here():
            time.sleep(0.001)


def _shut_down_all(deadline: float, quiet: bool) -> None:
    """Shuts down all strategies; if other threads still use Python, only those with peers, which wait for the shutdown.
    """
    from .errors import DeadlineExceeded, DistError
    from .strategy import _strategies

    for strategy in list(_strategies.values()):
        if not strategy._handle or not (quiet or strategy._has_peers):
            continue
        try:
            _cdist.dist_strategy_shutdown(strategy._handle, _nanoseconds_until(deadline))
        except DeadlineExceeded:
            strategy._kept.tokens = []  # as in Strategy.shutdown()
        except DistError:  # for example, because this thread is still in the scope of the strategy
            continue
        strategy._gone()

# SPDX-License-Identifier: Apache-2.0
"""The queues in which requests and items arrive when they have completed, and the threads that take them out."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from typing import Any, Optional

from . import _calls, _cdist
from ._exit import finalizing


class Queue:
    """A dist_completions, with a thread that takes requests out of it; begin() starts the thread."""

    taker = 0  # ident of the thread started by begin(); 0 = no such thread

    handle = 0

    def __init__(self) -> None:
        self.handle = _cdist.dist_completions_create(None)

    def begin(self) -> Queue:
        threading.Thread(target=self._take_all, name="libdist-completions", daemon=True).start()
        return self

    def _take_all(self) -> None:
        self.taker = threading.get_ident()
        while True:
            self.take(-1)

    def take(self, timeout_ns: int) -> bool:
        """Finishes the request that completed first. Returns whether there was one within the timeout."""
        work = _cdist.dist_completions_next(self.handle, timeout_ns)
        if work:
            target = _calls._targets.get(_cdist.dist_request_user_data(work))
            if target is not None:
                target._arrived(work)
            else:  # another arrival of an item that has been finished
                _cdist.dist_request_destroy(work)
        return bool(work)

    def __del__(self, _destroy: Any = _cdist.dist_completions_destroy, _late: Any = finalizing) -> None:
        if self.handle and not _late():
            _destroy(self.handle)


class LoopQueue(Queue):
    """The queue of an asyncio loop, which watches its file descriptor. Only the loop refers to the queue."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        loop.add_reader(_cdist.dist_completions_descriptor(self.handle), self._readable)

    def _readable(self) -> None:
        while self.take(0):
            pass


_lock = threading.Lock()
taken = threading.Condition()  # notified when a request has arrived
_threads: Optional[Queue] = None
_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopQueue] = weakref.WeakKeyDictionary()


def running_loop() -> Optional[asyncio.AbstractEventLoop]:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def cannot_take(loop: asyncio.AbstractEventLoop) -> bool:
    """Returns whether the loop is that of the calling thread, which is busy, or is not running."""
    return loop is running_loop() or not loop.is_running()


def take_here() -> bool:
    """Takes out what no other thread or loop would take out now. Returns whether there was anything."""
    with _lock:
        queues: list[Queue] = [queue for loop, queue in _loops.items() if cannot_take(loop)]
        if _threads is not None and _threads.taker == threading.get_ident():
            queues.append(_threads)
    return any([queue.take(0) for queue in queues])


def queue_of(loop: Optional[asyncio.AbstractEventLoop]) -> Queue:
    global _threads
    with _lock:
        if loop is not None and loop not in _loops:
            try:
                _loops[loop] = LoopQueue(loop)
            except NotImplementedError:  # this loop does not support file descriptors
                loop = None
        if loop is not None:
            return _loops[loop]
        if _threads is None:
            _threads = Queue().begin()
        return _threads


def _forget() -> None:
    """Resets this module in a forked child, which has no threads and does not run the loops of its parent."""
    global _threads, _loops, _lock
    _threads, _loops, _lock = None, weakref.WeakKeyDictionary(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

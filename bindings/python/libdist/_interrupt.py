# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C: the main thread may wait inside libdist, where Python cannot raise KeyboardInterrupt.

Python's C handler writes each signal's number to a file descriptor at once, also while the main thread is in C. A
thread of this module reads it and cancels the run; the main thread comes back into Python, which raises as always. No
signal handler is installed, and whoever has a handler or a wake-up descriptor of their own keeps it.

A call that nothing cancels is made by another thread of this module, for which the main thread waits in Python.
"""

from __future__ import annotations

import os
import queue
import select
import signal
import socket
import threading
from typing import Any, Callable, Optional


class _Watcher:
    """The thread that reads signal numbers, and what it is to call."""

    def __init__(self) -> None:
        self.reader, self.writer = socket.socketpair()
        self.reader.setblocking(False)
        self.writer.setblocking(False)
        self.lock = threading.Lock()
        self.cancel: Optional[Callable[[], None]] = None
        self.other = -1
        self.descriptor = self.writer.fileno()
        threading.Thread(target=self._watch, name="libdist-interrupt", daemon=True).start()

    def take(self) -> bytes:
        """The numbers that have come, passed on to who watched before; under the lock."""
        try:
            numbers = self.reader.recv(64)
        except BlockingIOError:
            return b""
        if self.other >= 0:
            os.write(self.other, numbers)
        return numbers

    def _watch(self) -> None:
        while True:
            select.select([self.reader], [], [])
            with self.lock:  # read only here and under it: numbers of one run are never taken for the next one's
                if signal.SIGINT in self.take() and self.cancel is not None:
                    self.cancel()


_watcher: Optional[_Watcher] = None
_main = threading.main_thread().ident


def _forget() -> None:
    """A forked child has the descriptors, but not the threads."""
    global _watcher, _caller
    _watcher = _caller = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _may_be_interrupted() -> bool:
    """Whether Ctrl-C raises KeyboardInterrupt on this thread."""
    return threading.get_ident() == _main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Watch:
    """While it is entered on the main thread, Ctrl-C calls `cancel`; elsewhere nothing happens."""

    __slots__ = ("_cancel", "_watcher", "_before")

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel
        self._watcher: Optional[_Watcher] = None
        self._before: tuple[int, int, Optional[Callable[[], None]]] = (-1, -1, None)

    def __enter__(self) -> Watch:
        global _watcher
        if not _may_be_interrupted():
            return self
        if _watcher is None:
            _watcher = _Watcher()
        watcher = _watcher
        with watcher.lock:
            watcher.take()
            try:
                descriptor = signal.set_wakeup_fd(watcher.descriptor, warn_on_full_buffer=False)
            except ValueError:  # of a sub-interpreter
                return self
            self._before = (descriptor, watcher.other, watcher.cancel)
            watcher.cancel = self._cancel
            if descriptor != watcher.descriptor:
                watcher.other = descriptor
        self._watcher = watcher
        return self

    def __exit__(self, *_: object) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher is None:
            return
        descriptor, other, cancel = self._before
        with watcher.lock:
            signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
            watcher.cancel = cancel
            if watcher.other >= 0:
                watcher.take()
            watcher.other = other


class _Call:
    """One call, and what came of it."""

    def __init__(self, fn: Callable[[], Any]) -> None:
        self.fn = fn
        self.result: Any = None
        self.error: Optional[BaseException] = None
        self.over = threading.Lock()
        self.over.acquire()

    def make(self) -> None:
        """By the thread that makes calls."""
        try:
            self.result = self.fn()
        except BaseException as error:
            self.error = error
        self.over.release()

    def take(self) -> Any:
        """What it gave, or raises what it raised."""
        error, self.error = self.error, None
        if error is None:
            return self.result
        try:
            raise error
        finally:
            del error  # whose traceback holds this frame


class _Caller:
    """The thread that makes the main thread's calls, one after another."""

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[Optional[_Call]] = queue.SimpleQueue()
        threading.Thread(target=self._make, name="libdist-call", daemon=True).start()

    def _make(self) -> None:
        while (call := self.calls.get()) is not None:
            call.make()
            del call  # with what it gave


_caller: Optional[_Caller] = None


def interruptible(fn: Callable[[], Any]) -> Any:
    """fn(), whose native call has nothing that would cancel it. Ctrl-C leaves it behind: what it gives is forgotten."""
    global _caller
    if not _may_be_interrupted():
        return fn()
    caller, _caller = _caller or _Caller(), None  # nobody has it, whatever happens here
    call = _Call(fn)
    caller.calls.put(call)
    try:
        call.over.acquire()
    except BaseException:
        caller.calls.put(None)
        raise
    _caller = caller
    return call.take()

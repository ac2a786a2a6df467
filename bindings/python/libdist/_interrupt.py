# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while the main thread waits inside libdist, where Python cannot raise KeyboardInterrupt.

Python's C signal handler writes the number of each signal to a file descriptor immediately, even while the main thread
is in C. A thread of this module reads the number and cancels the run. The main thread then returns to Python, which
raises KeyboardInterrupt as usual. This module installs no signal handler, and it restores and serves a wake-up
descriptor that the program has set.

If a call has no way to be cancelled, another thread of this module makes it, and the main thread waits in Python.
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
    """The thread that reads signal numbers and calls the current cancel function."""

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
        """Reads the signal numbers and forwards them to the program's wake-up descriptor. The caller holds the lock."""
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
            with self.lock:  # Only read under the lock, so that no run receives the signal of an earlier one.
                if signal.SIGINT in self.take() and self.cancel is not None:
                    self.cancel()


_watcher: Optional[_Watcher] = None
_main = threading.main_thread().ident


def _forget() -> None:
    """Resets this module in a forked child, which has the descriptors but not the threads."""
    global _watcher, _caller
    _watcher = _caller = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _may_be_interrupted() -> bool:
    """Returns whether Ctrl-C raises KeyboardInterrupt on this thread."""
    return threading.get_ident() == _main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Watch:
    """While it is entered on the main thread, Ctrl-C calls `cancel`. It has no effect on other threads."""

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
            except ValueError:  # in a sub-interpreter
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
    """A call, and its result or exception."""

    def __init__(self, fn: Callable[[], Any]) -> None:
        self.fn = fn
        self.result: Any = None
        self.error: Optional[BaseException] = None
        self.over = threading.Lock()
        self.over.acquire()

    def make(self) -> None:
        """Makes the call, on the thread of _Caller."""
        try:
            self.result = self.fn()
        except BaseException as error:
            self.error = error
        self.over.release()

    def take(self) -> Any:
        """Returns the result of the call, or raises its exception."""
        error, self.error = self.error, None
        if error is None:
            return self.result
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame


class _Caller:
    """The thread that makes calls for the main thread, one after another."""

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[Optional[_Call]] = queue.SimpleQueue()
        threading.Thread(target=self._make, name="libdist-call", daemon=True).start()

    def _make(self) -> None:
        while (call := self.calls.get()) is not None:
            call.make()
            del call  # and its result


_caller: Optional[_Caller] = None


def interruptible(fn: Callable[[], Any]) -> Any:
    """Calls fn(), whose native call cannot be cancelled. After Ctrl-C, the call continues and its result is discarded.
    """
    global _caller
    if not _may_be_interrupted():
        return fn()
    caller, _caller = _caller or _Caller(), None  # so that no other call uses it meanwhile, even after an exception
    call = _Call(fn)
    caller.calls.put(call)
    try:
        call.over.acquire()
    except BaseException:
        caller.calls.put(None)
        raise
    _caller = caller
    return call.take()

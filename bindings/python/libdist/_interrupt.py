# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C during a run: the main thread may wait inside libdist, where Python cannot raise KeyboardInterrupt.

Python's C handler writes each signal's number to a file descriptor at once, also while the main thread is in C. A
thread of this module reads it and cancels the run; the main thread comes back into Python, which raises as always. No
signal handler is installed, and whoever has a handler or a wake-up descriptor of their own keeps it.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from typing import Callable, Optional


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
    """A forked child has the descriptors, but not the thread."""
    global _watcher
    _watcher = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class Watch:
    """While it is entered on the main thread, Ctrl-C calls `cancel`; elsewhere nothing happens."""

    __slots__ = ("_cancel", "_watcher", "_before")

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel
        self._watcher: Optional[_Watcher] = None
        self._before: tuple[int, int, Optional[Callable[[], None]]] = (-1, -1, None)

    def __enter__(self) -> Watch:
        global _watcher
        if threading.get_ident() != _main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
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

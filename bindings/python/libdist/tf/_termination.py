# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.experimental.TerminationConfig, and how this worker learns that its machine will be taken away."""

from __future__ import annotations

import logging
import os
import signal
import threading
import weakref
from types import FrameType
from typing import Annotated, Any, Callable, Optional

import libdist
from libdist._arguments import checked, seconds

_log = logging.getLogger("libdist.tf")

EVERY_SECONDS = 1.0
"""Seconds between two calls of a termination_watcher_fn, as in TensorFlow."""

_GRACE = "a number of seconds from 0 to 9e9 or None"  # 9e9 s fit into 64 bits of nanoseconds
Grace = Annotated[Optional[float], seconds(lambda s: 0 <= s <= 9e9, _GRACE)]


@checked
class TerminationConfig:
    """How a PreemptionCheckpointHandler learns of a preemption, how it saves, and how the program ends.

    No cloud platform is recognized. By default, the notice is SIGTERM, CheckpointManager.save() saves, there is no
    grace period, and the handler raises libdist.Cancelled.
    """

    def __init__(
        self,
        termination_watcher_fn: Optional[Callable[[], Any]] = None,
        exit_fn: Optional[Callable[[], Any]] = None,
        grace_period: Grace = None,
        save_fn: Optional[Callable[..., Any]] = None,
    ) -> None:
        """termination_watcher_fn: returns whether a notice has arrived; None = SIGTERM.

        It is called every second on a thread of its own.

        exit_fn: called after the last save; None = the handler raises libdist.Cancelled.

        grace_period: seconds from the notice to the last save. Choose less than the machine has, by the time of a save
        and three runs. None = save once and end.

        save_fn: saves, with the arguments of save_checkpoint_if_preempted(); None = CheckpointManager.save().
        """
        self.termination_watcher_fn = termination_watcher_fn
        """Returns whether a notice has arrived; None = SIGTERM."""
        self.exit_fn = exit_fn
        """Ends the program; None = the handler raises libdist.Cancelled."""
        self.grace_period = grace_period
        """Seconds from the notice to the last save; None = save once and end."""
        self.save_fn = save_fn
        """Saves the checkpoint; None = CheckpointManager.save()."""


class Notice:
    """Whether this worker will be preempted. Its handler refers to it; the source of the notice refers to it weakly."""

    __slots__ = ("given", "__weakref__")

    def __init__(self) -> None:
        self.given = False


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


# ---- SIGTERM ---------------------------------------------------------------------------------------------------------


class _Sigterm:
    """This module's handler of SIGTERM, installed while a notice needs it: Python has one handler per process.

    The signal handler does not acquire the lock.
    """

    def __init__(self) -> None:
        # Replaced, never changed, because the signal handler may run between any two steps of this thread.
        self.notices: tuple[weakref.ref[Notice], ...] = ()
        self.before: Any = signal.SIG_DFL
        self.process = -1
        self.lock = threading.RLock()  # reentrant, because garbage collection may acquire it

    def living(self) -> list[Notice]:
        """Returns the notices that exist. A forked child has the signal handler but no notices."""
        if os.getpid() != self.process:
            return []
        return [notice for notice in (reference() for reference in self.notices) if notice is not None]

    def forget(self, notice: Optional[Notice] = None) -> None:
        """Removes the notices that no longer exist, and the one that is passed."""
        if os.getpid() != self.process:
            return
        with self.lock:
            self.notices = tuple(one for one in self.notices if one() not in (None, notice))
            # On another thread, the next signal restores the previous handler.
            if not self.living() and _on_main_thread():
                self.give_back()

    def give_back(self) -> bool:
        """Restores the previous handler, on the main thread. Returns False if the program has replaced this one."""
        ours = signal.getsignal(signal.SIGTERM) == self.on_signal
        if ours:
            signal.signal(signal.SIGTERM, self.before)
        return ours

    def on_signal(self, number: int, frame: Optional[FrameType]) -> None:
        """Gives all notices. If none is left, restores the previous handler and passes the signal to it."""
        living = self.living()
        for notice in living:
            notice.given = True
        if living or not self.give_back():
            return
        if callable(self.before):
            self.before(number, frame)
        elif self.before == signal.SIG_DFL:
            signal.raise_signal(number)


_sigterm = _Sigterm()


def listen(notice: Notice) -> None:
    """Makes SIGTERM give the notice; on the main thread."""
    with _sigterm.lock:
        before = signal.getsignal(signal.SIGTERM)
        if before != _sigterm.on_signal:
            # None is a handler that was not installed by Python, which cannot restore it.
            _sigterm.before = signal.SIG_DFL if before is None else before
        _sigterm.process = os.getpid()
        _sigterm.notices = (*_sigterm.notices, weakref.ref(notice))
        signal.signal(signal.SIGTERM, _sigterm.on_signal)
    weakref.finalize(notice, _sigterm.forget).atexit = False


def ignore(notice: Notice) -> None:
    """Stops SIGTERM from giving the notice."""
    _sigterm.forget(notice)


# ---- functions of the program ----------------------------------------------------------------------------------------


class Watcher:
    """The thread that calls a termination_watcher_fn until it returns true, or until nothing refers to the notice."""

    def __init__(self, fn: Callable[[], Any], notice: Notice) -> None:
        self._over = threading.Event()
        weakref.finalize(notice, self._over.set)
        arguments = (fn, weakref.ref(notice), self._over)
        threading.Thread(target=_ask, args=arguments, name="libdist-termination", daemon=True).start()

    def stop(self) -> None:
        """Stops the calls. The function may still be running; nothing waits for it."""
        self._over.set()


def _ask(fn: Callable[[], Any], notice: weakref.ref[Notice], over: threading.Event) -> None:
    failed = False
    while not over.is_set():
        try:
            if fn():
                told = notice()
                if told is not None:
                    told.given = True
                return
            failed = False
        except BaseException as error:  # it may succeed the next time
            if not failed:
                _log.warning("the termination_watcher_fn failed, and is asked again: %r", error, exc_info=True)
            failed = True
        over.wait(EVERY_SECONDS)


def begin(config: TerminationConfig, notice: Notice) -> Optional[Watcher]:
    """Starts to watch for the notice."""
    if config.termination_watcher_fn is not None:
        return Watcher(config.termination_watcher_fn, notice)
    listen(notice)
    return None


def check_thread(config: TerminationConfig) -> None:
    """Raises InvalidArgument if begin() cannot work on this thread."""
    if config.termination_watcher_fn is None and not _on_main_thread():
        raise libdist.InvalidArgument(
            "PreemptionCheckpointHandler(): Python lets the main thread alone watch SIGTERM: make the handler there, or "
            "give it TerminationConfig(termination_watcher_fn=...), which says when the time has come"
        )

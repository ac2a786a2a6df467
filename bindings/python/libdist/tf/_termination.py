# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.experimental.TerminationConfig, and how this worker learns that it is about to lose its machine."""

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
"""How often a termination_watcher_fn is asked, as in TensorFlow."""

_GRACE = "a number of seconds from 0 to 9e9 or None"  # 9e9 are 64 bits of nanoseconds
Grace = Annotated[Optional[float], seconds(lambda s: 0 <= s <= 9e9, _GRACE)]


@checked
class TerminationConfig:
    """How a PreemptionCheckpointHandler learns of a preemption, how it saves, and how the program ends.

    No platform is recognized: what is not said here is SIGTERM, CheckpointManager.save(), libdist.Cancelled, no grace.
    """

    def __init__(
        self,
        termination_watcher_fn: Optional[Callable[[], Any]] = None,
        exit_fn: Optional[Callable[[], Any]] = None,
        grace_period: Grace = None,
        save_fn: Optional[Callable[..., Any]] = None,
    ) -> None:
        """termination_watcher_fn: asked each second, on a thread of its own, whether a notice has come; None: SIGTERM.

        exit_fn: called when all is saved for the last time; None: the handler raises libdist.Cancelled. grace_period:
        seconds from the notice to the last save, so less than the machine has by what a save takes and three runs.
        save_fn: saves, with the arguments of save_checkpoint_if_preempted().
        """
        self.termination_watcher_fn = termination_watcher_fn
        """Whether a notice has come."""
        self.exit_fn = exit_fn
        """Ends the program."""
        self.grace_period = grace_period
        """Seconds; None: it saves and ends."""
        self.save_fn = save_fn
        """Saves."""


class Notice:
    """Whether this worker is to be preempted. Whoever listens has it; whoever tells knows it weakly."""

    __slots__ = ("given", "__weakref__")

    def __init__(self) -> None:
        self.given = False


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


# ---- SIGTERM ---------------------------------------------------------------------------------------------------------


class _Sigterm:
    """This module's handler of SIGTERM, which is there as long as somebody listens: Python has one for a process."""

    def __init__(self) -> None:
        # Replaced, never changed: the signal's handler may come between any two steps of this thread.
        self.notices: tuple[weakref.ref[Notice], ...] = ()
        self.before: Any = signal.SIG_DFL
        self.process = -1
        self.lock = threading.RLock()  # which the signal's handler never takes; a collector may, in the same thread

    def living(self) -> list[Notice]:
        """Who listens. A forked child has the handler, and nobody who does."""
        if os.getpid() != self.process:
            return []
        return [notice for notice in (reference() for reference in self.notices) if notice is not None]

    def forget(self, notice: Optional[Notice] = None) -> None:
        """Drops those who are gone, and one who listens no more."""
        if os.getpid() != self.process:
            return
        with self.lock:
            self.notices = tuple(one for one in self.notices if one() not in (None, notice))
            # From another thread it is the next signal that gives it back.
            if not self.living() and _on_main_thread():
                self.give_back()

    def give_back(self) -> bool:
        """To whom it belonged before, on the main thread; False: the program has put another one in our place since."""
        ours = signal.getsignal(signal.SIGTERM) == self.on_signal
        if ours:
            signal.signal(signal.SIGTERM, self.before)
        return ours

    def on_signal(self, number: int, frame: Optional[FrameType]) -> None:
        """Tells everybody. Where all have gone since, the signal is for whom it would have been for."""
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
    """SIGTERM is a notice from now on; on the main thread."""
    with _sigterm.lock:
        before = signal.getsignal(signal.SIGTERM)
        if before != _sigterm.on_signal:
            # None is a handler that is not Python's, which Python cannot put back.
            _sigterm.before = signal.SIG_DFL if before is None else before
        _sigterm.process = os.getpid()
        _sigterm.notices = (*_sigterm.notices, weakref.ref(notice))
        signal.signal(signal.SIGTERM, _sigterm.on_signal)
    weakref.finalize(notice, _sigterm.forget).atexit = False


def ignore(notice: Notice) -> None:
    """The notice has no listener any more."""
    _sigterm.forget(notice)


# ---- A function of the program's -------------------------------------------------------------------------------------


class Watcher:
    """The thread that asks a termination_watcher_fn until it says yes, or nobody listens any more."""

    def __init__(self, fn: Callable[[], Any], notice: Notice) -> None:
        self._over = threading.Event()
        weakref.finalize(notice, self._over.set)
        arguments = (fn, weakref.ref(notice), self._over)
        threading.Thread(target=_ask, args=arguments, name="libdist-termination", daemon=True).start()

    def stop(self) -> None:
        """Asks no more. The function may be under way still: nobody waits for it."""
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
        except BaseException as error:  # a service may answer again the next time
            if not failed:
                _log.warning("the termination_watcher_fn failed, and is asked again: %r", error, exc_info=True)
            failed = True
        over.wait(EVERY_SECONDS)


def begin(config: TerminationConfig, notice: Notice) -> Optional[Watcher]:
    """From now on the notice is given when the time has come."""
    if config.termination_watcher_fn is not None:
        return Watcher(config.termination_watcher_fn, notice)
    listen(notice)
    return None


def check_thread(config: TerminationConfig) -> None:
    """Whether begin() can do it on this thread."""
    if config.termination_watcher_fn is None and not _on_main_thread():
        raise libdist.InvalidArgument(
            "PreemptionCheckpointHandler(): Python lets the main thread alone watch SIGTERM: make the handler there, or "
            "give it TerminationConfig(termination_watcher_fn=...), which says when the time has come"
        )

# SPDX-License-Identifier: Apache-2.0
"""Cancel: cancels runs, collectives and other calls from any thread."""

from __future__ import annotations

from typing import Any, Optional

from . import _cdist
from ._arguments import checked
from ._native import Native
from .errors import FailedPrecondition


@checked
class Cancel(Native):
    """Cancels everything that was started with it: pass it as the option `cancel` of runs and collectives.

        cancel = libdist.Cancel()
        threading.Timer(5.0, cancel.signal).start()
        strategy.run(step, cancel=cancel)  # raises Cancelled if it takes longer than 5 s

    One object can serve any number of calls at the same time, also of different strategies. Calls without it are not
    affected. A signal cannot be undone: calls that are started with the object later fail at once.
    """

    def __init__(self) -> None:
        self._handle = 0
        self._handle = _cdist.dist_cancel_create(None)

    def signal(self, reason: Optional[str] = None) -> None:
        """Cancels everything that was started with this object. A second call has no effect.

        Calls in progress raise Cancelled.

        reason: text for the error messages; may be None.
        """
        _cdist.dist_cancel_signal(self._native(), reason)

    @property
    def signalled(self) -> bool:
        """Whether the object has been signalled and everything that it cancels has been notified."""
        return bool(_cdist.dist_cancel_signalled(self._native()))

    def close(self) -> None:
        """Closes the object. Calls that were started with it continue and can no longer be cancelled through it."""
        self._end(_cdist.dist_cancel_destroy)

    def __enter__(self) -> Cancel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The default keeps the function: the names of the module are gone when the interpreter exits.
    def __del__(self, _destroy: Any = _cdist.dist_cancel_destroy) -> None:
        if self._handle:
            _destroy(self._handle)

    def _native(self) -> int:
        if not self._handle:
            raise FailedPrecondition("the cancel object is closed")
        return self._handle


def handle_of(cancel: Optional[Cancel]) -> int:
    """Returns the handle of a cancel object; 0 for None."""
    return 0 if cancel is None else cancel._native()

# SPDX-License-Identifier: Apache-2.0
"""Cancel: asks what was begun with it to end early, from any thread."""

from __future__ import annotations

from typing import Any, Optional

from . import _cdist
from ._arguments import checked
from ._native import Native
from .errors import FailedPrecondition


@checked
class Cancel(Native):
    """Goes into the option `cancel` of runs and collectives: signal() ends what was begun with it, and nothing else.

    One may serve any number of calls, of any strategies, at the same time. It is for good: what is begun with it later
    ends at once.
    """

    def __init__(self) -> None:
        self._handle = 0
        self._handle = _cdist.dist_cancel_create(None)

    def signal(self, reason: Optional[str] = None) -> None:
        """Asks: runs and collectives end with Cancelled, whose report has the reason. A second one changes nothing."""
        _cdist.dist_cancel_signal(self._native(), reason)

    @property
    def signalled(self) -> bool:
        """Whether signal() was called, and has told all that it ends."""
        return bool(_cdist.dist_cancel_signalled(self._native()))

    def close(self) -> None:
        """Gives up the object; what was begun with it goes on."""
        self._end(_cdist.dist_cancel_destroy)

    def __enter__(self) -> Cancel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The module's own names are gone when the interpreter ends: hence the default.
    def __del__(self, _destroy: Any = _cdist.dist_cancel_destroy) -> None:
        if self._handle:
            _destroy(self._handle)

    def _native(self) -> int:
        if not self._handle:
            raise FailedPrecondition("the cancel object is closed")
        return self._handle


def handle_of(cancel: Optional[Cancel]) -> int:
    """A cancel object's handle; 0 for None."""
    return 0 if cancel is None else cancel._native()

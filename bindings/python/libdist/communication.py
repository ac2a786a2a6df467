# SPDX-License-Identifier: Apache-2.0
"""CommunicationOptions: how collectives communicate (TensorFlow: CommunicationOptions)."""

from __future__ import annotations

from typing import Optional

from . import _cdist
from ._arguments import checked
from ._option_fields import CommunicationOptions as Fields


@checked
class CommunicationOptions(Fields):
    __doc__ = Fields.__doc__
    __slots__ = ()

    def merge(self, over: Optional[CommunicationOptions]) -> CommunicationOptions:
        """Returns these options, overridden by those that `over` sets; a copy if `over` is None."""
        native = _cdist.dist_communication_options()
        given = None if over is None else over._native()
        _cdist.dist_communication_options_merge(self._native(), given, native)
        return self._of(native)

# SPDX-License-Identifier: Apache-2.0
"""How a program asks its collectives to be done (TensorFlow: CommunicationOptions)."""

from __future__ import annotations

import math
from typing import Any, Optional

from . import _cdist
from ._arguments import Timeout, checked, nanoseconds


@checked
class CommunicationOptions:
    """Options of collectives, for a strategy; a collective's own options override them by the rule of merge()."""

    __slots__ = ("bytes_per_pack", "timeout")

    def __init__(self, *, bytes_per_pack: int = 0, timeout: Timeout = None) -> None:
        """timeout: seconds; None: not given; negative or inf: no limit."""
        self.bytes_per_pack = bytes_per_pack
        """A planned list is cut into packs of about this size; 0: not given."""
        self.timeout = timeout
        """The longest wait for a peer."""

    def merge(self, over: Optional[CommunicationOptions]) -> CommunicationOptions:
        """These options overridden by what `over` gives; with None a checked copy."""
        native = _cdist.dist_communication_options()
        given = None if over is None else over._native()
        _cdist.dist_communication_options_merge(self._native(), given, native)
        timeout = None if native.timeout_ns == 0 else math.inf if native.timeout_ns < 0 else native.timeout_ns * 1e-9
        return CommunicationOptions(bytes_per_pack=native.bytes_per_pack, timeout=timeout)

    def __repr__(self) -> str:
        return f"CommunicationOptions(bytes_per_pack={self.bytes_per_pack}, timeout={self.timeout})"

    def _native(self) -> Any:
        native = _cdist.dist_communication_options()
        native.bytes_per_pack = self.bytes_per_pack
        native.timeout_ns = nanoseconds(self.timeout)
        return native

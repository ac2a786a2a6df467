# SPDX-License-Identifier: Apache-2.0
"""How a program asks its collectives to be done (TensorFlow: CommunicationOptions)."""

from __future__ import annotations

from typing import Any, Optional

from . import _cdist
from ._options import nanoseconds
from .constants import Communication


class CommunicationOptions:
    """Options of collectives, for a strategy; a collective's own options override them by the rule of merge()."""

    __slots__ = ("implementation", "bytes_per_pack", "timeout_ns", "has_timeout")

    def __init__(
        self,
        *,
        implementation: int = Communication.AUTO,
        bytes_per_pack: int = 0,
        timeout: Optional[float] = None,
    ) -> None:
        """timeout: seconds; None: not given; 0, negative or inf: no limit."""
        self.implementation = implementation
        """A Communication."""
        self.bytes_per_pack = bytes_per_pack
        """A planned list is cut into packs of about this size; 0: not given."""
        self.timeout_ns = 0 if not timeout else nanoseconds(timeout)
        """The longest wait for a peer."""
        self.has_timeout = timeout is not None
        """Whether a timeout is given."""

    @property
    def timeout(self) -> Optional[float]:
        """Seconds; None: not given."""
        return self.timeout_ns * 1e-9 if self.has_timeout or self.timeout_ns else None

    def merge(self, over: Optional[CommunicationOptions]) -> CommunicationOptions:
        """These options overridden by what `over` gives; with None a checked copy."""
        native = _cdist.dist_communication_options()
        given = None if over is None else over._native()
        _cdist.dist_communication_options_merge(self._native(), given, native)
        merged = CommunicationOptions(
            implementation=Communication(native.implementation), bytes_per_pack=native.bytes_per_pack
        )
        merged.timeout_ns, merged.has_timeout = native.timeout_ns, bool(native.has_timeout)
        return merged

    def describe(self) -> str:
        """The options as TensorFlow prints them."""
        return str(_cdist.dist_communication_options_describe(self._native()))

    __repr__ = describe

    def _native(self) -> Any:
        native = _cdist.dist_communication_options()
        native.implementation = int(self.implementation)
        native.bytes_per_pack = int(self.bytes_per_pack)
        native.timeout_ns, native.has_timeout = self.timeout_ns, int(self.has_timeout)
        return native

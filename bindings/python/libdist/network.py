# SPDX-License-Identifier: Apache-2.0
"""Network: how workers that are strategies of one process reach each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from . import _cdist
from ._arguments import checked
from ._native import Native
from ._option_fields import NetworkOptions, network_options
from .errors import FailedPrecondition

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Held:
    """The native network: it ends when the Network is closed and nobody makes a strategy with it any more."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __del__(self, _destroy: Any = _cdist.dist_network_destroy) -> None:
        _destroy(self.handle)


@checked
class Network(Native):
    """The network of workers that are strategies of this process, for tests and for trying things out.

    network = libdist.Network(2)
    libdist.Strategy(2, kind=StrategyKind.MULTI_WORKER_MIRRORED, cluster_resolver=resolver_of_worker_0, network=network)

    and the same for worker 1; each is used on a thread of its own. A worker joins once, when its strategy is made; it has
    left when that has ended, and nobody can take its place. All workers make the same calls in the same order: runs, and
    what reduces, gathers, creates variables or reads one that is synchronized on reading. Those wait for the other
    workers, up to the strategy's timeout.
    """

    def __init__(self, num_workers: int, **options: Unpack[NetworkOptions]) -> None:
        """num_workers: number of workers that join."""
        self._held: Optional[Held] = None
        self._held = Held(_cdist.dist_network_create(num_workers, network_options(**options)))

    def close(self) -> None:
        """Gives the network up; strategies that are in it keep it."""
        self._held = None

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<libdist.Network>" if self._held else "<libdist.Network, closed>"

    def _hold(self, name: str) -> Held:
        held = self._held
        if held is None:
            raise FailedPrecondition(f"{name}(): the network is closed")
        return held

# SPDX-License-Identifier: Apache-2.0
"""Network: how workers that are strategies of one process reach each other."""

from __future__ import annotations

from typing import Any, Optional

from . import _cdist
from ._arguments import checked
from ._native import Native
from .errors import FailedPrecondition


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

    def __init__(self, num_workers: int, *, credit_bytes: int = 0) -> None:
        """credit_bytes: how far a worker may run ahead of each other one; 0: 1 MiB; else 4 KiB or more."""
        self._held: Optional[Held] = None
        options = _cdist.dist_network_options()
        options.credit_bytes = credit_bytes
        self._held = Held(_cdist.dist_network_create(num_workers, options))

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

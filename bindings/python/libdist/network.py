# SPDX-License-Identifier: Apache-2.0
"""Network: connects workers that are strategies of one process."""

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
    """The native network. It is destroyed when the Network is closed and no call uses it any more."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __del__(self, _destroy: Any = _cdist.dist_network_destroy) -> None:
        _destroy(self.handle)


@checked
class Network(Native):
    """Connects workers that are strategies of this process, for tests and experiments.

        network = libdist.Network(2)
        libdist.Strategy(2, kind=libdist.StrategyKind.MULTI_WORKER_MIRRORED, cluster_resolver=resolver, network=network)

    Create worker 1 in the same way, with a resolver of its own. Each worker runs on its own thread. A worker joins when
    its strategy is created and leaves when it is closed; no other worker can take its place.

    All workers must make the same calls in the same order: runs, functions that reduce or gather, creating variables,
    and reading a variable that is synchronized on reading. These calls wait for the other workers, up to the strategy's
    timeout.
    """

    def __init__(self, num_workers: int, **options: Unpack[NetworkOptions]) -> None:
        """num_workers: number of workers that join."""
        self._held: Optional[Held] = None
        self._held = Held(_cdist.dist_network_create(num_workers, network_options(**options)))

    def close(self) -> None:
        """Closes the network. Strategies that use it keep it."""
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

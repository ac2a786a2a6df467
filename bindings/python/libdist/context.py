# SPDX-License-Identifier: Apache-2.0
"""Which strategy and replica a thread is with, for programs that would rather not hand them around.

Outside of scopes and functions a thread is replica 0 of a default strategy of its own.
"""

from __future__ import annotations

from typing import Optional

from . import _cdist
from ._arguments import checked
from .replica import Replica
from .strategy import Strategy, current_strategy, replica_of


@checked
def get_strategy() -> Strategy:
    """The strategy of the scope or function that this thread is in, else that of set_strategy(), else the default."""
    return current_strategy()


@checked
def set_strategy(strategy: Optional[Strategy]) -> None:
    """Makes a strategy this thread's own outside scopes, until another is set; None: none any more."""
    _cdist.dist_set_strategy(0 if strategy is None else strategy._native("set_strategy"))


@checked
def has_strategy() -> bool:
    """Whether get_strategy() is not a default strategy."""
    return bool(_cdist.dist_has_strategy())


@checked
def in_cross_replica_context() -> bool:
    """True in a merge function, in a scope, and after set_strategy(); False in a replica function and outside."""
    return bool(_cdist.dist_in_cross_replica_context())


@checked
def get_replica() -> Optional[Replica]:
    """The replica whose function this thread is in; outside, the default strategy's; None in cross-replica context."""
    return replica_of(_cdist.dist_get_replica())

# SPDX-License-Identifier: Apache-2.0
"""The current strategy and replica of a thread, for programs that do not pass them to their functions.

Outside scopes and functions of runs, a thread is replica 0 of a default strategy of its own.
"""

from __future__ import annotations

from typing import Optional

from . import _cdist
from ._arguments import checked
from .replica import Replica
from .strategy import Strategy, current_strategy, replica_of


@checked
def get_strategy() -> Strategy:
    """Returns the current strategy of this thread.

    It is the strategy of the scope or function that the thread is in; otherwise the one set with set_strategy();
    otherwise the thread's default strategy.
    """
    return current_strategy()


@checked
def set_strategy(strategy: Optional[Strategy]) -> None:
    """Sets the strategy that is current on this thread outside scopes, until another one is set. None removes it."""
    _cdist.dist_set_strategy(0 if strategy is None else strategy._native("set_strategy"))


@checked
def has_strategy() -> bool:
    """Returns whether get_strategy() is not a default strategy."""
    return bool(_cdist.dist_has_strategy())


@checked
def in_cross_replica_context() -> bool:
    """Returns whether this thread is in cross-replica context.

    True in a merge function, in a scope, and after set_strategy(). False in a replica function and outside all of
    these.
    """
    return bool(_cdist.dist_in_cross_replica_context())


@checked
def get_replica() -> Optional[Replica]:
    """Returns the replica whose function this thread is in.

    Outside all functions it returns replica 0 of the thread's default strategy; in cross-replica context it returns
    None.
    """
    return replica_of(_cdist.dist_get_replica())

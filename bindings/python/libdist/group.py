# SPDX-License-Identifier: Apache-2.0
"""Groups: some of a strategy's replicas, for collectives among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from . import _cdist
from ._arguments import checked
from ._native import Native
from .errors import FailedPrecondition

if TYPE_CHECKING:
    from .strategy import Strategy


@checked
class Group(Native):
    """Some replicas of a strategy, for collectives among them; Strategy.group() creates it.

    Pass it as the option `group` of a collective. Create and close groups between runs.
    """

    def __init__(self, strategy: Strategy, replica_ids: Sequence[int]) -> None:
        self._handle = 0
        self._strategy = strategy
        self._handle = _cdist.dist_group_create(strategy._native("Strategy.group"), replica_ids, len(replica_ids))
        self._owned = True
        strategy._children.add(self)

    @classmethod
    def _borrowed(cls, strategy: Strategy, handle: int) -> Group:
        """Returns a group that the strategy has created for itself and destroys itself."""
        group = cls.__new__(cls)
        group._handle, group._strategy, group._owned = handle, strategy, False
        strategy._children.add(group)
        return group

    @property
    def size(self) -> int:
        """The number of replicas in the group."""
        return int(_cdist.dist_group_size(self._native()))

    def rank(self, replica_id: int) -> int:
        """Returns the rank of a replica in the group; -1 if it is not a member."""
        return int(_cdist.dist_group_rank(self._native(), replica_id))

    def close(self) -> None:
        """Destroys the group, between runs. Closing the strategy does this too."""
        strategy = self._strategy._handle
        if self._owned and strategy:
            self._end(lambda handle: _cdist.dist_group_destroy(strategy, handle))
        self._handle = 0

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _native(self) -> int:
        if not self._handle:
            raise FailedPrecondition("the group is closed")
        return self._handle

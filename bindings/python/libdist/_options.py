# SPDX-License-Identifier: Apache-2.0
"""Options of collectives as keyword arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence, TypedDict, Union

from . import _cdist
from ._arguments import Timeout, nanoseconds
from .cancel import handle_of

if TYPE_CHECKING:
    from .cancel import Cancel
    from .constants import Numerics
    from .group import Group


class Options(TypedDict, total=False):
    """What every collective takes beside its own arguments; all members of a group give the same."""

    tag: str
    """A name for reports."""
    timeout: Timeout
    """Seconds: the longest wait for a peer; None: the strategy's; negative or inf: no limit."""
    group: Optional[Group]
    """Who meets; None: all replicas."""
    cancel: Optional[Cancel]
    """Ends the group's rounds in this run, for all its members; None: none."""
    axis: int
    """The dimension that parts are cut from or joined along; negative ones count from the end."""
    numerics: Numerics
    """Numerics.REPRODUCIBLE or TREE; ORDERED: as the strategy says, whose own default that is."""
    weights: Union[None, float, Sequence[float]]
    """Of a MEAN: one weight, or one for each contribution; this replica's own."""
    contributions: int
    """How many tensors this replica adds to each sum; its own."""
    splits: Optional[Sequence[int]]
    """Of all_to_all(): the sizes of the parts along the axis; None: equal ones."""
    bytes_per_pack: int
    """About how much a pack of a planned list has; 0: the strategy's."""
    reduce_element_bytes: int
    """Of an operator of the program's own: the size of one of its elements, which is never cut; 0: the dtype's."""


_PLAIN = ("axis", "numerics", "contributions", "bytes_per_pack", "reduce_element_bytes")


def _invalid_weights(given: int, options: Any) -> Exception:
    from .errors import InvalidArgument  # which needs this module

    expected = max(1, int(options.get("contributions") or 1))
    return InvalidArgument(f"weights has {given} numbers, but must have {expected}, one for each contribution")


def native_options(options: dict[str, Any]) -> Any:
    """Options, which have been checked, as the native object; None for none."""
    if not options:
        return None
    native = _cdist.dist_collective_options()
    for name in _PLAIN:
        if name in options:
            setattr(native, name, int(options[name]))
    native.tag = options.get("tag") or None
    native.timeout_ns = nanoseconds(options.get("timeout"))
    group = options.get("group")
    native.group = 0 if group is None else group._native()
    native.cancel = handle_of(options.get("cancel"))
    weights, splits = options.get("weights"), options.get("splits")
    if weights is not None:
        numbers = [weights] if isinstance(weights, float) else list(weights)
        if len(numbers) != max(1, int(options.get("contributions") or 1)):
            raise _invalid_weights(len(numbers), options)
        native.set_weights(numbers, len(numbers))
    if splits is not None:
        native.set_splits(list(splits), len(splits))
    return native

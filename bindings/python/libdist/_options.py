# SPDX-License-Identifier: Apache-2.0
"""Options of collectives as keyword arguments."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Optional, Sequence, TypedDict, Union

from . import _cdist
from .cancel import handle_of
from .errors import InvalidArgument

if TYPE_CHECKING:
    from .cancel import Cancel
    from .group import Group


LONGEST = 2**62  # nanoseconds, 146 years; C can add them to any time


def nanoseconds(seconds: Optional[float]) -> int:
    """A timeout for C: 0, the default, for None; -1, no limit, for a negative or infinite one."""
    if seconds is None:
        return 0
    try:
        if seconds < 0 or math.isinf(seconds):
            return -1
        if not math.isnan(seconds):
            return max(1, round(min(seconds * 1e9, LONGEST)))
    except TypeError:
        raise TypeError(f"a timeout is a number of seconds, not a {type(seconds).__name__}") from None
    raise InvalidArgument(f"the timeout is {seconds}. Pass a number of seconds.")


def wait_limit(seconds: Optional[float]) -> int:
    """The limit of a wait for C: -1, no limit, for None; 0 does not wait."""
    if seconds is None:
        return -1
    return nanoseconds(seconds) if seconds else 0


def limit(seconds: Optional[float]) -> int:
    """The time limit of a whole call for C: 0, no limit, for None or infinity."""
    given = nanoseconds(seconds)
    if given >= 0:
        return given
    if seconds is not None and seconds > 0:
        return 0
    raise InvalidArgument(f"the timeout is {seconds} s. Pass a positive number of seconds, or None for no limit.")


class Options(TypedDict, total=False):
    """What every collective takes beside its own arguments; all members of a group give the same."""

    tag: str
    """A name for reports."""
    timeout: Optional[float]
    """Seconds: the longest wait for a peer; None: the strategy's; negative or inf: no limit."""
    group: Optional[Group]
    """Who meets; None: all replicas."""
    cancel: Optional[Cancel]
    """Ends the group's rounds in this run, for all its members; None: none."""
    axis: int
    """The dimension that parts are cut from or joined along; negative ones count from the end."""
    numerics: int
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


def native_options(options: dict[str, Any]) -> Any:
    """Options as the native object; None where there are none."""
    if not options:
        return None
    native = _cdist.dist_collective_options()
    for name, given in options.items():
        if name == "tag":
            native.tag = given or None
        elif name == "timeout":
            native.timeout_ns = nanoseconds(given)
        elif name == "group":
            native.group = 0 if given is None else given._native()
        elif name == "cancel":
            native.cancel = handle_of(given)
        elif name in _PLAIN:
            setattr(native, name, int(given))
        elif name == "weights":
            if given is not None:
                weights = [given] if isinstance(given, (int, float)) else list(given)
                native.set_weights(weights, len(weights))
        elif name == "splits":
            if given is not None:
                native.set_splits(list(given), len(given))
        else:
            raise TypeError(f"{name!r} is no option of a collective: there are {', '.join(Options.__annotations__)}")
    return native

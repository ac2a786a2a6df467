# SPDX-License-Identifier: Apache-2.0
"""Functions that change the copies of a variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _calls, _tensors, values
from ._context import Context
from ._option_fields import UpdateOptions, update_options

if TYPE_CHECKING:
    from .strategy import Strategy
    from .variables import Variable


class UpdatePlace:
    """Describes the copy for which an update function is called."""

    __slots__ = ("replica", "device", "copy")

    def __init__(self, replica: int, device: str, copy: Any) -> None:
        self.replica = replica
        """Replica that owns the copy; -1 = no single replica, as with central storage."""
        self.device = device
        """Name of the copy's device; "" for the default strategy."""
        self.copy = copy
        """The copy, as an array to change in place; None in update_non_slot()."""


UpdateFn = Callable[..., Any]
"""fn(place, *args, **kwargs): place is an UpdatePlace; the arguments are this copy's components."""


class Update:
    """The update function of one call."""

    def __init__(self, fn: UpdateFn, strategy: int, owner: Any) -> None:
        self.fn = fn
        self.context = Context()
        self.strategy = strategy
        self.owner = owner
        self.seen = values.Seen()
        self.failures = _calls.Failures()

    def on_update(self, replica: int, device: str, copy: int, args: int, kwargs: int) -> int:
        try:
            array = _tensors.view_at(copy, 0, self.owner, writable=True) if copy else None
            positional = values.borrowed(args, self.seen) or ()
            named = values.borrowed(kwargs, self.seen) or {}
            result = self.context.call(self.fn, UpdatePlace(replica, device, array), *positional, **named)
            return values.hand_over(self.strategy, result, self.seen)
        except BaseException as error:
            return -self.failures.add(error)


def update(
    strategy: Strategy,
    variable: Optional[Variable],
    native: tuple[Any, ...],
    fn: UpdateFn,
    args: Any,
    kwargs: Any,
    options: UpdateOptions,
    seen: Optional[values.Seen] = None,
) -> Any:
    """Calls native[0] with native[1:] and the update function with its arguments."""
    handle = strategy._handle
    given = values.arguments(handle, args, seen)
    named = values.make(handle, kwargs, seen) if kwargs is not None else None
    target = Update(fn, handle, variable._as_value() if variable is not None else None)
    token = _calls.keep(target)
    try:
        arguments = (token, values.handle_of(given), values.handle_of(named), update_options(**options))
        result = _calls.call(target.failures, native[0], *native[1:], *arguments)
    finally:
        _calls.release(token)
    return values.owned(result)

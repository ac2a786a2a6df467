# SPDX-License-Identifier: Apache-2.0
"""Cross-device operations (TensorFlow: CrossDeviceOps), and functions of your own in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence

from . import _calls, _cdist, _tensors, values
from ._arguments import checked, wrong
from ._callbacks import Kept
from ._native import Native
from ._option_fields import CrossDeviceOptions, cross_device_options
from ._outside import Destinations, Where, _all_or_none
from .constants import CrossDeviceKind, ReduceOp
from .errors import FailedPrecondition
from .names import OpName, op_number

if TYPE_CHECKING:
    from typing_extensions import Unpack

ReduceFn = Callable[[ReduceOp, list[Any], Any], None]
"""reduce(op, components, out) writes the reduction of the components to out."""
BroadcastFn = Callable[[Any, list[Any]], None]
"""broadcast(value, copies) writes the value to each copy."""
GatherFn = Callable[[list[Any], int, Any], None]
"""gather(components, axis, out) writes the components to out, one after another along the axis."""


@checked
class HostFunctions:
    """Functions of your own that reduce, broadcast and gather values outside runs.

    Pass them to a CrossDevice, which requires `reduce`, or to a strategy as its option `functions`. The functions
    receive arrays, and write to arrays that libdist has allocated. None selects libdist's implementation.

    shared_copy: True = all replicas of the strategy share one copy of each variable.
    """

    def __init__(
        self,
        reduce: Optional[ReduceFn] = None,
        broadcast: Optional[BroadcastFn] = None,
        gather: Optional[GatherFn] = None,
        *,
        shared_copy: bool = False,
    ) -> None:
        self.reduce = reduce
        self.broadcast = broadcast
        self.gather = gather
        self.shared_copy = shared_copy
        self._failures = _calls.Failures()

    def _set(self, options: Any, token: int) -> None:
        """Sets the functions in a strategy's options."""
        given = (self.reduce, self.broadcast, self.gather)
        options.set_functions(token, int(self.shared_copy), *(int(fn is not None) for fn in given))

    def _set_cross_device(self, options: Any, token: int) -> None:
        """Sets the functions in the options of a CrossDevice."""
        options.set_functions(token, int(self.broadcast is not None), int(self.gather is not None))

    def on_reduce_components(self, op: int, components: int, n: int, out: int) -> int:
        """Called by libdist."""
        assert self.reduce is not None
        reduce = self.reduce
        return self._told(lambda: reduce(ReduceOp(op), _components(components, n), _writable(out, 0)))

    def on_broadcast_copies(self, value: int, copies: int, n: int) -> int:
        """Called by libdist."""
        assert self.broadcast is not None
        broadcast = self.broadcast
        return self._told(lambda: broadcast(_tensors.view_at(value, 0), [_writable(copies, r) for r in range(n)]))

    def on_gather_components(self, components: int, n: int, axis: int, out: int) -> int:
        """Called by libdist."""
        assert self.gather is not None
        gather = self.gather
        return self._told(lambda: gather(_components(components, n), axis, _writable(out, 0)))

    def _told(self, fn: Callable[[], None]) -> int:
        try:
            fn()
            return 0
        except BaseException as error:
            return self._failures.add(error)


def _components(components: int, n: int) -> list[Any]:
    return [_tensors.view_at(components, r) for r in range(n)]


def _writable(tensors: int, index: int) -> Any:
    return _tensors.view_at(tensors, index, writable=True)


@checked
class CrossDevice(Native):
    """Reduces, broadcasts and gathers values outside runs, for a strategy or without one. Immutable."""

    def __init__(
        self,
        kind: CrossDeviceKind = CrossDeviceKind.DEFAULT,
        **options: Unpack[CrossDeviceOptions],
    ) -> None:
        """kind: which implementation it uses."""
        self._handle = 0
        self._callbacks = Kept()
        accumulate, functions = options.get("accumulate"), options.get("functions")
        if options.get("accumulate_element_bytes") and accumulate is None:
            wrong("CrossDevice", "accumulate_element_bytes is given without accumulate")
        if functions is not None and functions.reduce is None:
            wrong("CrossDevice", "functions has no reduce, which cross-device operations need")
        self._failures: Optional[_calls.Failures] = None
        if functions is not None:
            self._failures = functions._failures
        elif accumulate is not None:
            self._failures = self._callbacks.failures
        self._handle = _cdist.dist_cross_device_create(cross_device_options(self._callbacks, kind=kind, **options))

    @property
    def kind(self) -> CrossDeviceKind:
        """The implementation."""
        return CrossDeviceKind(_cdist.dist_cross_device_kind_of(self._native()))

    @property
    def device(self) -> Optional[str]:
        """The full name of reduce_to_device; None if there is none."""
        device: Optional[str] = _cdist.dist_cross_device_device(self._native())
        return device

    def reduce(self, op: OpName, value: Any, destination: Where) -> Any:
        """Reduces a value to a destination, like Strategy.reduce_to(), without a strategy."""
        maker = _cdist.dist_get_strategy()
        given = values.make(maker, value)
        where = Destinations(maker, [destination] if destination is not None else [])
        native = _cdist.dist_cross_device_reduce
        return values.owned(self._call(native, op_number(op), given._handle, where.get()))

    def batch_reduce(self, op: OpName, pairs: Sequence[tuple[Any, Where]]) -> list[Any]:
        """Reduces several (value, destination) pairs, like Strategy.batch_reduce_to(), without a strategy."""
        maker = _cdist.dist_get_strategy()
        given = [values.make(maker, value) for value, _ in pairs]
        where = Destinations(maker, _all_or_none(pairs))
        handles = [value._handle for value in given]
        native = _cdist.dist_cross_device_batch_reduce
        return [
            values.owned(result) for result in self._call(native, op_number(op), handles, where.get(), len(handles))
        ]

    def broadcast(self, value: Any, destination: Where) -> Any:
        """Places a value at a destination, like Strategy.broadcast_to(), without a strategy."""
        maker = _cdist.dist_get_strategy()
        given = values.make(maker, value)
        where = Destinations(maker, [destination] if destination is not None else [])
        return values.owned(self._call(_cdist.dist_cross_device_broadcast, given._handle, where.get()))

    def gather(self, value: Any, axis: int = 0) -> Any:
        """Concatenates the components of a value, like Strategy.gather(), without a strategy."""
        given = values.make(_cdist.dist_get_strategy(), value)
        return values.owned(self._call(_cdist.dist_cross_device_gather, given._handle, axis))

    def close(self) -> None:
        """Closes the object. Strategies that use it are not affected."""
        if self._handle:
            self._end(_cdist.dist_cross_device_destroy)

    def __enter__(self) -> CrossDevice:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, _destroy: Any = _cdist.dist_cross_device_destroy, _release: Any = _calls.release) -> None:
        if self._handle:
            _destroy(self._handle)
        if hasattr(self, "_callbacks"):  # a strategy that uses the operations keeps this object
            for token in self._callbacks.tokens:
                _release(token)

    def _native(self) -> int:
        if not self._handle:
            raise FailedPrecondition("the cross-device operations are closed")
        return self._handle

    def _call(self, native: Callable[..., Any], *arguments: Any) -> Any:
        if self._failures is None:
            return native(self._native(), *arguments)
        return _calls.call(self._failures, native, self._native(), *arguments)

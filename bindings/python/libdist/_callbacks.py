# SPDX-License-Identifier: Apache-2.0
"""Callbacks in options: the objects behind their tokens, kept for as long as C uses them."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, Union

import numpy as np

from . import _calls, _cdist, _tensors, values
from ._context import Context
from .constants import DType, LogLevel
from .errors import InvalidArgument

if TYPE_CHECKING:
    from .budget import Budget
    from .network import Network
    from .replica import Block

LogFn = Callable[[int, str], None]
"""log(level, message) receives one line; level is a LogLevel. Called from any thread; must not call libdist."""
Operator = Callable[[Any, Any], None]
"""op(acc, values) sets acc[:] = op(acc, values). libdist calls it for pieces of a tensor, on several threads at once.
"""
PartitionFn = Callable[[tuple[int, ...], Any], Sequence[int]]
"""partitioner(shape, dtype) returns the number of parts of each dimension: all 1, except for the first dimension."""


class Kept:
    """Keeps the objects that options refer to: tokens until release(), native objects until made()."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.failures = _calls.Failures()
        self._objects: list[Any] = []

    def token(self, target: Any) -> int:
        """Returns a token for the target, which is kept until release()."""
        self.tokens.append(_calls.keep(target))
        return self.tokens[-1]

    def record(self, native: Any) -> Any:
        """Keeps a native record until the call that reads it has returned."""
        self._objects.append(native)
        return native

    def held(self, shared: Union[Budget, Network]) -> int:
        """Returns the handle of an object, which stays valid even if the program closes the object during the call."""
        held = shared._hold("Strategy")
        self._objects.append(held)
        return held.handle

    def made(self) -> None:
        """Call this when the native call has returned."""
        self._objects.clear()

    def release(self) -> None:
        """Call this when C no longer calls the targets."""
        self.made()
        for token in self.tokens:
            _calls.release(token)
        self.tokens = []


class Log:
    """A log function."""

    def __init__(self, log: Union[logging.Logger, LogFn]) -> None:
        self.fn = _to_logger(log) if isinstance(log, logging.Logger) else log

    def on_log(self, level: int, message: str) -> None:
        try:
            self.fn(level, message)
        except Exception:  # no caller could receive it
            pass


def _to_logger(logger: logging.Logger) -> LogFn:
    return lambda level, message: logger.log(getattr(logging, LogLevel(level).name), "%s", message)


class Reducer:
    """An operator of your own; see Operator."""

    def __init__(self, fn: Operator, failures: _calls.Failures, element_bytes: int = 0) -> None:
        """element_bytes: size of one element of the operator; 0 = the dtype's size."""
        self.fn = fn
        self.context = Context()
        self.element_bytes = element_bytes
        self.failures = failures

    def on_reduce(self, acc: int, given: int, count: int, dtype: int) -> None:
        try:
            like = (count, dtype, self.element_bytes)
            written, read = _tensors.elements_at(acc, *like, writable=True), _tensors.elements_at(given, *like)
            result: Any = self.context.call(self.fn, written, read)
            if result is not None and result is not written:
                raise TypeError("the operator of a reduction must change its first argument in place, and return it or None")
        except BaseException as error:  # C continues; the caller of the collective raises the exception
            self.failures.all.append((-1, error))


class Applier:
    """The `fn` option of reduce_apply()."""

    def __init__(self, fn: Callable[[Block], None], failures: _calls.Failures) -> None:
        self.fn = fn
        self.context = Context()
        self.failures = failures

    def on_apply(
        self, tensor: int, first: int, count: int, dtype: int, gradient: int, parameter: int, n: int, states: int
    ) -> None:
        from .replica import Block

        try:
            addresses: Any = np.asarray(_tensors.row_at(states, n, DType.U64)) if n else ()
            block = Block(
                tensor,
                first,
                count,
                _tensors.row_at(gradient, count, dtype),
                _tensors.row_at(parameter, count, dtype, writable=True),
                [_tensors.row_at(int(address), count, dtype, writable=True) for address in addresses],
            )
            self.context.call(self.fn, block)
        except BaseException as error:
            self.failures.all.append((-1, error))


class Initial:
    """A function that returns the initial value of a variable."""

    def __init__(self, fn: Callable[[], Any], failures: _calls.Failures, strategy: int = 0) -> None:
        self.fn = fn
        self.strategy = strategy
        self.failures = failures

    def on_initial(self) -> int:
        try:
            return values.hand_over(self.strategy or _cdist.dist_get_strategy(), self.fn())
        except BaseException as error:
            return -self.failures.add(error)


class _Partitioning(threading.local):
    """Collects the exceptions of a partitioner during the call that this thread makes."""

    failures: Optional[_calls.Failures] = None


partitioning = _Partitioning()


class Partitioner:
    """A function that divides variables on parameter servers."""

    def __init__(self, fn: PartitionFn) -> None:
        self.fn = fn

    def on_partition(self, spec: int, partitions: int) -> int:
        try:
            _, dtype, shape, *_ = _cdist.tensor_at(spec, 0)
            given = [int(number) for number in self.fn(shape, _tensors.numpy_dtype(dtype))]
            if len(given) != len(shape):
                raise InvalidArgument(
                    f"the partitioner returned {given} for the shape {shape}, but must return one number per dimension"
                )
            for dimension, number in enumerate(given):
                _cdist.set_number_at(partitions, dimension, number)
            return 0
        except BaseException as error:
            failures = partitioning.failures
            return _calls.tell(error) if failures is None else failures.add(error)

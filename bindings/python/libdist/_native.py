# SPDX-License-Identifier: Apache-2.0
"""The base class of all objects that own a native object."""

from __future__ import annotations

from typing import Any, Callable, NoReturn, TypeVar

T = TypeVar("T")


class Native:
    """An object with a native handle. It cannot be copied or pickled."""

    __slots__ = ()

    _handle: int = 0
    """0 until __init__() sets it, because Python calls __del__() even if __init__() was not called or failed."""

    def _end(self: Any, destroy: Callable[[int], Any]) -> None:
        """Destroys the native object, if there is one.

        The native layer waits for calls of other threads. It raises FailedPrecondition, and the object stays unchanged,
        if they take too long.
        """
        handle, self._handle = self._handle, 0
        if handle:
            try:
                destroy(handle)
            except BaseException:
                self._handle = handle
                raise

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Rejects copy and pickle, because a copy would destroy the same native object a second time."""
        name = type(self).__name__
        raise TypeError(f"a {name} cannot be copied or pickled, because it owns threads or memory of this process")


class Returned(Native):
    """An object that only functions of libdist create, with _of()."""

    __slots__ = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(f"a {type(self).__name__} cannot be created directly: it is what functions of libdist return")

    @classmethod
    def _of(cls: type[T], *args: Any) -> T:
        """Creates an object of a handle that libdist gave."""
        made = cls.__new__(cls)
        made._init(*args)  # type: ignore[attr-defined]
        return made

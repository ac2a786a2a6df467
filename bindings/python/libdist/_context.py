# SPDX-License-Identifier: Apache-2.0
"""The caller's context (contextvars and np.errstate) for functions that libdist calls on other threads.

Each call runs in a copy of the context, like asyncio.to_thread(). The function sees what its caller has set, while
neither the caller nor the next function on the same thread sees what the function sets.
"""

from __future__ import annotations

import contextvars
from typing import Any, Callable, TypeVar

import numpy as np

T = TypeVar("T")

# NumPy 2 keeps np.errstate in a context variable, NumPy 1 in a record of the thread.
_get_errors: Any = getattr(np, "geterrobj", None) if np.__version__.startswith("1.") else None
_set_errors: Any = getattr(np, "seterrobj", None)


class Context:
    """The context in which the object was created."""

    __slots__ = ("_variables", "_errors")

    def __init__(self) -> None:
        self._variables = contextvars.copy_context()
        self._errors: Any = None if _get_errors is None else list(_get_errors())  # np.seterr() changes the list

    def call(self, fn: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Calls fn(*arguments, **named) in a copy of the context. Several threads may call this at the same time."""
        if _get_errors is None or (before := _get_errors()) == self._errors:
            return self._variables.copy().run(fn, *arguments, **named)
        _set_errors(list(self._errors))
        try:
            return self._variables.copy().run(fn, *arguments, **named)
        finally:
            _set_errors(before)

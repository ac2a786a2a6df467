# SPDX-License-Identifier: Apache-2.0
"""What all objects that own a native one have in common."""

from __future__ import annotations

from typing import Any, NoReturn


class Native:
    """An object with a handle, which exists once and in one process."""

    __slots__ = ()

    _handle: int = 0
    """Until __init__() sets it: __del__() is also called if that was not called, or failed."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """For copy and pickle: a copy would end the same native object a second time."""
        name = type(self).__name__
        raise TypeError(f"a {name} cannot be copied or pickled, because it owns threads or memory of this process")

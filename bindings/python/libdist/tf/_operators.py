# SPDX-License-Identifier: Apache-2.0
"""Arithmetic with what holds a tensor: variables, and their copies."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np


class Operators(np.lib.mixins.NDArrayOperatorsMixin):
    """Every operator and function of NumPy, on the value that read_value() gives. Results are arrays."""

    __hash__ = object.__hash__  # by identity, as TensorFlow's variables

    @property
    def dtype(self) -> Any:
        """NumPy's dtype of the elements."""
        raise NotImplementedError

    def read_value(self) -> Any:
        """The value now, as a new array."""
        raise NotImplementedError

    def value(self) -> Any:
        """read_value()."""
        return self.read_value()

    def numpy(self) -> Any:
        """read_value()."""
        return self.read_value()

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's."""
        return tuple(self.read_value().shape)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        array = self.read_value()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        # `v += 1` is v = v + 1, as in TensorFlow: assign_add() is what changes a variable.
        kwargs = {name: given for name, given in kwargs.items() if name != "out" or not _is_of_ours(given)}
        return getattr(ufunc, method)(*(self._operand(given) for given in inputs), **kwargs)

    def _operand(self, given: Any) -> Any:
        if isinstance(given, Operators):
            return given.read_value()
        # A number takes the tensor's dtype; NumPy before 2 would make float64 of a float32 scalar and a number.
        fits = {"f": (int, float), "V": (int, float), "c": (int, float, complex), "i": (int,), "u": (int,)}
        if isinstance(given, fits.get(self.dtype.kind, ())) and not isinstance(given, (bool, np.generic)):
            return np.asarray(given, self.dtype)
        return given

    def __getitem__(self, index: Any) -> Any:
        return self.read_value()[index]

    def __len__(self) -> int:
        return len(self.read_value())

    def __float__(self) -> float:
        return float(self.read_value())

    def __int__(self) -> int:
        return int(self.read_value())

    def __index__(self) -> int:
        return int(self.read_value().__index__())

    def __bool__(self) -> bool:
        return bool(self.read_value())


def _is_of_ours(out: Any) -> bool:
    return isinstance(out, tuple) and any(isinstance(one, Operators) for one in out)

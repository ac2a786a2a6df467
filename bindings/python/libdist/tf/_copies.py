# SPDX-License-Identifier: Apache-2.0
"""One replica's copy of a variable, as update functions get it and local results have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import numpy as np

import libdist

from ._numbers import convert_to_tensor
from ._operators import Operators

if TYPE_CHECKING:
    from ._values import IndexedSlices
    from ._variable import Variable


def in_place(array: Any, how: libdist.Assign, value: Any) -> None:
    """Assigns to an array."""
    if value.shape != array.shape:
        raise libdist.InvalidArgument(f"the value has the shape {value.shape}, the variable {array.shape}")
    if how == libdist.Assign.SET:
        array[...] = value
    elif how == libdist.Assign.ADD:
        np.add(array, value, out=array)
    else:
        np.subtract(array, value, out=array)


_SCATTER: dict[libdist.Scatter, Callable[[Any, Any], Any]] = {
    libdist.Scatter.ADD: np.add,
    libdist.Scatter.SUB: np.subtract,
    libdist.Scatter.UPDATE: lambda row, value: value,
    libdist.Scatter.MUL: np.multiply,
    libdist.Scatter.DIV: np.divide,
    libdist.Scatter.MIN: np.minimum,
    libdist.Scatter.MAX: np.maximum,
}


def scatter_in_place(array: Any, how: libdist.Scatter, slices: IndexedSlices) -> None:
    """Changes rows of an array, one after another: of an index that comes twice both count."""
    indices = slices.indices.reshape(-1)
    if indices.size and not 0 <= indices.min() <= indices.max() < len(array):
        raise libdist.InvalidArgument(f"an index is outside the variable, which has {len(array)} rows: {indices}")
    for index, value in zip(indices, slices.values):
        array[index] = _SCATTER[how](array[index], value)


class Assignable(Operators):
    """assign() and scatter_add() with their kin, over two methods."""

    def _assign(self, how: libdist.Assign, value: Any) -> Any:
        raise NotImplementedError

    def _scatter(self, how: libdist.Scatter, slices: IndexedSlices) -> Any:
        raise NotImplementedError

    def assign(self, value: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> Any:
        """Gives it a value; inside replicas by the variable's aggregation."""
        return self._assign(libdist.Assign.SET, value)

    def assign_add(self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> Any:
        """Adds to it; inside replicas by the variable's aggregation."""
        return self._assign(libdist.Assign.ADD, delta)

    def assign_sub(self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> Any:
        """Subtracts from it; inside replicas by the variable's aggregation."""
        return self._assign(libdist.Assign.SUB, delta)

    def scatter_add(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None) -> Any:
        """Adds to rows."""
        return self._scatter(libdist.Scatter.ADD, sparse_delta)

    def scatter_sub(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None) -> Any:
        """Subtracts from rows."""
        return self._scatter(libdist.Scatter.SUB, sparse_delta)

    def scatter_update(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None) -> Any:
        """Gives rows values."""
        return self._scatter(libdist.Scatter.UPDATE, sparse_delta)

    def scatter_mul(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None) -> Any:
        """Multiplies rows."""
        return self._scatter(libdist.Scatter.MUL, sparse_delta)

    def scatter_div(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None) -> Any:
        """Divides rows."""
        return self._scatter(libdist.Scatter.DIV, sparse_delta)

    def scatter_min(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None) -> Any:
        """Takes the smaller of rows and values."""
        return self._scatter(libdist.Scatter.MIN, sparse_delta)

    def scatter_max(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None) -> Any:
        """Takes the larger of rows and values."""
        return self._scatter(libdist.Scatter.MAX, sparse_delta)


class Copy(Assignable):
    """One copy of a variable. Assigning to it changes it alone."""

    def __init__(self, variable: Variable, replica_id: int) -> None:
        self._variable = variable
        self._replica_id = replica_id

    def _array(self) -> Any:
        return self._variable._native.component(self._replica_id)

    @property
    def name(self) -> str:
        """ "w:0", "w/replica_1:0" ..."""
        return f"{self._variable._native.copy_name(self._replica_id)}:0"

    @property
    def dtype(self) -> Any:
        """NumPy's dtype of the elements."""
        return self._variable.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's."""
        return self._variable.shape

    @property
    def device(self) -> str:
        """The name of the device that it is on."""
        return self._variable._native.device(self._replica_id)

    @property
    def trainable(self) -> bool:
        """The variable's."""
        return self._variable.trainable

    def read_value(self) -> Any:
        """The value now, as a new array."""
        return self._array().copy()

    def _assign(self, how: libdist.Assign, value: Any) -> Copy:
        in_place(self._array(), how, convert_to_tensor(value, self.dtype))
        return self

    def _scatter(self, how: libdist.Scatter, slices: IndexedSlices) -> Copy:
        scatter_in_place(self._array(), how, slices)
        return self

    def __repr__(self) -> str:
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype}, numpy={self.read_value()!r}>"

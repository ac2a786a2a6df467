# SPDX-License-Identifier: Apache-2.0
"""One copy of a variable: the argument of update functions, and an item of local results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import numpy as np

import libdist
from libdist._arguments import checked

from ._missing import Refusing
from ._numbers import convert_to_tensor
from ._tensor import Holder, Tensor, TensorShape, described, plain, tensor_of

if TYPE_CHECKING:
    from ._composites import IndexedSlices
    from ._variable import Variable


def in_place(array: Any, how: libdist.Assign, value: Any) -> None:
    """Assigns to an array in place."""
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
    """Changes rows of an array, one after another. If an index occurs twice, both rows apply."""
    indices = plain(slices.indices).reshape(-1)
    if indices.size and not 0 <= indices.min() <= indices.max() < len(array):
        raise libdist.InvalidArgument(f"an index is outside the variable, which has {len(array)} rows: {indices}")
    for index, value in zip(indices, plain(slices.values)):
        array[index] = _SCATTER[how](array[index], value)


class Reference:
    """The result of Variable.ref(). It can be a key, while a variable cannot, because its `==` compares elements."""

    def __init__(self, variable: Any) -> None:
        self._variable = variable

    def deref(self) -> Any:
        """Returns the variable."""
        return self._variable

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._variable is other._variable

    def __hash__(self) -> int:
        return id(self._variable)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._variable!r}>"


class Slice(Tensor):
    """The result of v[index]: a tensor, through which that part of the variable can be changed."""

    _variable: Any = None
    _index: Any = None

    def _assigned(self, change: Callable[[Any, Any], Any], value: Any) -> Any:
        whole = plain(self._variable.read_value()).copy()
        whole[self._index] = change(whole[self._index], plain(convert_to_tensor(value, whole.dtype)))
        return self._variable.assign(whole)

    def assign(self, value: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> Any:
        """Assigns a value to this part of the variable."""
        return self._assigned(lambda part, given: given, value)

    def assign_add(self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> Any:
        """Adds a value to this part of the variable."""
        return self._assigned(np.add, delta)

    def assign_sub(self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> Any:
        """Subtracts a value from this part of the variable."""
        return self._assigned(np.subtract, delta)


@checked
class Assignable(Holder, Refusing):
    """The methods that variables and their copies share, such as assign() and scatter_add()."""

    _tf_name = "tf.Variable"

    def __hash__(self) -> int:
        raise TypeError(f"Variable is unhashable. Instead, use variable.ref() as the key. (Variable: {self!r})")

    def __getitem__(self, index: Any) -> Any:
        part = np.asarray(plain(self)[plain(index)]).view(Slice)
        part._variable, part._index = self, plain(index)
        return part

    def value(self) -> Any:
        """Returns the value, like read_value()."""
        return self.read_value()

    def ref(self) -> Reference:
        """Returns an object that stands for the variable in dictionaries and sets."""
        return Reference(self)

    experimental_ref = ref

    def set_shape(self, shape: Any) -> None:
        """Does nothing if this is the shape; otherwise raises ValueError."""
        if any(given not in (None, size) for given, size in zip(shape, self.shape)) or len(shape) != len(self.shape):
            raise ValueError(f"Shapes {self.shape} and {tuple(shape)} are not compatible")

    def is_initialized(self, name: Any = None) -> Any:
        """Returns True: the variable always has a value."""
        return tensor_of(np.bool_(True))

    @property
    def initializer(self) -> None:
        """None: the variable always has a value."""
        return None

    @property
    def initial_value(self) -> Any:
        """Raises RuntimeError, as in TensorFlow's eager mode: the initial value is not kept."""
        raise libdist.FailedPrecondition("the initial value is not kept: read_value() is the value now")

    def sparse_read(self, indices: Any, name: Any = None) -> Any:
        """Returns rows by their numbers."""
        return tensor_of(np.take(plain(self), plain(convert_to_tensor(indices)), axis=0))

    def gather_nd(self, indices: Any, name: Any = None) -> Any:
        """Returns elements by their positions: [..., dimensions]."""
        return tensor_of(plain(self)[tuple(np.moveaxis(plain(convert_to_tensor(indices)), -1, 0))])

    def load(self, value: Any, session: Any = None) -> None:
        """Assigns a value, like assign()."""
        self.assign(value)

    def _assign(self, how: libdist.Assign, value: Any) -> Any:
        raise NotImplementedError

    def _scatter(self, how: libdist.Scatter, slices: IndexedSlices) -> Any:
        raise NotImplementedError

    def assign(self, value: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> Any:
        """Assigns a value; inside replicas, according to the variable's aggregation."""
        changed = self._assign(libdist.Assign.SET, value)
        return changed if read_value else None

    def assign_add(self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> Any:
        """Adds a value; inside replicas, according to the variable's aggregation."""
        changed = self._assign(libdist.Assign.ADD, delta)
        return changed if read_value else None

    def assign_sub(self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> Any:
        """Subtracts a value; inside replicas, according to the variable's aggregation."""
        changed = self._assign(libdist.Assign.SUB, delta)
        return changed if read_value else None

    def scatter_add(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None) -> Any:
        """Adds values to rows."""
        return self._scatter(libdist.Scatter.ADD, sparse_delta)

    def scatter_sub(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None) -> Any:
        """Subtracts values from rows."""
        return self._scatter(libdist.Scatter.SUB, sparse_delta)

    def scatter_update(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None) -> Any:
        """Replaces rows."""
        return self._scatter(libdist.Scatter.UPDATE, sparse_delta)

    def scatter_mul(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None) -> Any:
        """Multiplies rows by values."""
        return self._scatter(libdist.Scatter.MUL, sparse_delta)

    def scatter_div(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None) -> Any:
        """Divides rows by values."""
        return self._scatter(libdist.Scatter.DIV, sparse_delta)

    def scatter_min(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None) -> Any:
        """Replaces elements of rows by smaller values."""
        return self._scatter(libdist.Scatter.MIN, sparse_delta)

    def scatter_max(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None) -> Any:
        """Replaces elements of rows by larger values."""
        return self._scatter(libdist.Scatter.MAX, sparse_delta)


class Copy(Assignable):
    """One copy of a variable. Assigning to it changes only this copy."""

    def __init__(self, variable: Variable, copy: int) -> None:
        """copy: index of the copy among those of this worker."""
        self._variable = variable
        self._copy = copy

    def _array(self) -> Any:
        return self._variable._native._copy(self._copy)

    def _whole(self) -> Variable:
        """Returns the variable to which the copy belongs."""
        return self._variable

    @property
    def synchronization(self) -> Any:
        """The variable's synchronization."""
        return self._variable.synchronization

    @property
    def aggregation(self) -> Any:
        """The variable's aggregation."""
        return self._variable.aggregation

    @property
    def constraint(self) -> Any:
        """The variable's constraint."""
        return self._variable.constraint

    @property
    def name(self) -> str:
        """The name of the copy: "w:0", "w/replica_1:0" ..."""
        return f"{self._variable._native.copy_name(self._copy)}:0"

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of the elements."""
        return self._variable.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the tensor."""
        return self._variable.shape

    @property
    def device(self) -> str:
        """The name of the device of the copy."""
        return self._variable._native.device(self._copy)

    @property
    def trainable(self) -> bool:
        """Whether the variable is trainable."""
        return self._variable.trainable

    def read_value(self) -> Any:
        """Returns the current value, as a new array."""
        return tensor_of(self._array().copy())

    def _assign(self, how: libdist.Assign, value: Any) -> Copy:
        in_place(self._array(), how, plain(convert_to_tensor(value, self.dtype)))
        return self

    def _scatter(self, how: libdist.Scatter, slices: IndexedSlices) -> Copy:
        scatter_in_place(self._array(), how, slices)
        return self

    def __repr__(self) -> str:
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype}, numpy={described(self)}>"

# SPDX-License-Identifier: Apache-2.0
"""Tensors that consist of several tensors: indexed slices, ragged tensors and sparse tensors.

libdist passes, splits and reduces them. Everything else is what NumPy can do with their parts.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, Optional

import numpy as np

import libdist
from libdist._arguments import checked

from ._missing import Refusing
from ._numbers import convert_to_tensor
from ._tensor import TensorShape, plain, tensor_of


class Composite(Refusing):
    """The base class of tensors that consist of several tensors."""

    _kind: libdist.ValueKind
    values: Any

    def _parts(self) -> list[Any]:
        raise NotImplementedError

    def _as_value_of(self, strategy: libdist.Strategy) -> libdist.Value:
        return strategy.composite(self._kind, [plain(part) for part in self._parts()])

    def _with_parts(self, fn: Callable[[Any], Any]) -> Any:
        """Returns an object of the same kind, with other tensors."""
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        raise libdist.InvalidArgument(f"{self._tf_name} is no single tensor: {self}")

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of the elements."""
        return self.values.dtype

    def get_shape(self) -> Any:
        """Returns the shape."""
        return self.shape

    @property
    def shape(self) -> Any:
        """The shape of the tensor that it stands for; None for sizes that differ or are not known."""
        raise NotImplementedError


@checked
class IndexedSlices(Composite):
    """Rows of a larger tensor (tf.IndexedSlices)."""

    _kind = libdist.ValueKind.INDEXED_SLICES
    _tf_name = "tf.IndexedSlices"

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values = convert_to_tensor(values)
        """The rows."""
        self.indices = convert_to_tensor(indices)
        """The positions of the rows in the larger tensor."""
        self.dense_shape = None if dense_shape is None else convert_to_tensor(dense_shape)
        """The shape of the larger tensor, if it is known."""

    def _parts(self) -> list[Any]:
        return [self.values, self.indices, self.dense_shape]

    def _with_parts(self, fn: Callable[[Any], Any]) -> IndexedSlices:
        return IndexedSlices(*(None if part is None else fn(part) for part in self._parts()))

    @property
    def shape(self) -> Any:
        """The shape of the larger tensor."""
        known = None if self.dense_shape is None else self.dense_shape.tolist()
        return TensorShape(known) if known is not None else (None, *self.values.shape[1:])

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        """Returns the larger tensor. If an index occurs twice, both rows are added."""
        if self.dense_shape is None:
            raise libdist.InvalidArgument("IndexedSlices without a dense_shape are no tensor: nobody knows its size")
        array = np.zeros(self.shape, dtype or self.dtype)
        np.add.at(array, plain(self.indices), plain(self.values))
        return array

    def __str__(self) -> str:
        shape = "" if self.dense_shape is None else f", dense_shape={self.dense_shape}"
        return f"IndexedSlices(indices={self.indices}, values={self.values}{shape})"

    __repr__ = __str__


@checked
class RaggedTensor(Composite):
    """Rows of different lengths (tf.RaggedTensor). Create it with from_row_splits(), nested from the inside out."""

    _kind = libdist.ValueKind.RAGGED
    _tf_name = "tf.RaggedTensor"

    def __init__(self, flat_values: Any, nested_row_splits: tuple[Any, ...]) -> None:
        self.flat_values = convert_to_tensor(flat_values)
        """All elements, one row after another."""
        self.nested_row_splits = tuple(convert_to_tensor(splits, np.int64) for splits in nested_row_splits)
        """The row splits, outermost first."""

    @staticmethod
    def from_row_splits(values: Any, row_splits: Any) -> RaggedTensor:
        """Creates a ragged tensor in which row i is values[row_splits[i]:row_splits[i + 1]]."""
        if isinstance(values, RaggedTensor):
            return RaggedTensor(values.flat_values, (row_splits, *values.nested_row_splits))
        return RaggedTensor(values, (row_splits,))

    @staticmethod
    def from_row_lengths(values: Any, row_lengths: Any) -> RaggedTensor:
        """Creates a ragged tensor in which row i has row_lengths[i] values."""
        return RaggedTensor.from_row_splits(values, np.concatenate([[0], np.cumsum(np.asarray(row_lengths))]))

    @staticmethod
    def from_rows(rows: Iterable[Any]) -> RaggedTensor:
        """Creates a ragged tensor from tensors, one for each row, or from ragged tensors. Not in TensorFlow."""
        given = [row if isinstance(row, RaggedTensor) else convert_to_tensor(row) for row in rows]
        if given and isinstance(given[0], RaggedTensor):
            inner = RaggedTensor.from_rows(row for one in given for row in one)
            return RaggedTensor.from_row_lengths(inner, [one.nrows() for one in given])
        arrays = [plain(row) for row in given]
        values = np.concatenate(arrays) if arrays else np.zeros(0, np.float32)
        return RaggedTensor.from_row_lengths(tensor_of(values), [len(array) for array in arrays])

    @property
    def values(self) -> Any:
        """The elements of the rows: a tensor, or a ragged tensor with one dimension less."""
        inner = self.nested_row_splits[1:]
        return RaggedTensor(self.flat_values, inner) if inner else self.flat_values

    @property
    def row_splits(self) -> Any:
        """The row splits of the outermost dimension."""
        return self.nested_row_splits[0]

    @property
    def ragged_rank(self) -> int:
        """The number of dimensions with sizes that differ."""
        return len(self.nested_row_splits)

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of the elements."""
        return self.flat_values.dtype

    @property
    def shape(self) -> Any:
        """The shape, with None for each dimension with sizes that differ."""
        return (self.nrows(), *[None] * self.ragged_rank, *self.flat_values.shape[1:])

    def nrows(self) -> int:
        """Returns the number of rows."""
        return len(self.row_splits) - 1

    def row_lengths(self) -> Any:
        """Returns the number of values of each row."""
        return self.row_splits[1:] - self.row_splits[:-1]

    def to_list(self) -> list[Any]:
        """Returns the rows as nested lists."""
        rows: list[Any] = self.flat_values.tolist()
        for splits in reversed(self.nested_row_splits):
            rows = [rows[begin:end] for begin, end in zip(splits.tolist()[:-1], splits.tolist()[1:])]
        return rows

    def to_tensor(self, default_value: Any = 0) -> Any:
        """Returns a tensor as wide as the longest row, padded with default_value; for one ragged dimension."""
        if self.ragged_rank != 1:
            raise libdist.Unimplemented("to_tensor() is of one ragged dimension: use to_list()")
        lengths = self.row_lengths().tolist()
        shape = (self.nrows(), max(lengths, default=0), *self.flat_values.shape[1:])
        array = np.full(shape, default_value, self.dtype)
        for row, length in enumerate(lengths):
            array[row, :length] = self[row]
        return tensor_of(array)

    def numpy(self) -> Any:
        """Returns an array of arrays, one for each row; a single array if all rows have equal lengths."""
        rows = [row.numpy() for row in self]
        if len({np.shape(row) for row in rows}) <= 1:
            return np.array(rows)
        array = np.empty(len(rows), object)
        array[:] = rows
        return array

    def _parts(self) -> list[Any]:
        return [self.flat_values, *self.nested_row_splits]

    def _with_parts(self, fn: Callable[[Any], Any]) -> RaggedTensor:
        return RaggedTensor(fn(self.flat_values), tuple(fn(splits) for splits in self.nested_row_splits))

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(self.nrows()))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return RaggedTensor.from_rows([self[row] for row in range(self.nrows())[index]])
        row = range(self.nrows())[index]
        begin, end = int(self.row_splits[row]), int(self.row_splits[row + 1])
        return self.values[begin:end]

    def __repr__(self) -> str:
        return f"<tf.RaggedTensor {self.to_list()}>"


@checked
class SparseTensor(Composite):
    """Single elements of a tensor (tf.SparseTensor)."""

    _kind = libdist.ValueKind.SPARSE
    _tf_name = "tf.SparseTensor"

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self.indices = convert_to_tensor(indices, np.int64)
        """The positions of the elements: [k, dimensions]."""
        self.values = convert_to_tensor(values)
        """The elements: [k]."""
        self.dense_shape = convert_to_tensor(dense_shape, np.int64)
        """The shape of the tensor."""

    def _parts(self) -> list[Any]:
        return [self.indices, self.values, self.dense_shape]

    def _with_parts(self, fn: Callable[[Any], Any]) -> SparseTensor:
        return SparseTensor(*map(fn, self._parts()))

    @property
    def shape(self) -> Any:
        """The shape of the tensor."""
        return TensorShape(self.dense_shape.tolist())

    def rows(self) -> list[SparseTensor]:
        """Splits the tensor along its first dimension. Not in TensorFlow."""
        first = plain(self.indices)[:, 0]
        sizes = plain(self.dense_shape)[1:]
        kept = [first == row for row in range(self.shape[0])]
        return [SparseTensor(self.indices[rows, 1:], self.values[rows], sizes) for rows in kept]

    @staticmethod
    def of_rows(rows: list[SparseTensor]) -> SparseTensor:
        """Joins rows to a tensor; the reverse of rows(). Not in TensorFlow."""
        numbers = np.repeat(np.arange(len(rows)), [len(row.values) for row in rows])
        indices = np.concatenate([plain(row.indices) for row in rows])
        values = np.concatenate([plain(row.values) for row in rows])
        sizes = [len(rows), *plain(rows[0].dense_shape)]
        return SparseTensor(np.column_stack([numbers, indices]), tensor_of(values), sizes)

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self.indices}, values={self.values}, dense_shape={self.dense_shape})"


def composite_of(value: libdist.Value) -> Any:
    """Returns the object for a value that consists of several tensors."""
    parts = [tensor_of(part) for part in value]
    if value.kind == libdist.ValueKind.RAGGED:
        return RaggedTensor(parts[0], tuple(parts[1:]))
    kind = IndexedSlices if value.kind == libdist.ValueKind.INDEXED_SLICES else SparseTensor
    return kind(*parts)


@checked
def ragged_constant(pylist: Any, dtype: Any = None, ragged_rank: Optional[int] = None) -> RaggedTensor:
    """tf.ragged.constant(): creates a ragged tensor from nested lists."""
    if ragged_rank is None:
        ragged_rank = max(1, _depth(pylist) - 1)
    if ragged_rank <= 1:
        rows = [convert_to_tensor(row, dtype) for row in pylist]
        kind = np.result_type(*(row.dtype for row in rows if row.size)) if any(row.size for row in rows) else None
        return RaggedTensor.from_rows([row if row.size or kind is None else row.astype(kind) for row in rows])
    return RaggedTensor.from_rows([ragged_constant(row, dtype, ragged_rank - 1) for row in pylist])


def _depth(nest: Any) -> int:
    return 1 + max(map(_depth, nest), default=0) if isinstance(nest, (list, tuple)) else 0


@checked
def sparse_to_dense(sp_input: SparseTensor, default_value: Any = 0) -> Any:
    """tf.sparse.to_dense(): returns the dense tensor."""
    array = np.full(sp_input.shape, default_value, sp_input.dtype)
    array[tuple(plain(sp_input.indices).T)] = sp_input.values
    return tensor_of(array)


def sparse_from_dense(tensor: Any) -> SparseTensor:
    """tf.sparse.from_dense(): returns the elements that are not zero."""
    array = plain(convert_to_tensor(tensor))
    return SparseTensor(np.argwhere(array), array[array != 0], array.shape)

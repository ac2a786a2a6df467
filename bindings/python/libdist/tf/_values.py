# SPDX-License-Identifier: Apache-2.0
"""What runs give back: one thing for each replica; and tensors made of several, as TensorFlow's classes."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

import libdist

from ._numbers import convert_to_tensor


class DistributedValues:
    """One thing for each replica: `values` in the order of replica ids."""

    def __init__(self, native: libdist.Value, strategy: libdist.Strategy) -> None:
        self._value = native
        self._strategy = strategy
        self._values: Optional[tuple[Any, ...]] = None

    @property
    def values(self) -> tuple[Any, ...]:
        """The replicas' things: the very objects that they returned, or arrays over libdist's memory."""
        if self._values is None:
            from ._convert import from_native

            self._values = tuple(from_native(item, self._strategy) for item in self._value)
        return self._values

    def __repr__(self) -> str:
        rows = "".join(f"  {replica}: {value!r}\n" for replica, value in enumerate(self.values))
        return f"{type(self).__name__}:{{\n{rows}}}"


class PerReplica(DistributedValues):
    """Things that may differ from replica to replica."""


class Mirrored(DistributedValues):
    """Things that are equal on all replicas."""

    def _primary(self) -> Any:
        return np.asarray(self.values[0])

    def numpy(self) -> Any:
        """The tensor that all replicas have."""
        return self._primary()

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        return self._primary() if dtype is None else self._primary().astype(dtype, copy=False)


class _Composite:
    _kind: libdist.ValueKind

    def _parts(self) -> list[Any]:
        raise NotImplementedError

    def _as_value_of(self, strategy: libdist.Strategy) -> libdist.Value:
        return libdist.Value.composite(strategy, self._kind, self._parts())


class IndexedSlices(_Composite):
    """Rows of a larger tensor (tf.IndexedSlices)."""

    _kind = libdist.ValueKind.INDEXED_SLICES

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values = convert_to_tensor(values)
        """The rows."""
        self.indices = convert_to_tensor(indices)
        """Which rows they are."""
        self.dense_shape = None if dense_shape is None else convert_to_tensor(dense_shape)
        """Of the larger tensor, where it is known."""

    def _parts(self) -> list[Any]:
        return [self.values, self.indices, self.dense_shape]


class RaggedTensor(_Composite):
    """Rows of different lengths (tf.RaggedTensor); made by from_row_splits(), nested from the inside out."""

    _kind = libdist.ValueKind.RAGGED

    def __init__(self, flat_values: Any, nested_row_splits: tuple[Any, ...]) -> None:
        self.flat_values = convert_to_tensor(flat_values)
        """All elements, one row after another."""
        self.nested_row_splits = tuple(convert_to_tensor(splits) for splits in nested_row_splits)
        """Where rows begin and end, from the outside in."""

    @staticmethod
    def from_row_splits(values: Any, row_splits: Any) -> RaggedTensor:
        """Row i is values[row_splits[i]:row_splits[i + 1]]."""
        if isinstance(values, RaggedTensor):
            return RaggedTensor(values.flat_values, (row_splits, *values.nested_row_splits))
        return RaggedTensor(values, (row_splits,))

    def to_list(self) -> list[Any]:
        """The rows as nested lists."""
        rows: list[Any] = self.flat_values.tolist()
        for splits in reversed(self.nested_row_splits):
            rows = [rows[begin:end] for begin, end in zip(splits[:-1], splits[1:])]
        return rows

    def _parts(self) -> list[Any]:
        return [self.flat_values, *self.nested_row_splits]


class SparseTensor(_Composite):
    """Single elements of a tensor (tf.SparseTensor)."""

    _kind = libdist.ValueKind.SPARSE

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self.indices = convert_to_tensor(indices)
        """Where they are: [k, dimensions]."""
        self.values = convert_to_tensor(values)
        """What they are."""
        self.dense_shape = convert_to_tensor(dense_shape)
        """Of the tensor."""

    def _parts(self) -> list[Any]:
        return [self.indices, self.values, self.dense_shape]


def composite_of(value: libdist.Value) -> Any:
    """The object of a value that is made of several tensors."""
    parts = list(value)
    if value.kind == libdist.ValueKind.RAGGED:
        return RaggedTensor(parts[0], tuple(parts[1:]))
    kind = IndexedSlices if value.kind == libdist.ValueKind.INDEXED_SLICES else SparseTensor
    return kind(*parts)

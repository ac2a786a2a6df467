# SPDX-License-Identifier: Apache-2.0
"""Distributed values: one object for each replica."""

from __future__ import annotations

from typing import Any, Optional

import libdist

from ._missing import Refusing
from ._numbers import convert_to_tensor
from ._tensor import Holder, tensor_of


class DistributedValues(Refusing):
    """One object for each replica: `values` in the order of replica ids."""

    _tf_name = "tf.distribute.DistributedValues"

    def __init__(self, native: libdist.Value, strategy: libdist.Strategy) -> None:
        self._value = native
        self._strategy = strategy
        self._values: Optional[tuple[Any, ...]] = None

    @property
    def values(self) -> tuple[Any, ...]:
        """The objects of the replicas: the same objects that they returned, or arrays over libdist's memory."""
        if self._values is None:
            from ._convert import from_native

            self._values = tuple(from_native(item, self._strategy) for item in self._value)
        return self._values

    def _as_tensors(self) -> DistributedValues:
        """Returns the value with tensors in place of Python's numbers."""
        numbers = (bool, int, float, complex)
        if any(isinstance(value, numbers) for value in self.values):
            self._values = tuple(
                convert_to_tensor(value) if isinstance(value, numbers) else value for value in self.values
            )
        return self

    def _rows(self, show: Any) -> str:
        rows = (f"  {replica}: {show(value)}" for replica, value in enumerate(self.values))
        return f"{type(self).__name__}:{{\n" + ",\n".join(rows) + "\n}"

    def __repr__(self) -> str:
        return self._rows(repr)

    def __str__(self) -> str:
        return self._rows(str)


class PerReplica(DistributedValues):
    """Objects that may differ between replicas."""


class Mirrored(Holder, DistributedValues):
    """Objects that are equal on all replicas. Operators and functions use it like the tensor that they are."""

    _tf_name = "tf.Tensor"

    def read_value(self) -> Any:
        """Returns the tensor that all replicas have."""
        return tensor_of(self.values[0])

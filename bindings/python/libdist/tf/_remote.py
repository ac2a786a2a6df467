# SPDX-License-Identifier: Apache-2.0
"""Variables on parameter servers, as programs with a ParameterServerStrategy use them.

Every process of the job runs the program and so has the same variables, by name. The coordinator's process reads and
changes them immediately, and a worker does so in the functions that it runs for the coordinator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional

import numpy as np

import libdist

from ._closures import Place, Reference, Running, running
from ._composites import IndexedSlices
from ._context import face_of
from ._copies import Assignable
from ._numbers import convert_to_tensor
from ._tensor import Holder, TensorShape, described, plain, tensor_of
from ._values import DistributedValues

if TYPE_CHECKING:
    from ._options import VariableAggregation, VariableSynchronization
    from ._parameter_servers import ParameterServerStrategy


def owner() -> Optional[ParameterServerStrategy]:
    """Returns the ParameterServerStrategy that is current on this thread; None for other strategies."""
    native = libdist.get_strategy()
    if native.kind != libdist.StrategyKind.PARAMETER_SERVER:
        return None
    from ._parameter_servers import ParameterServerStrategy

    face = face_of(native)
    return face if isinstance(face, ParameterServerStrategy) else None


class Description(NamedTuple):
    """The description of a variable, which every process has."""

    key: str
    """The name on parameter servers: that of the variable, with a number if another variable has the same name."""
    name: str
    dtype: Any
    shape: tuple[int, ...]
    trainable: bool
    constraint: Optional[Callable[[Any], Any]]
    synchronization: VariableSynchronization
    aggregation: VariableAggregation


class RemoteVariable(Reference, Assignable):
    """A variable on parameter servers."""

    _sent_kind = "variable"
    _plain = False

    def __init__(self, strategy: ParameterServerStrategy, description: Description) -> None:
        self._strategy = strategy
        self._owner = strategy._native
        self._is = description
        self._sent_name = description.key

    @property
    def name(self) -> str:
        """The name as in TensorFlow: "w:0"."""
        return f"{self._is.name}:0"

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of the elements."""
        return self._is.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the tensor."""
        return TensorShape(self._is.shape)

    @property
    def trainable(self) -> bool:
        """Whether the variable is trainable."""
        return self._is.trainable

    @property
    def constraint(self) -> Optional[Callable[[Any], Any]]:
        """The constraint for optimizers."""
        return self._is.constraint

    @property
    def synchronization(self) -> VariableSynchronization:
        """The synchronization that was passed. The variable has only one copy."""
        return self._is.synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """The aggregation that was passed. The variable has only one copy."""
        return self._is.aggregation

    @property
    def distribute_strategy(self) -> ParameterServerStrategy:
        """The strategy that created the variable."""
        return self._strategy

    def _place(self) -> Place:
        now = running()
        if now is not None and now.number == self._strategy._number:
            return now
        return self._strategy._job(f"variable {self._is.name}")

    def _given(self, value: Any) -> Any:
        if isinstance(value, DistributedValues):
            value = value.values[0]
        array = plain(convert_to_tensor(value, self._is.dtype))
        # The memory is used until the closure has finished, so an array of the program is copied.
        return array if isinstance(value, (Holder, int, float, complex, list, tuple)) else np.array(array)

    def _rows(self, slices: Any) -> IndexedSlices:
        if isinstance(slices, DistributedValues):
            slices = slices.values[0]
        if not isinstance(slices, IndexedSlices):
            raise TypeError(f"sparse_delta is not IndexedSlices: {slices!r}")
        return IndexedSlices(self._given(slices.values), np.array(plain(convert_to_tensor(slices.indices))).reshape(-1))

    def read_value(self) -> Any:
        """Returns the current value; inside a function on a worker, including its own changes."""
        return tensor_of(np.asarray(self._place().read(self._is.key)))

    def sparse_read(self, indices: Any, name: Any = None) -> Any:
        """Returns rows by their numbers. Only these rows are sent."""
        which = plain(convert_to_tensor(indices))
        rows = np.asarray(self._read_rows(which.reshape(-1)))
        return tensor_of(rows.reshape((*which.shape, *rows.shape[1:])))

    def _read_rows(self, indices: Any) -> Any:
        return self._place().read_rows(self._is.key, indices)

    def _assign(self, how: libdist.Assign, value: Any) -> Any:
        self._place().assign(self._is.key, self._given(value), how)
        return self

    def _scatter(self, how: libdist.Scatter, slices: Any) -> Any:
        self._change_rows(how, self._rows(slices))
        return self

    def _change_rows(self, how: libdist.Scatter, slices: IndexedSlices) -> None:
        place = self._place()
        if isinstance(place, Running):
            place.scatter(self._is.key, how, slices)
        else:
            place.scatter(self._is.key, how, (plain(slices.values), plain(slices.indices)))

    def _whole(self) -> RemoteVariable:
        return self

    def __deepcopy__(self, memo: Any) -> RemoteVariable:
        return self  # there is only one variable, on the servers

    def __repr__(self) -> str:
        try:
            value = f", numpy={described(self.read_value())}"
        except libdist.DistError:  # on a worker, outside closures
            value = ""
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype}{value}>"


class CachingVariable(RemoteVariable):
    """A variable on one parameter server."""

    @property
    def device(self) -> str:
        """The device that holds the variable: "/job:ps/replica:0/task:1/device:CPU:0"."""
        return self._strategy._device(self._is.key, 0)


class ShardVariable(RemoteVariable):
    """A part of a divided variable: some of its rows."""

    _sent_kind = "part"

    def __init__(self, whole: ShardedVariable, part: int, rows: libdist.Rows) -> None:
        super().__init__(whole._strategy, whole._is._replace(shape=(rows.size, *whole._is.shape[1:])))
        self._part, self._begin = part, rows.begin
        self._sent_name = f"{part}/{whole._is.key}"

    @property
    def name(self) -> str:
        """The name as in TensorFlow: "w/part_1:0"."""
        return f"{self._is.name}/part_{self._part}:0"

    @property
    def device(self) -> str:
        """The device that holds the part."""
        return self._strategy._device(self._is.key, self._part)

    def read_value(self) -> Any:
        """Returns the current rows."""
        return tensor_of(np.asarray(self._read_rows(np.arange(self._is.shape[0]))))

    def _read_rows(self, indices: Any) -> Any:
        return super()._read_rows(self._within(indices))

    def _within(self, indices: Any) -> Any:
        rows = self._is.shape[0]
        if indices.size and not 0 <= indices.min() <= indices.max() < rows:
            raise libdist.InvalidArgument(f"an index is outside of {self.name}, which has {rows} rows: {indices}")
        return indices + self._begin

    def _assign(self, how: libdist.Assign, value: Any) -> Any:
        given = self._given(value)
        if given.shape != self._is.shape:
            raise libdist.InvalidArgument(f"the value has the shape {given.shape}, {self.name} {self._is.shape}")
        ways = {
            libdist.Assign.SET: libdist.Scatter.UPDATE,
            libdist.Assign.ADD: libdist.Scatter.ADD,
            libdist.Assign.SUB: libdist.Scatter.SUB,
        }
        return self._scatter(ways[how], IndexedSlices(given, np.arange(self._is.shape[0])))

    def _change_rows(self, how: libdist.Scatter, slices: IndexedSlices) -> None:
        super()._change_rows(how, IndexedSlices(slices.values, self._within(plain(slices.indices))))


class ShardedVariable(RemoteVariable):
    """A variable whose first dimension is divided over parameter servers."""

    def __init__(self, strategy: ParameterServerStrategy, description: Description, num_parts: int) -> None:
        super().__init__(strategy, description)
        self._num_parts = num_parts

    @property
    def variables(self) -> list[ShardVariable]:
        """The parts, in the order of their rows."""
        rows, parts = self._is.shape[0], self._num_parts
        return [ShardVariable(self, part, libdist.rows_of_part(rows, parts, part)) for part in range(parts)]

    def __iter__(self) -> Any:
        return iter(self.variables)

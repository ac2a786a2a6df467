# SPDX-License-Identifier: Apache-2.0
"""tf.Variable: a tensor that outlives runs, with a copy for each replica of the strategy that it is made under."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Optional

import libdist

from ._context import face_of
from ._convert import interned, tensors
from ._copies import Assignable, Copy, in_place, scatter_in_place
from ._numbers import convert_to_tensor
from ._options import VariableAggregation, VariableSynchronization, native_aggregation, native_synchronization
from ._values import DistributedValues, IndexedSlices, PerReplica

if TYPE_CHECKING:
    from ._strategy import Strategy


class Variable(Assignable):
    """Made inside a strategy's scope it is that strategy's; inside replicas all of them make it together."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        replica = libdist.get_replica()
        if replica is None:
            return super().__new__(cls)
        # Inside replicas, and outside of all, where a thread is one: made once, and the same object for all.
        return replica.merge_call(lambda strategy: _made(cls, args, kwargs))

    def __init__(
        self,
        initial_value: Any = None,
        trainable: Optional[bool] = None,
        validate_shape: bool = True,
        name: Optional[str] = None,
        dtype: Any = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
    ) -> None:
        """initial_value: a tensor, or a function that gives one."""
        if hasattr(self, "_native"):
            return
        if initial_value is None:
            raise ValueError("The `initial_value` arg to `tf.Variable` cannot be None")
        strategy = libdist.get_strategy()
        options = {
            "name": name or "Variable",
            "trainable": trainable,
            "synchronization": native_synchronization(synchronization),
            "aggregation": native_aggregation(aggregation),
        }
        given = initial_value() if callable(initial_value) else initial_value
        array = convert_to_tensor(given, dtype)
        self._owner = strategy
        self._dtype = array.dtype
        self._shape = tuple(array.shape)
        # Outside of scopes a variable is any program's: strategies may use it as TensorFlow's plain ones.
        self._plain = not libdist.has_strategy()
        self._native = strategy.variable(array, **options)
        _faces[id(self._native)] = self

    @staticmethod
    def _of(native: libdist.Variable) -> Any:
        """The face of a variable; of one that was made otherwise, a new one."""
        face = _faces.get(id(native))
        if face is None:
            face = object.__new__(Variable)
            first = native.component(0)
            face._owner, face._native, face._plain = libdist.get_strategy(), native, False
            face._dtype, face._shape = first.dtype, tuple(first.shape)
            _faces[id(native)] = face
        return face

    # ---- what it is ---------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """As TensorFlow has it: "w:0"."""
        return f"{self._native.name}:0"

    @property
    def dtype(self) -> Any:
        """NumPy's dtype of the elements."""
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's."""
        return self._shape

    @property
    def trainable(self) -> bool:
        """Whether it is for training to change."""
        return self._native.trainable

    @property
    def synchronization(self) -> VariableSynchronization:
        """When its copies are brought together."""
        return VariableSynchronization[self._native.synchronization.name]

    @property
    def aggregation(self) -> VariableAggregation:
        """What an assignment inside replicas does."""
        return VariableAggregation[self._native.aggregation.name]

    @property
    def distribute_strategy(self) -> Strategy:
        """The strategy that it was made under."""
        return face_of(self._owner)

    @property
    def device(self) -> str:
        """The device of its first copy."""
        return self._native.device(0)

    @property
    def values(self) -> tuple[Any, ...]:
        """Its copies, in the order of replica ids."""
        return tuple(Copy(self, replica) for replica in range(self._native.num_copies))

    def __repr__(self) -> str:
        return f"<tf.Variable {self.name!r} {self._native.describe()}>"

    # ---- its value ----------------------------------------------------------------------------------------------

    def read_value(self) -> Any:
        """The value as the context sees it: inside a replica its copy, outside what reading makes of all copies."""
        if self._plain:
            return self._native.component(0).copy()
        replica = self._replica()
        return replica.read(self._native) if replica is not None else self._native.read()

    def _replica(self) -> Optional[libdist.Replica]:
        """The replica whose function this thread is in; None outside: also before any scope."""
        replica = libdist.get_replica()
        outside = replica is None or (not libdist.has_strategy() and replica.strategy is not self._owner)
        return None if outside else replica

    def _assign(self, how: libdist.Assign, value: Any) -> Any:
        if self._plain:
            in_place(self._native.component(0), how, convert_to_tensor(value, self._dtype))
            return self
        replica = self._replica()
        if replica is None:
            self._native.assign(tensors(self._owner, _single(value), self._dtype), how)
            return self
        given = interned(self._owner, value, lambda: self._given(value), str(self._dtype))
        replica.assign_value(self._native, given, how)
        return Copy(self, min(replica.id, self._native.num_copies - 1))

    def _given(self, value: Any) -> Any:
        if isinstance(value, DistributedValues):
            return tensors(self._owner, value, self._dtype)
        return convert_to_tensor(value, self._dtype)

    def _scatter(self, how: libdist.Scatter, slices: Any) -> Any:
        if not isinstance(slices, (IndexedSlices, PerReplica)):
            raise TypeError(f"sparse_delta is not IndexedSlices: {slices!r}")
        if self._plain and isinstance(slices, IndexedSlices):
            scatter_in_place(self._native.component(0), how, slices)
            return self
        replica = self._replica()
        if replica is None:
            self._native.scatter(how, tensors(self._owner, slices))
            return self
        given = interned(self._owner, slices, lambda: tensors(self._owner, slices), "slices")
        replica.scatter(self._native, how, given)
        return Copy(self, min(replica.id, self._native.num_copies - 1))

    def batch_scatter_update(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None) -> Any:
        """Gives rows values, batch by batch."""
        owner = self._owner
        given = libdist.Value.of(owner, [sparse_delta.values, sparse_delta.indices])
        replica = self._replica()
        if replica is None:
            self._native.scatter(libdist.Scatter.BATCH_UPDATE, given)
        else:
            replica.scatter(self._native, libdist.Scatter.BATCH_UPDATE, given)
        return self


def _single(value: Any) -> Any:
    """A list of numbers is one tensor here, not a nest."""
    return convert_to_tensor(value) if isinstance(value, (list, tuple)) else value


_faces: weakref.WeakValueDictionary[int, Variable] = weakref.WeakValueDictionary()


def _made(cls: type, args: Any, kwargs: Any) -> Any:
    variable: Any = object.__new__(cls)
    variable.__init__(*args, **kwargs)
    return variable

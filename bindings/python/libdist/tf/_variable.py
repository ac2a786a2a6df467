# SPDX-License-Identifier: Apache-2.0
"""tf.Variable: a tensor that outlives runs, with a copy for each replica of its strategy."""

from __future__ import annotations

import re
import weakref
from typing import TYPE_CHECKING, Annotated, Any, Callable, Optional, cast

import numpy as np

import libdist
from libdist._arguments import OWN_CHECK, checked

from ._composites import IndexedSlices
from ._context import face_of
from ._convert import interned, tensors
from ._copies import Assignable, Copy, in_place, scatter_in_place
from ._missing import RefusingType
from ._numbers import convert_to_tensor
from ._options import VariableAggregation, VariableSynchronization, native_aggregation, native_synchronization
from ._remote import RemoteVariable
from ._remote import owner as owner_of_servers
from ._tensor import TensorShape, described, plain, tensor_of
from ._values import DistributedValues, PerReplica

if TYPE_CHECKING:
    from ._strategy import Strategy


class _VariableType(RefusingType):
    """Makes a copy of a variable, and a variable on parameter servers, an instance of tf.Variable, as in TensorFlow."""

    def __instancecheck__(cls, thing: Any) -> bool:
        return type.__instancecheck__(cls, thing) or isinstance(thing, (Copy, RemoteVariable))


@checked
class Variable(Assignable, metaclass=_VariableType):
    """A tensor that outlives runs. It belongs to the strategy in whose scope it is created.

        with strategy.scope():
            w = tf.Variable(tf.zeros([10]), aggregation=tf.VariableAggregation.MEAN)

    Inside a replica function, all replicas create the variable together and get the same object.
    """

    _of_metric = False  # True: a number that all replicas pass counts once for each

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if "per_worker_variable" in kwargs:
            raise libdist.Unimplemented(
                "per-worker variables are not offered: ClusterCoordinator.create_per_worker_value(fn) keeps any object on "
                "each worker"
            )
        servers = owner_of_servers()
        if servers is not None:
            return servers._make_variable(*args, **kwargs)
        replica = libdist.get_replica()
        if replica is None:
            return super().__new__(cls)
        # Inside replicas, and outside all of them, where a thread is a replica: created once, the same object for all.
        made: Callable[..., Any] = lambda _, wanted: _made(cls, wanted, args, kwargs)  # noqa: E731
        return replica.merge_call(made, (_wanted(*args, **kwargs),))

    def __init__(
        self,
        initial_value: Any = None,
        trainable: Optional[bool] = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: Optional[str] = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Annotated[Optional[Callable[[Any], Any]], OWN_CHECK] = None,
        synchronization: Annotated[Optional[VariableSynchronization], OWN_CHECK] = VariableSynchronization.AUTO,
        aggregation: Annotated[Optional[VariableAggregation], OWN_CHECK] = VariableAggregation.NONE,
        shape: Any = None,
        experimental_enable_variable_lifting: bool = True,
    ) -> None:
        """initial_value: a tensor, or a function that returns one.

        constraint: for optimizers, which read it.

        validate_shape, caching_device, variable_def and import_scope concern graphs and have no effect.
        """
        if hasattr(self, "_native"):
            return
        if initial_value is None:
            raise ValueError("The `initial_value` arg to `tf.Variable` cannot be None")
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be None or a callable.")
        options = {
            "name": name or "Variable",
            "synchronization": native_synchronization(synchronization),
            "aggregation": native_aggregation(aggregation),
        }
        array = convert_to_tensor(initial_value() if callable(initial_value) else initial_value, dtype)
        if shape is not None:
            _check_shape(tuple(array.shape), shape)
        self._begin(libdist.get_strategy(), plain(array), options, constraint, trainable)

    def _begin(
        self,
        strategy: libdist.Strategy,
        array: Any,
        options: dict[str, Any],
        constraint: Any,
        trainable: Optional[bool],
    ) -> None:
        self._owner = strategy
        self._dtype = array.dtype
        self._shape = TensorShape(array.shape)
        self._constraint = constraint
        on_read = options["synchronization"] == libdist.Synchronization.ON_READ
        self._trainable = not on_read if trainable is None else bool(trainable)
        # A variable created outside scopes is a plain one, as in TensorFlow, which all strategies may use.
        self._plain = strategy.kind == libdist.StrategyKind.DEFAULT
        self._native = strategy.variable(array, **options)
        _faces[id(self._native)] = self

    @staticmethod
    def _of(native: libdist.Variable) -> Any:
        """Returns the tf.Variable of a libdist variable; a new one if it was created in another way."""
        face = _faces.get(id(native))
        if face is None:
            face = object.__new__(Variable)
            first = native.component()
            face._owner, face._native, face._plain = native._strategy, native, False
            face._dtype, face._shape, face._constraint = first.dtype, TensorShape(first.shape), None
            face._trainable = native.synchronization != libdist.Synchronization.ON_READ
            _faces[id(native)] = face
        return face

    def __deepcopy__(self, memo: Any) -> Variable:
        """Creates a variable of the same strategy with equal copies. Not inside a replica function."""
        if libdist.get_replica() is not None and libdist.has_strategy():
            raise libdist.FailedPrecondition(
                "copy.deepcopy() of a tf.Variable: this thread is inside a replica function. Copy variables outside runs."
            )
        twin: Variable = object.__new__(Variable)
        native = self._native
        options = {
            "name": native.name,
            "synchronization": native.synchronization,
            "aggregation": native.aggregation,
        }
        twin._begin(self._owner, native.component(), options, self._constraint, self._trainable)
        for copy in range(1, native.num_copies):
            twin._native._copy(copy)[...] = native._copy(copy)
        memo[id(self)] = twin
        return twin

    def __copy__(self) -> Variable:
        return self.__deepcopy__({})

    # ---- properties ---------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name as in TensorFlow: "w:0"."""
        return f"{self._native.name}:0"

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of the elements."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the tensor."""
        return self._shape

    @property
    def trainable(self) -> bool:
        """Whether the variable is trainable."""
        return self._trainable

    @property
    def constraint(self) -> Optional[Callable[[Any], Any]]:
        """The constraint for optimizers."""
        return cast("Optional[Callable[[Any], Any]]", self._constraint)

    @property
    def synchronization(self) -> VariableSynchronization:
        """The time at which the copies are combined."""
        return VariableSynchronization[self._native.synchronization.name]

    @property
    def aggregation(self) -> VariableAggregation:
        """The aggregation of the values that replicas assign."""
        return VariableAggregation[self._native.aggregation.name]

    @property
    def distribute_strategy(self) -> Strategy:
        """The strategy that created the variable."""
        return face_of(self._owner)

    @property
    def device(self) -> str:
        """The device of the first copy."""
        return self._native.device(0)

    @property
    def values(self) -> tuple[Any, ...]:
        """The copies, in the order of replica ids."""
        return tuple(Copy(self, replica) for replica in range(self._native.num_copies))

    def _whole(self) -> Variable:
        return self

    def __repr__(self) -> str:
        if self._native.num_copies == 1:
            value = described(self._native.component())
            return f"<tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype}, numpy={value}>"
        rows = ",\n".join(f"  {replica}: {copy!r}" for replica, copy in enumerate(self.values))
        return f"{self._native.class_name}:{{\n{rows}\n}}"

    __str__ = __repr__

    # ---- access -------------------------------------------------------------------------------------------------

    def read_value(self) -> Any:
        """Returns the value: inside a replica its copy, and outside replicas the value combined from all copies."""
        if self._plain:
            return tensor_of(self._native.component().copy())
        replica = self._replica()
        return tensor_of(replica.read(self._native) if replica is not None else self._native.read())

    def _dense(self) -> Any:
        """Returns the value as an array. If another strategy runs, this is the first copy."""
        if not self._plain and libdist.has_strategy() and libdist.get_strategy() is not self._owner:
            return self._native.component().copy()
        return self.read_value()

    def _replica(self) -> Optional[libdist.Replica]:
        """Returns the replica whose function this thread is in; None outside, and before any scope."""
        replica = libdist.get_replica()
        outside = replica is None or (not libdist.has_strategy() and replica.strategy is not self._owner)
        return None if outside else replica

    def _assign(self, how: libdist.Assign, value: Any) -> Any:
        if self._plain:
            in_place(self._native.component(), how, plain(convert_to_tensor(value, self._dtype)))
            return self
        replica = self._replica()
        if replica is None:
            self._native.assign(tensors(self._owner, _single(value), self._dtype), how)
            return self
        if self._of_metric:
            given = self._given(value).copy()
        else:
            given = interned(self._owner, value, lambda: self._given(value), str(self._dtype))
        replica.assign_value(self._native, given, how)
        return self._copy_of(replica)

    def _copy_of(self, replica: libdist.Replica) -> Copy:
        return Copy(self, min(replica.id - replica.strategy.local_replicas.start, self._native.num_copies - 1))

    def _given(self, value: Any) -> Any:
        if isinstance(value, DistributedValues):
            return tensors(self._owner, value, self._dtype)
        return plain(convert_to_tensor(value, self._dtype))

    def _scatter(self, how: libdist.Scatter, slices: Any) -> Any:
        if not isinstance(slices, (IndexedSlices, PerReplica)):
            raise TypeError(f"sparse_delta is not IndexedSlices: {slices!r}")
        if self._plain and isinstance(slices, IndexedSlices):
            scatter_in_place(self._native.component(), how, slices)
            return self
        replica = self._replica()
        if replica is None:
            self._native.scatter(how, tensors(self._owner, slices))
            return self
        given = interned(self._owner, slices, lambda: tensors(self._owner, slices), "slices")
        replica.scatter(self._native, how, given)
        return self._copy_of(replica)

    def batch_scatter_update(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None) -> Any:
        """Replaces rows, batch by batch."""
        owner = self._owner
        given = owner.value([plain(sparse_delta.values), plain(sparse_delta.indices)])
        replica = self._replica()
        if replica is None:
            self._native.scatter(libdist.Scatter.BATCH_UPDATE, given)
        else:
            replica.scatter(self._native, libdist.Scatter.BATCH_UPDATE, given)
        return self


def _single(value: Any) -> Any:
    """Converts a list of numbers to one tensor, because it is not a nest here."""
    return convert_to_tensor(value) if isinstance(value, (list, tuple)) else value


def _check_shape(given: tuple[int, ...], wanted: Any) -> None:
    sizes = [wanted] if isinstance(wanted, int) else list(wanted)
    if len(sizes) != len(given) or any(size not in (None, -1, one) for size, one in zip(sizes, given)):
        raise ValueError(
            f"In this `tf.Variable` creation, the initial value's shape ({given}) is not compatible with the "
            f"explicitly supplied `shape` argument ({sizes})."
        )


_faces: weakref.WeakValueDictionary[int, Variable] = weakref.WeakValueDictionary()


def is_variable(thing: Any) -> bool:
    """Returns whether an object is a libdist variable, and neither a copy nor a variable on parameter servers."""
    return isinstance(thing, Variable) and not isinstance(thing, (Copy, RemoteVariable))


def _wanted(
    initial_value: Any = None,
    trainable: Any = None,
    validate_shape: Any = None,
    caching_device: Any = None,
    name: Any = None,
    variable_def: Any = None,
    dtype: Any = None,
    import_scope: Any = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
    *_: Any,
    **__: Any,
) -> list[str]:
    """Returns the arguments on which all replicas must agree."""
    kind = None if dtype is None else np.dtype(dtype)
    given = {"trainable": trainable, "dtype": kind, "synchronization": synchronization, "aggregation": aggregation}
    return [f"name {_canonical(name or 'Variable')}", *(f"{what} {one}" for what, one in given.items())]


def _canonical(name: str) -> str:
    """Returns a name without the number "_N" that distinguishes the variables of replicas, as TensorFlow compares it.
    """
    return re.sub(r"_\d(?=/|$)", "", name)


def _made(cls: type, wanted: list[Any], args: Any, kwargs: Any) -> Any:
    for given in wanted:
        first, *others = [given] if isinstance(given, str) else list(given)
        for replica, other in enumerate(others, 1):
            if other != first:
                what, _, value = other.partition(" ")
                raise libdist.FailedPrecondition(
                    f"Tried to create variable {value} with mismatching {what} on replica {replica}: "
                    f"replica 0 gave {first}"
                )
    variable: Any = object.__new__(cls)
    variable.__init__(*args, **kwargs)
    return variable

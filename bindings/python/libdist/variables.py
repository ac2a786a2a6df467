# SPDX-License-Identifier: Apache-2.0
"""Variables: tensors that outlive runs, with a copy for each replica."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from . import _calls, _cdist, _tensors, values
from ._arguments import checked
from ._callbacks import Initial as Initializer
from ._native import Returned
from ._option_fields import VariableOptions, variable_options
from ._tensors import TensorLike
from .constants import Aggregation, Assign, Scatter, Synchronization
from .errors import FailedPrecondition
from .values import Value

if TYPE_CHECKING:
    from .replica import Replica
    from .strategy import Strategy


class Drift:
    """Where the copies of a variable are no longer equal; -1: all are equal."""

    __slots__ = ("num_copies", "replica", "expected_replica", "element")

    def __init__(self, num_copies: int, replica: int, expected_replica: int, element: int) -> None:
        self.num_copies = num_copies
        """That were compared; 0: its copies need not be equal."""
        self.replica = replica
        """Whose copy differs from most others'."""
        self.expected_replica = expected_replica
        """The first whose copy has what most have."""
        self.element = element
        """The first that differs, counted row-major."""

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)}" for name in self.__slots__)
        return f"Drift({fields})"


Initial = Union[None, TensorLike, Callable[[], Any]]
"""A variable's first value: a tensor, or a function that returns one."""


@checked
class Variable(Returned):
    """A tensor that outlives runs; Strategy.variable() makes it. It may be an argument of a run."""

    def _init(self, strategy: Strategy, handle: int, ended_by: str, value: Optional[Value] = None) -> None:
        """ended_by: "collector", "close" (it is the strategy's too) or "owner"."""
        self._strategy = strategy
        self._handle = handle
        self._ended_by = ended_by
        self._value = value
        self._keeper: Any = None  # whose state it is
        if ended_by == "close":
            strategy._children.add(self)  # ends with the strategy
        _variables[handle] = self

    @staticmethod
    def _known(handle: int, value: Value) -> Variable:
        """The object of a handle that libdist gives, behind a value."""
        known = _variables.get(handle)
        if known is not None:
            return known
        from .strategy import current_strategy

        return Variable._of(current_strategy(), handle, "owner", value)

    # ---- what it is ----------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The variable's name."""
        return str(_cdist.dist_variable_name(self._native()))

    @property
    def class_name(self) -> str:
        """ "MirroredVariable", "SyncOnReadVariable", "AggregatingVariable" or "Variable"."""
        return str(_cdist.dist_variable_class(self._native()))

    @property
    def synchronization(self) -> Synchronization:
        """When its copies are brought together; AUTO has become what the strategy chose."""
        return Synchronization(_cdist.dist_variable_synchronization(self._native()))

    @property
    def aggregation(self) -> Aggregation:
        """What an assignment inside replicas does."""
        return Aggregation(_cdist.dist_variable_aggregation(self._native()))

    @property
    def num_copies(self) -> int:
        """One for each replica, or one."""
        return int(_cdist.dist_variable_num_copies(self._native()))

    def copy_name(self, copy: int) -> str:
        """The name of a copy: "w", "w/replica_1" ..."""
        return str(_cdist.dist_variable_copy_name(self._native(), copy))

    def device(self, copy: int = 0) -> str:
        """The device that a copy is on."""
        strategy = self._strategy._native("Variable.device")
        return str(_cdist.dist_variable_device(strategy, self._native(), copy))

    def describe(self) -> str:
        """Its copies on one line."""
        text = _cdist.Text()
        text.describe_variable(self._native())
        return str(text.text())

    def __repr__(self) -> str:
        return f"<libdist.{self.describe()}>" if self._handle else "<libdist.Variable, closed>"

    # ---- its value -----------------------------------------------------------------------------------------

    def component(self, replica_id: Optional[int] = None) -> Any:
        """A view of what a replica has of it, to be written by that replica alone, or outside runs.

        None: this worker's first replica.
        """
        replica = self._strategy.local_replicas.start if replica_id is None else replica_id
        return _tensors.view(_cdist.dist_variable_component(self._native(), replica), self._as_value(), True)

    def _copy(self, copy: int) -> Any:
        """component(), by a copy's number among this worker's."""
        return self.component(self._strategy.local_replicas.start + copy)

    def read(self) -> Any:
        """The value as the cross-replica context sees it, as a new array."""
        strategy = self._strategy._native("Variable.read")
        with self._strategy._waiting():
            return values.owned(_cdist.dist_variable_read(strategy, self._native()))

    def assign(self, value: Any, how: Assign = Assign.SET) -> None:
        """Assigns to every copy: a tensor to all, a per-replica value to each its own."""
        strategy = self._strategy._native("Variable.assign")
        given = values.make_tensor(strategy, value)
        with self._strategy._waiting():
            _cdist.dist_variable_assign(strategy, self._native(), int(how), given._handle)

    def assign_add(self, value: Any) -> None:
        """assign() with Assign.ADD."""
        self.assign(value, Assign.ADD)

    def assign_sub(self, value: Any) -> None:
        """assign() with Assign.SUB."""
        self.assign(value, Assign.SUB)

    def scatter(self, how: Scatter, slices: Any) -> None:
        """Changes rows of every copy: `how` is a Scatter, slices are Strategy.indexed_slices(), or per-replica ones."""
        strategy = self._strategy._native("Variable.scatter")
        given = values.make(strategy, slices)
        with self._strategy._waiting():
            _cdist.dist_variable_scatter(strategy, self._native(), int(how), given._handle)

    def check_drift(self) -> Drift:
        """Whether the copies are still equal, on all workers; DataLoss, with the replica and the elements, where not."""
        record = _cdist.dist_drift()
        strategy = self._strategy._native("Variable.check_drift")
        with self._strategy._waiting():
            _cdist.dist_variable_check_drift(strategy, self._native(), record)
        return Drift(record.num_copies, record.replica, record.expected_replica, record.element)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        array = self.read()
        return array if dtype is None else array.astype(dtype, copy=False)

    # ---- its end -------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the variable; arrays over its copies, and values made of it, keep its memory."""
        _variables.pop(self._handle, None)
        if self._ended_by != "owner":
            self._end(_cdist.dist_variable_destroy)
        self._handle = 0

    def __enter__(self) -> Variable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, _destroy: Any = _cdist.dist_variable_destroy) -> None:
        if self._handle and self._ended_by == "collector":
            _destroy(self._handle)

    def _native(self) -> int:
        if not self._handle:
            raise FailedPrecondition("the variable is closed")
        return self._handle

    def _as_value(self) -> Value:
        return Value._of(_cdist.dist_value_create_variable(self._native()))


_variables: weakref.WeakValueDictionary[int, Variable] = weakref.WeakValueDictionary()


def _token(initial: Any, strategy: int, failures: _calls.Failures) -> int:
    """The token of a function that returns the first value; 0 if `initial` is the value."""
    return _calls.keep(Initializer(initial, failures, strategy)) if callable(initial) else 0


def create(strategy: Strategy, initial: Any, name: Optional[str], options: VariableOptions) -> Variable:
    """Strategy.variable()."""
    handle = strategy._native("Strategy.variable")
    failures = _calls.Failures()
    token = _token(initial, handle, failures)
    try:
        native = variable_options(name=name, initial=token, **options)
        tensor = None if token or initial is None else [_tensors.give(initial)]
        with strategy._waiting():
            made = _calls.call(failures, _cdist.dist_variable_create, handle, tensor, native)
    finally:
        _calls.release(token)
    return Variable._of(strategy, made, "collector")


def ask_for(replica: Replica, name: str, initial: Any, options: VariableOptions) -> Variable:
    """Replica.variable()."""
    strategy = replica.strategy
    failures = _calls.Failures()
    token = _token(initial, strategy._handle, failures)
    try:
        native = variable_options(initial=token, **options)
        tensor = None if token or initial is None else [_tensors.give(initial)]
        made = _calls.call(failures, _cdist.dist_replica_variable, replica._handle, name, tensor, native)
    finally:
        _calls.release(token)
    with strategy._lock:
        return _variables.get(made) or Variable._of(strategy, made, "close")

# SPDX-License-Identifier: Apache-2.0
"""Variables: tensors that outlive runs, with one copy for each replica or one copy for all."""

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
    """The result of Variable.check_drift(). replica, expected_replica and element are -1 if all copies are equal."""

    __slots__ = ("num_copies", "replica", "expected_replica", "element")

    def __init__(self, num_copies: int, replica: int, expected_replica: int, element: int) -> None:
        self.num_copies = num_copies
        """Number of copies compared, of all workers; 0 if the copies need not be equal."""
        self.replica = replica
        """Replica whose copy differs from most others."""
        self.expected_replica = expected_replica
        """First replica whose copy has the value of most."""
        self.element = element
        """First element that differs, counted in row-major order."""

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)}" for name in self.__slots__)
        return f"Drift({fields})"


Initial = Union[None, TensorLike, Callable[[], Any]]
"""The initial value of a variable: a tensor, or a function that returns one."""


@checked
class Variable(Returned):
    """A tensor that outlives runs; Strategy.variable() creates it.

        w = strategy.variable(np.zeros(10, np.float32), name="w", aggregation=libdist.Aggregation.MEAN)
        strategy.run(lambda replica: replica.assign(w, gradients[replica.id], libdist.Assign.SUB))
        print(w.read())

    It can be an argument of a run. Methods that read or write it outside replicas wait until the run in progress has
    ended, at most for the strategy's timeout.
    """

    def _init(self, strategy: Strategy, handle: int, ended_by: str, value: Optional[Value] = None) -> None:
        """ended_by: "collector", "close" (also by the strategy) or "owner"."""
        self._strategy = strategy
        self._handle = handle
        self._ended_by = ended_by
        self._value = value
        self._keeper: Any = None  # the object to which the state belongs
        if ended_by == "close":
            strategy._children.add(self)  # ends with the strategy
        _variables[handle] = self

    @staticmethod
    def _known(handle: int, value: Value) -> Variable:
        """Returns the variable with a handle that libdist returned with a value."""
        known = _variables.get(handle)
        if known is not None:
            return known
        from .strategy import current_strategy

        return Variable._of(current_strategy(), handle, "owner", value)

    # ---- properties --------------------------------------------------------------------------------------------

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
        """The time at which the copies are combined. AUTO has been replaced by the strategy's choice, if it had one."""
        return Synchronization(_cdist.dist_variable_synchronization(self._native()))

    @property
    def aggregation(self) -> Aggregation:
        """The aggregation of the values that replicas assign."""
        return Aggregation(_cdist.dist_variable_aggregation(self._native()))

    @property
    def num_copies(self) -> int:
        """The number of copies: one per replica, or one."""
        return int(_cdist.dist_variable_num_copies(self._native()))

    def copy_name(self, copy: int) -> str:
        """Returns the name of a copy: "w", "w/replica_1" ..."""
        return str(_cdist.dist_variable_copy_name(self._native(), copy))

    def device(self, copy: int = 0) -> str:
        """Returns the full name of the device of a copy."""
        strategy = self._strategy._native("Variable.device")
        return str(_cdist.dist_variable_device(strategy, self._native(), copy))

    def describe(self) -> str:
        """Describes the copies on one line."""
        text = _cdist.Text()
        text.describe_variable(self._native())
        return str(text.text())

    def __repr__(self) -> str:
        return f"<libdist.{self.describe()}>" if self._handle else "<libdist.Variable, closed>"

    # ---- access ------------------------------------------------------------------------------------------------

    def component(self, replica_id: Optional[int] = None) -> Any:
        """Returns a writable view of a replica's copy.

        Only that replica may write to it during a run. Your code is then responsible for keeping all copies equal.

        replica_id: None = this worker's first replica.
        """
        replica = self._strategy.local_replicas.start if replica_id is None else replica_id
        return _tensors.view(_cdist.dist_variable_component(self._native(), replica), self._as_value(), True)

    def _copy(self, copy: int) -> Any:
        """Returns the component by the number of a copy among those of this worker."""
        return self.component(self._strategy.local_replicas.start + copy)

    def read(self) -> Any:
        """Reads the value in cross-replica context, as a new array.

        For a variable that is synchronized on reading, this combines the copies according to its aggregation.
        """
        strategy = self._strategy._native("Variable.read")
        with self._strategy._waiting():
            return values.owned(_cdist.dist_variable_read(strategy, self._native()))

    def assign(self, value: Any, how: Assign = Assign.SET) -> None:
        """Assigns to every copy: a tensor to all copies, a per-replica value component by component.

        how: Assign.SET, ADD or SUB.
        """
        strategy = self._strategy._native("Variable.assign")
        given = values.make_tensor(strategy, value)
        with self._strategy._waiting():
            _cdist.dist_variable_assign(strategy, self._native(), int(how), given._handle)

    def assign_add(self, value: Any) -> None:
        """Adds a value to every copy: assign() with Assign.ADD."""
        self.assign(value, Assign.ADD)

    def assign_sub(self, value: Any) -> None:
        """Subtracts a value from every copy: assign() with Assign.SUB."""
        self.assign(value, Assign.SUB)

    def scatter(self, how: Scatter, slices: Any) -> None:
        """Changes rows of every copy.

        how: a Scatter.

        slices: the result of Strategy.indexed_slices(), or a per-replica value of such results.
        """
        strategy = self._strategy._native("Variable.scatter")
        given = values.make(strategy, slices)
        with self._strategy._waiting():
            _cdist.dist_variable_scatter(strategy, self._native(), int(how), given._handle)

    def check_drift(self) -> Drift:
        """Checks that the copies are equal, over all workers.

        Raises DataLoss, which names the replica and the elements, if they differ.
        """
        record = _cdist.dist_drift()
        strategy = self._strategy._native("Variable.check_drift")
        with self._strategy._waiting():
            _cdist.dist_variable_check_drift(strategy, self._native(), record)
        return Drift(record.num_copies, record.replica, record.expected_replica, record.element)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        array = self.read()
        return array if dtype is None else array.astype(dtype, copy=False)

    # ---- closing -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Destroys the variable. Arrays over its copies, and values that refer to it, keep its memory."""
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
    """Returns the token of a function that returns the initial value; 0 if `initial` is the value."""
    return _calls.keep(Initializer(initial, failures, strategy)) if callable(initial) else 0


def create(strategy: Strategy, initial: Any, name: Optional[str], options: VariableOptions) -> Variable:
    """Implements Strategy.variable()."""
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
    """Implements Replica.variable()."""
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

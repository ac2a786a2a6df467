# SPDX-License-Identifier: Apache-2.0
"""The methods of Strategy that work on values outside runs: reduce, broadcast, gather and update."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any, Callable, Optional, Sequence, Union

from . import _calls, _cdist, _tensors, values
from ._arguments import Rule, Unfit, checked
from ._interrupt import Watch
from ._option_fields import UpdateOptions
from ._tensors import TensorLike, is_tensor
from ._updates import UpdateFn, update
from .communication import CommunicationOptions
from .constants import StrategyKind, ValueKind
from .names import OpName, op_number
from .values import Arguments, Keywords, Value
from .variables import Variable

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .cluster_resolver import ClusterResolver
    from .strategy import Strategy


@checked
class Destination:
    """The destination of a result. Exactly one argument must be set.

    Functions that take a destination also accept a Variable, a value or a device name in its place.
    """

    __slots__ = ("variable", "value", "device")

    def __init__(self, variable: Optional[Variable] = None, value: Any = None, device: Optional[str] = None) -> None:
        self.variable = variable
        """The result goes to the places of this variable's copies."""
        self.value = value
        """The result goes to the places of this value's components. A tensor is in one place."""
        self.device = device
        """A device name, "CPU:1" or longer; "replica:1" is the device of replica 1."""


def _fit_where(given: Any) -> Any:
    known = given is None or isinstance(given, (str, Destination, Value, list, tuple, dict))
    if known or hasattr(given, "_as_value") or is_tensor(given):
        return given
    raise Unfit(given, _A_DESTINATION)


_A_DESTINATION = "the name of a device, a libdist.Destination, a libdist.Variable, a value or None"
Where = Annotated[Any, Rule(_fit_where, _A_DESTINATION)]
"""A Destination, a variable, a value or a device name; None means every replica."""


class Destinations:
    """Destinations in the form that the native layer takes."""

    def __init__(self, strategy: int, where: Sequence[Where]) -> None:
        self._native = _cdist.Destinations()
        self._values: list[Value] = []
        for one in where:
            if not isinstance(one, Destination):
                one = _destination(one)
            value = None
            if one.value is not None:
                value = values.make(strategy, one.value)
                self._values.append(value)
            variable = one.variable._native() if one.variable is not None else 0
            self._native.add(variable, values.handle_of(value), one.device)

    def get(self) -> Any:
        """Returns the argument for the native call."""
        return self._native.get()


def _destination(where: Any) -> Destination:
    if isinstance(where, str):
        return Destination(device=where)
    if isinstance(where, Variable):
        return Destination(variable=where)
    return Destination(value=where)


class ValueContext:
    """The replica for which values_from_function() creates a component."""

    __slots__ = ("replica_id", "num_replicas")

    def __init__(self, replica_id: int, num_replicas: int) -> None:
        self.replica_id = replica_id
        self.num_replicas = num_replicas


class _ValueFn:
    """The function of values_from_function()."""

    def __init__(self, fn: Callable[[ValueContext], Any], strategy: int) -> None:
        self.fn = fn
        self.strategy = strategy
        self.seen = values.Seen()
        self.failures = _calls.Failures()

    def on_value(self, replica: int, num_replicas: int) -> int:
        try:
            return values.hand_over(self.strategy, self.fn(ValueContext(replica, num_replicas)), self.seen)
        except BaseException as error:
            return -self.failures.add(error, replica)


class Properties:
    """The properties of a strategy, named as in TensorFlow's tf.distribute.StrategyExtended."""

    def __init__(self, native: Any) -> None:
        self.kind = StrategyKind(native.kind)
        self.num_replicas: int = native.num_replicas
        self.num_parameter_devices: int = native.num_parameter_devices
        self.num_workers: int = native.num_workers
        """1, except for StrategyKind.MULTI_WORKER_MIRRORED."""
        self.in_multi_worker_mode = bool(native.in_multi_worker_mode)
        """True if the strategy is a task of a cluster, even if it is the only one."""
        self.require_static_shapes = bool(native.require_static_shapes)
        """Always False: sizes of batches and of gathered values may vary."""
        self.use_merge_call = bool(native.use_merge_call)
        """Always True: replicas may call merge_call()."""
        self.between_graph = bool(native.between_graph)
        """True if variables are apart from the replicas, or each worker runs its own program."""
        self.should_init = bool(native.should_init)
        """Always True: every worker initializes its variables."""
        self.should_checkpoint = bool(native.should_checkpoint)
        """True if this worker writes checkpoints: the chief."""
        self.should_save_summary = bool(native.should_save_summary)
        """True if this worker writes summaries: the chief."""
        self.global_batch_size = bool(native.global_batch_size)
        """Always True: a batch is for all replicas together and is divided among them."""
        self.worker: int = native.worker
        """Number of this worker, 0 for the chief. Reports use these numbers."""
        self.num_local_replicas: int = native.num_local_replicas
        """Number of replicas of this worker."""
        self.first_replica: int = native.first_replica
        """Id of this worker's first replica."""
        self.generation: int = native.generation
        """Number of times the workers have re-formed; see Strategy.reform()."""
        self.num_joined: int = native.num_joined
        """Number of workers that were not in the previous generation."""
        self.num_left: int = native.num_left
        """Number of workers of the previous generation that are not in this one; 0 on a worker that has joined."""
        self.max_contributions: int = native.max_contributions
        """Limit for the number of tensors in one sum."""


@checked
class Outside:
    """The methods of Strategy that work on values outside runs; see values.py for values."""

    _part_of = "Strategy"

    _handle: int
    _local_replicas: range
    _has_peers: bool
    _host_failures: Optional[_calls.Failures]
    _cluster_resolver: Optional[ClusterResolver]

    def _native(self, name: str = "Strategy") -> int:
        raise NotImplementedError

    # ---- properties --------------------------------------------------------------------------------------------

    @property
    def num_replicas(self) -> int:
        """The number of replicas in sync, over all workers."""
        return int(_cdist.dist_strategy_num_replicas(self._native("Strategy.num_replicas")))

    @property
    def kind(self) -> StrategyKind:
        """The kind of the strategy, which determines where values and variables are placed."""
        return StrategyKind(_cdist.dist_strategy_kind_of(self._native("Strategy.kind")))

    @property
    def local_replicas(self) -> range:
        """The ids of this worker's replicas. reform() can change them."""
        if self._has_peers and self._handle:
            first = self.query().first_replica
            return range(first, first + len(self._local_replicas))
        return self._local_replicas

    def device(self, replica_id: int) -> str:
        """Returns the full name of the device of one of this worker's replicas."""
        return str(_cdist.dist_strategy_device(self._native("Strategy.device"), replica_id))

    def parameter_device(self, index: int) -> str:
        """Returns the full name of a device that holds variables.

        index: 0 .. number of parameter_devices - 1.
        """
        return str(_cdist.dist_strategy_parameter_device(self._native("Strategy.parameter_device"), index))

    @property
    def devices(self) -> list[str]:
        """The full names of the devices of this worker's replicas."""
        return [self.device(replica) for replica in self.local_replicas]

    @property
    def parameter_devices(self) -> list[str]:
        """The full names of the devices that hold variables."""
        return [self.parameter_device(i) for i in range(self.query().num_parameter_devices)]

    def query(self) -> Properties:
        """Returns the properties of the strategy."""
        native = _cdist.dist_strategy_properties()
        _cdist.dist_strategy_query(self._native("Strategy.query"), native)
        return Properties(native)

    @property
    def cluster_resolver(self) -> Optional[ClusterResolver]:
        """The resolver that describes the cluster: the one that was passed, or else libdist's; None if there is none.
        """
        has = _cdist.dist_strategy_cluster_resolver(self._native("Strategy.cluster_resolver"))
        return self._cluster_resolver if has else None

    # ---- values --------------------------------------------------------------------------------------------

    def reduce(self, op: OpName, value: Any, axis: Union[None, int, Sequence[int]] = None) -> Any:
        """Reduces a per-replica value to one tensor, and a nest leaf by leaf.

        op: ReduceOp.SUM or ReduceOp.MEAN.

        axis: one axis or several, over which each replica's tensor is reduced too; a negative axis counts from the end.
        None = no axis.
        """
        handle = self._native("Strategy.reduce")
        axes = None if axis is None else [axis] if isinstance(axis, int) else list(axis)
        given = values.make(handle, value)
        return values.owned(self._call(_cdist.dist_reduce, handle, op_number(op), given._handle, axes, len(axes or ())))

    def reduce_to(
        self,
        op: OpName,
        value: Any,
        destination: Where = None,
        *,
        options: Optional[CommunicationOptions] = None,
    ) -> Any:
        """Reduces a per-replica value and places the result at a destination.

        The result is mirrored if the destination is on every replica, and a tensor otherwise.

        op: ReduceOp.SUM or ReduceOp.MEAN.

        options: override the communication options of the strategy; they do not change the result.
        """
        handle = self._native("Strategy.reduce_to")
        where = Destinations(handle, [destination] if destination is not None else [])
        given = values.make(handle, value)
        native = None if options is None else options._native()
        arguments = (handle, op_number(op), given._handle, where.get(), native)
        return values.owned(self._call(_cdist.dist_reduce_to, *arguments))

    def batch_reduce_to(
        self,
        op: OpName,
        pairs: Sequence[tuple[Any, Where]],
        *,
        options: Optional[CommunicationOptions] = None,
    ) -> list[Any]:
        """Performs reduce_to() for several (value, destination) pairs in one pass. Returns a list of the results."""
        handle = self._native("Strategy.batch_reduce_to")
        given = [values.make(handle, value) for value, _ in pairs]
        where = Destinations(handle, _all_or_none(pairs))
        handles = [value._handle for value in given]
        native = None if options is None else options._native()
        given_to = (handles, where.get(), (len(handles), native))
        results = self._call(_cdist.dist_batch_reduce_to, handle, op_number(op), *given_to)
        return [values.owned(result) for result in results]

    def broadcast_to(self, value: Any, destination: Where = None) -> Any:
        """Places a value at a destination. The result is mirrored if the destination is on every replica."""
        handle = self._native("Strategy.broadcast_to")
        where = Destinations(handle, [destination] if destination is not None else [])
        given = values.make(handle, value)
        return values.owned(self._call(_cdist.dist_broadcast_to, handle, given._handle, where.get()))

    def gather(self, value: Any, axis: int = 0) -> Any:
        """Concatenates the components of a per-replica value along an axis, in the order of replica ids."""
        handle = self._native("Strategy.gather")
        given = values.make(handle, value)
        return values.owned(self._call(_cdist.dist_gather, handle, given._handle, axis))

    def destination_device(self, destination: Where) -> str:
        """Returns the full name of the device of a destination."""
        handle = self._native("Strategy.destination_device")
        where = Destinations(handle, [destination] if destination is not None else [])
        return str(_cdist.dist_destination_device(handle, where.get()))

    def local_results(self, value: Any) -> tuple[Any, ...]:
        """Returns a value's components in this process, in replica order.

        For a variable, these are its copies. For a value that is not distributed, the tuple contains only that value.
        """
        handle = self._native("Strategy.local_results")
        given = values.make(handle, value)
        result = values.owned(_cdist.dist_strategy_local_results(handle, given._handle))
        return tuple(result)

    def value(self, thing: Any) -> Value:
        """Converts any object to a Value. The memory of an array, a buffer or an object with __dlpack__ is shared."""
        return values.make(self._native("Strategy.value"), thing)

    def tensor(self, tensor: TensorLike) -> Value:
        """Creates a value from a row-major copy of a tensor."""
        return Value._of(_cdist.dist_value_create_tensor(self._native("Strategy.tensor"), [_tensors.give(tensor)]))

    def per_replica(self, items: Sequence[Any]) -> Value:
        """Creates a value with one item for each replica. A replica that receives the value sees only its own item."""
        return self._of_items(_cdist.dist_value_create_per_replica, self._native("Strategy.per_replica"), items)

    def mirrored(self, items: Sequence[Any]) -> Value:
        """Creates a value with one item for each replica, all of which you know to be equal."""
        return self._of_items(_cdist.dist_value_create_mirrored, self._native("Strategy.mirrored"), items)

    def indexed_slices(self, values: Any, indices: Any, dense_shape: Any = None) -> Value:
        """Creates rows of a larger tensor.

        values: tensor [k, ...]; the rows.

        indices: tensor [k] of int32 or int64; the positions of the rows in the larger tensor.

        dense_shape: shape of the larger tensor; may be None.
        """
        return self.composite(ValueKind.INDEXED_SLICES, [values, indices, dense_shape])

    def ragged(self, values: Any, *row_splits: Any) -> Value:
        """Creates rows of different lengths.

        values: tensor [k, ...]; the elements of all rows.

        row_splits: one or more tensors of int32 or int64, outermost first.
        """
        return self.composite(ValueKind.RAGGED, [values, *row_splits])

    def sparse(self, indices: Any, values: Any, dense_shape: Any) -> Value:
        """Creates a sparse tensor.

        indices: tensor [k, d] of int32 or int64; the positions of the elements.

        values: tensor [k]; the elements.

        dense_shape: tensor [d] of int32 or int64.
        """
        return self.composite(ValueKind.SPARSE, [indices, values, dense_shape])

    def composite(self, kind: ValueKind, parts: Sequence[Any]) -> Value:
        """Creates one value that consists of several tensors.

        kind: ValueKind.INDEXED_SLICES, RAGGED or SPARSE.

        parts: the arguments of indexed_slices(), ragged() or sparse(), in this order.
        """
        handle = self._native("Strategy.composite")
        made = [values.make_tensor(handle, part) for part in parts]
        handles = [part._handle for part in made]
        return Value._of(_cdist.dist_value_create_composite(handle, int(kind), handles, len(handles)))

    @staticmethod
    def _of_items(native: Callable[..., int], handle: int, items: Sequence[Any]) -> Value:
        made = [values.make(handle, item) for item in items]
        handles = [item._handle for item in made]
        return Value._of(native(handle, handles, len(handles)))

    def values_from_function(self, fn: Callable[[ValueContext], Any]) -> Any:
        """Creates a per-replica value from what `fn(context)` returns for each replica, called one after another.

        fn: receives a ValueContext.
        """
        handle = self._native("Strategy.values_from_function")
        target = _ValueFn(fn, handle)
        token = _calls.keep(target)
        try:
            result = _calls.call(target.failures, _cdist.dist_values_from_function, handle, token)
        finally:
            _calls.release(token)
        return values.owned(result)

    # ---- variables -----------------------------------------------------------------------------------------

    def update(
        self,
        variable: Variable,
        fn: UpdateFn,
        args: Arguments = (),
        kwargs: Keywords = None,
        **options: Unpack[UpdateOptions],
    ) -> Any:
        """Calls `fn(place, *args, **kwargs)` for each copy of a variable and merges the results.

        fn: changes place.copy in place; place is an UpdatePlace. Per-replica values in the arguments are replaced by
        this copy's components.
        """
        native = (_cdist.dist_update, self._native("Strategy.update"), variable._native())
        return update(self._self(), variable, native, fn, args, kwargs, options)

    def update_non_slot(
        self, fn: UpdateFn, args: Arguments = (), kwargs: Keywords = None, **options: Unpack[UpdateOptions]
    ) -> Any:
        """Calls `fn(place, *args, **kwargs)` once for each device that has variables; place.copy is None."""
        native = (_cdist.dist_update_non_slot, self._native("Strategy.update_non_slot"))
        return update(self._self(), None, native, fn, args, kwargs, options)

    def variable_created_in_scope(self, variable: Any) -> bool:
        """Returns whether this strategy created a variable, or the variable to which a copy belongs."""
        handle = self._native("Strategy.variable_created_in_scope")
        given = values.make(handle, variable)
        return bool(_cdist.dist_variable_created_in_scope(handle, given._handle))

    def value_container(self, value: Any) -> Optional[Variable]:
        """Returns the variable that a value is, or of which it is a copy; None for any other value."""
        given = values.make(self._native("Strategy.value_container"), value)
        handle = _cdist.dist_value_container(given._handle)
        return Variable._known(handle, given) if handle else None

    def _call(self, native: Callable[..., Any], *arguments: Any) -> Any:
        """Makes a call that may wait for other workers, and raises the exceptions of your HostFunctions."""
        with self._waiting():
            if self._host_failures is None:
                return native(*arguments)
            return _calls.call(self._host_failures, native, *arguments)

    def _waiting(self) -> AbstractContextManager[Any]:
        """Returns a context manager in which Ctrl-C ends a wait for other workers."""
        if self._has_peers:
            return Watch(self._cancel_quietly)
        return nullcontext()

    def _cancel_quietly(self) -> None:
        raise NotImplementedError

    def _self(self) -> Strategy:
        from .strategy import Strategy

        assert isinstance(self, Strategy)
        return self


def _all_or_none(pairs: Sequence[tuple[Any, Where]]) -> list[Where]:
    where = [destination for _, destination in pairs]
    return [] if all(one is None for one in where) else where

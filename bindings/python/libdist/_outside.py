# SPDX-License-Identifier: Apache-2.0
"""The part of Strategy that works on values from outside runs: reduce, broadcast, gather, update."""

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
    """Where a reduction's result is wanted: one of the three. A Variable, Value or device's name alone will do too."""

    __slots__ = ("variable", "value", "device")

    def __init__(self, variable: Optional[Variable] = None, value: Any = None, device: Optional[str] = None) -> None:
        self.variable = variable
        """Where this variable's copies are."""
        self.value = value
        """Where this value's components are; a tensor is in one place."""
        self.device = device
        """A device by name: "CPU:1", or "replica:1": that of replica 1."""


def _fit_where(given: Any) -> Any:
    known = given is None or isinstance(given, (str, Destination, Value, list, tuple, dict))
    if known or hasattr(given, "_as_value") or is_tensor(given):
        return given
    raise Unfit(given, _A_DESTINATION)


_A_DESTINATION = "the name of a device, a libdist.Destination, a libdist.Variable, a value or None"
Where = Annotated[Any, Rule(_fit_where, _A_DESTINATION)]
"""A destination: a Destination, or a variable, a value or a device's name; None: on every replica."""


class Destinations:
    """Destinations for the native layer."""

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
        """For the call."""
        return self._native.get()


def _destination(where: Any) -> Destination:
    if isinstance(where, str):
        return Destination(device=where)
    if isinstance(where, Variable):
        return Destination(variable=where)
    return Destination(value=where)


class ValueContext:
    """For whom a component is made."""

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
    """What a strategy is, in TensorFlow's words (of tf.distribute.StrategyExtended)."""

    def __init__(self, native: Any) -> None:
        self.kind = StrategyKind(native.kind)
        self.num_replicas: int = native.num_replicas
        self.num_parameter_devices: int = native.num_parameter_devices
        self.num_workers: int = native.num_workers
        """1 but for MULTI_WORKER_MIRRORED."""
        self.in_multi_worker_mode = bool(native.in_multi_worker_mode)
        """It is a task of a cluster, though there may be no other."""
        self.require_static_shapes = bool(native.require_static_shapes)
        """Batches and gathered values may not differ in size."""
        self.use_merge_call = bool(native.use_merge_call)
        """Replicas may call merge_call()."""
        self.between_graph = bool(native.between_graph)
        """Variables are kept away from the replicas, or each worker has a program of its own."""
        self.should_init = bool(native.should_init)
        """This worker initializes variables."""
        self.should_checkpoint = bool(native.should_checkpoint)
        """This worker writes checkpoints: the chief."""
        self.should_save_summary = bool(native.should_save_summary)
        """This worker writes summaries: the chief."""
        self.global_batch_size = bool(native.global_batch_size)
        """A batch is for all replicas together, and is divided."""
        self.worker: int = native.worker
        """Which of the cluster's this is, 0 for the chief; reports name workers so."""
        self.num_local_replicas: int = native.num_local_replicas
        """Of this worker."""
        self.first_replica: int = native.first_replica
        """The id of the first of these."""
        self.generation: int = native.generation
        """How often its workers have re-formed: Strategy.reform()."""
        self.num_joined: int = native.num_joined
        """Workers that were not in the generation before."""
        self.num_left: int = native.num_left
        """And those of it that are not in this one; 0 on one that has joined."""
        self.max_contributions: int = native.max_contributions
        """The limit for the tensors in one sum."""


@checked
class Outside:
    """See Strategy. Values are whatever values.py takes and gives."""

    _part_of = "Strategy"

    _handle: int
    _local_replicas: range
    _has_peers: bool
    _host_failures: Optional[_calls.Failures]
    _cluster_resolver: Optional[ClusterResolver]

    def _native(self, name: str = "Strategy") -> int:
        raise NotImplementedError

    # ---- what it is ----------------------------------------------------------------------------------------

    @property
    def num_replicas(self) -> int:
        """How many replicas are in sync: those of all workers."""
        return int(_cdist.dist_strategy_num_replicas(self._native("Strategy.num_replicas")))

    @property
    def kind(self) -> StrategyKind:
        """How values and variables are placed."""
        return StrategyKind(_cdist.dist_strategy_kind_of(self._native("Strategy.kind")))

    @property
    def local_replicas(self) -> range:
        """The ids of this worker's replicas, which reform() numbers anew."""
        if self._has_peers and self._handle:
            first = self.query().first_replica
            return range(first, first + len(self._local_replicas))
        return self._local_replicas

    def device(self, replica_id: int) -> str:
        """The name of the device of one of this worker's replicas, in full."""
        return str(_cdist.dist_strategy_device(self._native("Strategy.device"), replica_id))

    def parameter_device(self, index: int) -> str:
        """As device(), of the devices that variables are on."""
        return str(_cdist.dist_strategy_parameter_device(self._native("Strategy.parameter_device"), index))

    @property
    def devices(self) -> list[str]:
        """The names of the devices of this worker's replicas."""
        return [self.device(replica) for replica in self.local_replicas]

    @property
    def parameter_devices(self) -> list[str]:
        """The names of the devices that variables are on."""
        return [self.parameter_device(i) for i in range(self.query().num_parameter_devices)]

    def query(self) -> Properties:
        """What the strategy is."""
        native = _cdist.dist_strategy_properties()
        _cdist.dist_strategy_query(self._native("Strategy.query"), native)
        return Properties(native)

    @property
    def cluster_resolver(self) -> Optional[ClusterResolver]:
        """What describes the cluster: the resolver that the strategy was given, otherwise None."""
        has = _cdist.dist_strategy_cluster_resolver(self._native("Strategy.cluster_resolver"))
        return self._cluster_resolver if has else None

    # ---- values --------------------------------------------------------------------------------------------

    def reduce(self, op: OpName, value: Any, axis: Union[None, int, Sequence[int]] = None) -> Any:
        """Reduces a per-replica value to one tensor; with an axis, or several, over these too. op: SUM or MEAN."""
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
        """Reduces a per-replica value to where it is wanted. options: of no consequence for the result."""
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
        """reduce_to() of several (value, destination) pairs in one pass."""
        handle = self._native("Strategy.batch_reduce_to")
        given = [values.make(handle, value) for value, _ in pairs]
        where = Destinations(handle, _all_or_none(pairs))
        handles = [value._handle for value in given]
        native = None if options is None else options._native()
        given_to = (handles, where.get(), (len(handles), native))
        results = self._call(_cdist.dist_batch_reduce_to, handle, op_number(op), *given_to)
        return [values.owned(result) for result in results]

    def broadcast_to(self, value: Any, destination: Where = None) -> Any:
        """One value where it is wanted: mirrored where that is on every replica."""
        handle = self._native("Strategy.broadcast_to")
        where = Destinations(handle, [destination] if destination is not None else [])
        given = values.make(handle, value)
        return values.owned(self._call(_cdist.dist_broadcast_to, handle, given._handle, where.get()))

    def gather(self, value: Any, axis: int = 0) -> Any:
        """Joins the components of a per-replica value to one tensor."""
        handle = self._native("Strategy.gather")
        given = values.make(handle, value)
        return values.owned(self._call(_cdist.dist_gather, handle, given._handle, axis))

    def destination_device(self, destination: Where) -> str:
        """The name, in full, of the device that a destination is on."""
        handle = self._native("Strategy.destination_device")
        where = Destinations(handle, [destination] if destination is not None else [])
        return str(_cdist.dist_destination_device(handle, where.get()))

    def local_results(self, value: Any) -> tuple[Any, ...]:
        """A value's components in replica order; of a variable its copies; of any other value a tuple of itself."""
        handle = self._native("Strategy.local_results")
        given = values.make(handle, value)
        result = values.owned(_cdist.dist_strategy_local_results(handle, given._handle))
        return tuple(result)

    def value(self, thing: Any) -> Value:
        """Whatever is given, as a value; the memory of an array, a buffer or something with __dlpack__ is shared."""
        return values.make(self._native("Strategy.value"), thing)

    def tensor(self, tensor: TensorLike) -> Value:
        """A copy of a tensor, row-major."""
        return Value._of(_cdist.dist_value_create_tensor(self._native("Strategy.tensor"), [_tensors.give(tensor)]))

    def per_replica(self, items: Sequence[Any]) -> Value:
        """One thing for each replica: wherever a replica receives it, it finds its own."""
        return self._of_items(_cdist.dist_value_create_per_replica, self._native("Strategy.per_replica"), items)

    def mirrored(self, items: Sequence[Any]) -> Value:
        """As per_replica(), for things that the caller knows to be equal."""
        return self._of_items(_cdist.dist_value_create_mirrored, self._native("Strategy.mirrored"), items)

    def indexed_slices(self, values: Any, indices: Any, dense_shape: Any = None) -> Value:
        """Rows of a larger tensor: values [k, ...], indices [k], dense shape or None."""
        return self.composite(ValueKind.INDEXED_SLICES, [values, indices, dense_shape])

    def ragged(self, values: Any, *row_splits: Any) -> Value:
        """Rows of different lengths: values [k, ...], row splits from the outside in."""
        return self.composite(ValueKind.RAGGED, [values, *row_splits])

    def sparse(self, indices: Any, values: Any, dense_shape: Any) -> Value:
        """Single elements of a tensor: indices [k, d], values [k], dense shape [d]."""
        return self.composite(ValueKind.SPARSE, [indices, values, dense_shape])

    def composite(self, kind: ValueKind, parts: Sequence[Any]) -> Value:
        """One thing made of several tensors, by kind: INDEXED_SLICES, RAGGED or SPARSE."""
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
        """A value of what fn(context) makes for each replica, one after another."""
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
        """Calls fn(place, *args, **kwargs) for each copy of a variable, and merges the results of the calls.

        place.copy is the copy, which fn changes in place.
        """
        native = (_cdist.dist_update, self._native("Strategy.update"), variable._native())
        return update(self._self(), variable, native, fn, args, kwargs, options)

    def update_non_slot(
        self, fn: UpdateFn, args: Arguments = (), kwargs: Keywords = None, **options: Unpack[UpdateOptions]
    ) -> Any:
        """Calls fn(place, *args, **kwargs) once for each device that has variables, like update() without a variable."""
        native = (_cdist.dist_update_non_slot, self._native("Strategy.update_non_slot"))
        return update(self._self(), None, native, fn, args, kwargs, options)

    def variable_created_in_scope(self, variable: Any) -> bool:
        """Whether this strategy made a variable, or the variable that a copy is of."""
        handle = self._native("Strategy.variable_created_in_scope")
        given = values.make(handle, variable)
        return bool(_cdist.dist_variable_created_in_scope(handle, given._handle))

    def value_container(self, value: Any) -> Optional[Variable]:
        """The variable that a value is, or is a copy of, as local_results() gives them; None for other values."""
        given = values.make(self._native("Strategy.value_container"), value)
        handle = _cdist.dist_value_container(given._handle)
        return Variable._known(handle, given) if handle else None

    def _call(self, native: Callable[..., Any], *arguments: Any) -> Any:
        """A call that may use the program's own functions, whose exceptions it raises; or wait for other workers."""
        with self._waiting():
            if self._host_failures is None:
                return native(*arguments)
            return _calls.call(self._host_failures, native, *arguments)

    def _waiting(self) -> AbstractContextManager[Any]:
        """Around a call that may wait for other workers, which Ctrl-C then ends."""
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

# SPDX-License-Identifier: Apache-2.0
"""Replica: the first argument of a replica function, with its id, the collectives and access to variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, TypeVar

import numpy as np

from . import _calls, _cdist, _tensors, values
from ._arguments import checked, nanoseconds, unchecked, wrong
from ._callbacks import Kept
from ._collectives import Collectives, Issue, Op, native_options
from ._context import Context
from ._devices import Devices
from ._native import Returned
from ._option_fields import ApplyOptions, Options, UpdateOptions, VariableOptions, apply_options
from ._tensors import Out, TensorLike, Tensors
from ._updates import UpdateFn, update
from .constants import Apply, Assign, Scatter
from .errors import FailedPrecondition
from .names import OpName, op_number
from .values import Arguments, Keywords
from .variables import Initial, Variable, ask_for
from .work import Begin, Plan

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .metric import Metric
    from .strategy import Strategy
    from .versions import Versions

T = TypeVar("T")
_APPLY = ApplyOptions.__annotations__.keys() - Options.__annotations__.keys()
"""The options of reduce_apply() that other collectives do not have."""


class Block:
    """A piece of a tensor for the `fn` of reduce_apply(): `count` elements of tensor `tensor`, starting at `first`."""

    __slots__ = ("tensor", "first", "count", "gradient", "parameter", "states")

    def __init__(self, tensor: int, first: int, count: int, gradient: Any, parameter: Any, states: list[Any]) -> None:
        self.tensor = tensor
        self.first = first
        self.count = count
        self.gradient = gradient
        """The reduced gradient, scaled if it was clipped. Do not write to it."""
        self.parameter = parameter
        """The parameter; change it in place."""
        self.states = states
        """The states; change them in place."""


class _Loop:
    def __init__(self, fn: Callable[[int, int], None]) -> None:
        self.fn = fn
        self.context = Context()
        self.failures = _calls.Failures()

    def on_loop(self, begin: int, end: int) -> None:
        try:
            self.context.call(self.fn, begin, end)
        except BaseException as error:
            self.failures.all.append((-1, error))


class _Merge:
    """The function of one merge_call()."""

    def __init__(self, fn: Callable[..., Any], strategy: Strategy) -> None:
        self.fn = fn
        self.strategy = strategy
        self.failures = _calls.Failures()

    def on_merge(self, strategy: int, args: int, kwargs: int) -> int:
        try:
            seen = values.Seen()
            positional: Any = values.borrowed(args, seen) or ()
            named: Any = values.borrowed(kwargs, seen) or {}
            result = self.fn(self.strategy, *positional, **named)
            return values.hand_over(strategy, result, seen)
        except BaseException as error:
            return -self.failures.add(error)


@checked
class Replica(Returned, Collectives[Any], Devices):
    """A replica of a run: its id, and its part in every collective. Valid only inside the replica function.

        def step(replica):
            x = np.full(4, replica.id, np.float32)
            return replica.all_reduce(libdist.ReduceOp.SUM, x, out=x)

    In run_on_devices(), the object stands for a logical device: `id` is the number of the device, and the collectives
    connect the devices of its replica.
    """

    def _init(self, handle: int, strategy: Strategy, shared: Optional[values.Shared] = None) -> None:
        self._handle = handle
        self._over = False
        self._shared = shared
        self._rounds = 0
        self.strategy = strategy
        """The strategy that runs the replica."""
        self.id: int = _cdist.dist_replica_id(handle)
        """The replica's id in 0 .. num_replicas - 1, which is its rank in every collective."""
        self.num_replicas: int = _cdist.dist_replica_num_replicas(handle)
        """The number of replicas in sync, over all workers."""

    @property
    def device(self) -> str:
        """The full name of the replica's device."""
        replica = _cdist.dist_device_replica(self._handle)
        return self.strategy.device(self.id if replica < 0 else replica)

    @property
    def begin(self) -> Begin:
        """Asynchronous collectives: `replica.begin.all_reduce(...)` returns a Work at once."""
        return Begin(self)

    @property
    def plan(self) -> Plan:
        """Planned collectives: `replica.plan.all_reduce(...)` returns a Work that can be started any number of times.
        """
        return Plan(self)

    # ---- requests ------------------------------------------------------------------------------------------

    @property
    def instance_state(self) -> Any:
        """The state that create_state() returned for this instance.

        None if it has none, or if the function does not serve a request.
        """
        self._check("Replica.instance_state")
        state = _cdist.dist_instance_state(self._handle)
        return _calls.target_of(state).state if state else None

    def version(self, versions: Versions[T]) -> tuple[T, int]:
        """Returns the version that this replica's run sees, and its number. Both stay the same until the run ends.

        Raises FailedPrecondition if no version has been published.
        """
        self._check("Replica.version")
        return versions._seen(self._handle)

    def check(self) -> None:
        """Checks whether the function that this replica runs should stop.

        Raises Cancelled or DeadlineExceeded if the run or the request was cancelled or its deadline has expired, and
        Aborted if a peer has failed. Call it from time to time in long functions that make no collective calls;
        collectives check by themselves.
        """
        self._check("Replica.check")
        _cdist.dist_replica_check(self._handle)

    # ---- collectives; Collectives has the others -----------------------------------------------------------

    @unchecked
    def all_reduce(self, op: Op, x: Tensors, out: Out = None, **options: Unpack[Options]) -> Any:
        """Reduces tensors over all replicas. Every replica gets the results. `out=x` works in place and is the fastest.

        SUM adds from left to right by replica id, so the bits are the same on every replica and in every run.
        """
        if out is x and not options and type(x) is np.ndarray and not self._over and isinstance(op, int):
            if _cdist.quick_all_reduce(self._handle, op, x, None, 0) is not NotImplemented:
                return out
        return super().all_reduce(op, x, out, **options)

    @unchecked
    def broadcast(self, root: int, x: Tensors, out: Out = None, **options: Unpack[Options]) -> Any:
        """Copies the root's tensors to every replica: into `out` if it is passed, otherwise into `x`."""
        if out is None and not options and type(x) is np.ndarray and not self._over:
            if _cdist.quick_broadcast(self._handle, root, x, None, 0) is not NotImplemented:
                return x
        return super().broadcast(root, x, out, **options)

    def barrier(self, **options: Unpack[Options]) -> None:
        """Waits until every member has arrived."""
        if self._over:
            self._check("Replica.barrier")
        tag, timeout = options.pop("tag", ""), options.pop("timeout", None)
        if options:
            _cdist.dist_barrier(self._handle, native_options({**options, "tag": tag, "timeout": timeout}))
        else:
            _cdist.quick_barrier(self._handle, tag, 0 if timeout is None else nanoseconds(timeout))

    def all_reduce_value(self, op: OpName, value: Any, **options: Unpack[Options]) -> Any:
        """Reduces every leaf of a nest over all replicas, like all_reduce(). Indexed slices are concatenated."""
        self._check("Replica.all_reduce_value")
        given = values.make(self.strategy._handle, value)
        native = native_options(options)
        return values.owned(_cdist.dist_all_reduce_value(self._handle, op_number(op), given._handle, native))

    def all_gather_value(self, value: Any, **options: Unpack[Options]) -> Any:
        """Concatenates every leaf of a nest, like all_gather(). Sizes along the axis may differ between replicas."""
        self._check("Replica.all_gather_value")
        given = values.make(self.strategy._handle, value)
        native = native_options(options)
        return values.owned(_cdist.dist_all_gather_value(self._handle, given._handle, native))

    def reduce_apply(
        self,
        op: OpName,
        gradients: Sequence[TensorLike],
        parameters: Sequence[TensorLike],
        *,
        states: Sequence[TensorLike] = (),
        **options: Unpack[ApplyOptions],
    ) -> Optional[float]:
        """Reduces gradients and applies them to parameters in one pass, by gradient descent or with `fn`.

        Returns the norm of the gradients before clipping; None without clip_norm.

        states: the momentum of each parameter; for `fn`, any number of such lists, one after another.
        """
        self._check("Replica.reduce_apply")
        given: Any = dict(options)
        own: Any = {name: given.pop(name) for name in _APPLY & given.keys()}
        kept = Kept()
        apply = apply_options(kept, **own)
        apply.kind = Apply.CALLBACK if own.get("fn") else Apply.SGD
        mutable = [_writable(state) for state in states]
        if mutable:
            numbers = [number for state in mutable for number in _flat(state)]
            apply.set_states(numbers, len(numbers), -(-len(mutable) // max(1, len(parameters))))
        lists = max(1, int(given.get("contributions") or 1))
        if len(gradients) != lists * len(parameters):
            given_lists = f"{len(gradients)} gradients are given for {len(parameters)} parameters"
            wrong("Replica.reduce_apply", f"{given_lists}, but there must be {lists} for each")
        ins = _tensors.give_all(gradients, writable=True)
        outs = _tensors.give_all(parameters, writable=True)
        native = native_options(given)
        try:
            call = (_cdist.dist_reduce_apply, self._handle, op_number(op), ins, outs, len(outs), apply, native)
            norm = _calls.call(kept.failures, *call)
        finally:
            kept.release()
        return float(norm) if own.get("clip_norm", 0.0) > 0 else None

    def merge_call(
        self,
        fn: Callable[..., Any],
        args: Arguments = (),
        kwargs: Keywords = None,
        **options: Unpack[Options],
    ) -> Any:
        """Waits for all replicas, then calls `fn(strategy, *args, **kwargs)` once, on replica 0's thread.

        The arguments of all replicas are merged like the results of Strategy.run_values(). Each replica gets its
        component of the function's result. If the function raises, merge_call() raises on every replica.
        """
        self._check("Replica.merge_call")
        given = values.arguments(self.strategy._handle, args, self._seen())
        named = values.make(self.strategy._handle, kwargs, self._seen()) if kwargs else None
        target = _Merge(fn, self.strategy)
        token = _calls.keep(target)
        try:
            arguments = (values.handle_of(given), values.handle_of(named), native_options(options))
            result = _calls.call(target.failures, _cdist.dist_merge_call, self._handle, token, *arguments)
        finally:
            _calls.release(token)
        return values.owned(result)

    def parallel_for(self, begin: int, end: int, grain: int, fn: Callable[[int, int], None]) -> None:
        """Calls `fn(begin, end)` for pieces of a range in parallel, on this replica's share of the cores.

        grain: minimum number of iterations of a piece, 1 or more.
        """
        self._check("Replica.parallel_for")
        loop = _Loop(fn)
        token = _calls.keep(loop)
        try:
            _calls.call(loop.failures, _cdist.dist_replica_parallel_for, self._handle, begin, end, grain, token)
        finally:
            _calls.release(token)

    # ---- variables -----------------------------------------------------------------------------------------

    def variable(
        self,
        name: str,
        initial: Initial = None,
        **options: Unpack[VariableOptions],
    ) -> Variable:
        """Returns the strategy's variable with this name. The first run whose replicas ask for the name creates it.

        All replicas must make this call together, with the same options.

        initial: initial value, or a function that returns one; replica 0's is used.
        """
        self._check("Replica.variable")
        return ask_for(self, name, initial, options)

    def read(self, variable: Variable) -> Any:
        """Reads this replica's copy of a variable, as a new tensor. Variable.component() returns a view instead."""
        self._check("Replica.read")
        return values.owned(_cdist.dist_replica_read(self._handle, variable._native()))

    def assign(self, variable: Variable, value: TensorLike, how: Assign = Assign.SET, **options: Unpack[Options]) -> None:
        """Assigns to a variable according to its aggregation. Each replica passes its own tensor.

        This is a collective, unless each replica writes only its own copy.
        """
        self._check("Replica.assign")
        native = native_options(options)
        given = [_tensors.give(value)]
        _cdist.dist_replica_assign(self._handle, variable._native(), int(how), given, native)

    def assign_value(self, variable: Variable, value: Any, how: Assign = Assign.SET, **options: Unpack[Options]) -> None:
        """Assigns to a variable like assign(). If all replicas pass the same Value, it counts as one value for all."""
        self._check("Replica.assign_value")
        given = values.make_tensor(self.strategy._handle, value, self._seen())
        native = native_options(options)
        _cdist.dist_replica_assign_value(self._handle, variable._native(), int(how), given._handle, native)

    def scatter(self, variable: Variable, how: Scatter, slices: Any, **options: Unpack[Options]) -> None:
        """Changes rows of a variable according to its aggregation.

        slices: the result of Strategy.indexed_slices().
        """
        self._check("Replica.scatter")
        given = values.make(self.strategy._handle, slices, self._seen())
        native = native_options(options)
        _cdist.dist_replica_scatter(self._handle, variable._native(), int(how), given._handle, native)

    def update(
        self,
        variable: Variable,
        fn: UpdateFn,
        args: Arguments = (),
        kwargs: Keywords = None,
        **options: Unpack[UpdateOptions],
    ) -> Any:
        """Updates a variable like Strategy.update(), from inside replicas. This is a collective.

        The arguments of all replicas are merged, and replica 0's function is called.
        """
        self._check("Replica.update")
        native = (_cdist.dist_replica_update, self._handle, variable._native())
        return update(self.strategy, variable, native, fn, args, kwargs, options, self._seen())

    def update_metric(
        self,
        metric: Metric,
        values: TensorLike,
        labels: Optional[TensorLike] = None,
        weights: Optional[TensorLike] = None,
    ) -> None:
        """Adds a batch to this replica's copy of a metric. Replicas may do this as often as they like.

        labels: for MetricKind.ACCURACY only. values may then have one more dimension, with a score for each class.

        weights: a scalar, or a tensor of the shape of the weighted elements; None = 1.
        """
        self._check("Replica.update_metric")
        given = [None if tensor is None else [_tensors.give(tensor)] for tensor in (values, labels, weights)]
        _cdist.dist_metric_update(self._handle, metric._native(), *given)

    # ---- implementation ----------------------------------------------------------------------------------------

    def _check(self, name: str) -> None:
        # C would accept a handle kept from an earlier run as that of the run in progress.
        if self._over:
            raise FailedPrecondition(
                f"{name}(): replica {self.id} is not running. Its handle is valid only inside its function.",
                function=name,
            )

    def _seen(self) -> Optional[values.Seen]:
        """Returns the Seen of this round, by which one object that all replicas pass becomes one value."""
        self._rounds += 1
        return self._shared.in_round(self._rounds) if self._shared is not None else None

    def _call(self, issue: Issue) -> Any:
        self._check(issue.name)
        if issue.operator is None:
            issue.call(self._handle)
            return issue.result
        try:
            _calls.call(issue.operator.failures, issue.call, self._handle)
        finally:
            _calls.release(issue.operator.token)
        return issue.result

    def _members(self, options: Any) -> int:
        group = options.get("group")
        return self.num_replicas if group is None else int(group.size)

    def _is_root(self, root: int, options: Any) -> bool:
        group = options.get("group")
        return bool(root == (self.id if group is None else group.rank(self.id)))


def _writable(tensor: Any) -> Any:
    given = _tensors.give(tensor, writable=True)
    return (
        given
        if isinstance(given, tuple)
        else _tensors._numbers_of(np.asarray(given), _tensors.dtype_of(np.asarray(given)), True)
    )


def _flat(numbers: tuple[Any, ...]) -> list[int]:
    """Converts a tuple of the native layer to the numbers that dist.i reads."""
    address, dtype, shape, strides = numbers[:4]
    return [address, dtype, len(shape), 0 if strides is None else 1, *shape, *(strides or ())]

# SPDX-License-Identifier: Apache-2.0
"""Replica: what a replica function gets first. Who am I, the collectives, variables from inside."""

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
    """A piece of one tensor for reduce_apply()'s function: `count` elements from `first` on of tensor `tensor`."""

    __slots__ = ("tensor", "first", "count", "gradient", "parameter", "states")

    def __init__(self, tensor: int, first: int, count: int, gradient: Any, parameter: Any, states: list[Any]) -> None:
        self.tensor = tensor
        self.first = first
        self.count = count
        self.gradient = gradient
        """Reduced, and scaled by the clip; to be read."""
        self.parameter = parameter
        """To be changed in place."""
        self.states = states
        """To be changed in place."""


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
    """One copy of the replica function: its id, and its side of every collective. Valid inside that function.

    Inside run_on_devices() it is a logical device of a replica: `id` is its number, the members are its replica's.
    """

    def _init(self, handle: int, strategy: Strategy, shared: Optional[values.Shared] = None) -> None:
        self._handle = handle
        self._over = False
        self._shared = shared
        self._rounds = 0
        self.strategy = strategy
        """The strategy that runs it."""
        self.id: int = _cdist.dist_replica_id(handle)
        """Its id in 0 .. num_replicas - 1, its rank in every collective."""
        self.num_replicas: int = _cdist.dist_replica_num_replicas(handle)
        """How many replicas are in sync."""

    @property
    def device(self) -> str:
        """The name of its device."""
        replica = _cdist.dist_device_replica(self._handle)
        return self.strategy.device(self.id if replica < 0 else replica)

    @property
    def begin(self) -> Begin:
        """The collectives once more, which return at once with Work: `replica.begin.all_reduce(...)`."""
        return Begin(self)

    @property
    def plan(self) -> Plan:
        """The collectives as plans: `replica.plan.all_reduce(...)` gives Work that can be begun again and again."""
        return Plan(self)

    # ---- requests ------------------------------------------------------------------------------------------

    @property
    def instance_state(self) -> Any:
        """What create_state() made for this instance; None: it has none, or the function is no request's."""
        self._check("Replica.instance_state")
        state = _cdist.dist_instance_state(self._handle)
        return _calls.target_of(state).state if state else None

    def version(self, versions: Versions[T]) -> tuple[T, int]:
        """The version that this replica's run sees, the same to its end, and its number.

        FailedPrecondition: nothing has been published.
        """
        self._check("Replica.version")
        return versions._seen(self._handle)

    def check(self) -> None:
        """Raises where the function that this replica runs is to end: Cancelled, DeadlineExceeded, Aborted.

        A long function asks it now and then, where it calls no collectives, which find out for themselves.
        """
        self._check("Replica.check")
        _cdist.dist_replica_check(self._handle)

    # ---- collectives; the rest of them is inherited --------------------------------------------------------

    @unchecked
    def all_reduce(self, op: Op, x: Tensors, out: Out = None, **options: Unpack[Options]) -> Any:
        """Reduces over all replicas; every replica gets the results. `out=x` is in place, and fastest.

        SUM adds from left to right by replica id: the same bits on every replica and in every run.
        """
        if out is x and not options and type(x) is np.ndarray and not self._over and isinstance(op, int):
            if _cdist.quick_all_reduce(self._handle, op, x, None, 0) is not NotImplemented:
                return out
        return super().all_reduce(op, x, out, **options)

    @unchecked
    def broadcast(self, root: int, x: Tensors, out: Out = None, **options: Unpack[Options]) -> Any:
        """Gives every replica the root's tensors, in `x` itself where no `out` is given."""
        if out is None and not options and type(x) is np.ndarray and not self._over:
            if _cdist.quick_broadcast(self._handle, root, x, None, 0) is not NotImplemented:
                return x
        return super().broadcast(root, x, out, **options)

    def barrier(self, **options: Unpack[Options]) -> None:
        """Returns when every member has arrived."""
        if self._over:
            self._check("Replica.barrier")
        tag, timeout = options.pop("tag", ""), options.pop("timeout", None)
        if options:
            _cdist.dist_barrier(self._handle, native_options({**options, "tag": tag, "timeout": timeout}))
        else:
            _cdist.quick_barrier(self._handle, tag, 0 if timeout is None else nanoseconds(timeout))

    def all_reduce_value(self, op: OpName, value: Any, **options: Unpack[Options]) -> Any:
        """all_reduce() of a nest: every leaf is reduced, indexed slices are joined."""
        self._check("Replica.all_reduce_value")
        given = values.make(self.strategy._handle, value)
        native = native_options(options)
        return values.owned(_cdist.dist_all_reduce_value(self._handle, op_number(op), given._handle, native))

    def all_gather_value(self, value: Any, **options: Unpack[Options]) -> Any:
        """all_gather() of a nest; sizes along the axis may differ."""
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
        """Reduces gradients and updates parameters with them in one pass, by gradient descent or by `fn`.

        Returns the norm before clipping; None without clip_norm.

        states: the momentum of each parameter; for `fn`, a whole number of such lists.
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
        """All replicas meet, and `fn(strategy, *args, **kwargs)` runs once for all of them, on replica 0's thread.

        It gets the arguments of all replicas, merged; what it returns, each replica gets its component of.
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
        """Calls `fn(begin, end)` for pieces of a range, on this replica's share of the cores."""
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
        """Returns the strategy's variable of this name, which the first run that asks creates."""
        self._check("Replica.variable")
        return ask_for(self, name, initial, options)

    def read(self, variable: Variable) -> Any:
        """This replica's copy as a new tensor; Variable.component() gives a view of it."""
        self._check("Replica.read")
        return values.owned(_cdist.dist_replica_read(self._handle, variable._native()))

    def assign(self, variable: Variable, value: TensorLike, how: Assign = Assign.SET, **options: Unpack[Options]) -> None:
        """Assigns by the variable's aggregation; of each replica another tensor."""
        self._check("Replica.assign")
        native = native_options(options)
        given = [_tensors.give(value)]
        _cdist.dist_replica_assign(self._handle, variable._native(), int(how), given, native)

    def assign_value(self, variable: Variable, value: Any, how: Assign = Assign.SET, **options: Unpack[Options]) -> None:
        """As assign(); where all replicas give the same Value it is one number for all of them."""
        self._check("Replica.assign_value")
        given = values.make_tensor(self.strategy._handle, value, self._seen())
        native = native_options(options)
        _cdist.dist_replica_assign_value(self._handle, variable._native(), int(how), given._handle, native)

    def scatter(self, variable: Variable, how: Scatter, slices: Any, **options: Unpack[Options]) -> None:
        """Changes rows, by the variable's aggregation; slices: Strategy.indexed_slices()."""
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
        """Strategy.update() from inside: all replicas meet, and replica 0's function is used."""
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
        """Adds a batch to this replica's copy of a metric. labels: of ACCURACY, where values may be scores."""
        self._check("Replica.update_metric")
        given = [None if tensor is None else [_tensors.give(tensor)] for tensor in (values, labels, weights)]
        _cdist.dist_metric_update(self._handle, metric._native(), *given)

    # ---- inside --------------------------------------------------------------------------------------------

    def _check(self, name: str) -> None:
        # C would take a handle that is kept for one of the run that is under way now.
        if self._over:
            raise FailedPrecondition(
                f"{name}(): replica {self.id} is not running. Its handle is valid only inside its function.",
                function=name,
            )

    def _seen(self) -> Optional[values.Seen]:
        """Where this round's arguments are looked up, so that one object given by all replicas is one value."""
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
    """A tuple of the native layer as dist.i's numbers."""
    address, dtype, shape, strides = numbers[:4]
    return [address, dtype, len(shape), 0 if strides is None else 1, *shape, *(strides or ())]

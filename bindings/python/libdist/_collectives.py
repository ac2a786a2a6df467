# SPDX-License-Identifier: Apache-2.0
"""The collectives: each turns its arguments into one native call, which Replica, Begin and Plan make in different ways.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Generic, Optional, TypeVar, Union

import numpy as np

from . import _calls, _cdist, _tensors
from ._arguments import checked, wrong
from ._callbacks import Operator, Reducer
from ._option_fields import Options, collective_options
from ._tensors import Out, Tensors
from .constants import DType, ReduceOp, ScanKind
from .errors import InvalidArgument
from .names import OpName, op_number

if TYPE_CHECKING:
    from typing_extensions import Unpack

Result = TypeVar("Result")
Op = Union[OpName, Operator]
"""A ReduceOp, its name, or an operator of your own."""


class _Operator(Reducer):
    """An operator of your own, in one collective."""

    def __init__(self, fn: Operator, element_bytes: int = 0) -> None:
        """element_bytes: size of one element of the operator; 0 = the dtype's size."""
        super().__init__(fn, _calls.Failures(), element_bytes)
        self.token = _calls.keep(self)

    def end(self) -> None:
        """Releases the operator when nothing calls it any more, and raises what it raised."""
        _calls.release(self.token)
        if self.failures.all:
            self.failures.raise_for(None)


def native_options(options: Options) -> Any:
    """Converts checked options for C; returns None if there are none."""
    return collective_options(**options) if options else None


class Issue:
    """A collective that is ready to be called: the native function and its arguments."""

    __slots__ = ("name", "native", "head", "ins", "outs", "lists", "options", "operator", "result")

    def __init__(self, name: str, native: Any, head: tuple[Any, ...], options: Options) -> None:
        self.name = name
        self.native = native
        self.head = head
        self.options = native_options(options)
        self.operator: Optional[_Operator] = None
        self.ins: Optional[list[Any]] = None
        self.outs: Optional[list[Any]] = None
        self.lists = max(1, int(options.get("contributions") or 1))
        """The number of lists in `ins`, each as long as `outs`."""
        self.result: Any = None

    def some_options(self) -> Any:
        """Returns the native options, and creates them if there are none yet."""
        if self.options is None:
            self.options = _cdist.dist_collective_options()
        return self.options

    def call(self, replica: int) -> None:
        """Makes the native call."""
        if self.ins is None and self.outs is None:
            self.native(replica, *self.head, self.options)
            return
        n = len(self.outs) if self.outs is not None else len(self.ins or ()) // self.lists
        self.native(replica, *self.head, self.ins, self.outs, n, self.options)


def _is_list(tensors: Any) -> bool:
    return isinstance(tensors, (list, tuple))


def _listed(tensors: Any) -> list[Any]:
    return list(tensors) if _is_list(tensors) else [tensors]


def _like(tensor: Any, dtype: Optional[DType] = None, shape: Optional[tuple[int, ...]] = None) -> Any:
    """Allocates an array for a result like `tensor`."""
    if isinstance(tensor, _tensors.Tensor):
        return _tensors.Tensor(np.empty(shape if shape is not None else tensor.shape, np.uint16), tensor.dtype)
    array = tensor if isinstance(tensor, np.ndarray) else np.asarray(tensor)
    return np.empty(array.shape if shape is None else shape, _tensors.numpy_dtype(dtype) if dtype else array.dtype)


_WIDE = (DType.I32, DType.U32, DType.I64, DType.U64)
_FLOATS = (DType.F16, DType.BF16, DType.F32, DType.F64, DType.COMPLEX64)


def _reduced(op: Op, tensor: Any) -> Any:
    """Allocates an array for the result of a reduction. MEAN of integers has another dtype than its argument."""
    if op != ReduceOp.MEAN:
        return _like(tensor)
    dtype = _tensors.dtype_of(tensor if isinstance(tensor, _tensors.Tensor) else np.asarray(tensor))
    if dtype in _FLOATS or dtype == DType.BOOL:
        return _like(tensor)
    return _like(tensor, DType.F64 if dtype in _WIDE else DType.F32)


@checked
class Collectives(Generic[Result]):
    """The collectives, as methods of a Replica and of its attributes `begin` and `plan`.

    `x` is a tensor or a list of tensors, which are exchanged together. `out` is the array, or the list of arrays, that
    receives the results. `out=x` works in place. Without `out`, the results are new arrays.

    All replicas must call the same collectives in the same order. If they disagree, or if a replica fails or does not
    arrive in time, the call raises the same DistError on every replica, and the error names the replica at fault.
    """

    def _call(self, issue: Issue) -> Result:
        raise NotImplementedError

    def _members(self, options: Any) -> int:
        raise NotImplementedError

    def _issue(
        self, name: str, native: Any, head: tuple[Any, ...], x: Any, out: Any, options: Any, op: Optional[Op] = None
    ) -> Result:
        issue = Issue(name, native, head, options)
        if op is not None:
            if callable(op):
                issue.operator = _Operator(op, int(options.get("reduce_element_bytes") or 0))
                issue.some_options().set_reduce(issue.operator.token)
                op = ReduceOp.USER
            issue.head = (op_number(op), *head)
        if x is not None:
            issue.ins = _tensors.give_all(_listed(x))
        if out is not None:
            issue.outs = issue.ins if out is x else _tensors.give_all(_listed(out), writable=True)
        issue.result = out
        lists = issue.lists
        if issue.ins is not None and issue.outs is not None and len(issue.ins) != lists * len(issue.outs):
            given = f"x has {len(issue.ins)} tensors and out has {len(issue.outs)}"
            wrong(name, f"{given}, but x must have {'as many as' if lists == 1 else f'{lists} for each of'} out")
        splits = options.get("splits")
        if splits is not None and len(splits) != self._members(options):
            wrong(name, f"splits has {len(splits)} numbers, but must have one for each of {self._members(options)} replicas")
        return self._call(issue)

    def all_reduce(self, op: Op, x: Tensors, out: Out = None, **options: Unpack[Options]) -> Result:
        """Reduces tensors over all replicas. Every replica gets the results."""
        if out is None:
            out = self._new_results(op, x, options)
        return self._issue("Replica.all_reduce", _cdist.dist_all_reduce, (), x, out, options, op)

    def reduce_to_root(self, op: Op, root: int, x: Tensors, out: Out = None, **options: Unpack[Options]) -> Result:
        """Reduces tensors over all replicas. Only the root gets the results.

        The other replicas get None if they pass no `out`.
        """
        if out is None and self._is_root(root, options):
            out = self._new_results(op, x, options)
        return self._issue("Replica.reduce_to_root", _cdist.dist_reduce_to_root, (root,), x, out, options, op)

    def reduce_scatter(self, op: Op, x: Tensors, out: Out = None, **options: Unpack[Options]) -> Result:
        """Reduces tensors over all replicas. Every replica gets a part of each result along the axis.

        Without `out`, the parts have equal sizes; InvalidArgument is raised if the size is not divisible.
        """
        if out is None:
            whole = self._new_results(op, x, options)
            out = self._map(whole, lambda tensor: self._scaled(tensor, options, divide=True))
        return self._issue("Replica.reduce_scatter", _cdist.dist_reduce_scatter, (), x, out, options, op)

    def all_gather(self, x: Tensors, out: Out = None, **options: Unpack[Options]) -> Result:
        """Concatenates the tensors of all replicas along the axis. Every replica gets the results.

        Pass `out` if the sizes along the axis differ between replicas.
        """
        if out is None:
            out = self._map(x, lambda tensor: self._scaled(tensor, options))
        return self._issue("Replica.all_gather", _cdist.dist_all_gather, (), x, out, options)

    def gather_to_root(self, root: int, x: Tensors, out: Out = None, **options: Unpack[Options]) -> Result:
        """Concatenates the tensors of all replicas along the axis. Only the root gets the results.

        The other replicas get None if they pass no `out`.
        """
        if out is None and self._is_root(root, options):
            out = self._map(x, lambda tensor: self._scaled(tensor, options))
        return self._issue("Replica.gather_to_root", _cdist.dist_gather_to_root, (root,), x, out, options)

    def broadcast(self, root: int, x: Tensors, out: Out = None, **options: Unpack[Options]) -> Result:
        """Copies the root's tensors to every replica: into `out` if it is passed, otherwise into `x`."""
        return self._issue("Replica.broadcast", _cdist.dist_broadcast, (root,), x, x if out is None else out, options)

    def scatter_from_root(self, root: int, x: Optional[Tensors], out: Out, **options: Unpack[Options]) -> Result:
        """Splits each of the root's tensors along the axis and gives every replica one part.

        x: the root's tensors; None on the other replicas.

        out: receives this replica's parts, whose sizes may differ between replicas.
        """
        return self._issue("Replica.scatter_from_root", _cdist.dist_scatter_from_root, (root,), x, out, options)

    def all_to_all(self, x: Tensors, out: Out = None, **options: Unpack[Options]) -> Result:
        """Every replica sends one part of each tensor to every replica.

        Pass `out` together with the option `splits`. Without `splits`, the parts have equal sizes.
        """
        if out is None:
            out = self._map(x, _like)
        return self._issue("Replica.all_to_all", _cdist.dist_all_to_all, (), x, out, options)

    def scan(
        self, op: Op, x: Tensors, out: Out = None, *, kind: ScanKind = ScanKind.INCLUSIVE, **options: Unpack[Options]
    ) -> Result:
        """Reduces tensors over the replicas up to each one, in the order of their ids (a prefix reduction)."""
        if out is None:
            out = self._map(x, _like)
        return self._issue("Replica.scan", _cdist.dist_scan, (int(kind),), x, out, options, op)

    def barrier(self, **options: Unpack[Options]) -> Result:
        """Waits until every replica has arrived."""
        return self._issue("Replica.barrier", _cdist.dist_barrier, (), None, None, options)

    def permute(self, destination: int, source: int, x: Tensors, out: Out = None, **options: Unpack[Options]) -> Result:
        """Every replica sends its tensors to one other replica.

        destination: the rank that receives this replica's tensors; -1 = none.

        source: the rank whose tensors this replica receives; -1 = none, and the result is 0.
        """
        if out is None:
            out = self._map(x, _like)
        return self._issue("Replica.permute", _cdist.dist_permute, (destination, source), x, out, options)

    # ---- allocation of results ---------------------------------------------------------------------------------

    @staticmethod
    def _map(x: Any, fn: Callable[[Any], Any]) -> Any:
        return [fn(tensor) for tensor in x] if _is_list(x) else fn(x)

    @staticmethod
    def _new_results(op: Op, x: Any, options: Any) -> Any:
        contributions = options.get("contributions", 1) or 1
        tensors = _listed(x)
        if contributions > 1 and len(tensors) % contributions != 0:
            raise InvalidArgument(f"x has {len(tensors)} tensors, but must have {contributions} for each result")
        results = [_reduced(op, tensor) for tensor in tensors[: len(tensors) // contributions]]
        return results if _is_list(x) else results[0]

    def _is_root(self, root: int, options: Any) -> bool:
        raise NotImplementedError

    def _scaled(self, tensor: Any, options: Any, divide: bool = False) -> Any:
        shape = list(np.shape(tensor.array if isinstance(tensor, _tensors.Tensor) else tensor))
        axis = options.get("axis", 0)
        if not -len(shape) <= axis < len(shape):
            return _like(tensor)  # libdist raises the error
        members = self._members(options)
        if divide and shape[axis] % members:
            raise InvalidArgument(
                f"Replica.reduce_scatter(): {shape[axis]} rows cannot be divided into {members} equal parts. Pass out on each replica."
            )
        shape[axis] = shape[axis] // members if divide else shape[axis] * members
        return _like(tensor, shape=tuple(shape))

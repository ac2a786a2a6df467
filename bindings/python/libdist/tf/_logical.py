# SPDX-License-Identifier: Apache-2.0
"""Tensors that are split over logical devices, and functions that run on each of them.

TensorFlow's compiler divides whatever is computed with a split tensor. Here the program says which function is to run
on every device: by the decorator, or by run_on_logical_devices().
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, cast

import numpy as np

import libdist
from libdist._tensors import owner_of

from ._nest import leaves_of
from ._tensor import Holder, TensorShape, tensor_of

if TYPE_CHECKING:
    from ._tpu import MeshStrategy

Function = TypeVar("Function", bound=Callable[..., Any])


class SplitTensor(Holder):
    """A tensor that is split over the logical devices of a replica.

    Inside the replica's function it is for functions that run on every device; elsewhere it reads as the whole.
    """

    def __init__(self, value: libdist.Value, strategy: libdist.Strategy) -> None:
        self._value = value
        self._strategy = strategy

    @property
    def shape(self) -> TensorShape:
        """Of the whole."""
        return TensorShape(self._value.shape)

    @property
    def dtype(self) -> Any:
        """NumPy's dtype of the elements."""
        return libdist.numpy_dtype(self._value.dtype)

    def read_value(self) -> Any:
        """The whole; FailedPrecondition inside a function of the strategy's replicas."""
        replica = libdist.get_replica()
        if replica is not None and replica.strategy is self._strategy:
            devices = self._strategy.num_logical_devices
            raise libdist.FailedPrecondition(
                f"this tensor of shape {self.shape} is split over {devices} logical devices, and a function that is "
                "called with it would compute on one thread: write @tf.distribute.on_logical_devices above the "
                "function, which then runs on every device with its part, or call "
                "strategy.run_on_logical_devices(function, (tensor,))"
            )
        return tensor_of(self._value.numpy())

    def tolist(self) -> Any:
        """The whole as nested lists."""
        return self.read_value().tolist()

    def __repr__(self) -> str:
        if libdist.get_replica() is None:
            return repr(self.read_value())
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype}, split={self._value.partition!r}>"

    __str__ = __repr__


def divided(value: libdist.Value, strategy: libdist.Strategy) -> Any:
    """A sharded value of libdist's: split, or the tensor that it is where a device has it whole."""
    partition = value.partition
    if partition.kind == libdist.PartitionKind.SPLIT and partition.num_logical_devices > 1:
        return SplitTensor(value, strategy)
    return tensor_of(value.numpy())


def on_logical_devices(function: Function) -> Function:
    """Decorates a function that is to run on every logical device, each with its part of what is split.

    Called inside a replica function with tensors that were split, replicated or assigned to logical devices, it runs
    once on each of them, at the same time, and what the calls return is joined. Called with anything else it is the
    function itself.
    libdist's own: TensorFlow's compiler divides any function, and here the program says which.
    """

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        strategy = _mesh_of((args, kwargs))
        if strategy is None:
            return function(*args, **kwargs)
        return strategy.run_on_logical_devices(function, args, kwargs)

    return called  # type: ignore[return-value]


def _mesh_of(nest: Any) -> Optional[MeshStrategy]:
    """The strategy whose replica this thread is in, where the nest has a tensor that it divided."""
    from ._context import face_of

    replica = libdist.get_replica()
    if replica is None or replica.strategy.kind != libdist.StrategyKind.MESH or replica.device_replica >= 0:
        return None
    found = any(isinstance(sharded(leaf), libdist.Value) for leaf in leaves_of(nest))
    return cast("MeshStrategy", face_of(replica.strategy)) if found else None


def sharded(thing: Any) -> Any:
    """libdist's value of a tensor that is divided over logical devices; anything else as it is."""
    if isinstance(thing, SplitTensor):
        return thing._value
    owner = owner_of(thing) if isinstance(thing, np.ndarray) else None
    if isinstance(owner, libdist.Value) and owner.kind == libdist.ValueKind.SHARDED:
        return owner
    return thing

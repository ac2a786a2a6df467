# SPDX-License-Identifier: Apache-2.0
"""Functions that run on every logical device.

TensorFlow's compiler divides any computation with a split tensor. libdist divides element-wise functions and reductions
(_split.py). For other computations, the program names the function to run on every device, with the decorator or with
run_on_logical_devices().
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, cast

import numpy as np

import libdist
from libdist._arguments import checked
from libdist._tensors import owner_of

from ._nest import leaves_of
from ._split import SplitTensor
from ._tensor import tensor_of

if TYPE_CHECKING:
    from ._tpu import MeshStrategy

Function = TypeVar("Function", bound=Callable[..., Any])


def divided(value: libdist.Value, strategy: libdist.Strategy) -> Any:
    """Converts a sharded value of libdist: to a SplitTensor, or to a tensor if one device has it as a whole."""
    partition = value.partition
    if partition.kind == libdist.PartitionKind.SPLIT and partition.num_logical_devices > 1:
        return SplitTensor(value, strategy)
    return tensor_of(value.numpy())


@checked
def on_logical_devices(function: Function) -> Function:
    """Decorates a function that runs on every logical device, each with its part of split arguments.

        @tf.distribute.on_logical_devices
        def layer(x, w):
            return tf.matmul(x, w)

    If it is called in a replica function with tensors that were split, replicated or assigned to logical devices, it
    runs on all of them at the same time, and the results are joined. Otherwise the function is called as usual.

    Not in TensorFlow, whose compiler divides any function.
    """

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        strategy = _mesh_of((args, kwargs))
        if strategy is None:
            return function(*args, **kwargs)
        return strategy.run_on_logical_devices(function, args, kwargs)

    return called  # type: ignore[return-value]


def _mesh_of(nest: Any) -> Optional[MeshStrategy]:
    """Returns the strategy that divided a tensor of the nest, if this thread is in one of its replicas; otherwise None.
    """
    from ._context import face_of

    replica = libdist.get_replica()
    if replica is None or replica.strategy.kind != libdist.StrategyKind.MESH or replica.device_replica >= 0:
        return None
    found = any(isinstance(sharded(leaf), libdist.Value) for leaf in leaves_of(nest))
    return cast("MeshStrategy", face_of(replica.strategy)) if found else None


def sharded(thing: Any) -> Any:
    """Returns libdist's value of a tensor that is divided over logical devices; other objects unchanged."""
    if isinstance(thing, SplitTensor):
        return thing._value
    owner = owner_of(thing) if isinstance(thing, np.ndarray) else None
    if isinstance(owner, libdist.Value) and owner.kind == libdist.ValueKind.SHARDED:
        return owner
    return thing

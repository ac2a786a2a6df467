# SPDX-License-Identifier: Apache-2.0
"""The names of TensorFlow's enumerators, as numbers and back; device names; what this build is.

The numbers may be members of libdist's enums, or plain; a *_name() gives None for a number that has no name.
"""

from __future__ import annotations

from typing import Optional, Union

from . import _cdist
from .constants import Aggregation, Communication, InputMode, ReduceOp, ShardPolicy, Synchronization
from .errors import InvalidArgument


def version() -> int:
    """The version of the library that runs: major * 10000 + minor * 100 + patch."""
    return int(_cdist.dist_version())


def has_feature(name: str) -> bool:
    """Whether this build has an optional feature: "numa", "pinning"."""
    return bool(_cdist.dist_has_feature(name))


def canonical_device(name: str) -> str:
    """A device's name in full; what `name` leaves out is as in CPU:0."""
    return str(_cdist.dist_canonical_device(name))


def reduce_op_name(op: int) -> Optional[str]:
    """Of a ReduceOp: "SUM", "MEAN" ..."""
    name: Optional[str] = _cdist.dist_reduce_op_name(int(op))
    return name


def op_number(op: Union[int, str]) -> int:
    """The number of a ReduceOp, or of its name in any case: "SUM", "mean" ..."""
    if isinstance(op, str):
        if op.upper() not in ReduceOp.__members__:
            raise InvalidArgument(
                f"{op!r} is no operator: a libdist.ReduceOp, or one of {', '.join(ReduceOp.__members__)}"
            )
        return int(ReduceOp[op.upper()])
    if not isinstance(op, int):
        raise TypeError(f'{op!r} is no operator: a libdist.ReduceOp, or its name, "SUM"')
    return int(op)


def communication_name(implementation: int) -> Optional[str]:
    """Of a Communication: "AUTO", "RING", "NCCL"."""
    name: Optional[str] = _cdist.dist_communication_name(int(implementation))
    return name


def cross_device_name(kind: int) -> Optional[str]:
    """Of a CrossDeviceKind: "HIERARCHICAL_COPY" ..."""
    name: Optional[str] = _cdist.dist_cross_device_name(int(kind))
    return name


def synchronization_name(synchronization: int) -> Optional[str]:
    """Of a Synchronization: "ON_READ" ..."""
    name: Optional[str] = _cdist.dist_synchronization_name(int(synchronization))
    return name


def aggregation_name(aggregation: int) -> Optional[str]:
    """Of an Aggregation: "ONLY_FIRST_REPLICA" ..."""
    name: Optional[str] = _cdist.dist_aggregation_name(int(aggregation))
    return name


def input_mode_name(mode: int) -> Optional[str]:
    """Of an InputMode: "PER_WORKER" ..."""
    name: Optional[str] = _cdist.dist_input_mode_name(int(mode))
    return name


def shard_policy_name(policy: int) -> Optional[str]:
    """Of a ShardPolicy: "AUTO" ..."""
    name: Optional[str] = _cdist.dist_shard_policy_name(int(policy))
    return name


def reduce_op_from_name(name: str) -> ReduceOp:
    """ "SUM" or "MEAN", in any case; other operators are no reduction of values from outside."""
    return ReduceOp(_cdist.dist_reduce_op_from_name(name))


def reduce_op_from_aggregation(aggregation: int) -> ReduceOp:
    """The operator by which a variable of this aggregation is reduced."""
    return ReduceOp(_cdist.dist_reduce_op_from_aggregation(int(aggregation)))


def communication_from_name(name: str) -> Communication:
    """As communication_name() gives it, in any case."""
    return Communication(_cdist.dist_communication_from_name(name))


def synchronization_from_name(name: str) -> Synchronization:
    """As synchronization_name() gives it, in any case."""
    return Synchronization(_cdist.dist_synchronization_from_name(name))


def aggregation_from_name(name: str) -> Aggregation:
    """As aggregation_name() gives it, in any case."""
    return Aggregation(_cdist.dist_aggregation_from_name(name))


def input_mode_from_name(name: str) -> InputMode:
    """As input_mode_name() gives it, in any case."""
    return InputMode(_cdist.dist_input_mode_from_name(name))


def shard_policy_from_name(name: str) -> ShardPolicy:
    """As shard_policy_name() gives it, in any case."""
    return ShardPolicy(_cdist.dist_shard_policy_from_name(name))

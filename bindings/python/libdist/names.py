# SPDX-License-Identifier: Apache-2.0
"""Names of enum members as in TensorFlow, device names, and the version and features of this build.

Functions accept members of libdist's enums or their numbers. The functions *_name() return None for a number that has
no name.
"""

from __future__ import annotations

from typing import Annotated, Any, Optional, Union

from . import _cdist
from ._arguments import Rule, Unfit, checked, member_of
from .constants import Aggregation, CrossDeviceKind, InputMode, ReduceOp, ShardPolicy, Synchronization


def _name(domain: int, number: int) -> Optional[str]:
    name: Optional[str] = _cdist.dist_enum_name(domain, int(number))
    return name


def _from_name(domain: int, name: str) -> int:
    return int(_cdist.dist_enum_from_name(domain, name))


@checked
def version() -> int:
    """Returns the version of the loaded library: major * 10000 + minor * 100 + patch."""
    return int(_cdist.dist_version())


@checked
def has_feature(name: str) -> bool:
    """Returns whether this process can use a feature: "numa", "pinning", "isal", "grpc" or "gloo".

    For the last two it loads the library, which stays in the process.
    """
    return bool(_cdist.dist_has_feature(name))


@checked
def canonical_device(name: str) -> str:
    """Returns the full form of a device name. Parts that `name` omits are those of CPU:0."""
    return str(_cdist.dist_canonical_device(name))


@checked
def reduce_op_name(op: int) -> Optional[str]:
    """Returns the name of a ReduceOp: "SUM", "MEAN" ..."""
    return _name(_cdist.DIST_ENUM_REDUCE_OP, op)


_AN_OPERATOR = f"a libdist.ReduceOp or one of the names {', '.join(ReduceOp.__members__)}"


def _fit_op(given: Any) -> Any:
    if isinstance(given, str):
        if given.upper() in ReduceOp.__members__:
            return given
        raise Unfit(given, _AN_OPERATOR, right_type=True)
    return member_of(ReduceOp, given, _AN_OPERATOR)


OpName = Annotated[Union[ReduceOp, str], Rule(_fit_op, _AN_OPERATOR)]
"""A ReduceOp, or its name in any case: "SUM", "mean" ..."""


def op_number(op: Union[int, str]) -> int:
    """Returns the number of a ReduceOp or its name."""
    return int(ReduceOp[op.upper()]) if isinstance(op, str) else int(op)


@checked
def cross_device_name(kind: int) -> Optional[str]:
    """Returns the name of a CrossDeviceKind: "REDUCTION_TO_ONE_DEVICE" ..."""
    return _name(_cdist.DIST_ENUM_CROSS_DEVICE, kind)


@checked
def synchronization_name(synchronization: int) -> Optional[str]:
    """Returns the name of a Synchronization: "ON_READ" ..."""
    return _name(_cdist.DIST_ENUM_SYNCHRONIZATION, synchronization)


@checked
def aggregation_name(aggregation: int) -> Optional[str]:
    """Returns the name of an Aggregation: "ONLY_FIRST_REPLICA" ..."""
    return _name(_cdist.DIST_ENUM_AGGREGATION, aggregation)


@checked
def input_mode_name(mode: int) -> Optional[str]:
    """Returns the name of an InputMode: "PER_WORKER" ..."""
    return _name(_cdist.DIST_ENUM_INPUT_MODE, mode)


@checked
def shard_policy_name(policy: int) -> Optional[str]:
    """Returns the name of a ShardPolicy: "AUTO" ..."""
    return _name(_cdist.DIST_ENUM_SHARD_POLICY, policy)


@checked
def reduce_op_from_name(name: str) -> ReduceOp:
    """Returns the ReduceOp named "SUM" or "MEAN", in any case: the operators that reduce values outside runs."""
    return ReduceOp(_from_name(_cdist.DIST_ENUM_VALUE_REDUCTION, name))


@checked
def reduce_op_from_aggregation(aggregation: int) -> ReduceOp:
    """Returns the operator that reduces a variable with this aggregation."""
    return ReduceOp(_cdist.dist_reduce_op_from_aggregation(int(aggregation)))


@checked
def cross_device_from_name(name: str) -> CrossDeviceKind:
    """Returns the CrossDeviceKind with this name, in any case."""
    return CrossDeviceKind(_from_name(_cdist.DIST_ENUM_CROSS_DEVICE, name))


@checked
def synchronization_from_name(name: str) -> Synchronization:
    """Returns the Synchronization with this name, in any case."""
    return Synchronization(_from_name(_cdist.DIST_ENUM_SYNCHRONIZATION, name))


@checked
def aggregation_from_name(name: str) -> Aggregation:
    """Returns the Aggregation with this name, in any case."""
    return Aggregation(_from_name(_cdist.DIST_ENUM_AGGREGATION, name))


@checked
def input_mode_from_name(name: str) -> InputMode:
    """Returns the InputMode with this name, in any case."""
    return InputMode(_from_name(_cdist.DIST_ENUM_INPUT_MODE, name))


@checked
def shard_policy_from_name(name: str) -> ShardPolicy:
    """Returns the ShardPolicy with this name, in any case."""
    return ShardPolicy(_from_name(_cdist.DIST_ENUM_SHARD_POLICY, name))

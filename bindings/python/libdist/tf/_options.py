# SPDX-License-Identifier: Apache-2.0
"""The enums and options of tf.distribute."""

from __future__ import annotations

import enum
import logging
import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Optional, Union

import libdist
from libdist._arguments import checked, seconds

_log = logging.getLogger("libdist.tf")


class ReduceOp(enum.Enum):
    """The operator that reduces the values of the replicas."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: Any) -> ReduceOp:
        """Returns the operator that reduces a variable; ValueError for NONE and ONLY_FIRST_REPLICA."""
        native = libdist.reduce_op_from_aggregation(_NATIVE_AGGREGATION[VariableAggregation(aggregation)])
        return ReduceOp.SUM if native == libdist.ReduceOp.SUM else ReduceOp.MEAN


def native_op(op: Union[ReduceOp, str]) -> libdist.ReduceOp:
    """Returns libdist's operator for a ReduceOp or its name in any case."""
    if isinstance(op, ReduceOp):
        return libdist.ReduceOp.SUM if op is ReduceOp.SUM else libdist.ReduceOp.MEAN
    if not isinstance(op, str):
        raise TypeError(f"{op!r} is not a valid ReduceOp: tf.distribute.ReduceOp.SUM or MEAN, or their names")
    return libdist.reduce_op_from_name(op)


class VariableSynchronization(enum.Enum):
    """The time at which the copies of a variable are combined."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """The aggregation of the values that replicas assign to a variable."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


_NATIVE_SYNCHRONIZATION = {one: libdist.Synchronization[one.name] for one in VariableSynchronization}
_NATIVE_AGGREGATION = {one: libdist.Aggregation[one.name] for one in VariableAggregation}


def native_synchronization(mode: Any) -> libdist.Synchronization:
    """Returns libdist's number for a VariableSynchronization; None is AUTO."""
    mode = VariableSynchronization.AUTO if mode is None else mode
    if not isinstance(mode, VariableSynchronization):
        raise ValueError(f"Invalid variable synchronization mode: {mode}")
    return _NATIVE_SYNCHRONIZATION[mode]


def native_aggregation(mode: Any) -> libdist.Aggregation:
    """Returns libdist's number for a VariableAggregation; None is NONE."""
    mode = VariableAggregation.NONE if mode is None else mode
    if not isinstance(mode, VariableAggregation):
        raise ValueError(f"Invalid variable aggregation mode: {mode}")
    return _NATIVE_AGGREGATION[mode]


class CommunicationImplementation(enum.Enum):
    """The implementation of collectives. libdist has only one, so the bits are the same."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


Seconds = Annotated[Optional[float], seconds(lambda s: True, "a number of seconds or None")]


@checked
class CommunicationOptions:
    """Options of collectives."""

    _tf_name = "tf.distribute.experimental.CommunicationOptions"

    def __init__(
        self,
        bytes_per_pack: int = 0,
        timeout_seconds: Seconds = None,
        implementation: Union[CommunicationImplementation, str] = CommunicationImplementation.AUTO,
    ) -> None:
        if bytes_per_pack < 0:
            raise ValueError(f"Argument `bytes_per_pack` must be >=0, Received {bytes_per_pack}.")
        self.bytes_per_pack = bytes_per_pack
        """Approximate size of the packs into which a list of tensors is split; 0 = libdist's choice."""
        self.timeout_seconds = timeout_seconds
        """Longest wait for a peer, in seconds; None = the strategy's timeout."""
        self.implementation = CommunicationImplementation(
            implementation.upper() if isinstance(implementation, str) else implementation
        )
        """No effect: libdist has only one implementation."""
        if self.implementation is not CommunicationImplementation.AUTO:
            _log.warning("CommunicationImplementation.%s has no effect: libdist has its own", self.implementation.name)

    def _timeout(self) -> Optional[float]:
        """Returns the timeout for libdist. In TensorFlow, 0 and negative numbers mean no limit."""
        return self.timeout_seconds if self.timeout_seconds is None or self.timeout_seconds > 0 else math.inf

    def _collective_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self.bytes_per_pack:
            options["bytes_per_pack"] = self.bytes_per_pack
        if self.timeout_seconds is not None:
            options["timeout"] = self._timeout()
        return options

    def _communication_options(self) -> libdist.CommunicationOptions:
        return libdist.CommunicationOptions(bytes_per_pack=self.bytes_per_pack, timeout=self._timeout())

    def __repr__(self) -> str:
        return (
            f"Options(bytes_per_pack={self.bytes_per_pack},timeout_seconds={self.timeout_seconds}, "
            f"implementation={self.implementation})"
        )


@checked
class CollectiveHints(CommunicationOptions):
    """CommunicationOptions under an older name."""

    def __init__(self, bytes_per_pack: int = 0, timeout_seconds: Seconds = None) -> None:
        super().__init__(bytes_per_pack, timeout_seconds)


def communication_options(options: Optional[CommunicationOptions]) -> CommunicationOptions:
    """Returns the given options, or the default options for None."""
    return options or CommunicationOptions()


def collective_options(options: Optional[CommunicationOptions]) -> dict[str, Any]:
    """Returns libdist's options of a collective."""
    return {} if options is None else options._collective_options()


def reduce_options(options: Optional[CommunicationOptions]) -> dict[str, Any]:
    """Returns libdist's options of a reduction outside runs."""
    return {} if options is None else {"options": options._communication_options()}


@checked
@dataclass(frozen=True)
class RunOptions:
    """Options of Strategy.run(). They have no effect, because every shape may differ between runs."""

    _tf_name: ClassVar[str] = "tf.distribute.RunOptions"

    experimental_enable_dynamic_batch_size: bool = True
    """Accepted without effect."""
    experimental_bucketizing_dynamic_shape: bool = False
    """Accepted without effect."""
    experimental_xla_options: Any = None
    """Accepted without effect; logs a line to the logger "libdist.tf"."""

    def __post_init__(self) -> None:
        if self.experimental_xla_options is not None:
            _log.warning("RunOptions.experimental_xla_options has no effect: nothing is compiled")

    def _native(self) -> dict[str, Any]:
        return {
            "enable_dynamic_batch_size": self.experimental_enable_dynamic_batch_size,
            "bucketizing_dynamic_shape": self.experimental_bucketizing_dynamic_shape,
        }


class InputReplicationMode(enum.Enum):
    """The number of input pipelines."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


@checked
class InputOptions:
    """Options of distributed datasets."""

    _tf_name = "tf.distribute.InputOptions"

    def __init__(
        self,
        experimental_fetch_to_device: Optional[bool] = None,
        experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER,
        experimental_place_dataset_on_device: bool = False,
        experimental_per_replica_buffer_size: int = 1,
        *,
        as_one_process: bool = False,
    ) -> None:
        self.experimental_fetch_to_device = experimental_fetch_to_device
        """No effect: replicas read batches where they are."""
        self.experimental_replication_mode = experimental_replication_mode
        """PER_REPLICA is possible only for distribute_datasets_from_function()."""
        self.experimental_place_dataset_on_device = experimental_place_dataset_on_device
        """No effect: the device is the host.

        For distribute_datasets_from_function(), True requires PER_REPLICA and experimental_fetch_to_device=False.
        """
        self.experimental_per_replica_buffer_size = experimental_per_replica_buffer_size
        """Number of batches made ahead; 0 = none."""
        self.as_one_process = as_one_process
        """For experimental_distribute_dataset(): each replica gets what it would get in one process with all replicas.

        Training then has the same bits however replicas are divided among workers. Not in TensorFlow.
        """

    def _native(self) -> dict[str, Any]:
        return {
            "replication_mode": libdist.InputMode[self.experimental_replication_mode.name],
            "prefetch": self.experimental_per_replica_buffer_size or -1,
            "as_one_process": self.as_one_process,
        }


def input_options(options: Optional[InputOptions], of_function: bool = False) -> dict[str, Any]:
    """Returns libdist's options of a dataset."""
    if options is None:
        return {}
    if of_function and options.experimental_place_dataset_on_device:
        if options.experimental_replication_mode is not InputReplicationMode.PER_REPLICA:
            raise ValueError("experimental_place_dataset_on_device=True needs InputReplicationMode.PER_REPLICA")
        if options.experimental_fetch_to_device in (None, True):
            raise ValueError(
                "a dataset on its replica's device has nothing to fetch: experimental_place_dataset_on_device=True needs "
                "experimental_fetch_to_device=False"
            )
    return options._native()


def run_options(options: Optional[RunOptions]) -> dict[str, Any]:
    """Returns libdist's options of a run."""
    return {} if options is None else options._native()


@checked
class InputContext:
    """The part of the input for which a function creates a dataset."""

    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1) -> None:
        self._native = libdist.InputContext(num_input_pipelines, input_pipeline_id, num_replicas_in_sync)

    @property
    def num_input_pipelines(self) -> int:
        """The number of pipelines: one per worker or one per replica."""
        return self._native.num_input_pipelines

    @property
    def input_pipeline_id(self) -> int:
        """The index of this pipeline, from 0."""
        return self._native.input_pipeline_id

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas of all workers."""
        return self._native.num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Returns one replica's share of a global batch. Raises ValueError if the size is not divisible."""
        return self._native.per_replica_batch_size(global_batch_size)

    def __repr__(self) -> str:
        return (
            f"tf.distribute.InputContext(input pipeline id {self.input_pipeline_id}, total: {self.num_input_pipelines})"
        )


@checked
class ValueContext:
    """The replica for which a function creates a value."""

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group = replica_id_in_sync_group
        """The id of the replica."""
        self.num_replicas_in_sync = num_replicas_in_sync
        """The number of replicas, over all workers."""

    def __repr__(self) -> str:
        return (
            f"tf.distribute.experimental.ValueContext(replica_id_in_sync_group: {self.replica_id_in_sync_group}, "
            f"num_replicas_in_sync: {self.num_replicas_in_sync})"
        )

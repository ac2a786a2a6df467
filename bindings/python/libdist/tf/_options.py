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
    """How the replicas' values become one."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: Any) -> ReduceOp:
        """By which a variable of an aggregation is reduced; ValueError for NONE and ONLY_FIRST_REPLICA."""
        native = libdist.reduce_op_from_aggregation(_NATIVE_AGGREGATION[VariableAggregation(aggregation)])
        return ReduceOp.SUM if native == libdist.ReduceOp.SUM else ReduceOp.MEAN


def native_op(op: Union[ReduceOp, str]) -> libdist.ReduceOp:
    """libdist's operator of a ReduceOp or of its name in any case."""
    if isinstance(op, ReduceOp):
        return libdist.ReduceOp.SUM if op is ReduceOp.SUM else libdist.ReduceOp.MEAN
    if not isinstance(op, str):
        raise TypeError(f"{op!r} is not a valid ReduceOp: tf.distribute.ReduceOp.SUM or MEAN, or their names")
    return libdist.reduce_op_from_name(op)


class VariableSynchronization(enum.Enum):
    """When the copies of a variable are brought together."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """What an assignment inside replicas does with the values that they give."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


_NATIVE_SYNCHRONIZATION = {one: libdist.Synchronization[one.name] for one in VariableSynchronization}
_NATIVE_AGGREGATION = {one: libdist.Aggregation[one.name] for one in VariableAggregation}


def native_synchronization(mode: Any) -> libdist.Synchronization:
    """libdist's number of a VariableSynchronization; None is AUTO."""
    mode = VariableSynchronization.AUTO if mode is None else mode
    if not isinstance(mode, VariableSynchronization):
        raise ValueError(f"Invalid variable synchronization mode: {mode}")
    return _NATIVE_SYNCHRONIZATION[mode]


def native_aggregation(mode: Any) -> libdist.Aggregation:
    """libdist's number of a VariableAggregation; None is NONE."""
    mode = VariableAggregation.NONE if mode is None else mode
    if not isinstance(mode, VariableAggregation):
        raise ValueError(f"Invalid variable aggregation mode: {mode}")
    return _NATIVE_AGGREGATION[mode]


class CommunicationImplementation(enum.Enum):
    """Which implementation of collectives is wanted; the bits are the same."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


Seconds = Annotated[Optional[float], seconds(lambda s: True, "a number of seconds or None")]


@checked
class CommunicationOptions:
    """How collectives are to be done. libdist has one implementation of them."""

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
        """A list of tensors is cut into packs of about this size; 0: libdist's choice."""
        self.timeout_seconds = timeout_seconds
        """The longest wait for a peer; None: the strategy's."""
        self.implementation = CommunicationImplementation(
            implementation.upper() if isinstance(implementation, str) else implementation
        )
        """Which one is wanted; without an effect."""
        if self.implementation is not CommunicationImplementation.AUTO:
            _log.warning("CommunicationImplementation.%s has no effect: libdist has its own", self.implementation.name)

    def _timeout(self) -> Optional[float]:
        """For libdist: in TensorFlow, 0 and negative numbers are no limit."""
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
    """CommunicationOptions by their older name."""

    def __init__(self, bytes_per_pack: int = 0, timeout_seconds: Seconds = None) -> None:
        super().__init__(bytes_per_pack, timeout_seconds)


def communication_options(options: Optional[CommunicationOptions]) -> CommunicationOptions:
    """The given options, or the default ones."""
    return options or CommunicationOptions()


def collective_options(options: Optional[CommunicationOptions]) -> dict[str, Any]:
    """libdist's options of one collective."""
    return {} if options is None else options._collective_options()


def reduce_options(options: Optional[CommunicationOptions]) -> dict[str, Any]:
    """libdist's options of a reduction from outside."""
    return {} if options is None else {"options": options._communication_options()}


@checked
@dataclass(frozen=True)
class RunOptions:
    """Options of Strategy.run(): here every shape may differ from run to run, so that they have no effect."""

    _tf_name: ClassVar[str] = "tf.distribute.RunOptions"

    experimental_enable_dynamic_batch_size: bool = True
    """Accepted."""
    experimental_bucketizing_dynamic_shape: bool = False
    """Accepted."""
    experimental_xla_options: Any = None
    """Accepted, with a line in the log of "libdist.tf"."""

    def __post_init__(self) -> None:
        if self.experimental_xla_options is not None:
            _log.warning("RunOptions.experimental_xla_options has no effect: nothing is compiled")

    def _native(self) -> dict[str, Any]:
        return {
            "enable_dynamic_batch_size": self.experimental_enable_dynamic_batch_size,
            "bucketizing_dynamic_shape": self.experimental_bucketizing_dynamic_shape,
        }


class InputReplicationMode(enum.Enum):
    """How many input pipelines there are."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


@checked
class InputOptions:
    """How batches are brought to the replicas."""

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
        """Without effect: batches lie in memory that replicas read anyway."""
        self.experimental_replication_mode = experimental_replication_mode
        """PER_REPLICA only for distribute_datasets_from_function()."""
        self.experimental_place_dataset_on_device = experimental_place_dataset_on_device
        """Without effect: the device is the host. For distribute_datasets_from_function(), True needs PER_REPLICA, and
        experimental_fetch_to_device=False."""
        self.experimental_per_replica_buffer_size = experimental_per_replica_buffer_size
        """Batches that are made ahead."""
        self.as_one_process = as_one_process
        """libdist's own, for experimental_distribute_dataset(): replica r of all workers gets what replica r of one process
        with all of them would, so that training has the same bits however replicas are divided among workers."""

    def _native(self) -> dict[str, Any]:
        return {
            "replication_mode": libdist.InputMode[self.experimental_replication_mode.name],
            "prefetch": self.experimental_per_replica_buffer_size or -1,
            "as_one_process": self.as_one_process,
        }


def input_options(options: Optional[InputOptions], of_function: bool = False) -> dict[str, Any]:
    """libdist's options of a dataset."""
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
    """libdist's options of a run."""
    return {} if options is None else options._native()


@checked
class InputContext:
    """For which part of the input a function makes a dataset."""

    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1) -> None:
        self._native = libdist.InputContext(num_input_pipelines, input_pipeline_id, num_replicas_in_sync)

    @property
    def num_input_pipelines(self) -> int:
        """One a worker, or one a replica."""
        return self._native.num_input_pipelines

    @property
    def input_pipeline_id(self) -> int:
        """Which of them."""
        return self._native.input_pipeline_id

    @property
    def num_replicas_in_sync(self) -> int:
        """Of all workers."""
        return self._native.num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """What one replica gets of a global batch; ValueError where that is no whole number."""
        return self._native.per_replica_batch_size(global_batch_size)

    def __repr__(self) -> str:
        return (
            f"tf.distribute.InputContext(input pipeline id {self.input_pipeline_id}, total: {self.num_input_pipelines})"
        )


@checked
class ValueContext:
    """For whom a function makes a value."""

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group = replica_id_in_sync_group
        """The replica."""
        self.num_replicas_in_sync = num_replicas_in_sync
        """How many there are."""

    def __repr__(self) -> str:
        return (
            f"tf.distribute.experimental.ValueContext(replica_id_in_sync_group: {self.replica_id_in_sync_group}, "
            f"num_replicas_in_sync: {self.num_replicas_in_sync})"
        )

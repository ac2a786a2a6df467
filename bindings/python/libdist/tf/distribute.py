# SPDX-License-Identifier: Apache-2.0
"""tf.distribute with libdist: TensorFlow's names and error messages."""

from . import _coordinator, _rpc
from ._cluster import (
    ClusterResolver,
    KubernetesClusterResolver,
    SimpleClusterResolver,
    SlurmClusterResolver,
    TFConfigClusterResolver,
    UnionResolver,
)
from ._context import (
    ReplicaContext,
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from ._cross_device import CrossDeviceOps, HierarchicalCopyAllReduce, NcclAllReduce, ReductionToOneDevice
from ._extended import StrategyExtended
from ._input import DistributedDataset, DistributedIterator
from ._logical import on_logical_devices
from ._missing import Namespace, missing
from ._options import (
    CollectiveHints,
    CommunicationImplementation,
    CommunicationOptions,
    InputContext,
    InputOptions,
    InputReplicationMode,
    ReduceOp,
    RunOptions,
    ValueContext,
)
from ._parameter_servers import ParameterServerStrategy
from ._partitioners import FixedShardsPartitioner, MaxSizePartitioner, MinSizePartitioner, Partitioner
from ._preemption import PreemptionCheckpointHandler
from ._resolver import TPUClusterResolver
from ._servers import Server
from ._strategy import (
    CentralStorageStrategy,
    MirroredStrategy,
    MultiWorkerMirroredStrategy,
    MultiWorkerMirroredStrategyV1,
    OneDeviceStrategy,
    Strategy,
)
from ._termination import TerminationConfig
from ._tpu import TPUStrategy, TPUStrategyV1
from ._values import DistributedValues, Mirrored, PerReplica

__getattr__ = missing("tf.distribute")

cluster_resolver = Namespace(
    "tf.distribute.cluster_resolver",
    ClusterResolver=ClusterResolver,
    KubernetesClusterResolver=KubernetesClusterResolver,
    SimpleClusterResolver=SimpleClusterResolver,
    SlurmClusterResolver=SlurmClusterResolver,
    TFConfigClusterResolver=TFConfigClusterResolver,
    TPUClusterResolver=TPUClusterResolver,
    UnionResolver=UnionResolver,
)
"""tf.distribute.cluster_resolver."""

coordinator = Namespace(
    "tf.distribute.coordinator",
    ClusterCoordinator=_coordinator.ClusterCoordinator,
    PerWorkerValue=_coordinator.PerWorkerValues,
    RemoteValue=_coordinator.RemoteValue,
    experimental_get_current_worker_index=_coordinator.experimental_get_current_worker_index,
)
"""tf.distribute.coordinator."""

experimental = Namespace(
    "tf.distribute.experimental",
    CentralStorageStrategy=CentralStorageStrategy,
    CollectiveCommunication=CommunicationImplementation,
    CollectiveHints=CollectiveHints,
    CommunicationImplementation=CommunicationImplementation,
    CommunicationOptions=CommunicationOptions,
    MultiWorkerMirroredStrategy=MultiWorkerMirroredStrategyV1,
    ParameterServerStrategy=ParameterServerStrategy,
    PreemptionCheckpointHandler=PreemptionCheckpointHandler,
    TPUStrategy=TPUStrategyV1,
    TerminationConfig=TerminationConfig,
    ValueContext=ValueContext,
    coordinator=Namespace(
        "tf.distribute.experimental.coordinator",
        ClusterCoordinator=_coordinator.ClusterCoordinator,
        PerWorkerValues=_coordinator.PerWorkerValues,
        RemoteValue=_coordinator.RemoteValue,
    ),
    partitioners=Namespace(
        "tf.distribute.experimental.partitioners",
        FixedShardsPartitioner=FixedShardsPartitioner,
        MaxSizePartitioner=MaxSizePartitioner,
        MinSizePartitioner=MinSizePartitioner,
        Partitioner=Partitioner,
    ),
    rpc=Namespace("tf.distribute.experimental.rpc", Client=_rpc.Client, Server=_rpc.Server),
)
"""tf.distribute.experimental."""

__all__ = [
    "CrossDeviceOps",
    "DistributedDataset",
    "DistributedIterator",
    "DistributedValues",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "InputOptions",
    "InputReplicationMode",
    "Mirrored",
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "ParameterServerStrategy",
    "PerReplica",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "RunOptions",
    "Server",
    "Strategy",
    "StrategyExtended",
    "TPUStrategy",
    "cluster_resolver",
    "coordinator",
    "experimental",
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "on_logical_devices",
]

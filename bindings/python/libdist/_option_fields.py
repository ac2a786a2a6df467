# SPDX-License-Identifier: Apache-2.0
# Written by bindings/options.py from the headers: do not edit.
"""The options of functions, as keyword arguments and for C."""

from __future__ import annotations

import logging
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional, Sequence, TYPE_CHECKING, TypedDict, Union

from . import _cdist
from ._arguments import Count, Delay, Limit, Timeout, checked, delay, limit, nanoseconds, seconds_of
from ._callbacks import Applier, Kept, Log, LogFn, Operator, PartitionFn, Partitioner, Reducer
from ._options import add_results, set_axes, set_jobs, set_metadata, set_weights
from .budget import set_executor
from .cancel import handle_of
from .cluster import TaskId
from .constants import (
    Aggregation,
    CrossDeviceKind,
    InputMode,
    Numerics,
    Placement,
    Reform,
    ShardPolicy,
    StrategyKind,
    Synchronization,
    Threads,
    Transport,
)
from .dataset import native_position

if TYPE_CHECKING:
    from typing_extensions import Self

    from .budget import Budget
    from .cancel import Cancel
    from .cluster_resolver import ClusterResolver
    from .cross_device import CrossDevice, HostFunctions
    from .dataset import Position
    from .group import Group
    from .network import Network
    from .partition import Partition
    from .replica import Block, Replica
    from .serve import InstanceFunctions
    from .topology import DeviceAssignment


class StrategyOptions(TypedDict, total=False):
    """Options of Strategy().

    kind: kind of strategy.

    threads: threads that run the replicas.

    numerics: for reductions inside replicas whose own options do not set it, and for reductions outside runs:
    Strategy.reduce() and similar functions, assignments to variables, and functions that read variables.

    timeout: longest wait for a peer in one collective, in seconds; None = default (600 s), a negative number = no
    limit.

    async_bytes: memory limit for queued asynchronous collectives; 0 = default (64 MiB, or 2 MiB per replica if
    that is more).

    devices: device names in replica order, "CPU:1" or longer; None = CPU:0, CPU:1, ...

    parameter_device: CENTRAL_STORAGE: device that holds the variables; None = CPU:0.

    communication: options of collectives and reductions; a timeout that they set replaces timeout.

    cross_device: implementation for reducing values outside runs; None = CrossDevice().

    functions: the program's own strategy, as functions; kind must be the default.

    placement: the placement of library threads on CPUs.

    cpus: CPU numbers (as the system counts them) on which the strategy's threads may run: library threads of
    replicas and logical devices, threads that serve Strategy.submit(), and oneTBB threads while they help. Host
    threads and those of gRPC and Gloo are not affected. Placement.CORES chooses among these CPUs, and
    num_replicas = 0 counts them. Each CPU must be in the affinity mask of the calling thread or of the process's
    first thread. None = mask of the calling thread.

    stack_size_bytes: stack size of each library thread, 256 KiB to 1 TiB, and more for more than 64 replicas; 0 =
    system default. Strategy.enter() states how much of it collectives need.

    budget: limit on threads shared with other strategies, for runs and requests. None = no limit.

    move_host_threads: True = a thread of the program that is a replica (including the caller of Strategy.run())
    may be moved if it repeatedly shares a CPU with another replica: to a CPU without a replica that is in its own
    affinity mask and in cpus. Its affinity mask does not change. False = such threads are never moved;
    Strategy.explain() reports how often a move would have helped. Not allowed with Threads.LIBRARY.

    helper_threads: Threads.HOST: True = oneTBB threads may help with loops and asynchronous collectives and
    prepare batches ahead of time, as in other strategies; False = only features with an option of their own may
    start threads.

    log: a logger, or a callback log(level, message) that takes one line; level is a LogLevel. It is called from
    any thread and must not call libdist. None = no log lines.

    executor: an executor whose threads share loops: libdist calls its submit() for each thread that may help when
    a loop begins, and does without the thread if that raises. None = oneTBB.

    recorded_events: events per replica that are kept for Strategy.write_trace(), 1 to 2^20, rounded up to a power
    of two; 0 = default (1024). Each reserves 128 bytes of address space, which use memory once they are written.

    use_spmd_partitioning: True = one program runs on all devices; Replica.assign_to_logical_device() is then
    rejected.

    device_assignment: assigns devices to replicas, and so sets the number of replicas and of logical devices.

    axes: MESH: axes over the logical devices of a replica and their sizes, such as {"rows": 2, "columns": 4}; the
    last axis varies fastest.

    transport: MULTI_WORKER_MIRRORED: transport between workers that are processes.

    cluster_resolver: description of the cluster, returned by Strategy.cluster_resolver. MULTI_WORKER_MIRRORED:
    gives this worker's place in the cluster. PARAMETER_SERVER: gives the servers; None = TF_CONFIG. Strategies of
    other kinds stay within one process.

    network: MULTI_WORKER_MIRRORED: connects workers within one process. None = use `transport`.

    replicas_of_workers: MULTI_WORKER_MIRRORED: number of replicas of each worker; None = the same number as this
    worker.

    staging_bytes: MULTI_WORKER_MIRRORED: maximum size in bytes of tensor data in transit to and from this worker
    at one time; 0 = default (64 MiB). Larger tensors are sent in pieces, with the same bits. The smallest value
    of all workers applies.

    reform: MULTI_WORKER_MIRRORED: when the workers re-form.

    max_workers: maximum number of threads of the executor that help with one loop; None = one less than the
    number of CPUs available to the process.
    """

    kind: StrategyKind
    threads: Threads
    numerics: Numerics
    timeout: Timeout
    async_bytes: Count
    devices: Optional[Sequence[str]]
    parameter_device: Optional[str]
    communication: Optional[CommunicationOptions]
    cross_device: Optional[CrossDevice]
    functions: Optional[HostFunctions]
    placement: Placement
    cpus: Optional[Sequence[int]]
    stack_size_bytes: Count
    budget: Optional[Budget]
    move_host_threads: bool
    helper_threads: bool
    log: Union[None, logging.Logger, LogFn]
    executor: Optional[Executor]
    recorded_events: int
    use_spmd_partitioning: bool
    device_assignment: Optional[DeviceAssignment]
    axes: Union[None, Mapping[str, int], Sequence[tuple[str, int]]]
    transport: Transport
    cluster_resolver: Optional[ClusterResolver]
    network: Optional[Network]
    replicas_of_workers: Optional[Sequence[int]]
    staging_bytes: Count
    reform: Reform
    max_workers: Optional[int]


def strategy_options(
    kept: Kept,
    *,
    kind: StrategyKind = StrategyKind.MIRRORED,
    num_replicas: int = 0,
    threads: Threads = Threads.CALLER,
    numerics: Numerics = Numerics.ORDERED,
    timeout: Timeout = None,
    async_bytes: Count = 0,
    devices: Optional[Sequence[str]] = None,
    parameter_device: Optional[str] = None,
    communication: Optional[CommunicationOptions] = None,
    cross_device: Optional[CrossDevice] = None,
    functions: Optional[HostFunctions] = None,
    placement: Placement = Placement.FREE,
    cpus: Optional[Sequence[int]] = None,
    stack_size_bytes: Count = 0,
    budget: Optional[Budget] = None,
    move_host_threads: bool = False,
    helper_threads: bool = False,
    log: Union[None, logging.Logger, LogFn] = None,
    executor: Optional[Executor] = None,
    recorded_events: int = 0,
    use_spmd_partitioning: bool = False,
    device_assignment: Optional[DeviceAssignment] = None,
    axes: Union[None, Mapping[str, int], Sequence[tuple[str, int]]] = None,
    transport: Transport = Transport.AUTO,
    cluster_resolver: Optional[ClusterResolver] = None,
    network: Optional[Network] = None,
    replicas_of_workers: Optional[Sequence[int]] = None,
    staging_bytes: Count = 0,
    reform: Reform = Reform.EXPLICIT,
    max_workers: Optional[int] = None,
) -> Any:
    """StrategyOptions for C."""
    native = _cdist.dist_strategy_options()
    if kind is not StrategyKind.MIRRORED:
        native.kind = int(kind)
    if num_replicas:
        native.num_replicas = num_replicas
    if threads is not Threads.CALLER:
        native.threads = int(threads)
    if numerics is not Numerics.ORDERED:
        native.numerics = int(numerics)
    if timeout is not None:
        native.timeout_ns = nanoseconds(timeout)
    if async_bytes:
        native.async_bytes = async_bytes
    if devices is not None:
        native.set_devices(list(devices), len(devices))
    if parameter_device is not None:
        native.parameter_device = parameter_device
    if communication is not None:
        native.communication = kept.record(communication._native())
    if cross_device is not None:
        native.cross_device = cross_device._native()
    if functions is not None:
        functions._set(native, kept.token(functions))
    if placement is not Placement.FREE:
        native.placement = int(placement)
    if cpus is not None:
        native.set_cpus(list(cpus), len(cpus))
    if stack_size_bytes:
        native.stack_size_bytes = stack_size_bytes
    if budget is not None:
        native.budget = kept.held(budget)
    if move_host_threads:
        native.move_host_threads = int(move_host_threads)
    if helper_threads:
        native.helper_threads = int(helper_threads)
    if log is not None:
        native.set_log(kept.token(Log(log)))
    set_executor(native, executor, max_workers, kept)
    if recorded_events:
        native.recorded_events = recorded_events
    if use_spmd_partitioning:
        native.use_spmd_partitioning = int(use_spmd_partitioning)
    if device_assignment is not None:
        native.device_assignment = device_assignment._handle
    if axes is not None:
        set_axes(native, axes)
    if transport is not Transport.AUTO:
        native.transport = int(transport)
    if cluster_resolver is not None:
        native.cluster_resolver = cluster_resolver._handle
    if network is not None:
        native.network = kept.held(network)
    if replicas_of_workers is not None:
        native.set_replicas_of_workers(list(replicas_of_workers), len(replicas_of_workers))
    if staging_bytes:
        native.staging_bytes = staging_bytes
    if reform is not Reform.EXPLICIT:
        native.reform = int(reform)
    return native


class Options(TypedDict, total=False):
    """Options of collectives, and of the other methods of Replica that wait for peers. Unless stated otherwise, all
    members of a group pass the same options.

    numerics: order of additions in sums; None = the strategy's.

    tag: name for reports, equal on all members.

    timeout: longest wait for a peer, in seconds; None = the strategy's; a negative number = no limit.

    group: participating group; None = all replicas. Below, R is its size, and r, p and root are ranks in it.

    weights: MEAN: one weight (>= 0) per contribution, or a number if there is only one; set on all members or on
    none.

    contributions: number of tensors that this replica adds to each sum; 0 on all members = 1. A sum has at most
    1,024 contributions, or 16 for each replica if that is more.

    splits: all_to_all(): R sizes of the parts of x along the axis; None = equal.

    axis: dimension along which parts are split or joined; < 0 counts from the end.

    bytes_per_pack: approximate pack size of a planned list; 0 = the strategy's, or no packs.

    cancel: cancels the group's collectives in this run, on all members.

    reduce_element_bytes: size of one element of a user-defined operator, the same on all members; 0 = the dtype's
    size. At most 4,096 and a multiple of the dtype's size of each tensor. Elements must be whole: a tensor's
    strides and its split along the axis must not divide one. TREE with more than 3 contributions allows less, for
    example 3,072 with up to 7, 1,536 with up to 31 and 576 with 1,024; the error report states the limit.
    """

    numerics: Optional[Numerics]
    tag: str
    timeout: Timeout
    group: Optional[Group]
    weights: Union[None, float, Sequence[float]]
    contributions: Count
    splits: Optional[Sequence[int]]
    axis: int
    bytes_per_pack: Count
    cancel: Optional[Cancel]
    reduce_element_bytes: Count


def collective_options(
    *,
    numerics: Optional[Numerics] = None,
    tag: str = "",
    timeout: Timeout = None,
    group: Optional[Group] = None,
    weights: Union[None, float, Sequence[float]] = None,
    contributions: Count = 0,
    splits: Optional[Sequence[int]] = None,
    axis: int = 0,
    bytes_per_pack: Count = 0,
    cancel: Optional[Cancel] = None,
    reduce_element_bytes: Count = 0,
) -> Any:
    """Options for C."""
    native = _cdist.dist_collective_options()
    if numerics is not None:
        native.numerics = int(numerics)
    if tag:
        native.tag = tag
    if timeout is not None:
        native.timeout_ns = nanoseconds(timeout)
    if group is not None:
        native.group = group._native()
    if weights is not None:
        set_weights(native, weights, contributions)
    if contributions:
        native.contributions = contributions
    if splits is not None:
        native.set_splits(list(splits), len(splits))
    if axis:
        native.axis = axis
    if bytes_per_pack:
        native.bytes_per_pack = bytes_per_pack
    if cancel is not None:
        native.cancel = handle_of(cancel)
    if reduce_element_bytes:
        native.reduce_element_bytes = reduce_element_bytes
    return native


@checked
@dataclass(kw_only=True, eq=False, slots=True)
class CommunicationOptions:
    """Options of collectives, for a strategy. A collective's own options override them by the rule of merge().

    bytes_per_pack: planned lists, and lists reduced outside runs, are split into packs of about this size; 0 =
    not set.

    timeout: longest wait for a peer, in seconds; None = not set, a negative number = no limit.
    """

    bytes_per_pack: Count = 0
    timeout: Timeout = None

    def _native(self) -> Any:
        """For C."""
        native = _cdist.dist_communication_options()
        if self.bytes_per_pack:
            native.bytes_per_pack = self.bytes_per_pack
        if self.timeout is not None:
            native.timeout_ns = nanoseconds(self.timeout)
        return native

    @classmethod
    def _of(cls, native: Any) -> Self:
        """The record that C has filled."""
        return cls(
            bytes_per_pack=native.bytes_per_pack,
            timeout=seconds_of(native.timeout_ns),
        )


class ApplyOptions(Options, total=False):
    """Options of Replica.reduce_apply().

    learning_rate: SGD: step size.

    momentum: SGD: momentum; 0 = no momentum and no states.

    clip_norm: > 0 = gradients are scaled down if their global norm exceeds it; 0 = no clipping.

    fn: update function, called for each Block of a tensor; None = gradient descent.
    """

    learning_rate: float
    momentum: float
    clip_norm: float
    fn: Optional[Callable[[Block], None]]


def apply_options(
    kept: Kept,
    *,
    learning_rate: float = 0.0,
    momentum: float = 0.0,
    clip_norm: float = 0.0,
    fn: Optional[Callable[[Block], None]] = None,
) -> Any:
    """ApplyOptions for C."""
    native = _cdist.dist_apply_options()
    if learning_rate:
        native.learning_rate = learning_rate
    if momentum:
        native.momentum = momentum
    if clip_norm:
        native.clip_norm = clip_norm
    if fn is not None:
        native.set_function(kept.token(Applier(fn, kept.failures)))
    return native


class RunOptions(TypedDict, total=False):
    """Options of runs.

    timeout: limit on the time from the call, in seconds, including the wait for earlier runs and everything that
    merge functions start; None = no limit. If the caller is replica 0, it cannot return before its own function
    does; if by then all functions have returned, the run succeeds even after the limit.

    enable_dynamic_batch_size: TensorFlow's RunOptions, accepted without effect, because every size may differ
    from run to run: None = default (on), True = on, False = off.

    bucketizing_dynamic_shape: accepted without effect: False = off, True = on.

    cancel: cancels this run only.
    """

    timeout: Limit
    enable_dynamic_batch_size: Optional[bool]
    bucketizing_dynamic_shape: bool
    cancel: Optional[Cancel]


def run_options(
    *,
    timeout: Limit = None,
    enable_dynamic_batch_size: Optional[bool] = None,
    bucketizing_dynamic_shape: bool = False,
    cancel: Optional[Cancel] = None,
) -> Any:
    """RunOptions for C."""
    native = _cdist.dist_run_options()
    if timeout is not None:
        native.timeout_ns = limit(timeout)
    if enable_dynamic_batch_size is not None:
        native.enable_dynamic_batch_size = 1 if enable_dynamic_batch_size else -1
    if bucketizing_dynamic_shape:
        native.bucketizing_dynamic_shape = int(bucketizing_dynamic_shape)
    if cancel is not None:
        native.cancel = handle_of(cancel)
    return native


class InstancesOptions(TypedDict, total=False):
    """Options of Strategy.instances().

    helper_threads: Threads.HOST only: True = libdist may start a thread for deadlines, False = it may not. With
    library threads it always may.

    max_queued: maximum number of queued requests, 1 to 2^24; further ones are rejected; 0 = default (1024).

    spin: how long an idle instance spins before it sleeps, in seconds; None = default (60 us), 0 = do not spin. A
    spinning instance occupies a CPU.

    create_state: callback that returns the state of an instance, which Replica.instance_state then is; called on
    the instance's thread. None = instances have no state.

    destroy_state: callback that receives the state when the instance closes, on the instance's thread.

    warm_up: called once on each instance, after create_state and before the first request.

    stuck: replace the thread of a function that still runs this long after its deadline or cancellation, in
    seconds; None = never. The limit also applies to a batcher's step, counted from the deadline or cancellation
    of one of its items, so choose it longer than any step takes.

    max_replaced: maximum number of such replacements, 1 or more; 0 = default (4).
    """

    helper_threads: bool
    max_queued: int
    spin: Delay
    create_state: Optional[Callable[[Replica], Any]]
    destroy_state: Optional[Callable[[Any], None]]
    warm_up: Optional[Callable[[Replica], Any]]
    stuck: Limit
    max_replaced: int


def instances_options(
    kept: InstanceFunctions,
    *,
    helper_threads: bool = False,
    max_queued: int = 0,
    spin: Delay = None,
    create_state: Optional[Callable[[Replica], Any]] = None,
    destroy_state: Optional[Callable[[Any], None]] = None,
    warm_up: Optional[Callable[[Replica], Any]] = None,
    stuck: Limit = None,
    max_replaced: int = 0,
) -> Any:
    """InstancesOptions for C."""
    native = _cdist.dist_instances_options()
    if helper_threads:
        native.helper_threads = int(helper_threads)
    if max_queued:
        native.max_queued = max_queued
    if spin is not None:
        native.spin_ns = delay(spin) or -1
    kept.set(native, create_state, destroy_state, warm_up)
    if stuck is not None:
        native.stuck_ns = limit(stuck)
    if max_replaced:
        native.max_replaced = max_replaced
    return native


class SubmitOptions(TypedDict, total=False):
    """Options of Strategy.submit().

    priority: PRIORITY_MIN to PRIORITY_MAX; higher priorities run first. Runs have priority 0.

    timeout: time limit from now to completion, in seconds; None = no limit.

    cancel: cancels the request.

    request_id: id in traces (Strategy.write_trace()); 0 = libdist assigns 1, 2, 3, ...
    """

    priority: int
    timeout: Limit
    cancel: Optional[Cancel]
    request_id: int


def submit_options(
    strategy: int, token: int, completions: int, *,
    priority: int = 0,
    timeout: Limit = None,
    cancel: Optional[Cancel] = None,
    request_id: int = 0,
) -> int:
    """Submits with SubmitOptions: the request's handle."""
    handle: int = _cdist.submit(
        strategy, token, priority, limit(timeout), handle_of(cancel), completions, request_id
    )
    return handle


class BatcherOptions(TypedDict, total=False):
    """Options of Strategy.batcher().

    max_items: maximum number of items per step and per instance; 0 = default (32), at most 4096.

    max_delay: how long an item waits for others although an instance is idle, in seconds; None = not at all.

    max_waiting: maximum number of waiting items; 0 = default (1024), at most 2^24.

    max_bytes: maximum sum of the items' sizes per instance; 0 = no limit.

    buckets: lengths in ascending order, from 1; None = one bucket for all items.

    continuous: True = an item stays until Batch.end(); False = for one step.

    max_results: maximum number of untaken results per item; 0 = default (16), at most 65,536.
    """

    max_items: int
    max_delay: Delay
    max_waiting: int
    max_bytes: Count
    buckets: Optional[Sequence[int]]
    continuous: bool
    max_results: int


def batcher_options(
    *,
    max_items: int = 0,
    max_delay: Delay = None,
    max_waiting: int = 0,
    max_bytes: Count = 0,
    buckets: Optional[Sequence[int]] = None,
    continuous: bool = False,
    max_results: int = 0,
) -> Any:
    """BatcherOptions for C."""
    native = _cdist.dist_batcher_options()
    if max_items:
        native.max_items = max_items
    if max_delay is not None:
        native.max_delay_ns = delay(max_delay)
    if max_waiting:
        native.max_waiting = max_waiting
    if max_bytes:
        native.max_bytes = max_bytes
    if buckets is not None:
        native.set_buckets(list(buckets), len(buckets))
    if continuous:
        native.continuous = int(continuous)
    if max_results:
        native.max_results = max_results
    return native


class ItemOptions(TypedDict, total=False):
    """Options of Batcher.submit().

    priority: PRIORITY_MIN to PRIORITY_MAX; higher priorities run first. Runs have priority 0.

    timeout: time limit from now to completion, in seconds; None = no limit.

    cancel: cancels the item.

    length: length that selects the bucket, from 0 to the last of buckets of Strategy.batcher().

    size: size in bytes that counts towards max_bytes of Strategy.batcher().
    """

    priority: int
    timeout: Limit
    cancel: Optional[Cancel]
    length: int
    size: Count


def item_options(
    batcher: int, token: int, completions: int, *,
    priority: int = 0,
    timeout: Limit = None,
    cancel: Optional[Cancel] = None,
    length: int = 0,
    size: Count = 0,
) -> int:
    """Submits with ItemOptions: the request's handle."""
    handle: int = _cdist.batcher_submit(
        batcher, token, priority, limit(timeout), handle_of(cancel), completions, length, size
    )
    return handle


class VariableOptions(TypedDict, total=False):
    """Options of Strategy.variable() and Replica.variable().

    aggregation: how assigned values are combined.

    synchronization: when the copies are combined.
    """

    aggregation: Aggregation
    synchronization: Synchronization


def variable_options(
    *,
    aggregation: Aggregation = Aggregation.NONE,
    name: Optional[str] = None,
    synchronization: Synchronization = Synchronization.AUTO,
    initial: int = 0,
) -> Any:
    """VariableOptions for C."""
    native = _cdist.dist_variable_options()
    if aggregation is not Aggregation.NONE:
        native.aggregation = int(aggregation)
    if name is not None:
        native.name = name
    if synchronization is not Synchronization.AUTO:
        native.synchronization = int(synchronization)
    if initial:
        native.set_initial(initial)
    return native


class UpdateOptions(TypedDict, total=False):
    """Options of Strategy.update(), Strategy.update_non_slot() and Replica.update().

    group: True = return a merged result; False = each leaf of the result is a tuple with the result of each call.

    parallel: True = if the variable is large, calls for several copies run at the same time, on oneTBB's threads,
    and their results are dropped; fn must then neither reduce nor start a run. False = one call after another, on
    this thread. Not allowed in update_non_slot().
    """

    group: bool
    parallel: bool


def update_options(
    *,
    group: bool = True,
    parallel: bool = False,
) -> Any:
    """UpdateOptions for C."""
    native = _cdist.dist_update_options()
    if not group:
        native.ungrouped = 1
    if parallel:
        native.parallel = int(parallel)
    return native


class DatasetOptions(TypedDict, total=False):
    """Options of datasets: how batches are made of a source's elements, and divided among the replicas of all
    workers.

    drop_remainder: True = omit a last batch that is not full.

    global_batch_size: number of elements per batch for all replicas together; 0 = the source's elements already
    are global batches, which are split as they are.

    shuffle: True = a different order in every pass, drawn from `seed` and the pass number.

    prefetch: number of batches that oneTBB threads make ahead; < 0 = none; 0 = one if that makes your loop
    faster, which libdist measures (see Dataset.explain()), and none if the strategy starts no threads
    (helper_threads of Strategy()). TensorFlow: experimental_per_replica_buffer_size, in which 0 is none.

    seed: seed of the shuffled orders.

    shard_policy: how the source is divided between workers.

    num_workers: number of workers that read this dataset together, at most 65,536, each with as many replicas as
    this one; 0 = the strategy's workers and their replicas (1 worker except with
    StrategyKind.MULTI_WORKER_MIRRORED), and then worker_index must be 0.

    worker_index: index of this worker, 0 .. num_workers-1.

    worker_batches: True = global_batch_size counts the elements of one worker, and ShardPolicy.DATA distributes
    whole batches; False = every batch is split over all workers.

    shard_hint: True = the source must be sharded by element before batching; requires ShardPolicy.HINT and fails
    with any other policy.

    interleave: number of files that are read in turn, one element each; 0 or 1 = one file after another.

    static_shapes: 1 = every batch has the same shape; -1 = the last ones may be smaller; 0 = follows from
    drop_remainder, or is 1 for rows of tensors that are batches.

    replication_mode: one dataset per worker or per replica; 0 = InputMode.PER_WORKER; PER_REPLICA is possible
    only for datasets from a function, on mirrored strategies.

    batch_sizes: sizes in examples of consecutive pieces, repeated cyclically: the source's examples are split
    into these pieces whatever batches they came in, and replica r gets piece k*R + r in step k; None = batches
    are split evenly.

    as_one_process: True = every replica gets what it would get in one process with all replicas, so that W
    workers of R replicas compute the same bits as one process with W*R replicas: with q = ceil(m / (W*R)),
    replica n of all workers gets piece n. Every worker then reads the whole source. Requires ShardPolicy.AUTO or
    ShardPolicy.DATA. TensorFlow has no such option; its workers take turns at the pieces.
    """

    drop_remainder: bool
    global_batch_size: int
    shuffle: bool
    prefetch: int
    seed: int
    shard_policy: ShardPolicy
    num_workers: int
    worker_index: int
    worker_batches: bool
    shard_hint: bool
    interleave: int
    static_shapes: int
    replication_mode: InputMode
    batch_sizes: Optional[Sequence[int]]
    as_one_process: bool


def dataset_options(
    *,
    drop_remainder: bool = False,
    global_batch_size: int = 0,
    shuffle: bool = False,
    prefetch: int = 0,
    seed: int = 0,
    shard_policy: ShardPolicy = ShardPolicy.AUTO,
    num_workers: int = 0,
    worker_index: int = 0,
    worker_batches: bool = False,
    shard_hint: bool = False,
    interleave: int = 0,
    static_shapes: int = 0,
    replication_mode: InputMode = InputMode.PER_WORKER,
    batch_sizes: Optional[Sequence[int]] = None,
    as_one_process: bool = False,
) -> Any:
    """DatasetOptions for C."""
    native = _cdist.dist_dataset_options()
    if drop_remainder:
        native.drop_remainder = int(drop_remainder)
    if global_batch_size:
        native.global_batch_size = global_batch_size
    if shuffle:
        native.shuffle = int(shuffle)
    if prefetch:
        native.prefetch = prefetch
    if seed:
        native.seed = seed
    if shard_policy is not ShardPolicy.AUTO:
        native.shard_policy = int(shard_policy)
    if num_workers:
        native.num_workers = num_workers
    if worker_index:
        native.worker_index = worker_index
    if worker_batches:
        native.worker_batches = int(worker_batches)
    if shard_hint:
        native.shard_hint = int(shard_hint)
    if interleave:
        native.interleave = interleave
    if static_shapes:
        native.static_shapes = static_shapes
    if replication_mode is not InputMode.PER_WORKER:
        native.replication_mode = int(replication_mode)
    if batch_sizes is not None:
        native.set_batch_sizes(list(batch_sizes), len(batch_sizes))
    if as_one_process:
        native.as_one_process = int(as_one_process)
    return native


class CheckpointOptions(TypedDict, total=False):
    """Options of Strategy.save_checkpoint().

    sharded: True = `path` becomes an index, and each worker of the strategy writes its part of the variables to a
    shard; False = one file, written by worker 0.

    position: position in the input to store; Strategy.load_checkpoint() returns it.

    metadata: your own texts, each under a key, which Checkpoint.metadata then has.
    """

    sharded: bool
    position: Optional[Position]
    metadata: Optional[Mapping[str, str]]


def checkpoint_options(
    kept: Kept,
    *,
    sharded: bool = False,
    names: Optional[Sequence[str]] = None,
    position: Optional[Position] = None,
    metadata: Optional[Mapping[str, str]] = None,
) -> Any:
    """CheckpointOptions for C."""
    native = _cdist.dist_checkpoint_options()
    if sharded:
        native.sharded = int(sharded)
    if names is not None:
        native.set_names(list(names), len(names))
    if position is not None:
        native.position = kept.record(native_position(position))
    if metadata is not None:
        set_metadata(native, metadata)
    return native


class CheckpointMapOptions(TypedDict, total=False):
    """Options of Checkpoint.map() and Checkpoint.map_all().

    copy: True = read into new memory, like Checkpoint.read(); False = map the file.
    """

    copy: bool


def checkpoint_map_options(
    *,
    copy: bool = False,
    verify: bool = False,
) -> Any:
    """CheckpointMapOptions for C."""
    native = _cdist.dist_checkpoint_map_options()
    if copy:
        native.copy = int(copy)
    if verify:
        native.verify = int(verify)
    return native


class SplitOptions(TypedDict, total=False):
    """Options of Replica.split_to_logical_devices().

    uneven: True = sizes that are not divisible are split as Partition.shard() describes; False = they are an
    error.
    """

    uneven: bool


def split_options(
    *,
    uneven: bool = False,
) -> Any:
    """SplitOptions for C."""
    native = _cdist.dist_split_options()
    if uneven:
        native.uneven = int(uneven)
    return native


class DevicesOptions(TypedDict, total=False):
    """Options of Replica.run_on_devices().

    timeout: time limit of the whole run on devices, in seconds; None = no limit.

    results: how to join the devices' results: one Partition for all leaves, or one for each leaf in the order of
    the nest (dictionaries: by key). The shape of a partition is ignored. Without a partition, tensors of equal
    sizes count as tiles if the first split argument has as many dimensions. If each device returns a whole
    tensor, pass Partition.replicate().

    cancel: cancels this run on devices only.
    """

    timeout: Limit
    results: Union[None, Partition, Sequence[Optional[Partition]]]
    cancel: Optional[Cancel]


def devices_options(
    kept: Kept,
    *,
    timeout: Limit = None,
    results: Union[None, Partition, Sequence[Optional[Partition]]] = None,
    cancel: Optional[Cancel] = None,
) -> Any:
    """DevicesOptions for C."""
    native = _cdist.dist_devices_options()
    if timeout is not None:
        native.timeout_ns = limit(timeout)
    if results is not None:
        add_results(native, results, kept)
    if cancel is not None:
        native.cancel = handle_of(cancel)
    return native


@checked
@dataclass(frozen=True)
class ClusterResolverOptions:
    """Values that replace what a resolver finds. None = not set.

    task_type: job of this process.

    task_id: index of this process in its job.

    num_accelerators: accelerators of this process; 0 = none, or those from the Slurm options.

    rpc_layer: protocol, such as "grpc", prefixed to addresses with "://"; "" = no prefix.

    environment: name of the platform on which the cluster runs, such as "google".

    session_address: ClusterResolver.simple() only: the result of ClusterResolver.master() if no task is given.

    tf_config: value of TF_CONFIG; None = the environment variable.
    """

    task_type: Optional[str] = None
    task_id: TaskId = None
    num_accelerators: int = 0
    rpc_layer: Optional[str] = None
    environment: Optional[str] = None
    session_address: Optional[str] = None
    tf_config: Optional[str] = None

    def _native(self) -> Any:
        """For C."""
        native = _cdist.dist_cluster_resolver_options()
        if self.task_type is not None:
            native.set_task_type(self.task_type)
        if self.task_id is not None:
            native.has_task_id = 1
            native.task_id = self.task_id
        if self.num_accelerators:
            native.num_accelerators = self.num_accelerators
        if self.rpc_layer is not None:
            native.set_rpc_layer(self.rpc_layer)
        if self.environment is not None:
            native.environment = self.environment
        if self.session_address is not None:
            native.session_address = self.session_address
        if self.tf_config is not None:
            native.tf_config = self.tf_config
        return native


@checked
@dataclass(frozen=True)
class SlurmOptions:
    """A Slurm step. Values that are None or 0 are read from the environment.

    rank: rank of this process in the step; None = SLURM_PROCID.

    num_tasks: number of tasks of the step; 0 = SLURM_STEP_NUM_TASKS, if no jobs are given.

    host_list: hosts, such as "n[01-03,7],m1"; None = SLURM_STEP_NODELIST.

    tasks_per_node: such as "2(x3),1", by host_list; None = SLURM_STEP_TASKS_PER_NODE.

    tasks_on_each_host: number of tasks of every host; 0 = as in tasks_per_node.

    port_base: port of the first task of a host; 0 = default (8888).

    gpus_per_host: GPUs of every host; 0 = none, and GPUs are not distributed.

    gpus_per_task: GPUs of every task; 0 = as many as every task of a host can have.

    jobs: number of tasks of each job; None = one job, "worker", with all tasks.
    """

    rank: Optional[int] = None
    num_tasks: int = 0
    host_list: Optional[str] = None
    tasks_per_node: Optional[str] = None
    tasks_on_each_host: int = 0
    port_base: int = 0
    gpus_per_host: int = 0
    gpus_per_task: int = 0
    jobs: Optional[Mapping[str, int]] = None

    def _native(self, kept: Kept) -> Any:
        """For C."""
        native = _cdist.dist_slurm_options()
        if self.rank is not None:
            native.has_rank = 1
            native.rank = self.rank
        if self.num_tasks:
            native.num_tasks = self.num_tasks
        if self.host_list is not None:
            native.host_list = self.host_list
        if self.tasks_per_node is not None:
            native.tasks_per_node = self.tasks_per_node
        if self.tasks_on_each_host:
            native.tasks_on_each_host = self.tasks_on_each_host
        if self.port_base:
            native.port_base = self.port_base
        if self.gpus_per_host:
            native.gpus_per_host = self.gpus_per_host
        if self.gpus_per_task:
            native.gpus_per_task = self.gpus_per_task
        if self.jobs is not None:
            set_jobs(native, self.jobs, kept)
        return native


@checked
@dataclass(frozen=True)
class KubernetesOptions:
    """The pods of a Kubernetes job. Values that are None or 0 are read from the environment.

    index: index of this pod; not set = JOB_COMPLETION_INDEX, or the number at the end of the host name.

    num_workers: number of workers; 0 = WORLD_SIZE.

    first_index: index of the first pod, as in a StatefulSet's .spec.ordinals.start.

    port: port of every worker; 0 = default (8888).

    host_name: host name of this pod, such as "trainer-2"; None = HOSTNAME.

    service: headless service; None = addresses use only the host name.

    namespace: namespace of the service; requires `service`; None = POD_NAMESPACE, if set.

    domain: cluster domain, such as "cluster.local"; requires a namespace; None = omitted.
    """

    index: Optional[int] = None
    num_workers: int = 0
    first_index: int = 0
    port: int = 0
    host_name: Optional[str] = None
    service: Optional[str] = None
    namespace: Optional[str] = None
    domain: Optional[str] = None

    def _native(self) -> Any:
        """For C."""
        native = _cdist.dist_kubernetes_options()
        if self.index is not None:
            native.has_index = 1
            native.index = self.index
        if self.num_workers:
            native.num_workers = self.num_workers
        if self.first_index:
            native.first_index = self.first_index
        if self.port:
            native.port = self.port
        if self.host_name is not None:
            native.host_name = self.host_name
        if self.service is not None:
            native.service = self.service
        if self.namespace is not None:
            native.name_space = self.namespace
        if self.domain is not None:
            native.domain = self.domain
        return native


class NetworkOptions(TypedDict, total=False):
    """Options of Network().

    credit_bytes: amount of data, in bytes, that a worker may send ahead to each other worker: 4 KiB or more; 0 =
    default (1 MiB).
    """

    credit_bytes: Count


def network_options(
    *,
    credit_bytes: Count = 0,
) -> Any:
    """NetworkOptions for C."""
    native = _cdist.dist_network_options()
    if credit_bytes:
        native.credit_bytes = credit_bytes
    return native


class ReformOptions(TypedDict, total=False):
    """Options of Strategy.reform().

    min_workers: continue only with at least this many workers, otherwise wait for more; 0 = default (1).

    window: on worker 0: how long to wait for workers that are not known to be lost, in seconds; None = one lease.

    timeout: limit on the whole wait, in seconds; None = the strategy's timeout, a negative number = no limit.
    """

    min_workers: int
    window: Timeout
    timeout: Timeout


def reform_options(
    *,
    min_workers: int = 0,
    window: Timeout = None,
    timeout: Timeout = None,
) -> Any:
    """ReformOptions for C."""
    native = _cdist.dist_reform_options()
    if min_workers:
        native.min_workers = min_workers
    if window is not None:
        native.window_ns = nanoseconds(window)
    if timeout is not None:
        native.timeout_ns = nanoseconds(timeout)
    return native


class CrossDeviceOptions(TypedDict, total=False):
    """Options of CrossDevice().

    reduce_to_device: REDUCTION_TO_ONE_DEVICE: a device name; None = any device; "" = CPU:0.

    accumulate: REDUCTION_TO_ONE_DEVICE: a function accumulate(acc, values) that replaces +: acc[...] = op(acc,
    values); MEAN divides by n afterwards.

    functions: HOST: your functions; `reduce` is required.

    accumulate_element_bytes: size of one element of `accumulate`; 0 = the dtype's size.
    """

    reduce_to_device: Optional[str]
    accumulate: Optional[Operator]
    functions: Optional[HostFunctions]
    accumulate_element_bytes: Count


def cross_device_options(
    kept: Kept,
    *,
    kind: CrossDeviceKind = CrossDeviceKind.DEFAULT,
    reduce_to_device: Optional[str] = None,
    accumulate: Optional[Operator] = None,
    functions: Optional[HostFunctions] = None,
    accumulate_element_bytes: Count = 0,
) -> Any:
    """CrossDeviceOptions for C."""
    native = _cdist.dist_cross_device_options()
    if kind is not CrossDeviceKind.DEFAULT:
        native.kind = int(kind)
    if reduce_to_device is not None:
        native.reduce_to_device = reduce_to_device
    if accumulate is not None:
        native.set_accumulate(kept.token(Reducer(accumulate, kept.failures, accumulate_element_bytes)))
    if functions is not None:
        functions._set_cross_device(native, kept.token(functions))
    if accumulate_element_bytes:
        native.accumulate_element_bytes = accumulate_element_bytes
    return native


class RpcServerOptions(TypedDict, total=False):
    """Options of RpcServer().

    num_threads: number of threads that run methods, 1 to 1,024; 0 = default (4).

    max_queued: maximum number of calls waiting for a thread, 1 to 2^20; further ones raise ResourceExhausted; 0 =
    default (1024).
    """

    num_threads: int
    max_queued: int


def rpc_server_options(
    *,
    num_threads: int = 0,
    max_queued: int = 0,
) -> Any:
    """RpcServerOptions for C."""
    native = _cdist.dist_rpc_server_options()
    if num_threads:
        native.num_threads = num_threads
    if max_queued:
        native.max_queued = max_queued
    return native


class RpcClientOptions(TypedDict, total=False):
    """Options of RpcClient().

    timeout: timeout of calls that do not set their own, in seconds; None = default (600 s), a negative number =
    no limit. Timeouts of more than 2^48 ns (78 hours) count as 2^48 ns.
    """

    timeout: Timeout


def rpc_client_options(
    *,
    timeout: Timeout = None,
) -> Any:
    """RpcClientOptions for C."""
    native = _cdist.dist_rpc_client_options()
    if timeout is not None:
        native.timeout_ns = nanoseconds(timeout)
    return native


class RpcCallOptions(TypedDict, total=False):
    """Options of RpcClient.call(), RpcClient.begin() and RpcClient.methods().

    timeout: time limit from the call to its answer, in seconds; None = the client's timeout, a negative number =
    no limit.

    cancel: cancels the call.
    """

    timeout: Timeout
    cancel: Optional[Cancel]


def rpc_call_options(
    *,
    timeout: Timeout = None,
    cancel: Optional[Cancel] = None,
) -> Any:
    """RpcCallOptions for C."""
    native = _cdist.dist_rpc_call_options()
    if timeout is not None:
        native.timeout_ns = nanoseconds(timeout)
    if cancel is not None:
        native.cancel = handle_of(cancel)
    return native


class CoordinatorOptions(TypedDict, total=False):
    """Options of Strategy.coordinator().

    max_queued: maximum number of unfinished closures; at this limit Coordinator.schedule() waits; 0 = default
    (262,144), at most 4,194,304.

    closures_per_worker: closures that a worker has at a time; 0 = default (1), at most 1024.

    max_losses: how often a closure may be lost with its worker; 0 = default (16).

    timeout: default timeout of calls, in seconds; None = the strategy's, a negative number = no limit.

    max_message_bytes: maximum size of a message, up to 64 GiB; 0 = default (1 GiB).

    partitioner: a function partitioner(shape, dtype) that returns the number of parts per dimension, at most one
    of them greater than 1, for variables without partitions of their own; None = not split.
    """

    max_queued: int
    closures_per_worker: int
    max_losses: int
    timeout: Timeout
    max_message_bytes: Count
    partitioner: Optional[PartitionFn]


def coordinator_options(
    kept: Kept,
    *,
    max_queued: int = 0,
    closures_per_worker: int = 0,
    max_losses: int = 0,
    timeout: Timeout = None,
    max_message_bytes: Count = 0,
    partitioner: Optional[PartitionFn] = None,
) -> Any:
    """CoordinatorOptions for C."""
    native = _cdist.dist_coordinator_options()
    if max_queued:
        native.max_queued = max_queued
    if closures_per_worker:
        native.closures_per_worker = closures_per_worker
    if max_losses:
        native.max_losses = max_losses
    if timeout is not None:
        native.timeout_ns = nanoseconds(timeout)
    if max_message_bytes:
        native.max_message_bytes = max_message_bytes
    if partitioner is not None:
        native.set_partitioner(kept.token(Partitioner(partitioner)))
    return native


class PsVariableOptions(TypedDict, total=False):
    """Options of Coordinator.create_variable().

    max_staleness: maximum age of a cached read, in closures of a worker; 0 = no caching.

    partitions: number of parts per dimension; None = use the coordinator's partitioner.

    colocate_with: place the parts with those of this variable, for optimizer states, or the whole variable with
    one part of another one, by a name like "w/part_1".
    """

    max_staleness: int
    partitions: Optional[Sequence[int]]
    colocate_with: Optional[str]


def ps_variable_options(
    *,
    max_staleness: int = 0,
    partitions: Optional[Sequence[int]] = None,
    colocate_with: Optional[str] = None,
) -> Any:
    """PsVariableOptions for C."""
    native = _cdist.dist_ps_variable_options()
    if max_staleness:
        native.max_staleness = max_staleness
    if partitions is not None:
        native.set_partitions(list(partitions), len(partitions))
    if colocate_with is not None:
        native.colocate_with = colocate_with
    return native


class ScheduleOptions(TypedDict, total=False):
    """Options of Coordinator.schedule().

    timeout: longest wait for a place in the queue, in seconds; None = the coordinator's timeout, a negative
    number = no limit.

    cancel: cancels the wait.
    """

    timeout: Timeout
    cancel: Optional[Cancel]


def schedule_options(
    *,
    timeout: Timeout = None,
    cancel: Optional[Cancel] = None,
) -> Any:
    """ScheduleOptions for C."""
    native = _cdist.dist_schedule_options()
    if timeout is not None:
        native.timeout_ns = nanoseconds(timeout)
    if cancel is not None:
        native.cancel = handle_of(cancel)
    return native


class PreemptionOptions(TypedDict, total=False):
    """Options of Strategy.preemption_handler().

    grace: how long the job continues after the notice, in seconds (TensorFlow: grace_period): it saves at once,
    continues, and saves again at the end, by worker 0's clock. None = save and end.
    """

    grace: Delay


def preemption_options(
    *,
    path: Optional[str] = None,
    variables: Sequence[int] = (),
    grace: Delay = None,
) -> Any:
    """PreemptionOptions for C."""
    native = _cdist.dist_preemption_options()
    if path is not None:
        native.path = path
    native.set_variables(variables, len(variables))
    if grace is not None:
        native.grace_ns = delay(grace)
    return native


@checked
@dataclass(frozen=True)
class RendezvousOptions:
    """A job whose workers meet at one address. Values that are None or 0 are read from the environment.

    rank: number of this worker, from 0 to size - 1; None = the rank that the launcher has set.

    size: number of workers; 0 = the number that the launcher has set.

    address: "host:port" of worker 0, with a port of 1 to 65535; None = DIST_RENDEZVOUS, or MASTER_ADDR and the
    port after MASTER_PORT.

    job_name: equal in all workers of a job, and different in other jobs; None = DIST_JOB_NAME, or the name that
    the launcher has set.

    timeout: limit of the wait for all workers, in seconds; None = default (600 s), a negative number = no limit.
    """

    rank: Optional[int] = None
    size: int = 0
    address: Optional[str] = None
    job_name: Optional[str] = None
    timeout: Timeout = None

    def _native(self) -> Any:
        """For C."""
        native = _cdist.dist_rendezvous_options()
        if self.rank is not None:
            native.has_rank = 1
            native.rank = self.rank
        if self.size:
            native.size = self.size
        if self.address is not None:
            native.address = self.address
        if self.job_name is not None:
            native.job_name = self.job_name
        if self.timeout is not None:
            native.timeout_ns = nanoseconds(self.timeout)
        return native


class ServerOptions(TypedDict, total=False):
    """Options of Server() and Server.local().

    num_threads: closures that a worker runs at the same time, 1 to 1,024; 0 = default (1).

    bind_address: address to listen on; None = DIST_BIND_ADDRESS. If that is not set either, the server listens on
    the port of the task's address: only on that address if it is localhost or a loopback address, otherwise on
    all interfaces.

    start_timeout: how long Server.join() waits for a coordinator to connect, in seconds; None = default (600 s),
    a negative number = no limit.

    max_message_bytes: maximum size of a message, and so of one part of a variable, up to 64 GiB; 0 = default (1
    GiB).
    """

    num_threads: int
    bind_address: Optional[str]
    start_timeout: Timeout
    max_message_bytes: Count


def server_options(
    *,
    num_threads: int = 0,
    bind_address: Optional[str] = None,
    start_timeout: Timeout = None,
    max_message_bytes: Count = 0,
) -> Any:
    """ServerOptions for C."""
    native = _cdist.dist_server_options()
    if num_threads:
        native.num_threads = num_threads
    if bind_address is not None:
        native.bind_address = bind_address
    if start_timeout is not None:
        native.start_timeout_ns = nanoseconds(start_timeout)
    if max_message_bytes:
        native.max_message_bytes = max_message_bytes
    return native


MAKERS: dict[str, tuple[type[Any], tuple[Callable[..., Any], ...]]] = {
    "StrategyOptions": (StrategyOptions, (strategy_options,)),
    "Options": (Options, (collective_options,)),
    "ApplyOptions": (ApplyOptions, (apply_options, collective_options)),
    "RunOptions": (RunOptions, (run_options,)),
    "InstancesOptions": (InstancesOptions, (instances_options,)),
    "SubmitOptions": (SubmitOptions, (submit_options,)),
    "BatcherOptions": (BatcherOptions, (batcher_options,)),
    "ItemOptions": (ItemOptions, (item_options,)),
    "VariableOptions": (VariableOptions, (variable_options,)),
    "UpdateOptions": (UpdateOptions, (update_options,)),
    "DatasetOptions": (DatasetOptions, (dataset_options,)),
    "CheckpointOptions": (CheckpointOptions, (checkpoint_options,)),
    "CheckpointMapOptions": (CheckpointMapOptions, (checkpoint_map_options,)),
    "SplitOptions": (SplitOptions, (split_options,)),
    "DevicesOptions": (DevicesOptions, (devices_options,)),
    "NetworkOptions": (NetworkOptions, (network_options,)),
    "ReformOptions": (ReformOptions, (reform_options,)),
    "CrossDeviceOptions": (CrossDeviceOptions, (cross_device_options,)),
    "RpcServerOptions": (RpcServerOptions, (rpc_server_options,)),
    "RpcClientOptions": (RpcClientOptions, (rpc_client_options,)),
    "RpcCallOptions": (RpcCallOptions, (rpc_call_options,)),
    "CoordinatorOptions": (CoordinatorOptions, (coordinator_options,)),
    "PsVariableOptions": (PsVariableOptions, (ps_variable_options,)),
    "ScheduleOptions": (ScheduleOptions, (schedule_options,)),
    "PreemptionOptions": (PreemptionOptions, (preemption_options,)),
    "ServerOptions": (ServerOptions, (server_options,)),
}
"""The records by name, with the functions whose parameters have the types and defaults of their options."""


SHARED = (
    "Options",
    "DatasetOptions",
)
"""Records that many functions take, whose texts only name them."""

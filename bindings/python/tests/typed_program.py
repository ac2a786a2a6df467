# SPDX-License-Identifier: Apache-2.0
"""A program with types, for test_types.py: mypy --strict has nothing to say about it."""

from __future__ import annotations

import numpy as np

import libdist
from libdist import (
    Aggregation,
    Closure,
    ClusterResolver,
    ClusterResolverOptions,
    ClusterSpec,
    Coordinator,
    DeviceAssignment,
    DistError,
    Partition,
    ReduceOp,
    RemoteValue,
    Replica,
    ResolverFunctions,
    Server,
    Shard,
    Strategy,
    StrategyKind,
    Topology,
    Value,
    Variable,
    Work,
)


def step(replica: Replica, x: libdist.Array, weights: Variable) -> dict[str, libdist.Array]:
    """A replica function."""
    gradient: libdist.Array = replica.all_reduce(ReduceOp.SUM, x, out=None, tag="grads", timeout=1.5)
    work: Work = replica.begin.all_reduce(ReduceOp.MEAN, gradient, out=gradient)
    work.result(timeout=2.0)
    with replica.plan.broadcast(0, gradient) as plan:
        plan.start()
        plan.result()
    replica.assign(weights, gradient)
    return {"gradient": gradient}


def on_device(device: Replica, part: libdist.Array) -> libdist.Array:
    """Of one logical device."""
    wide: libdist.Array = device.halo_exchange(part, [2], low=1, edges=libdist.Edge.WRAP, tag="halo")
    total: libdist.Array = device.all_reduce(ReduceOp.SUM, wide, group=device.device_axis_group("device"))
    return total[1:]


def logical_devices() -> Value:
    """A replica of two."""
    topology = Topology([1, 1, 1, 2], [[(0, 0, 0, 0), (0, 0, 0, 1)]])
    assignment = DeviceAssignment.build(topology, [1, 1, 1, 2])
    shard: Shard = Partition.split((4,), (2,)).shard(1)
    with Strategy(kind=StrategyKind.MESH, device_assignment=assignment, axes={"device": 2}) as strategy:
        x = np.arange(4.0)

        def whole(replica: Replica) -> Value:
            split = replica.split_to_logical_devices(x, [2])
            joined: Value = replica.run_on_devices(on_device, (split,), timeout=60.0)
            return joined

        result: Value = strategy.run(whole)[0]
        print(shard.begin, result.shard(1), assignment.coordinates(0, 1))
        return result


class Own(ResolverFunctions):
    """A resolver of the program's own."""

    def spec(self) -> ClusterSpec:
        return ClusterSpec({"worker": ["a:1", "b:2"], "ps": {3: "c:4"}})

    def task_id(self) -> int:
        return 1


def clusters() -> ClusterResolver:
    """Who is in the cluster."""
    resolver = ClusterResolver.host(Own(), ClusterResolverOptions(task_type="worker"))
    spec: ClusterSpec = resolver.spec()
    addresses: list[str] = [spec.task_address("worker", task) for task in spec.task_indices("worker")]
    parts: list[int] = libdist.fixed_shards((10, 3), 0, 3)
    print(addresses, resolver.task_id, parts, libdist.rows_of_part(10, 3, 0).size)
    return resolver


def train(closure: Closure, x: libdist.Array) -> libdist.Array:
    """A closure."""
    w: libdist.Array = closure.read("w")
    both: list[libdist.Array] = closure.read(["w", "b"])
    closure.assign_sub("w", x * w + both[1])
    return w


def servers() -> None:
    """A worker, and what a coordinator would do with it."""
    with Server.local(num_threads=2) as server:
        server.register("train", train)
        print(server.target)

    def schedule(coordinator: Coordinator) -> libdist.Array:
        coordinator.create_variable("w", np.zeros(3), partitions=[1])
        remote: RemoteValue = coordinator.schedule("train", np.ones(3), timeout=1.0)
        coordinator.join()
        print(remote.done(), coordinator.variable_part("w", 0).device, coordinator.query().completed)
        return coordinator.read("w")

    print(schedule)


def main() -> float:
    """The rest of it."""
    logical_devices()
    servers()
    resolver = clusters()
    with Strategy(
        2, devices=["CPU:0", "CPU:1"], log=lambda level, line: None, cluster_resolver=resolver
    ) as strategy:
        weights = strategy.variable(np.zeros(3), name="w", aggregation=Aggregation.MEAN)
        x: Value = strategy.per_replica([np.ones(3), np.ones(3)])
        try:
            result = strategy.run_values(step, (x, weights))
        except DistError as error:
            print(error.status.name, error.replica, error.hint)
            raise
        for batch in strategy.dataset_from_tensors(np.arange(8.0), global_batch_size=4, shuffle=True):
            print(strategy.local_results(batch)[0])
        ids: list[int] = [replica.id for replica in strategy.run(lambda replica: replica)]
        mean = strategy.metric(libdist.MetricKind.MEAN)
        print(ids, strategy.reduce(ReduceOp.SUM, result["gradient"]), weights.read())
        return mean.result()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""A program with types, for test_types.py: mypy --strict has nothing to say about it."""

from __future__ import annotations

import numpy as np

import libdist
from libdist import Aggregation, DistError, ReduceOp, Replica, Strategy, Value, Variable, Work


def step(replica: Replica, x: libdist.Array, weights: Variable) -> dict[str, libdist.Array]:
    """A replica function."""
    gradient: libdist.Array = replica.all_reduce(ReduceOp.SUM, x, out=None, tag="grads", timeout=1.5)
    work: Work = replica.begin.all_reduce(ReduceOp.MEAN, gradient, out=gradient)
    work.wait(timeout=2.0)
    with replica.plan.broadcast(0, gradient) as plan:
        plan.start()
        plan.wait()
    replica.assign(weights, gradient)
    return {"gradient": gradient}


def main() -> float:
    """The rest of it."""
    with Strategy(2, devices=["CPU:0", "CPU:1"], log=lambda level, line: None) as strategy:
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
        mean = libdist.Metric(strategy, libdist.MetricKind.MEAN)
        print(ids, strategy.reduce(ReduceOp.SUM, result["gradient"]), weights.read())
        return mean.result()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The example of batch_reduce_to() from the tf.distribute documentation. Run it as `batch_reduce_to.py [REPLICAS]`
(default 2).

It prints every copy of the variable: 2.0 2.0 with two replicas, 1.0 with one.
"""

import sys

import numpy as np

import libdist
from libdist import Aggregation, ReduceOp, Strategy, StrategyKind


def merge(strategy, value, variable):
    """Runs once for all replicas, with the values of all of them."""
    (reduced,) = strategy.batch_reduce_to(ReduceOp.SUM, [(value, variable)])

    def assign(place, value):
        place.copy[...] = value

    strategy.update(variable, assign, (reduced,), parallel=True)


def step(replica, variable):
    """Runs on every replica."""
    replica.merge_call(merge, (np.float32(1), variable))


def main(replicas):
    """Runs the example."""
    kind = StrategyKind.ONE_DEVICE if replicas == 1 else StrategyKind.MIRRORED
    with Strategy(replicas, kind=kind) as strategy:
        variable = strategy.variable(np.float32(0), aggregation=Aggregation.SUM)
        strategy.run_values(step, (variable,))
        print(*(f"{float(copy):.1f}" for copy in strategy.local_results(variable)))


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    except libdist.DistError as error:
        sys.exit(f"batch_reduce_to: {error}")

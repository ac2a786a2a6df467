# SPDX-License-Identifier: Apache-2.0
"""The examples from the pages of tf.VariableAggregation, tf.VariableSynchronization and StrategyExtended.update.

Lines that changed:
    import tensorflow as tf   ->   import libdist.tf as tf      tensors are NumPy arrays
"""

import libdist.tf as tf


def mean():
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    with strategy.scope():
        v = tf.Variable(5.0, aggregation=tf.VariableAggregation.MEAN)

    @tf.function
    def update_fn():
        return v.assign_add(1.0)

    return strategy.experimental_local_results(strategy.run(update_fn))


def each_aggregation():
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    results = {}
    for aggregation in tf.VariableAggregation:
        with strategy.scope():
            v = tf.Variable(5.0, aggregation=aggregation)

        @tf.function
        def update_fn():
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            v.assign_add(tf.constant(1.0) + tf.cast(replica, tf.float32))

        strategy.run(update_fn)
        results[aggregation.name] = [float(copy.numpy()) for copy in strategy.experimental_local_results(v)]
    return results


def on_read():
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    with strategy.scope():
        total = tf.Variable(
            0.0,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )

    @tf.function
    def update_fn():
        total.assign_add(2.0)  # each replica updates its own copy without waiting

    strategy.run(update_fn)
    return total.read_value()


def update():
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])  # With 2 devices
    with strategy.scope():
        v = tf.Variable(5.0, aggregation=tf.VariableAggregation.SUM)

        def update_fn(v):
            return v.assign(1.0)

        result = strategy.extended.update(v, update_fn)
    return strategy.experimental_local_results(result)


def main():
    return {
        "mean": [float(x.numpy()) for x in mean()],
        "each_aggregation": each_aggregation(),
        "on_read": float(on_read()),
        "update": [float(x.numpy()) for x in update()],
    }


if __name__ == "__main__":
    print(main())

# SPDX-License-Identifier: Apache-2.0
"""The examples from the pages of tf.distribute.ReplicaContext and its methods all_reduce and all_gather.

Lines that changed:
    import tensorflow as tf   ->   import libdist.tf as tf      tensors are NumPy arrays
"""

import libdist.tf as tf


def replica_ids(strategy):
    def func():
        replica_context = tf.distribute.get_replica_context()
        return replica_context.replica_id_in_sync_group

    return strategy.experimental_local_results(strategy.run(func))


def all_reduce(strategy):
    def step_fn():
        ctx = tf.distribute.get_replica_context()
        value = tf.identity(1.0)
        return ctx.all_reduce(tf.distribute.ReduceOp.SUM, value)

    return strategy.experimental_local_results(strategy.run(step_fn))


def all_reduce_list(strategy):
    def step_fn():
        ctx = tf.distribute.get_replica_context()
        value1 = tf.identity(1.0)
        value2 = tf.identity(2.0)
        return ctx.all_reduce(tf.distribute.ReduceOp.SUM, [value1, value2])

    return strategy.experimental_local_results(strategy.run(step_fn))


def all_gather(strategy):
    @tf.function
    def gather_value():
        ctx = tf.distribute.get_replica_context()
        local_value = tf.constant([1, 2, 3])
        return ctx.all_gather(local_value, axis=0)

    return strategy.experimental_local_results(strategy.run(gather_value))


def all_gather_nest(strategy):
    @tf.function
    def gather_nest():
        ctx = tf.distribute.get_replica_context()
        value_1 = tf.constant([1, 2, 3])
        value_2 = tf.constant([[1, 2], [3, 4]])
        return ctx.all_gather([value_1, value_2], axis=0)

    return [strategy.experimental_local_results(result) for result in strategy.run(gather_nest)]


def main():
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    return {
        "replica_ids": [int(x) for x in replica_ids(strategy)],
        "all_reduce": [float(x) for x in all_reduce(strategy)],
        "all_reduce_list": [[float(x) for x in pair] for pair in all_reduce_list(strategy)],
        "all_gather": [[int(i) for i in x] for x in all_gather(strategy)],
        "all_gather_nest": [
            [[int(i) for i in row.ravel()] for row in map(as_array, r)] for r in all_gather_nest(strategy)
        ],
    }


def as_array(tensor):
    return tensor.__array__()


if __name__ == "__main__":
    print(main())

# SPDX-License-Identifier: Apache-2.0
"""The examples from the pages of tf.distribute.Strategy.run and .reduce.

Lines that changed:
    import tensorflow as tf   ->   import libdist.tf as tf      tensors are NumPy arrays
"GPU:0" is only a name here: replicas are threads on the CPU.
"""

import libdist.tf as tf


def tensor_input():
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    tensor_input = tf.constant(3.0)

    @tf.function
    def replica_fn(input):
        return input * 2.0

    return strategy.experimental_local_results(strategy.run(replica_fn, args=(tensor_input,)))


def distributed_values_input():
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])

    @tf.function
    def run():
        def value_fn(value_context):
            return value_context.num_replicas_in_sync

        distributed_values = strategy.experimental_distribute_values_from_function(value_fn)

        def replica_fn2(input):
            return input * 2

        return strategy.run(replica_fn2, args=(distributed_values,))

    return run()  # every replica returns the same object, so the result is not per-replica


def all_reduce_inside():
    strategy = tf.distribute.MirroredStrategy(["gpu:0", "gpu:1"])

    @tf.function
    def run():
        def value_fn(value_context):
            return tf.constant(value_context.replica_id_in_sync_group)

        distributed_values = strategy.experimental_distribute_values_from_function(value_fn)

        def replica_fn(input):
            return tf.distribute.get_replica_context().all_reduce("sum", input)

        return strategy.run(replica_fn, args=(distributed_values,))

    return strategy.experimental_local_results(run())


def reduce():
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])

    def step_fn():
        i = tf.distribute.get_replica_context().replica_id_in_sync_group
        return tf.identity(i)

    per_replica_result = strategy.run(step_fn)
    return strategy.reduce("SUM", per_replica_result, axis=None)


def main():
    return {
        "tensor_input": [float(x) for x in tensor_input()],
        "distributed_values_input": int(distributed_values_input()),
        "all_reduce_inside": [int(x) for x in all_reduce_inside()],
        "reduce": int(reduce()),
    }


if __name__ == "__main__":
    print(main())

# SPDX-License-Identifier: Apache-2.0
"""The examples from the page of tf.distribute.Strategy.experimental_distribute_values_from_function.

Lines that changed:
    import tensorflow as tf   ->   import libdist.tf as tf      tensors are NumPy arrays
The page's fourth example is omitted: it places values on devices with tf.device, but here all replicas share one
memory.
"""

import numpy as np

import libdist.tf as tf


def constant(strategy):
    def value_fn(ctx):
        return tf.constant(1.0)

    distributed_values = strategy.experimental_distribute_values_from_function(value_fn)
    return strategy.experimental_local_results(distributed_values)


def of_an_array(strategy):
    array_value = np.array([3.0, 2.0, 1.0])

    def value_fn(ctx):
        return array_value[ctx.replica_id_in_sync_group]

    distributed_values = strategy.experimental_distribute_values_from_function(value_fn)
    return strategy.experimental_local_results(distributed_values)


def num_replicas(strategy):
    def value_fn(ctx):
        return ctx.num_replicas_in_sync

    distributed_values = strategy.experimental_distribute_values_from_function(value_fn)
    return strategy.experimental_local_results(distributed_values)


def main():
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    return {
        "constant": [float(x) for x in constant(strategy)],
        "of_an_array": [float(x) for x in of_an_array(strategy)],
        "num_replicas": list(num_replicas(strategy)),
    }


if __name__ == "__main__":
    print(main())

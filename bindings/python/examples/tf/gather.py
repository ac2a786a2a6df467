# SPDX-License-Identifier: Apache-2.0
"""The examples from the page of tf.distribute.Strategy.gather.

Lines that changed:
    import tensorflow as tf   ->   import libdist.tf as tf      tensors are NumPy arrays
"""

import libdist.tf as tf


def two_replicas():
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    # A DistributedValues with component tensor of shape (2, 1) on each replica
    distributed_values = strategy.experimental_distribute_values_from_function(
        lambda _: tf.identity(tf.constant([[1], [2]]))
    )

    @tf.function
    def run():
        return strategy.gather(distributed_values, axis=0)

    return run()


def along_every_axis():
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1", "GPU:2", "GPU:3"])
    single_tensor = tf.reshape(tf.range(6), shape=(1, 2, 3))
    distributed_values = strategy.experimental_distribute_values_from_function(lambda _: tf.identity(single_tensor))

    @tf.function
    def run(axis):
        return strategy.gather(distributed_values, axis=axis)

    return [run(axis) for axis in range(3)]


def main():
    return {
        "two_replicas": two_replicas().__array__().tolist(),
        "along_every_axis": [gathered.__array__().tolist() for gathered in along_every_axis()],
    }


if __name__ == "__main__":
    print(main())

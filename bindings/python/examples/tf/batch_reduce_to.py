# SPDX-License-Identifier: Apache-2.0
"""The examples from the pages of tf.distribute.StrategyExtended.batch_reduce_to and .reduce_to. They work with any
strategy.

Lines that changed:
    import tensorflow as tf   ->   import libdist.tf as tf      tensors are NumPy arrays
"""

import libdist.tf as tf


def batch_reduce_to():
    @tf.function
    def step_fn(var):

      def merge_fn(strategy, value, var):
        # All-reduce the value. Note that `value` here is a
        # `tf.distribute.DistributedValues`.
        reduced = strategy.extended.batch_reduce_to(
            tf.distribute.ReduceOp.SUM, [(value, var)])[0]
        strategy.extended.update(var, lambda var, value: var.assign(value),
            args=(reduced,))

      value = tf.identity(1.)
      tf.distribute.get_replica_context().merge_call(merge_fn,
        args=(value, var))

    def run(strategy):
      with strategy.scope():
        v = tf.Variable(0.)
        strategy.run(step_fn, args=(v,))
        return v

    yield run(tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"]))
    yield run(tf.distribute.experimental.CentralStorageStrategy(
        compute_devices=["GPU:0", "GPU:1"], parameter_device="CPU:0"))
    yield run(tf.distribute.OneDeviceStrategy("GPU:0"))


def reduce_to():
    @tf.function
    def step_fn(var):

      def merge_fn(strategy, value, var):
        # All-reduce the value. Note that `value` here is a
        # `tf.distribute.DistributedValues`.
        reduced = strategy.extended.reduce_to(tf.distribute.ReduceOp.SUM,
            value, destinations=var)
        strategy.extended.update(var, lambda var, value: var.assign(value),
            args=(reduced,))

      value = tf.identity(1.)
      tf.distribute.get_replica_context().merge_call(merge_fn,
        args=(value, var))

    def run(strategy):
      with strategy.scope():
        v = tf.Variable(0.)
        strategy.run(step_fn, args=(v,))
        return v

    yield run(tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"]))
    yield run(tf.distribute.experimental.CentralStorageStrategy(
        compute_devices=["GPU:0", "GPU:1"], parameter_device="CPU:0"))
    yield run(tf.distribute.OneDeviceStrategy("GPU:0"))


def main():
    return {
        "batch_reduce_to": [repr(v) for v in batch_reduce_to()],
        "reduce_to": [repr(v) for v in reduce_to()],
    }


if __name__ == "__main__":
    for page, printed in main().items():
        print(page, *printed, sep="\n")

# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.StrategyExtended.reduce_to and .batch_reduce_to: code that works for every strategy.

Lines that changed:
    import tensorflow as tf   ->   import libdist.tf as tf      arrays of NumPy's are the tensors
"""

import libdist.tf as tf


@tf.function
def reduce_step_fn(var):
    def merge_fn(strategy, value, var):
        # All-reduce the value. Note that `value` here is a `tf.distribute.DistributedValues`.
        reduced = strategy.extended.reduce_to(tf.distribute.ReduceOp.SUM, value, destinations=var)
        strategy.extended.update(var, lambda var, value: var.assign(value), args=(reduced,))

    value = tf.identity(1.0)
    tf.distribute.get_replica_context().merge_call(merge_fn, args=(value, var))


@tf.function
def batch_step_fn(var):
    def merge_fn(strategy, value, var):
        # All-reduce the value. Note that `value` here is a `tf.distribute.DistributedValues`.
        reduced = strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, [(value, var)])[0]
        strategy.extended.update(var, lambda var, value: var.assign(value), args=(reduced,))

    value = tf.identity(1.0)
    tf.distribute.get_replica_context().merge_call(merge_fn, args=(value, var))


def run(strategy, step_fn):
    with strategy.scope():
        v = tf.Variable(0.0)
        strategy.run(step_fn, args=(v,))
        return v


def main():
    strategies = {
        "mirrored": tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"]),
        "central": tf.distribute.experimental.CentralStorageStrategy(
            compute_devices=["GPU:0", "GPU:1"], parameter_device="CPU:0"
        ),
        "one": tf.distribute.OneDeviceStrategy("GPU:0"),
    }
    results = {}
    for name, strategy in strategies.items():
        for step_fn in (reduce_step_fn, batch_step_fn):
            v = run(strategy, step_fn)
            copies = strategy.experimental_local_results(v)
            results.setdefault(name, []).append([float(copy.numpy()) for copy in copies])
    return results


if __name__ == "__main__":
    print(main())

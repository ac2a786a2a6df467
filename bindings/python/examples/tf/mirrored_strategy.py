# SPDX-License-Identifier: Apache-2.0
"""The examples from the page of tf.distribute.MirroredStrategy.

Lines that changed:
    import tensorflow as tf   ->   import libdist.tf as tf      tensors are NumPy arrays
For the page's placeholder "process input and return result", this program computes a sum.
"""

import libdist.tf as tf

EPOCHS = 2


def variable_in_scope():
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    with strategy.scope():
        x = tf.Variable(1.0)
    return [(copy.name, float(copy.numpy())) for copy in strategy.experimental_local_results(x)]


def variable_in_function():
    x = []

    @tf.function  # Wrap the function with tf.function.
    def create_variable():
        if not x:
            x.append(tf.Variable(1.0))
        return x[0]

    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    with strategy.scope():
        _ = create_variable()
    return strategy.extended.variable_created_in_scope(x[0])


def training_loop(dataset):
    my_strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    train_results = []
    with my_strategy.scope():

        @tf.function
        def distribute_train_epoch(dataset):
            def replica_fn(input):
                # process input and return result
                return tf.reduce_sum(input)

            total_result = tf.constant(0, tf.int64)
            for x in dataset:
                per_replica_result = my_strategy.run(replica_fn, args=(x,))
                total_result += my_strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_result, axis=None)
            return total_result

        dist_dataset = my_strategy.experimental_distribute_dataset(dataset)
        for _ in range(EPOCHS):
            train_results.append(distribute_train_epoch(dist_dataset))
    return train_results


def main():
    return {
        "variable_in_scope": variable_in_scope(),
        "variable_in_function": variable_in_function(),
        "training_loop": [int(x) for x in training_loop(tf.data.Dataset.range(10).batch(4))],
    }


if __name__ == "__main__":
    print(main())

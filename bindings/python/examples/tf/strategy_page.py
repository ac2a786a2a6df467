# SPDX-License-Identifier: Apache-2.0
"""The custom training loop from the page of tf.distribute.Strategy, with a user-defined metric.

Lines that changed:
    import tensorflow as tf   ->   import libdist.tf as tf      tensors are NumPy arrays
For the page's placeholder "process input and return result", this program computes a sum. For "metrics (such as loss,
accuracy, etc.) to accumulate metrics across steps", it uses a mean absolute value and libdist's own Mean.
"""

import numpy as np

import libdist.tf as tf

EPOCHS = 2


class MeanAbsolute(tf.keras.metrics.Metric):
    def __init__(self, name="mean_absolute", **kwargs):
        super().__init__(name=name, **kwargs)
        self.total = self.add_weight(name="total", initializer="zeros")
        self.count = self.add_weight(name="count", initializer="zeros")

    def update_state(self, values):
        self.total.assign_add(tf.reduce_sum(np.abs(values)))
        self.count.assign_add(values.shape[0])

    def result(self):
        return self.total / self.count


def page(my_strategy, dataset, history):
    with my_strategy.scope():
      metric = MeanAbsolute()
      mean = tf.keras.metrics.Mean()

      @tf.function
      def distribute_train_epoch(dataset):
        def replica_fn(input):
          # process input and return result
          metric.update_state(input)
          mean.update_state(input)
          result = tf.reduce_sum(input)
          return result

        total_result = 0
        for x in dataset:
          per_replica_result = my_strategy.run(replica_fn, args=(x,))
          total_result += my_strategy.reduce(tf.distribute.ReduceOp.SUM,
                                             per_replica_result, axis=None)
        return total_result

      dist_dataset = my_strategy.experimental_distribute_dataset(dataset)
      for _ in range(EPOCHS):
        train_result = distribute_train_epoch(dist_dataset)
        history.append([float(x.numpy()) for x in (train_result, metric.result(), mean.result())])
        metric.reset_state()
        mean.reset_state()


def main():
    dataset = tf.data.Dataset.range(-2, 8).map(lambda i: tf.cast(i, tf.float32)).batch(4)
    results = {}
    for name, strategy in (
        ("mirrored", tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])),
        ("one", tf.distribute.OneDeviceStrategy("GPU:0")),
        ("central", tf.distribute.experimental.CentralStorageStrategy(["GPU:0", "GPU:1"], "CPU:0")),
    ):
        page(strategy, dataset, results.setdefault(name, []))
    return results


if __name__ == "__main__":
    print(main())

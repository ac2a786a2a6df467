# SPDX-License-Identifier: Apache-2.0
"""The examples of Strategy.experimental_distribute_dataset and .distribute_datasets_from_function from their pages.

Lines that changed:
    import tensorflow as tf   ->   import libdist.tf as tf      tensors are NumPy arrays
"""

import libdist.tf as tf


def distribute_dataset():
    global_batch_size = 2
    # Passing the devices is optional.
    strategy = tf.distribute.MirroredStrategy(devices=["GPU:0", "GPU:1"])
    # Create a dataset
    dataset = tf.data.Dataset.range(4).batch(global_batch_size)
    # Distribute that dataset
    dist_dataset = strategy.experimental_distribute_dataset(dataset)

    @tf.function
    def replica_fn(input):
        return input * 2

    result = []
    # Iterate over the `tf.distribute.DistributedDataset`
    for x in dist_dataset:
        # process dataset elements
        result.append(strategy.run(replica_fn, args=(x,)))
    return [strategy.experimental_local_results(step) for step in result]


def from_function():
    global_batch_size = 8

    def dataset_fn(input_context):
        batch_size = input_context.get_per_replica_batch_size(global_batch_size)
        d = tf.data.Dataset.from_tensors([[1.0]]).repeat().batch(batch_size)
        return d.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)

    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    ds = strategy.distribute_datasets_from_function(dataset_fn)

    def train(ds):
        @tf.function
        def step_fn(inputs):
            # train the model with inputs
            return tf.reduce_sum(inputs)

        iterator = iter(ds)
        totals = []
        for _ in range(3):
            replica_results = strategy.run(step_fn, args=(next(iterator),))
            totals.append(strategy.reduce("SUM", replica_results, axis=None))
        return totals

    return train(ds)


def main():
    return {
        "distribute_dataset": [[[int(i) for i in x] for x in step] for step in distribute_dataset()],
        "from_function": [float(total) for total in from_function()],
    }


if __name__ == "__main__":
    print(main())

# SPDX-License-Identifier: Apache-2.0
"""The custom training loop with a ClusterCoordinator from the tutorial on tf.distribute.ParameterServerStrategy.

The following command starts one process per task and sets TF_CONFIG as TensorFlow expects it:

    dist-launch --ps 2 --workers 2 -- python parameter_server.py

Lines that changed:
    import tensorflow as tf   ->   import libdist.tf as tf      tensors are NumPy arrays
    The branch for workers and parameter servers, `server.join()`, comes after the strategy, the variables and the functions.
    TensorFlow sends the functions' graphs to workers. With libdist, a worker runs functions defined in its own process.
The model, loss and gradient are written in NumPy instead of Keras and GradientTape, and the data are synthetic.
"""

import json

import numpy as np

import libdist.tf as tf

BATCH_SIZE = 16
RATE = 0.5


def dataset_fn(input_context):
    rng = np.random.default_rng(11)
    features = rng.normal(size=(256, 4)).astype(np.float32)
    labels = (features @ np.array([1.0, -2.0, 0.5, 0.0], np.float32) > 0).astype(np.int64)
    dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(64, seed=1).repeat()
    return dataset.batch(BATCH_SIZE)


def main():
    cluster_resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    variable_partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(min_shard_bytes=8, max_shards=2)
    strategy = tf.distribute.ParameterServerStrategy(cluster_resolver, variable_partitioner=variable_partitioner)

    with strategy.scope():
        weights = tf.Variable(np.zeros(4, np.float32), name="weights")
        bias = tf.Variable(0.0, name="bias")
        accuracy = tf.keras.metrics.Accuracy()

    @tf.function
    def step_fn(iterator):

        def replica_fn(batch_data, labels):
            pred = 1 / (1 + np.exp(-(batch_data @ weights.read_value() + bias.read_value())))
            per_example_loss = -np.log(np.where(labels == 1, pred, 1 - pred) + 1e-7)
            loss = tf.nn.compute_average_loss(per_example_loss)
            error = (pred - labels).astype(np.float32) / len(labels)
            weights.assign_sub(RATE * (batch_data.T @ error))
            bias.assign_sub(RATE * tf.reduce_sum(error))
            actual_pred = tf.cast(pred > 0.5, tf.int64)
            accuracy.update_state(labels, actual_pred)
            return loss

        batch_data, labels = next(iterator)
        losses = strategy.run(replica_fn, args=(batch_data, labels))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    @tf.function
    def per_worker_dataset_fn():
        return strategy.distribute_datasets_from_function(dataset_fn)

    if cluster_resolver.task_type in ("worker", "ps"):
        server = tf.distribute.Server(
            cluster_resolver.cluster_spec(),
            job_name=cluster_resolver.task_type,
            task_index=cluster_resolver.task_id,
            protocol=cluster_resolver.rpc_layer or "grpc",
            start=True,
        )
        server.join()
        return None

    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    per_worker_dataset = coordinator.create_per_worker_dataset(per_worker_dataset_fn)
    per_worker_iterator = iter(per_worker_dataset)

    num_epochs = 4
    steps_per_epoch = 25
    history = []
    for i in range(num_epochs):
        accuracy.reset_states()
        for _ in range(steps_per_epoch):
            coordinator.schedule(step_fn, args=(per_worker_iterator,))
        # Wait at epoch boundaries.
        coordinator.join()
        print("Finished epoch %d, accuracy is %f." % (i, accuracy.result().numpy()))
        history.append(float(accuracy.result().numpy()))

    loss = coordinator.schedule(step_fn, args=(per_worker_iterator,))
    print("Final loss is %f" % loss.fetch())
    return {"history": history, "loss": float(loss.fetch()), "shards": [shard.device for shard in weights.variables]}


if __name__ == "__main__":
    result = main()
    if result is not None:
        print(json.dumps(result))

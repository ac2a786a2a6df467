# SPDX-License-Identifier: Apache-2.0
"""The tutorial "Custom training with tf.distribute.Strategy", with a linear classifier instead of its network.

Lines that changed:
    import tensorflow as tf       ->   import libdist.tf as tf
    model = create_model()        ->   weights and bias as tf.Variable         layers belong to Keras
    loss_object(labels, ...)      ->   cross_entropy(), in NumPy               losses belong to Keras
    tape.gradient(loss, ...)      ->   the gradients, in NumPy                 libdist has no automatic differentiation
    optimizer.apply_gradients()   ->   variable.assign_sub(rate * gradient)    aggregation=SUM sums, like an optimizer
    fashion_mnist.load_data()     ->   clusters of points                      avoids a download
All distribution code is unchanged: scope, datasets, compute_average_loss, run, reduce, metrics, checkpoint.
"""

import os
import tempfile

import numpy as np

import libdist.tf as tf

CLASSES, FEATURES = 3, 4
BUFFER_SIZE = 240
BATCH_SIZE_PER_REPLICA = 15
EPOCHS = 4
LEARNING_RATE = np.float32(0.5)


def load_data(seed):
    generator = np.random.default_rng(seed)
    labels = np.arange(BUFFER_SIZE) % CLASSES
    centers = np.float32([[2, 0, 0, 1], [0, 2, 0, 1], [0, 0, 2, 1]])
    images = centers[labels] + generator.normal(0, 0.5, (BUFFER_SIZE, FEATURES))
    return images.astype(np.float32), labels.astype(np.int64)


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def cross_entropy(labels, probabilities):
    return -np.log(probabilities[np.arange(len(labels)), labels])


def main(replicas=2):
    strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
    GLOBAL_BATCH_SIZE = BATCH_SIZE_PER_REPLICA * 2  # the tutorial: BATCH_SIZE_PER_REPLICA * num_replicas_in_sync
    train_dataset = tf.data.Dataset.from_tensor_slices(load_data(1)).batch(GLOBAL_BATCH_SIZE)
    test_dataset = tf.data.Dataset.from_tensor_slices(load_data(2)).batch(GLOBAL_BATCH_SIZE)
    train_dist_dataset = strategy.experimental_distribute_dataset(train_dataset)
    test_dist_dataset = strategy.experimental_distribute_dataset(test_dataset)

    def compute_loss(labels, predictions):
        per_example_loss = cross_entropy(labels, predictions)
        return tf.nn.compute_average_loss(per_example_loss, global_batch_size=GLOBAL_BATCH_SIZE)

    with strategy.scope():
        test_loss = tf.keras.metrics.Mean(name="test_loss")
        train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
        test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="test_accuracy")
        weights = tf.Variable(tf.zeros([FEATURES, CLASSES]), aggregation=tf.VariableAggregation.SUM, name="weights")
        bias = tf.Variable(tf.zeros([CLASSES]), aggregation=tf.VariableAggregation.SUM, name="bias")
        checkpoint = tf.train.Checkpoint(weights=weights, bias=bias)

    def model(images):
        return softmax(images @ weights + bias)

    def train_step(inputs):
        images, labels = inputs
        predictions = model(images)
        loss = compute_loss(labels, predictions)
        d_logits = predictions.copy()
        d_logits[np.arange(len(labels)), labels] -= 1
        d_logits /= np.float32(GLOBAL_BATCH_SIZE)
        weights.assign_sub(LEARNING_RATE * (images.T @ d_logits))
        bias.assign_sub(LEARNING_RATE * d_logits.sum(axis=0))
        train_accuracy.update_state(labels, predictions)
        return loss

    def test_step(inputs):
        images, labels = inputs
        predictions = model(images)
        test_loss.update_state(cross_entropy(labels, predictions))
        test_accuracy.update_state(labels, predictions)

    # `run` replicates the provided computation and runs it with the distributed input.
    @tf.function
    def distributed_train_step(dataset_inputs):
        per_replica_losses = strategy.run(train_step, args=(dataset_inputs,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)

    @tf.function
    def distributed_test_step(dataset_inputs):
        return strategy.run(test_step, args=(dataset_inputs,))

    history = []
    for epoch in range(EPOCHS):
        total_loss = 0.0
        num_batches = 0
        for x in train_dist_dataset:
            total_loss += distributed_train_step(x)
            num_batches += 1
        train_loss = total_loss / num_batches
        for x in test_dist_dataset:
            distributed_test_step(x)
        template = "Epoch {}, Loss: {:.4f}, Accuracy: {:.2f}, Test Loss: {:.4f}, Test Accuracy: {:.2f}"
        row = [train_loss, train_accuracy.result() * 100, test_loss.result(), test_accuracy.result() * 100]
        print(template.format(epoch + 1, *map(float, row)))
        history.append([float(x) for x in row])
        test_loss.reset_state()
        train_accuracy.reset_state()
        test_accuracy.reset_state()

    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.save(os.path.join(folder, "ckpt"))
        trained = weights.numpy()
        weights.assign(tf.zeros([FEATURES, CLASSES]))
        checkpoint.restore(path)
    return {"history": history, "restored": bool(np.array_equal(weights.numpy(), trained))}


if __name__ == "__main__":
    main()

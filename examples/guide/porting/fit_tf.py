# SPDX-License-Identifier: Apache-2.0
"""Fits y = 3 x on two replicas, in the manner of TensorFlow."""

import libdist.tf as tf  # with TensorFlow: import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

with strategy.scope():
    w = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

x = tf.constant([i / 32 - 1 for i in range(64)], tf.float32)
dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, 3 * x)).batch(16))


@tf.function
def step(x, y):
    error = w * x - y
    w.assign_sub(0.5 / 16 * tf.reduce_sum(error * x))
    return tf.reduce_sum(error * error)


for epoch in range(1, 4):
    loss = 0.0
    for batch in dataset:
        losses = strategy.run(step, args=batch)
        loss += float(strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None))
    print(f"epoch {epoch}: loss {loss / 64:.4f}")
print(f"w = {float(w.numpy()):.4f}")

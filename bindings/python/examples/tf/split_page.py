# SPDX-License-Identifier: Apache-2.0
"""The example from the page of tf.distribute.TPUStrategy.experimental_split_to_logical_devices.

Lines that changed:
    import tensorflow as tf   ->   import libdist.tf as tf      tensors are NumPy arrays
The page leaves `model` and `inputs` to the reader. libdist has no compiler that partitions the model, so the decorator
of `model` requests that it run on every logical device with its part of the input.
"""

import threading

import libdist.tf as tf

calls = []


@tf.distribute.on_logical_devices
def model(inputs):
    calls.append((threading.get_ident(), tuple(inputs.shape)))
    return inputs * 2


def page(inputs):
    # Initializing TPU system with 8 logical devices and 1 replica.
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu='')
    tf.config.experimental_connect_to_cluster(resolver)
    topology = tf.tpu.experimental.initialize_tpu_system(resolver)
    device_assignment = tf.tpu.experimental.DeviceAssignment.build(
        topology,
        computation_shape=[1, 2, 2, 2],
        num_replicas=1)
    # Construct the TPUStrategy. Since we are going to split the image across
    # logical devices, here we set `experimental_spmd_xla_partitioning=True`
    # so that the partitioning can be compiled in SPMD mode, which usually
    # results in faster compilation and smaller HBM requirement if the size of
    # input and activation tensors are much bigger than that of the model
    # parameters. Note that this flag is suggested but not a hard requirement
    # for `experimental_split_to_logical_devices`.
    strategy = tf.distribute.TPUStrategy(
        resolver, experimental_device_assignment=device_assignment,
        experimental_spmd_xla_partitioning=True)

    iterator = iter(inputs)

    @tf.function()
    def step_fn(inputs):
      inputs = strategy.experimental_split_to_logical_devices(
        inputs, [1, 2, 4, 1])

      # model() function will be executed on 8 logical devices with `inputs`
      # split 2 * 4  ways.
      output = model(inputs)
      return output

    return strategy.run(step_fn, args=(next(iterator),))


def main():
    images = tf.reshape(tf.range(4 * 4 * 8 * 3), (4, 4, 8, 3))
    output = page(tf.data.Dataset.from_tensor_slices(images).batch(4))
    threads, shapes = {thread for thread, _ in calls}, sorted(shape for _, shape in calls)
    calls.clear()
    return {"threads": len(threads), "shapes": shapes, "all": bool((output.numpy() == 2 * images.numpy()).all())}


if __name__ == "__main__":
    print(main())

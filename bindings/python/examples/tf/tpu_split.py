# SPDX-License-Identifier: Apache-2.0
"""The example from the page of tf.distribute.TPUStrategy: eight logical devices of one replica share a batch of images.

Lines that changed:
    import tensorflow as tf   ->   import libdist.tf as tf      tensors are NumPy arrays
    resolver, connecting, initialize_tpu_system(resolver)   ->   a topology of eight devices; the resolver is None
        (tf.tpu.experimental.initialize_tpu_system() would return a topology with this machine's CPUs)
    output = model(inputs)   ->   output = strategy.run_on_logical_devices(model, (inputs,))     no compiler partitions it
"""

import libdist.tf as tf


def split_the_input():
    topology = tf.tpu.experimental.Topology(
        mesh_shape=[1, 2, 2, 2],
        device_coordinates=[[(0, y, z, core) for y in (0, 1) for z in (0, 1) for core in (0, 1)]],
    )
    device_assignment = tf.tpu.experimental.DeviceAssignment.build(
        topology, computation_shape=[1, 2, 2, 2], num_replicas=1
    )
    # Construct the TPUStrategy. Since we are going to split the image across logical devices, here we set
    # `experimental_spmd_xla_partitioning=True` so that the partitioning can be compiled in SPMD mode, which usually
    # results in faster compilation and smaller HBM requirement if the size of input and activation tensors are much
    # bigger than that of the model parameters. Note that this flag is suggested but not a hard requirement for
    # `experimental_split_to_logical_devices`.
    strategy = tf.distribute.TPUStrategy(
        None, experimental_device_assignment=device_assignment, experimental_spmd_xla_partitioning=True
    )
    shapes = []

    def model(inputs):
        shapes.append(inputs.shape)
        return 2 * inputs

    images = tf.reshape(tf.range(4 * 4 * 8 * 3), (4, 4, 8, 3))
    iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(images).batch(4)))

    @tf.function()
    def step_fn(inputs):
        inputs = strategy.experimental_split_to_logical_devices(inputs, [1, 2, 4, 1])

        # model() function will be executed on 8 logical devices with `inputs` split 2 * 4 ways.
        output = strategy.run_on_logical_devices(model, (inputs,))
        return output

    output = strategy.run(step_fn, args=(next(iterator),))
    return {"shapes": sorted(shapes), "all": (output == 2 * images).all().tolist()}


def assign_and_replicate():
    topology = tf.tpu.experimental.Topology(mesh_shape=[1, 1, 1, 2], device_coordinates=[[(0, 0, 0, 0), (0, 0, 0, 1)]])
    device_assignment = tf.tpu.experimental.DeviceAssignment.build(
        topology, computation_shape=[1, 1, 1, 2], num_replicas=1
    )
    strategy = tf.distribute.TPUStrategy(None, experimental_device_assignment=device_assignment)

    @tf.function()
    def step_fn(inputs):
        inputs = tf.constant(inputs)
        output = inputs + tf.constant(1.0)
        # Add operation will be executed on logical device 0.
        output = strategy.experimental_assign_to_logical_device(output, 0)
        return output

    @tf.function()
    def step_replicated(inputs):
        images, bounding_box = inputs
        images = strategy.experimental_split_to_logical_devices(images, [1, 2])
        # A tensor that is replicated to all logical devices.
        bounding_box = strategy.experimental_replicate_to_logical_devices(bounding_box)
        return strategy.run_on_logical_devices(lambda part, box: part + box, (images, bounding_box))

    return {
        "assigned": strategy.run(step_fn, args=(1.0,)).tolist(),
        "replicated": strategy.run(step_replicated, args=((tf.ones((2, 4)), tf.ones((2, 2))),)).tolist(),
    }


def main():
    return {"split": split_the_input(), **assign_and_replicate()}


if __name__ == "__main__":
    print(main())

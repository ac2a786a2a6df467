#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's MirroredStrategy between the logical CPU devices of one process, inside tf.function."""

import os
import sys

REPLICAS = int(sys.argv[1])
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np  # noqa: E402  (after the environment is set)
import tensorflow as tf  # noqa: E402

import peer  # noqa: E402

DEVICES = [f"CPU:{i}" for i in range(REPLICAS)]
tf.get_logger().setLevel("ERROR")
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * REPLICAS
)
STRATEGIES = {
    "": tf.distribute.MirroredStrategy(DEVICES),
    "one device": tf.distribute.MirroredStrategy(
        DEVICES, cross_device_ops=tf.distribute.ReductionToOneDevice()
    ),
}
# In the form with one device, all replicas get the same memory, so it is also compared with libdist's single output.
# It is not run in one graph, because TensorFlow's optimizer merges consecutive sums there.
FORMS = ["call", "in one graph", "call, one device"]
TYPES = {"f32": tf.float32, "f16": tf.float16, "bf16": tf.bfloat16}
MOST_IN_GRAPH = 10  # the graph is unrolled, so more would only take longer to trace


def strategy_of(form):
    return STRATEGIES["one device" if form.endswith("one device") else ""]


def all_reduce(value):
    context = tf.distribute.get_replica_context()
    return context.all_reduce(tf.distribute.ReduceOp.SUM, value)


class AllReduce:
    def __init__(self, request):
        self.in_place = request.in_place
        self.strategy = strategy_of(request.form)
        self.unrolled = min(request.iterations, MOST_IN_GRAPH) if request.form.startswith("in one") else 1
        self.tensors = peer.Tensors(request.dtype, request.bytes, REPLICAS)
        self.values = self.strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(
                self.tensors.rows[context.replica_id_in_sync_group], TYPES[request.dtype]
            )
        )
        self.call = tf.function(lambda x: self.strategy.run(self.replica, (x,)))

    def replica(self, value):
        for _ in range(self.unrolled):
            value = all_reduce(value)
        return value

    def reset(self):
        self.x = self.values

    def run(self, count):
        for _ in range(count // self.unrolled):
            self.x = self.call(self.x if self.in_place else self.values)
        tf.test.experimental.sync_devices()

    def check(self, count):
        done = count if self.in_place else 1
        results = [value.numpy() for value in self.strategy.experimental_local_results(self.x)]
        self.tensors.check(results, done)


class Run:
    def __init__(self, form):
        strategy = strategy_of(form)
        self.call = tf.function(lambda: strategy.run(lambda: None))

    def reset(self):
        pass

    def run(self, count):
        for _ in range(count):
            self.call()
        tf.test.experimental.sync_devices()

    def check(self, count):
        pass


def operation(request):
    in_graph = request.form.startswith("in one")
    if request.operation == "run":
        return None if in_graph else Run(request.form)
    one_output = request.form.endswith("one device")
    if request.operation != "all_reduce" or one_output != (request.layout == "one_output"):
        return None
    if in_graph and (not request.in_place or request.pace != "hot"):
        return None
    return AllReduce(request)


def faults():
    import faults_tensorflow

    return faults_tensorflow.Faults(STRATEGIES[""])


peer.serve(f"TensorFlow {tf.__version__}", FORMS, operation, faults)

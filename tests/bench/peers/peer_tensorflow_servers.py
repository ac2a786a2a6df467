#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's ParameterServerStrategy with one parameter server and several workers: processes with gRPC over
loopback.

peer_tensorflow_servers.py WORKERS: the coordinator, which answers requests. It starts itself once per server, with the
job, the index and the addresses as further arguments.

The coordinator itself pushes and pulls a variable. It schedules closures one after another and then joins them."""

import contextlib
import ctypes
import functools
import os
import signal
import socket
import subprocess
import sys

WORKERS = int(sys.argv[1])
TASKS = [("ps", 0)] + [("worker", index) for index in range(WORKERS)]
PR_SET_PDEATHSIG = 1
FEW_CPUS = 4  # with fewer, servers need this many threads (see TensorFlow's guide), or closures may wait forever

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""


def free_addresses():
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in TASKS]
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]


if len(sys.argv) > 2:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    JOB, INDEX, *ADDRESSES = sys.argv[2:]
else:
    ADDRESSES = free_addresses()
    for job, index in TASKS:
        command = [sys.executable, __file__, str(WORKERS), job, str(index), *ADDRESSES]
        subprocess.Popen(command, stdin=subprocess.DEVNULL)

import numpy as np  # noqa: E402  (after the environment is set)
import tensorflow as tf  # noqa: E402

import peer  # noqa: E402

tf.get_logger().setLevel("ERROR")
CLUSTER = tf.train.ClusterSpec({"ps": ADDRESSES[:1], "worker": ADDRESSES[1:]})


def serve_tasks():
    config = tf.compat.v1.ConfigProto()
    if os.cpu_count() < FEW_CPUS:
        config.inter_op_parallelism_threads = FEW_CPUS
    tf.distribute.Server(CLUSTER, job_name=JOB, task_index=int(INDEX), config=config, protocol="grpc").join()


class Variable:
    """A variable on the parameter server. Each push has different values."""

    def __init__(self, request):
        self.rows = peer.Tensors(request.dtype, request.bytes, 2).rows
        self.turn = 0
        with STRATEGY.scope():
            self.variable = tf.Variable(self.rows[0])

    def wanted(self):
        return self.rows[self.turn % 2]


class Push(Variable):
    def __init__(self, request):
        super().__init__(request)
        self.iterations = request.iterations
        if request.form == "eager":
            self.push = lambda value: self.variable.assign(value, read_value=False)
        else:
            function = tf.function(lambda value: self.variable.assign(value, read_value=False) and None)
            self.push = function.get_concrete_function(tf.TensorSpec(self.rows[0].shape, self.rows.dtype))

    def reset(self):
        self.turn += 1
        # Different tensors, because TensorFlow would not send the same one twice.
        self.values = [tf.constant(self.wanted()) for _ in range(self.iterations)]

    def run(self, count):
        for _ in range(count):
            self.push(self.values.pop())  # blocks until completion

    def check(self, _):
        if not np.array_equal(self.variable.numpy(), self.wanted()):
            raise peer.WrongResult("wrong value on the parameter server")


class Pull(Variable):
    def __init__(self, request):
        super().__init__(request)
        if request.form == "eager":
            handle, dtype = self.variable.handle, self.variable.dtype
            self.pull = lambda: tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
        else:
            self.pull = tf.function(lambda: self.variable.read_value()).get_concrete_function()

    def reset(self):
        self.turn += 1
        self.variable.assign(self.wanted())

    def run(self, count):
        for _ in range(count):
            self.value = self.pull().numpy()

    def check(self, _):
        if not np.array_equal(self.value, self.wanted()):
            raise peer.WrongResult("wrong value from the parameter server")


class Closures:
    """Closures that do nothing, or add their argument of 4 bytes to a variable."""

    def __init__(self, request):
        self.iterations = request.iterations
        self.pushes = request.operation == "closure_push"
        with STRATEGY.scope():
            self.variable = tf.Variable(tf.zeros(1))
        if self.pushes:
            self.closure = tf.function(lambda value: self.variable.assign_add(value, read_value=False) and None)
        else:
            self.closure = tf.function(lambda: None)
        if request.form == "concrete function":
            self.closure = self.closure.get_concrete_function(*self.arguments())

    def arguments(self):
        return (tf.ones(1),) if self.pushes else ()

    def reset(self):
        self.variable.assign(tf.zeros(1))
        self.given = [self.arguments() for _ in range(self.iterations)]

    def run(self, count):
        for _ in range(count):
            COORDINATOR.schedule(self.closure, args=self.given.pop())
        COORDINATOR.join()

    def check(self, count):
        if self.variable.numpy() != (count if self.pushes else 0):
            raise peer.WrongResult("closures have not run once each")


FORMS = ["eager", "function", "concrete function"]
OPERATIONS = {
    "push": (Push, {"eager", "concrete function"}),
    "pull": (Pull, {"eager", "concrete function"}),
    "closure": (Closures, {"function", "concrete function"}),
    "closure_push": (Closures, {"function", "concrete function"}),
}


@functools.cache  # traced only once
def made(request):
    return OPERATIONS[request.operation][0](request)


def operation(request):
    _, forms = OPERATIONS.get(request.operation, (None, set()))
    if request.form not in forms or request.dtype != "f32":
        return None
    return made(request._replace(batches=0))


if len(sys.argv) > 2:
    serve_tasks()
RESOLVER = tf.distribute.cluster_resolver.SimpleClusterResolver(CLUSTER, rpc_layer="grpc")
STRATEGY = tf.distribute.experimental.ParameterServerStrategy(RESOLVER)
COORDINATOR = tf.distribute.experimental.coordinator.ClusterCoordinator(STRATEGY)
peer.serve(f"TensorFlow {tf.__version__}", FORMS, operation)

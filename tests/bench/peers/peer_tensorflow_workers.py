#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's MultiWorkerMirroredStrategy between processes with one replica each, with RING over gRPC, in
tf.function.

Rank 0 answers requests. It starts the other ranks and forwards requests to them."""

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys

RANKS = int(sys.argv[1])
RANK, *ADDRESSES = sys.argv[2:] or ["0"]
RANK = int(RANK)
PR_SET_PDEATHSIG = 1


def free_addresses():
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(RANKS)]
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]


def start_others():
    pipe = subprocess.PIPE
    return [
        subprocess.Popen([sys.executable, __file__, str(RANKS), str(rank), *ADDRESSES], stdin=pipe, stdout=pipe, text=True)
        for rank in range(1, RANKS)
    ]


if RANK == 0:
    ADDRESSES = free_addresses()
    OTHERS = start_others()
else:
    OTHERS = []
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # it may be in a collective when rank 0 ends
os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ADDRESSES}, "task": {"type": "worker", "index": RANK}})
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf  # noqa: E402  (after the environment is set)

import peer  # noqa: E402

tf.get_logger().setLevel("ERROR")
TYPES = {"f32": tf.float32, "f16": tf.float16, "bf16": tf.bfloat16}
RING = tf.distribute.experimental.CommunicationImplementation.RING
STRATEGY = tf.distribute.MultiWorkerMirroredStrategy(
    communication_options=tf.distribute.experimental.CommunicationOptions(implementation=RING)
)


def all_reduce(value):
    value = tf.identity(value)  # places the argument on the replica's device, where the sum is stored
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, value)


meet = tf.function(lambda: STRATEGY.run(all_reduce, (tf.ones(1),)))


class AllReduce:
    def __init__(self, request):
        self.in_place = request.in_place
        self.tensors = peer.Tensors(request.dtype, request.bytes, RANKS)
        self.value = tf.constant(self.tensors.rows[RANK], TYPES[request.dtype])
        self.call = tf.function(lambda x: STRATEGY.run(all_reduce, (x,)))
        self.call(self.value)  # traced and compiled, untimed

    def reset(self):
        self.x = self.value
        meet()

    def run(self, count):
        for _ in range(count):
            self.x = self.call(self.x if self.in_place else self.value)  # blocks until completion

    def check(self, count):
        self.tensors.check([self.x.numpy()], count if self.in_place else 1)


def operation(request):
    for other in OTHERS:
        print("measure", *request, sep="\t", file=other.stdin, flush=True)
    if request.operation == "all_reduce" and request.layout != "one_output":
        return AllReduce(request)
    answers_of_others()
    return None


def answers_of_others():
    for rank, other in enumerate(OTHERS, 1):
        word, *rest = next((line for line in other.stdout if line.startswith("@")), "@gone").rstrip("\n").split("\t")
        if word not in ("@times", "@no"):
            raise peer.WrongResult(f"rank {rank}: {' '.join(rest) or word}")


def measure(made, request):
    samples = peer.measure(made, request)
    answers_of_others()
    return samples


for ready in OTHERS:  # each announces this once, like rank 0
    next((line for line in ready.stdout if line.startswith("@ready")), None)
peer.serve(f"TensorFlow {tf.__version__} workers", ["call"], operation, measure=measure)

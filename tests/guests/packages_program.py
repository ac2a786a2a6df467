#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Uses libdist and another package in one process, in the given order. packages.py runs it in virtual environments.

usage: packages_program.py STEP[,STEP...]

A step is `replicas` (libdist's threads), `workers` (two processes that connect by gRPC, each after the same steps), or
the name of a package, which is imported and used. `import:NAME` only imports it.
"""

import ctypes
import importlib
import json
import os
import socket
import subprocess
import sys
import sysconfig
from concurrent import futures
from pathlib import Path

import numpy as np


def sum_of_ones(replica):
    from libdist import ReduceOp

    numbers = np.ones(70_000, np.float32)
    replica.all_reduce(ReduceOp.SUM, numbers, out=numbers)
    return float(numbers[-1])


def replicas():
    import libdist

    with libdist.Strategy(2) as strategy:
        assert strategy.run(sum_of_ones) == [2, 2]


def workers():
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    children = []
    for w in range(2):
        config = json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": w}})
        command = [sys.executable, __file__, sys.argv[1].replace("workers", "worker")]
        children.append(subprocess.Popen(command, env=dict(os.environ, TF_CONFIG=config)))
    ended = [child.wait(300) for child in children]
    assert ended == [0, 0], f"the workers ended with {ended}"


def worker():
    import libdist

    with libdist.Strategy(2, kind=libdist.StrategyKind.MULTI_WORKER_MIRRORED, timeout=120.0) as strategy:
        assert strategy.run(sum_of_ones) == [4, 4]


def tensorflow():
    import tensorflow as tf

    x = tf.ones((300, 300))
    assert float(tf.reduce_sum(tf.matmul(x, x))) == 300**3
    doubled = tf.data.Dataset.range(10).map(lambda a: a * 2, num_parallel_calls=2)
    assert sum(int(a) for a in doubled) == 90


def torch():
    import torch

    x = torch.ones(600, 600)
    assert float((x @ x).sum()) == 600**3


def grpc():
    import grpc

    class Doubles(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.unary_unary_rpc_method_handler(lambda request, context: request * 2)

    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((Doubles(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        assert channel.unary_unary("/a/b")(b"x", timeout=60) == b"xx"
    server.stop(0).wait()


def protobuf():
    from google.protobuf import struct_pb2

    message = struct_pb2.Struct()
    message["a"] = 1.5
    assert struct_pb2.Struct.FromString(message.SerializeToString())["a"] == 1.5


def tbb():
    """The oneTBB of the package, which has no Python module. Its version is the one that libdist uses if it is first."""
    path = Path(sysconfig.get_path("data"), "lib", "libtbb.so.12")
    library = ctypes.CDLL(str(path))
    library.TBB_runtime_version.restype = ctypes.c_char_p
    assert library.TBB_runtime_version()
    assert str(path) in Path("/proc/self/maps").read_text(), f"{path} is not the library that was loaded"


def main(steps: str) -> int:
    for step in steps.split(","):
        if step.startswith("import:"):
            importlib.import_module(step.removeprefix("import:"))
        else:
            globals()[step]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

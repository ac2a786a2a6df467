#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX's collectives between the CPU devices of one process: lax.psum in every form that a user may choose."""

import os
import sys

REPLICAS = int(sys.argv[1])
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={REPLICAS}"
if "faults" in sys.argv:
    os.environ["XLA_FLAGS"] += (
        " --xla_cpu_collective_call_warn_stuck_timeout_seconds=1"
        " --xla_cpu_collective_call_terminate_timeout_seconds=2"
    )
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402  (reads the environment when it is imported)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

import peer  # noqa: E402

AXIS = "replicas"
DEVICES = jax.devices()[:REPLICAS]
SPEC = PartitionSpec(AXIS)
MESH = Mesh(np.array(DEVICES), (AXIS,))
FORMS = ["jit", "jit, donated", "pmap", "in one graph"]


def on_replicas(function, *more):
    return jax.shard_map(
        function, mesh=MESH, in_specs=(SPEC, *more), out_specs=SPEC, check_vma=False
    )


def psum(x):
    return lax.psum(x, AXIS)


def many(x, count):
    return lax.fori_loop(0, count, lambda _, y: psum(y), x)


# Each call completes before the next one starts. Otherwise, JAX stops the process ("Termination timeout") if a replica
# waits in a collective for a thread that another call in flight holds, even if that call needs the first one's result.
CALLS = {
    "jit": jax.jit(on_replicas(psum)),
    "jit, donated": jax.jit(on_replicas(psum), donate_argnums=0),
    "pmap": jax.pmap(psum, axis_name=AXIS, devices=DEVICES),
}
IN_ONE_GRAPH = jax.jit(on_replicas(many, PartitionSpec()), donate_argnums=0)
COPY = jax.jit(jnp.copy)


class AllReduce:
    def __init__(self, request):
        self.request = request
        self.tensors = peer.Tensors(request.dtype, request.bytes, REPLICAS)
        self.values = jax.device_put(self.tensors.rows, NamedSharding(MESH, SPEC))
        self.one_graph = request.form == "in one graph"
        self.chained = request.in_place

    def reset(self):
        self.x = jax.block_until_ready(COPY(self.values))

    def run(self, count):
        if self.one_graph:
            self.x = jax.block_until_ready(IN_ONE_GRAPH(self.x, count))
        elif self.chained:
            call = CALLS[self.request.form]
            for _ in range(count):
                self.x = jax.block_until_ready(call(self.x))
        else:
            call, values = CALLS[self.request.form], self.values
            for _ in range(count):
                self.x = jax.block_until_ready(call(values))

    def check(self, count):
        shards = [np.asarray(shard.data).reshape(-1) for shard in self.x.addressable_shards]
        self.tensors.check(shards, count if self.chained else 1)


class Run:
    """The closest equivalent of an empty function on every replica: one addition on each device."""

    CALLS = {
        "jit": jax.jit(on_replicas(lambda x: x + 1)),
        "jit, donated": jax.jit(on_replicas(lambda x: x + 1), donate_argnums=0),
        "pmap": jax.pmap(lambda x: x + 1, axis_name=AXIS, devices=DEVICES),
    }

    def __init__(self, form):
        self.call = self.CALLS[form]

    def reset(self):
        self.x = jax.device_put(np.zeros((REPLICAS, 1), np.float32), NamedSharding(MESH, SPEC))

    def run(self, count):
        for _ in range(count):
            self.x = jax.block_until_ready(self.call(self.x))

    def check(self, count):
        if not np.all(np.asarray(self.x) == count):
            raise peer.WrongResult("a replica did not run")


def operation(request):
    if request.operation == "run":
        return Run(request.form) if request.form in Run.CALLS else None
    if request.operation != "all_reduce" or request.layout == "one_output":
        return None
    if request.form == "in one graph" and (not request.in_place or request.pace != "hot"):
        return None
    if request.form == "jit, donated" and not request.in_place:
        return None
    return AllReduce(request)


def faults():
    import faults_jax

    return faults_jax.Faults(DEVICES)


peer.serve(f"JAX {jax.__version__}", FORMS, operation, faults)

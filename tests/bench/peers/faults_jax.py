# SPDX-License-Identifier: Apache-2.0
"""The fault matrix with JAX's devices: a single program in which the last replica takes a different branch.

peer_jax.py reduces XLA's deadline for a collective, after which it terminates the process, from 40 s to 2 s."""

import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import peer

AXIS = "replicas"
SPEC = PartitionSpec(AXIS)
COUNT = 256


def add(x):
    return lax.psum(x, AXIS)


def all_gather_sum(x):
    return jnp.sum(lax.all_gather(x, AXIS), axis=0)


def as_integers(step, x):
    return step(x.astype(jnp.int32)).astype(x.dtype)


def one_more(step, x):
    return step(jnp.concatenate([x, x[:, :1]], axis=1))[:, :-1]


def on_host(function, x):
    return jax.pure_callback(function, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def fail(_):
    raise ValueError("no row 7")


def stall(x):
    time.sleep(peer.FOREVER)
    return x


COLLECTIVES = {"all_reduce": add, "all_gather": all_gather_sum}
REASONS = {
    "past_deadline": "after its deadline the process is gone",
    "thread_gone": "the replicas' threads are its own",
    "wrong_root": "its collectives have no root",
}


class Faults:
    def __init__(self, devices):
        self.replicas = len(devices)
        self.mesh = Mesh(np.array(devices), (AXIS,))
        rows = np.arange(1, self.replicas + 1, dtype=np.float32)
        self.sum = rows.sum()
        self.values = jax.device_put(
            np.repeat(rows[:, None], COUNT, axis=1), NamedSharding(self.mesh, SPEC)
        )

    def compiled(self, function):
        on_all = jax.shard_map(function, mesh=self.mesh, in_specs=SPEC, out_specs=SPEC, check_vma=False)
        return jax.jit(on_all).lower(self.values).compile()

    def call(self, program):
        """Returns whether all replicas have the sum."""
        result = np.asarray(jax.block_until_ready(program(self.values)))
        return bool(np.all(result == self.sum))

    @staticmethod
    def why_not(fault, collective):
        if fault in REASONS:
            return REASONS[fault]
        return "" if collective in COLLECTIVES else f"it has no {collective} between CPU devices"

    def cell(self, fault, collective):
        step = COLLECTIVES[collective]

        def after(x):
            return lax.pmax(x, AXIS)

        wrong = {
            "early_return": lambda x: x,
            "error_returned": lambda x: on_host(fail, x),
            "skipped": after,
            "extra": lambda x: after(step(after(x))),
            "swapped_order": lambda x: step(after(x)),
            "wrong_dtype": lambda x: after(as_integers(step, x)),
            "wrong_count": lambda x: after(one_more(step, x)),
            "wrong_op": lambda x: after(lax.pmax(x, AXIS)),
            "stalled": lambda x: after(step(on_host(stall, x))),
        }

        def program(x):
            guilty = lax.axis_index(AXIS) == self.replicas - 1
            return lax.cond(guilty, wrong[fault], lambda y: after(step(y)), x)

        play, well = self.compiled(program), self.compiled(add)
        return lambda: self.call(play), lambda: self.call(well)

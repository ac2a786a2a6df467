# SPDX-License-Identifier: Apache-2.0
"""The fault matrix with TensorFlow's replicas, in eager mode, because a graph traces all replicas before any of them
runs.

The replicas are TensorFlow's threads, of which only one runs at a time."""

import time

import tensorflow as tf

import peer

COUNT = 256
SUM, MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN


def context():
    return tf.distribute.get_replica_context()


def add(x, op=SUM):
    return context().all_reduce(op, x)


def gather(x):
    return tf.reduce_sum(tf.reshape(context().all_gather(x, 0), [-1, len(x)]), 0)


def fail():
    raise ValueError("no row 7")


COLLECTIVES = {"all_reduce": add, "all_gather": gather}
REASONS = {
    "past_deadline": "it has no deadline between replicas of one process",
    "thread_gone": "the replicas' threads are its own",
    "wrong_root": "its collectives have no root",
}


class Faults:
    def __init__(self, strategy):
        self.strategy = strategy
        self.replicas = strategy.num_replicas_in_sync

    def call(self, function):
        """Returns whether all replicas have the sum."""

        def replica():
            return function(tf.fill([COUNT], float(context().replica_id_in_sync_group + 1)))

        values = self.strategy.run(replica)
        wanted = self.replicas * (self.replicas + 1) / 2
        return all(
            value.shape == [COUNT] and bool(tf.reduce_all(value == wanted))
            for value in self.strategy.experimental_local_results(values)
        )

    @staticmethod
    def why_not(fault, collective):
        if fault in REASONS:
            return REASONS[fault]
        return "" if collective in COLLECTIVES else f"it has no {collective} inside replicas"

    def cell(self, fault, collective):
        step = COLLECTIVES[collective]

        def after(x):
            return add(x, MEAN)

        wrong = {
            "early_return": lambda x: x,
            "error_returned": lambda x: fail(),
            "skipped": after,
            "extra": lambda x: after(step(after(x))),
            "swapped_order": lambda x: step(after(x)),
            "wrong_dtype": lambda x: tf.cast(after(tf.cast(step(tf.cast(x, tf.int32)), x.dtype)), x.dtype),
            "wrong_count": lambda x: after(step(tf.concat([x, x[:1]], 0))[:COUNT]),
            "wrong_op": lambda x: after(add(x, MEAN)),
            "stalled": lambda x: time.sleep(peer.FOREVER),
        }

        def program(x):
            guilty = context().replica_id_in_sync_group == self.replicas - 1
            return wrong[fault](x) if guilty else after(step(x))

        self.call(add)  # the first call initializes
        return lambda: self.call(program), lambda: self.call(add)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults with TensorFlow's MultiWorkerMirroredStrategy: one process per worker, on loopback, in eager mode, with a
deadline for collectives.

faults_tensorflow_workers.py RANKS: the peer. For each cell, it starts itself once per worker, with the worker's rank,
the fault, the collective and the folder as further arguments."""

import ctypes
import importlib.metadata
import json
import os
import signal
import socket
import subprocess
import sys
import time

import peer

RANKS = int(sys.argv[1])
GUILTY = RANKS - 1
COUNT = 256
DEADLINE = 2.0
PEERS_ARE_INSIDE = 0.02  # time after which a peer that announced the call is certainly inside
PR_SET_PDEATHSIG = 1
REASONS = {"other_root": "its collectives have no root"}
OTHER = {"all_reduce": "all_gather", "all_gather": "all_reduce"}
GONE = "early_return", "error_returned", "killed", "exited", "stopped", "never_started"


class Worker:
    def __init__(self, rank, fault, collective, folder):
        self.rank, self.fault, self.collective = int(rank), fault, collective
        self.journal = peer.Journal(folder, rank)

    def start(self):
        options = self.tf.distribute.experimental.CommunicationOptions(timeout_seconds=DEADLINE)
        self.strategy = self.tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
        return True

    def exchange(self, collective, wrong=""):
        """Returns whether the result is correct if all agree. `wrong` is how this worker's call differs."""
        tf = self.tf
        dtype = tf.int32 if wrong == "other_dtype" else tf.float32
        op = tf.distribute.ReduceOp.MEAN if wrong == "other_op" else tf.distribute.ReduceOp.SUM
        count = COUNT + 1 if wrong == "other_shape" else COUNT

        def replica():
            if wrong == "error_returned":
                raise ValueError("no row 7")
            context = tf.distribute.get_replica_context()
            mine = tf.fill([count], tf.cast(context.replica_id_in_sync_group + 1, dtype))
            return context.all_reduce(op, mine) if collective == "all_reduce" else context.all_gather(mine, 0)

        (result,) = self.strategy.experimental_local_results(self.strategy.run(replica))
        ranks = [rank + 1 for rank in range(RANKS)]
        wanted = [sum(ranks)] * COUNT if collective == "all_reduce" else [r for r in ranks for _ in range(COUNT)]
        return result.numpy().tolist() == wanted

    def step(self, wrong=""):
        return self.exchange(OTHER[self.collective] if wrong == "other_collective" else self.collective, wrong)

    def after(self):
        return self.exchange(OTHER[self.collective])

    def await_others(self, event):
        for rank in range(GUILTY):
            self.journal.wait(rank, event)

    def play(self):
        import tensorflow as tf

        self.tf = tf
        tf.get_logger().setLevel("ERROR")
        if self.fault == "never_started":
            self.journal.write("inside")
            self.journal.write("cause")  # a start has no deadline
            self.journal.record("back", self.start)
        else:
            self.start()
            if not (self.step() and self.after()):
                raise RuntimeError("wrong result without a fault")
            if self.rank == GUILTY:
                self.misbehave()
            else:
                self.do_well()
        self.journal.record("next", self.next)

    def do_well(self):
        self.journal.write("inside")
        if self.fault == "late":
            self.journal.write("cause", later=DEADLINE)
        self.journal.record("back", lambda: all([self.step(), self.after()]))

    def misbehave(self):
        self.await_others("inside")
        if self.fault != "late":
            time.sleep(PEERS_ARE_INSIDE)
            self.journal.write("cause")
        if self.fault == "early_return":
            sys.exit(0)
        elif self.fault == "error_returned":
            self.step(self.fault)
        elif self.fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.fault == "exited":
            os._exit(0)
        elif self.fault == "stopped":
            while True:
                os.kill(os.getpid(), signal.SIGSTOP)
        elif self.fault == "other_order":
            self.journal.record("back", lambda: all([self.after(), self.step()]))
        else:
            if self.fault == "late":
                self.await_others("back")
            self.journal.record("back", lambda: all([self.step(self.fault), self.after()]))

    def next(self):
        if self.fault in GONE:
            raise RuntimeError("a rank has left")
        for rank in range(RANKS):
            self.journal.wait(rank, "back")
        return self.exchange("all_reduce")


class Faults:
    @staticmethod
    def why_not(fault, collective):
        if fault in REASONS:
            return REASONS[fault]
        return "" if collective in OTHER else f"it has no {collective} inside replicas"


def free_addresses():
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(RANKS)]
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


def play(_, words, say):
    fault = words[0]
    addresses = free_addresses()
    say(["@begun", *map(str, range(GUILTY))])
    for rank in range(GUILTY if fault == "never_started" else RANKS):
        task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
        settings = {"TF_CONFIG": json.dumps(task), "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        subprocess.Popen(
            [sys.executable, __file__, str(RANKS), str(rank), *words],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **settings},
        )


if len(sys.argv) > 2:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    Worker(*sys.argv[2:]).play()
else:
    version = importlib.metadata.version("tensorflow-cpu")
    peer.serve(f"TensorFlow {version}", [""], lambda request: None, Faults, play=play)

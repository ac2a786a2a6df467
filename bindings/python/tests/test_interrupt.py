# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, exit and fork: each in a program of its own."""

import os
import subprocess
import sys
import textwrap
import unittest

PROGRAM = """
import os, signal, sys, threading
import numpy as np
import libdist
from libdist import ReduceOp, Strategy, Threads


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

"""


def run(body, timeout=60):
    program = PROGRAM + textwrap.dedent(body)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=timeout)


class Interrupt(unittest.TestCase):
    def check(self, body, *lines):
        result = run(body)
        self.assertEqual((result.stdout.split("\n")[:-1], result.returncode), (list(lines), 0), result.stderr)
        self.assertEqual(result.stderr, "")

    def test_ctrl_c_ends_a_run_whose_caller_waits_in_a_collective(self):
        for threads in ("CALLER", "LIBRARY"):
            body = f"""
            forever = threading.Event()
            with Strategy(2, threads=Threads.{threads}, timeout=-1) as strategy:
                def step(replica):
                    if replica.id == 1:
                        interrupt()
                        try:
                            while True:
                                replica.barrier(tag="one", group=one)
                                if forever.wait(0.001): break
                        except libdist.Cancelled:
                            print("peer: cancelled")
                            raise
                    replica.barrier()
                one = strategy.group([1])
                try:
                    strategy.run(step)
                except KeyboardInterrupt:
                    print("KeyboardInterrupt")
                one.close()
                print(strategy.run(lambda replica: replica.id))
            """
            self.check(body, "peer: cancelled", "KeyboardInterrupt", "[0, 1]")

    def test_ctrl_c_ends_a_wait_for_another_worker(self):
        body = """
        from libdist import ClusterResolver, ClusterResolverOptions, ClusterSpec, Network, StrategyKind
        spec = ClusterSpec({"worker": ["a:1", "b:1"]})
        resolver = ClusterResolver.simple(spec, ClusterResolverOptions(task_type="worker", task_id=1))
        options = dict(kind=StrategyKind.MULTI_WORKER_MIRRORED, cluster_resolver=resolver, timeout=-1)
        strategy = Strategy(1, network=Network(2), **options)
        row = strategy.values_from_function(lambda context: np.ones(1))
        rows = strategy.dataset_from_tensors(np.ones(4), global_batch_size=2)
        metric = strategy.metric(libdist.MetricKind.SUM)

        done = threading.Event()

        def waits():  # the main thread, in a call of libdist's
            watcher = libdist._interrupt._watcher
            return watcher is not None and watcher.cancel is not None

        def press():  # once a call; again where it came before the call had begun to wait, which does not hear it
            while not done.wait(0.001):
                if waits():
                    interrupt()
                    for _ in range(1000):
                        if not waits() or done.wait(0.001):
                            break

        keys = threading.Thread(target=press)
        keys.start()
        for call in (
            lambda: strategy.variable(np.ones(1)),
            lambda: strategy.gather(row),
            lambda: strategy.reduce(ReduceOp.SUM, row),
            lambda: next(iter(rows)),
            lambda: iter(rows).next_optional(),
            lambda: rows.reduce(None, lambda state, batch: batch),
            lambda: metric.result(),
            lambda: strategy.preemption_handler(),
        ):
            try:
                call()
            except KeyboardInterrupt:
                print("KeyboardInterrupt")
        done.set()
        keys.join()
        """
        self.check(body, *["KeyboardInterrupt"] * 8)

    def test_ctrl_c_ends_a_run_on_logical_devices(self):
        body = """
        devices = [[(0, 0, 0, d) for d in range(4)]]
        assignment = libdist.DeviceAssignment.build(libdist.Topology([1, 1, 1, 4], devices), [1, 1, 1, 4])
        with Strategy(kind=libdist.StrategyKind.MESH, device_assignment=assignment, timeout=-1) as strategy:
            def on_device(device):
                if device.id == 3:
                    interrupt()
                    threading.Event().wait(0.1)
                device.permute(-1, 3 if device.id == 0 else -1, np.ones(1), np.ones(1), tag="never")
            try:
                strategy.run(lambda replica: replica.run_on_devices(on_device))
            except KeyboardInterrupt:
                print("KeyboardInterrupt")
            total = lambda device: device.all_reduce(ReduceOp.SUM, np.ones(1))
            print(strategy.run(lambda replica: replica.run_on_devices(total).numpy().tolist()))
        """
        self.check(body, "KeyboardInterrupt", "[[4.0]]")

    def test_ctrl_c_in_a_function_of_python(self):
        self.check(
            """
            with Strategy(2) as strategy:
                def step(replica):
                    if replica.id == 0:
                        interrupt()
                        while True:
                            pass
                    try:
                        replica.barrier()
                    except (libdist.Aborted, libdist.Cancelled) as error:
                        print("peer: ended")
                        raise
                try:
                    strategy.run(step)
                except KeyboardInterrupt:
                    print("KeyboardInterrupt")
            """,
            "peer: ended",
            "KeyboardInterrupt",
        )

    def test_handlers_and_descriptors_of_the_programs_own_stay(self):
        self.check(
            """
            import socket
            reader, writer = socket.socketpair()
            writer.setblocking(False)
            signal.set_wakeup_fd(writer.fileno())
            with Strategy(2) as strategy:
                try:
                    strategy.run(lambda replica: interrupt() if replica.id else replica.barrier())
                except KeyboardInterrupt:
                    print("KeyboardInterrupt")
            print(reader.recv(1) == bytes([signal.SIGINT]), signal.set_wakeup_fd(-1) == writer.fileno())
            caught = []
            signal.signal(signal.SIGINT, lambda *_: caught.append(1))
            with Strategy(2) as strategy:
                print(strategy.run(lambda replica: interrupt() if replica.id else None), caught)
            """,
            "KeyboardInterrupt",
            "True True",
            "[None, None] [1]",
        )

    def test_exit_with_everything_open(self):
        self.check(
            """
            strategy = Strategy(4)
            rows = strategy.dataset_from_callback(lambda index: np.full(8, index), global_batch_size=4, prefetch=4)
            batches = iter(rows)
            next(batches)
            strategy.run(lambda replica: replica.barrier())
            v = strategy.variable(np.ones(3))
            value = strategy.per_replica([v, v, v, v])
            print("done")
            """,
            "done",
        )

    def test_exit_while_another_thread_runs(self):
        self.check(
            """
            strategy = Strategy(2)
            inside = threading.Event()
            def step(replica):
                inside.set()
                while True:
                    replica.all_reduce(ReduceOp.SUM, np.ones(2))
            def quietly():
                try:
                    strategy.run(step)
                except libdist.Cancelled:
                    pass
            threading.Thread(target=quietly, daemon=True).start()
            inside.wait()
            print("done")
            """,
            "done",
        )

    def test_system_exit_from_a_replica(self):
        result = run("Strategy(2).run(lambda replica: sys.exit(7) if replica.id == 1 else replica.barrier())")
        self.assertEqual((result.returncode, result.stderr), (7, ""))

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_forked_child(self):
        self.check(
            """
            strategy = Strategy(2)
            value = strategy.per_replica([1, 2])
            child = os.fork()
            if child == 0:
                try:
                    strategy.run(lambda replica: None)
                except libdist.FailedPrecondition as error:
                    print("refused")
                with Strategy(2) as fresh:
                    print(fresh.run(lambda replica: replica.id), flush=True)
                sys.exit(0)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            """,
            "refused",
            "[0, 1]",
            "0",
        )

    def test_a_traceback_shows_the_replicas_lines(self):
        result = run(
            """
            def work(replica):
                return 1 / replica.id if replica.id == 0 else replica.barrier()
            Strategy(2).run(work)
            """
        )
        self.assertEqual(result.returncode, 1)
        self.assertIn("in work", result.stderr)
        self.assertTrue(result.stderr.strip().endswith("ZeroDivisionError: division by zero"), result.stderr)
        self.assertNotIn("During handling", result.stderr)


if __name__ == "__main__":
    unittest.main()

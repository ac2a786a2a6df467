# SPDX-License-Identifier: Apache-2.0
"""A coordinator, parameter servers and workers of one process. test_coordinator_processes.py has those of others, and
test_ps_variables.py the variables."""

import gc
import json
import threading
import unittest
import weakref

import numpy as np
from servers_together import PATIENCE, Together, cluster_strategy

from libdist import (
    AlreadyExists,
    Cancel,
    Cancelled,
    ClusterSpec,
    Coordinator,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    OutOfRange,
    Server,
    Strategy,
    Unknown,
)

F32 = np.float32


def add_and_double(closure, x):
    closure.assign_add("v", x)
    return 2 * x


def which(closure):
    return closure.worker


def fail(closure, kind="boom"):
    closure.assign_add("v", F32(1))
    if kind == "own":
        raise KeyError("key")
    raise OutOfRange(kind)


class Gate:
    """A closure that waits until it is let go, or cancelled."""

    def __init__(self):
        self.inside, self.open, self.cancelled = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, closure):
        self.inside.set()
        while not self.open.wait(0.001):
            if closure.cancelled:
                self.cancelled.set()
                raise Cancelled("cancelled")


CLOSURES = {"add_and_double": add_and_double, "which": which, "fail": fail}


class Closures(unittest.TestCase):
    def together(self, *args, closures=None, **options):
        cluster = Together(*args, closures={**CLOSURES, **(closures or {})}, **options)
        self.addCleanup(cluster.close)
        return cluster, cluster.coordinator

    def test_closures_change_variables_and_give_values(self):
        cluster, coordinator = self.together(2, 2)
        coordinator.create_variable("v", F32(0))
        remotes = [coordinator.schedule("add_and_double", F32(x)) for x in range(1, 8)]
        coordinator.join()
        self.assertEqual([float(remote.result()) for remote in remotes], [2.0 * x for x in range(1, 8)])
        self.assertTrue(all(remote.done() for remote in remotes))
        self.assertEqual(coordinator.read("v"), 28)
        self.assertIs(coordinator.done(), True)
        now = coordinator.query()
        self.assertEqual((now.num_ps, now.num_workers, now.workers_up), (2, 2, 2))
        self.assertEqual((now.completed, now.mark, now.failed, now.queued, now.in_flight), (7, 7, 0, 0, 0))
        self.assertGreater(now.bytes_sent, 28)
        names = {event["name"] for event in json.loads(coordinator.write_trace())["traceEvents"]}
        self.assertIn("add_and_double", names)
        events = json.loads(cluster.servers[0].write_trace())["traceEvents"]
        self.assertEqual(events[0]["args"]["name"], "libdist ps 0")
        self.assertIn("commit", {event["name"] for event in events})

    def test_what_goes_over(self):
        def describe(closure, *arguments):
            self.assertEqual((closure.name, closure.worker, closure.cancelled), ("describe", 0, False))
            return {"id": closure.id, "all": list(arguments)}

        _, coordinator = self.together(closures={"describe": describe})
        big = np.arange(6.0).reshape(2, 3).T
        result = coordinator.schedule("describe", big, "ä", None, [np.zeros((0, 2), np.float16)], {"k": (True,)}).result()
        self.assertEqual(result["id"], 0)
        self.assertEqual(result["all"][0].tolist(), big.tolist())
        self.assertEqual(result["all"][1:3], ["ä", None])
        self.assertEqual((result["all"][3][0].shape, result["all"][3][0].dtype), ((0, 2), np.float16))
        self.assertIsInstance(result["all"][4]["k"], tuple)
        self.assertEqual(coordinator.schedule("describe").result()["all"], [])
        self.assertFalse(result["all"][0].flags.writeable)
        with self.assertRaisesRegex(InvalidArgument, "cannot be sent to another process"):
            coordinator.schedule("describe", object())

    def test_errors_come_out_once(self):
        _, coordinator = self.together()
        coordinator.create_variable("v", F32(0))
        bad = coordinator.schedule("fail")
        for _ in range(2):
            with self.assertRaisesRegex(OutOfRange, "boom"):
                bad.result()
        with self.assertRaisesRegex(OutOfRange, r"closure 0 \(fail\) on worker 0: boom"):
            coordinator.done()
        self.assertTrue(coordinator.done())
        self.assertEqual(coordinator.schedule("add_and_double", F32(3)).result(), 6)
        coordinator.join()
        with self.assertRaisesRegex(OutOfRange, "boom"):
            bad.result()
        self.assertEqual(coordinator.read("v"), 3)  # what a closure that failed has changed is nowhere
        coordinator.schedule("nowhere")
        with self.assertRaisesRegex(NotFound, "has no closure nowhere"):
            coordinator.join()
        coordinator.join()

    def test_exceptions_are_errors_of_the_closure(self):
        def unsendable(closure):
            return object()

        def exits(closure):
            raise SystemExit(3)

        def nested(closure):
            closure.read("nowhere")

        def refuse(closure):
            raise ValueError("own")

        functions = {"unsendable": unsendable, "exits": exits, "nested": nested, "refuse": refuse}
        _, coordinator = self.together(closures=functions)
        coordinator.create_variable("v", F32(0))
        for name, arguments, kind, text in (
            ("fail", ("own",), Unknown, "KeyError: 'key'"),
            ("fail", (1, 2, 3), InvalidArgument, "TypeError"),
            ("refuse", (), ValueError, "ValueError: own"),
            ("unsendable", (), InvalidArgument, "cannot be sent"),
            ("exits", (), Unknown, "SystemExit: 3"),
            ("nested", (), NotFound, "nowhere"),
        ):
            with self.subTest(name), self.assertRaisesRegex(kind, text):
                coordinator.schedule(name, *arguments)
                coordinator.join()
        self.assertEqual(coordinator.read("v"), 0)

    def test_an_error_cancels_what_waits(self):
        gate = Gate()
        _, coordinator = self.together(1, 2, closures={"wait": gate})
        coordinator.create_variable("v", F32(0))
        running = coordinator.schedule("wait")
        self.assertTrue(gate.inside.wait(PATIENCE))
        bad = coordinator.schedule("fail")
        with self.assertRaises(OutOfRange):
            bad.result()
        self.assertTrue(gate.cancelled.wait(PATIENCE))  # who runs is asked to end
        with self.assertRaises(Cancelled):
            running.result()
        with self.assertRaisesRegex(OutOfRange, "boom"):
            coordinator.join()
        self.assertEqual(coordinator.schedule("add_and_double", F32(1)).result(), 2)

    def test_each_worker_has_its_own_objects(self):
        made = []

        class Own:
            def __init__(self, closure, start):
                self.rows, self.buffer, self.id = iter(range(int(start), 100)), np.zeros(3), closure.id
                made.append(weakref.ref(self))

        def follow(closure):
            own = closure.per_worker("own")
            own.buffer += 1
            closure.per_worker("list").append(own.id)
            return next(own.rows), own.buffer, closure.per_worker("list"), closure.worker

        def assigns(closure):
            closure.assign("v", F32(1))

        closures = {"own": Own, "list": lambda closure: [], "follow": follow, "assigns": assigns}
        cluster, coordinator = self.together(1, 2, closures=closures)
        coordinator.create_variable("v", F32(0))
        cluster.wait_for_workers()
        coordinator.create_per_worker("own", "own", 5)
        coordinator.create_per_worker("list", "list")
        with self.assertRaisesRegex(AlreadyExists, "own"):
            coordinator.create_per_worker("own", "own", 5)
        with self.assertRaisesRegex(NotFound, "nowhere"):
            coordinator.create_per_worker("other", "nowhere")
        with self.assertRaisesRegex(FailedPrecondition, "creates a per-worker value"):
            coordinator.create_per_worker("another", "assigns")
        counts = {0: 0, 1: 0}
        for remote in [coordinator.schedule("follow") for _ in range(6)]:
            row, buffer, listed, worker = remote.result()
            self.assertEqual(row, 5 + counts[int(worker)])
            counts[int(worker)] += 1
            self.assertEqual(buffer.tolist(), [counts[int(worker)]] * 3)
            self.assertEqual([int(one) for one in listed], [-1] * counts[int(worker)])
        self.assertEqual(sum(counts.values()), 6)
        self.assertEqual(len(made), 2)
        cluster.close()
        gc.collect()
        self.assertEqual([one() for one in made], [None, None])

    def test_cached_reads_are_as_old_as_they_may_be(self):
        _, coordinator = self.together(closures={"read": lambda closure: closure.read("stale")})
        coordinator.create_variable("stale", F32(0), max_staleness=2)
        seen = []
        for i in range(7):
            coordinator.assign("stale", F32(i + 1))
            seen.append(float(coordinator.schedule("read").result()))
        self.assertEqual(seen, [1, 1, 1, 4, 4, 4, 7])

    def test_several_closures_at_a_time(self):
        barrier = threading.Barrier(2)

        def meet(closure):
            barrier.wait(PATIENCE)

        _, coordinator = self.together(closures={"meet": meet}, num_threads=2, closures_per_worker=2)
        coordinator.schedule("meet")
        coordinator.schedule("meet")
        coordinator.join()

    def test_a_closure_is_over_when_its_function_is(self):
        kept = []
        _, coordinator = self.together(closures={"keep": lambda closure: kept.append(closure)})
        coordinator.schedule("keep").result()
        self.assertTrue(kept[0].cancelled)
        with self.assertRaisesRegex(FailedPrecondition, "the closure is over"):
            kept[0].read("v")


class Ends(unittest.TestCase):
    def together(self, *args, **options):
        cluster = Together(*args, **options)
        self.addCleanup(cluster.close)
        return cluster, cluster.coordinator

    def test_servers_end_with_their_coordinator(self):
        cluster, coordinator = self.together(closures=CLOSURES)
        coordinator.create_variable("v", F32(0))
        for timeout in (0, 0.001):
            with self.assertRaisesRegex(DeadlineExceeded, "continues to run"):
                cluster.ps[0].join(timeout)
        coordinator.schedule("which").result()
        coordinator.close()
        for server in cluster.servers:
            server.join(PATIENCE)
        with self.assertRaisesRegex(FailedPrecondition, "the coordinator is closed"):
            coordinator.read("v")

    def test_joins_end_early(self):
        with Server.local() as server:
            with self.assertRaisesRegex(FailedPrecondition, "has not been started"):
                server.join(0)
            server.start()
            cancel = Cancel()
            threading.Timer(0.01, cancel.signal, ("enough",)).start()
            with self.assertRaisesRegex(Cancelled, "enough"):
                server.join(cancel=cancel)
            threading.Timer(0.01, server.stop).start()
            server.join()
        with self.assertRaisesRegex(FailedPrecondition, "the server is closed"):
            server.join()
        with Server.local(start_timeout=0.01) as server:
            server.start()
            with self.assertRaisesRegex(DeadlineExceeded, "no coordinator connected"):
                server.join()

    def test_a_strategy_has_one_coordinator(self):
        cluster, coordinator = self.together()
        fn = lambda shape, dtype: [1]  # noqa: E731
        second = cluster.strategy.coordinator(partitioner=fn)
        second.create_variable("v", F32(3))
        self.assertEqual(coordinator.variables, ["v"])
        self.assertIs(second.strategy, cluster.strategy)
        coordinator.close()
        self.assertEqual(second.read("v"), 3)
        cluster.strategy.close()  # with whatever coordinators it has
        with self.assertRaises(FailedPrecondition):
            second.read("v")
        with Strategy(1) as other, self.assertRaisesRegex(InvalidArgument, "StrategyKind.PARAMETER_SERVER"):
            other.coordinator()

    def test_a_full_queue_is_waited_for(self):
        gate = Gate()
        _, coordinator = self.together(closures={"wait": gate, **CLOSURES}, max_queued=2)
        coordinator.create_variable("v", F32(0))
        remotes = [coordinator.schedule("wait"), coordinator.schedule("which")]
        with self.assertRaisesRegex(DeadlineExceeded, "a place in the queue"):
            coordinator.schedule("which", timeout=0.001)
        cancel = Cancel()
        threading.Timer(0.01, cancel.signal, ("enough",)).start()
        with self.assertRaisesRegex(Cancelled, "enough"):
            coordinator.schedule("which", cancel=cancel)
        with self.assertRaisesRegex(DeadlineExceeded, "waiting for closures"):
            coordinator.join(timeout=0.001)
        remotes[1].cancel()
        with self.assertRaises(Cancelled):
            remotes[1].result()
        with self.assertRaisesRegex(DeadlineExceeded, "is not available yet"):
            remotes[0].result(timeout=0)
        gate.open.set()
        coordinator.join()
        self.assertIsNone(remotes[0].result())

    def test_the_end_cancels_what_has_none(self):
        gate = Gate()
        _, coordinator = self.together(closures={"wait": gate, **CLOSURES})
        running, waiting = coordinator.schedule("wait"), coordinator.schedule("which")
        self.assertTrue(gate.inside.wait(PATIENCE))
        outcome = []

        def join():
            try:
                coordinator.join(-1)
            except Cancelled as error:
                outcome.append(error)

        thread = threading.Thread(target=join)
        thread.start()
        with self.assertRaises(DeadlineExceeded):
            waiting.result(timeout=0.01)  # the thread is likely inside by now, and ends well where it is not
        coordinator.close()
        thread.join(PATIENCE)
        for remote in (running, waiting):
            with self.assertRaisesRegex(Cancelled, "the coordinator has ended"):
                remote.result()
        self.assertTrue(gate.cancelled.wait(PATIENCE))

    def test_servers_that_are_not_there_are_named(self):
        with cluster_strategy(ps=["127.0.0.1:1"], worker=["127.0.0.1:2"]) as strategy:
            with strategy.coordinator(timeout=0.2) as coordinator:
                with self.assertRaisesRegex(DeadlineExceeded, "/job:ps/task:0 is not connected"):
                    coordinator.create_variable("v", F32(0))
                coordinator.schedule("which")
                with self.assertRaisesRegex(DeadlineExceeded, "and 1 more"):
                    coordinator.join(0.001)

    def test_who_is_forgotten_ends(self):
        class Fn:
            def __call__(self, closure):
                return None

        fn = Fn()
        alive = weakref.ref(fn)
        cluster = Together(closures={"f": fn}, partitioner=lambda shape, dtype: [1] * len(shape))
        remote = cluster.coordinator.schedule("f")
        kept = weakref.ref(cluster.coordinator)
        self.assertIsNone(remote.result())
        servers = cluster.servers
        del fn, cluster
        gc.collect()
        self.assertIsNotNone(kept())  # a remote value has it
        del remote
        gc.collect()
        self.assertIsNone(kept())
        for server in servers:
            server.join(PATIENCE)
        self.assertIsNotNone(alive())
        del servers, server
        gc.collect()
        self.assertIsNone(alive())

    def test_what_is_wrong_is_said(self):
        with self.assertRaises(InvalidArgument):
            Server(ClusterSpec({"worker": ["127.0.0.1:0"]}), "nowhere", 0)
        with Server(ClusterSpec({"worker": ["127.0.0.1:0"]}), "worker", 0) as server:
            server.register("m", which)
            with self.assertRaises(AlreadyExists):
                server.register("m", which)
            with self.assertRaisesRegex(TypeError, "fn is 3, but must be callable"):
                server.register("n", 3)
            with self.assertRaisesRegex(TypeError, "fn is 'fn', but must be callable"):
                server.register_update("n", "fn")
            server.start()
            self.assertRegex(server.target, r"^grpc://127\.0\.0\.1:[1-9]")
            with self.assertRaisesRegex(FailedPrecondition, "started"):
                server.register("late", which)
        for bad, error in (({"num_threads": -1}, InvalidArgument), ({"max_message_bytes": -1}, InvalidArgument)):
            with self.subTest(str(bad)), self.assertRaises(error):
                Server.local(**bad)


if __name__ == "__main__":
    unittest.main()

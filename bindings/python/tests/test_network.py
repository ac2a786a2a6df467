# SPDX-License-Identifier: Apache-2.0
"""Workers that are strategies of one process, each on a thread of its own."""

import gc
import tempfile
import threading
import unittest

import numpy as np

import libdist
from libdist import (
    Aggregation,
    Assign,
    ClusterResolver,
    ClusterResolverOptions,
    ClusterSpec,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    Network,
    ReduceOp,
    Reform,
    Strategy,
    StrategyKind,
    Synchronization,
    Threads,
    Transport,
    Unavailable,
    Unimplemented,
)


def resolver(workers, me):
    spec = ClusterSpec({"worker": [f"w{w}:1" for w in range(workers)]})
    return ClusterResolver.simple(spec, ClusterResolverOptions(task_type="worker", task_id=me))


def worker(workers, me, num_replicas=0, **options):
    kind = StrategyKind.MULTI_WORKER_MIRRORED
    return Strategy(num_replicas, kind=kind, cluster_resolver=resolver(workers, me), **options)


def workers_of(*replicas, **options):
    with Network(len(replicas)) as network:  # the strategies keep it
        given = dict(network=network, replicas_of_workers=replicas, **options)
        return [worker(len(replicas), w, **given) for w in range(len(replicas))]


def on_workers(workers, program):
    """program(worker, strategy) on a thread each: what they returned, or raised."""
    results = [None] * len(workers)

    def play(w):
        try:
            results[w] = program(w, workers[w])
        except BaseException as error:
            results[w] = error

    threads = [threading.Thread(target=play, args=(w,)) for w in range(len(workers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def train(strategy):
    """All that waits for other workers; what came of it."""
    place = strategy.query()
    first = np.float32(10 + place.worker)  # worker 0's counts
    mirrored = strategy.variable(first, aggregation=Aggregation.SUM)
    on_read = strategy.variable(
        lambda: np.zeros((), np.float32), aggregation=Aggregation.SUM, synchronization=Synchronization.ON_READ
    )

    def step(replica):
        assert replica.num_replicas == 3
        replica.assign(mirrored, np.float32(replica.id + 1), Assign.ADD)
        replica.assign(on_read, np.float32(replica.id + 1), Assign.ADD)
        return replica.id

    ids = strategy.run(step)
    assert ids == list(strategy.local_replicas), ids
    rows = strategy.run_values(
        lambda replica, scale: scale * np.arange(10 * replica.id, 11 * replica.id + 1, dtype=np.float32),
        (np.float32(2),),
    )
    seen = [
        mirrored.read(),
        on_read.read(),
        strategy.gather(rows),
        strategy.reduce(ReduceOp.SUM, rows, 0),
        sum(strategy.local_results(strategy.values_from_function(lambda context: context.replica_id))),
    ]
    return [np.asarray(one).tolist() for one in seen]


class Workers(unittest.TestCase):
    def test_a_worker_knows_its_place(self):
        for w, strategy in enumerate(workers_of(2, 1)):
            place = strategy.query()
            self.assertEqual(strategy.num_replicas, 3)
            self.assertEqual((place.num_workers, place.worker), (2, w))
            self.assertEqual((place.num_local_replicas, place.first_replica), (2 - w, 2 * w))
            self.assertEqual((place.should_checkpoint, place.in_multi_worker_mode), (w == 0, True))
            self.assertEqual(list(strategy.local_replicas), [[0, 1], [2]][w])
            wanted = [f"/job:worker/replica:0/task:{w}/device:CPU:{i}" for i in range(2 - w)]
            self.assertEqual(strategy.devices, wanted)
            self.assertEqual(strategy.parameter_devices, wanted)
        place = Strategy(2).query()
        self.assertEqual((place.worker, place.num_local_replicas, place.first_replica), (0, 2, 0))

    def test_they_train(self):
        wanted = [16.0, 6.0, [0.0, 20.0, 22.0, 40.0, 42.0, 44.0], 168.0]
        for threads in Threads.CALLER, Threads.LIBRARY:
            workers = workers_of(2, 1, threads=threads)
            for _ in range(3):
                seen = on_workers(workers, lambda _, strategy: train(strategy))
                self.assertEqual(seen, [[*wanted, 1], [*wanted, 2]])

    def test_they_read_the_rows_of_one_process(self):
        def read_rows(strategy, as_one_process):
            """Trains on some rows: those of each replica, a list a step, and what came of it."""
            rows = {}
            total = strategy.variable(np.float32(0), aggregation=Aggregation.MEAN)
            options = dict(global_batch_size=5, shuffle=True, seed=3, as_one_process=as_one_process)

            def step(replica, x):
                rows.setdefault(replica.id, []).append(x.tolist())
                replica.assign(total, x.sum() * np.float32(replica.id + 1), Assign.ADD)

            for batch in strategy.dataset_from_tensors(np.arange(1, 12, dtype=np.float32) / 10, **options):
                strategy.run_values(step, (batch,))
            return rows, float(total.read())

        with Strategy(3) as one:
            wanted, trained = read_rows(one, False)
        self.assertEqual([len(wanted[id]) for id in range(3)], [3] * 3)
        for as_one_process in True, False:
            seen = on_workers(workers_of(2, 1), lambda _, strategy, given=as_one_process: read_rows(strategy, given))
            self.assertEqual({**seen[0][0], **seen[1][0]} == wanted, as_one_process, seen)
            self.assertEqual([own == trained for _, own in seen], [as_one_process] * 2)
        with self.assertRaisesRegex(InvalidArgument, "as_one_process is set"):
            workers_of(1, 1)[0].dataset_from_tensors(
                np.ones(2), global_batch_size=2, as_one_process=True, shard_policy=libdist.ShardPolicy.OFF
            )

    def test_host_threads(self):
        workers = workers_of(1, 1, threads=Threads.HOST)

        def play(w, strategy):
            with strategy.enter(w) as replica:
                return replica.all_reduce(ReduceOp.SUM, np.float32(replica.id + 1))

        self.assertEqual(on_workers(workers, play), [3.0, 3.0])

    def test_they_fail_together(self):
        boom = RuntimeError("boom")
        workers = workers_of(1, 2)

        def fail(replica):
            if replica.id == 2:
                raise boom
            replica.barrier()

        report, own = on_workers(workers, lambda _, strategy: strategy.run(fail))
        self.assertIs(own, boom)
        self.assertIn("boom", str(report))
        self.assertEqual(report.worker, 1)
        self.assertEqual(on_workers(workers, lambda _, strategy: strategy.run(lambda r: r.barrier())), [[None], [None] * 2])

    def test_one_that_does_not_come(self):
        network = Network(2)
        strategy = worker(2, 0, 1, network=network, timeout=0.02)
        for call in (
            lambda: strategy.variable(np.float32(1)),
            lambda: strategy.run(lambda replica: replica.barrier()),
            lambda: strategy.gather(strategy.values_from_function(lambda _: np.zeros(1))),
        ):
            with self.assertRaisesRegex(DeadlineExceeded, "worker 1") as caught:
                call()
            self.assertEqual(caught.exception.worker, 1)
        with self.assertRaisesRegex(Unavailable, "worker 1 cannot reach the other workers") as caught:
            worker(2, 1, 1).run(lambda replica: replica.barrier())
        self.assertNotIn("dist_", caught.exception.hint)

    def test_all_are_told_whose_copy_has_drifted(self):
        def check(w, strategy):
            variable = strategy.variable(np.zeros(5, np.float32), name="w")
            equal = variable.check_drift()
            if w == 1:
                variable.component(2)[4] = 1
            with self.assertRaises(DataLoss) as caught:
                variable.check_drift()
            last = {(row.worker, row.replica) for row in strategy.stragglers()}
            return equal.num_copies, caught.exception.replica, caught.exception.worker, last <= {(0, -1), (1, -1)}

        self.assertEqual(on_workers(workers_of(2, 1), check), [(3, 2, 1, True)] * 2)

    def test_every_call_that_waits_lets_others_go_on(self):
        """A call that waits for a worker has let go of the GIL: else nobody could make the other one's call."""
        workers = workers_of(1, 1, timeout=60)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        turns = [threading.Semaphore(0) for _ in workers]
        options = {"synchronization": Synchronization.ON_READ, "aggregation": Aggregation.SUM}
        of_replicas = lambda strategy, fn: strategy.values_from_function(lambda context: fn(context.replica_id))  # noqa: E731
        row = lambda replica: np.full((1, 2), replica, np.float32)  # noqa: E731
        calls = [
            lambda w, s, have: have.update(v=s.variable(np.zeros(2, np.float32), name="v", **options)),
            lambda w, s, have: have.update(m=s.variable(lambda: np.ones((2, 2), np.float32), name="m")),
            lambda w, s, have: s.reduce(ReduceOp.SUM, of_replicas(s, row)),
            lambda w, s, have: s.reduce(ReduceOp.MEAN, of_replicas(s, row), 0),
            lambda w, s, have: s.reduce_to(ReduceOp.SUM, of_replicas(s, row)),
            lambda w, s, have: s.batch_reduce_to(ReduceOp.SUM, [(of_replicas(s, row), None)] * 2),
            lambda w, s, have: s.gather(of_replicas(s, row)),
            lambda w, s, have: have["v"].read(),
            lambda w, s, have: have["v"].assign(np.ones(2, np.float32)),
            lambda w, s, have: s.run(lambda replica: replica.all_reduce(ReduceOp.SUM, row(replica.id))),
            lambda w, s, have: have["m"].check_drift(),
            lambda w, s, have: s.save_checkpoint(f"{folder.name}/file", {"v": have["v"], "m": have["m"]}),
            lambda w, s, have: s.load_checkpoint(f"{folder.name}/file", {"v": have["v"], "m": have["m"]}),
        ]

        def play(w, strategy):
            have = {}
            for k, call in enumerate(calls):
                # One begins when the other is on its way; which of them waits, alternates.
                first = k % 2
                if w != first:
                    turns[w].acquire()
                else:
                    turns[1 - w].release()
                call(w, strategy, have)
            return have["v"].read().tolist()

        for seen in on_workers(workers, play):
            self.assertEqual(seen, [1.0, 1.0])


class Misuse(unittest.TestCase):
    def test_what_does_not_fit(self):
        for wrong in (lambda: Network(0), lambda: Network(-1)):
            with self.assertRaises(InvalidArgument):
                wrong()
        with self.assertRaisesRegex(InvalidArgument, "credit_bytes is 100"):
            Network(2, credit_bytes=100)
        for wrong in ({"network": 3}, {"network": resolver(2, 0)}, {"replicas_of_workers": 2}):
            with self.assertRaises(TypeError):
                worker(2, 0, 1, **wrong)
        network = Network(2, credit_bytes=1 << 16)
        with self.assertRaisesRegex(InvalidArgument, "StrategyKind.MULTI_WORKER_MIRRORED"):
            Strategy(1, network=network)
        with self.assertRaisesRegex(InvalidArgument, "2 workers"):
            worker(2, 0, 1, network=network, replicas_of_workers=[1])
        with self.assertRaisesRegex(InvalidArgument, "3"):
            worker(3, 0, 1, network=network)
        with self.assertRaisesRegex(InvalidArgument, "staging_bytes is -1"):
            worker(2, 0, 1, network=network, staging_bytes=-1)
        first = worker(2, 0, 1, network=network, staging_bytes=1)
        with self.assertRaisesRegex(FailedPrecondition, "joined this network"):
            worker(2, 0, 1, network=network)
        self.assertEqual(repr(network), "<libdist.Network>")
        network.close()
        network.close()
        self.assertEqual(repr(network), "<libdist.Network, closed>")
        with self.assertRaisesRegex(FailedPrecondition, "the network is closed"):
            worker(2, 1, 1, network=network)
        first.close()

    def test_workers_that_cannot_re_form(self):
        alone = dict(transport=Transport.NONE, reform=Reform.AT_NEXT_RUN)
        for strategy in (Strategy(2), worker(1, 0, 1, **alone)):
            with self.assertRaisesRegex(FailedPrecondition, r"Strategy\.reform\(\): the strategy has only one worker"):
                strategy.reform()
            self.assertIs(strategy.reform_due(), False)
            place = strategy.query()
            self.assertEqual((place.generation, place.num_joined, place.num_left), (0, 0, 0))
            strategy.close()
            for closed in (strategy.reform, strategy.reform_due):
                with self.assertRaisesRegex(FailedPrecondition, "closed"):
                    closed()
        with self.assertRaisesRegex(InvalidArgument, r"reform.*StrategyKind\.MULTI_WORKER_MIRRORED"):
            Strategy(1, reform=Reform.AT_NEXT_RUN)
        strategy = worker(2, 0, 1, **alone)
        for name, value, words in (
            ("min_workers", 3, "min_workers is 3"),
            ("min_workers", -1, "min_workers is -1"),
            ("window", -1.0, "window is -1"),
        ):
            with self.assertRaisesRegex(InvalidArgument, words):
                strategy.reform(timeout=1.0, **{name: value})
        strategy.close()
        together = workers_of(1, 1)
        with self.assertRaises(Unimplemented):
            together[0].reform()
        for strategy in together:
            strategy.close()

    def test_the_collector_takes_them_in_any_order(self):
        for order in range(6):
            network = Network(2)
            things = [network, worker(2, 0, 1, network=network), worker(2, 1, 1, network=network)]
            del network
            for i in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0])[order]:
                things[i] = None
                gc.collect()
        self.assertIn("Network", libdist.__all__)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Cluster specs, resolvers and partitioners: the calls of C, and what Python gives wrongly."""

import gc
import os
import threading
import unittest
from unittest import mock

import libdist
from libdist import (
    ClusterResolver,
    ClusterResolverOptions,
    ClusterSpec,
    FailedPrecondition,
    InvalidArgument,
    KubernetesOptions,
    RendezvousOptions,
    ResolverFunctions,
    SlurmOptions,
    Strategy,
    fixed_shards,
    max_size_shards,
    min_size_shards,
    part_of_row,
    rows_of_part,
    slurm_hosts,
    slurm_tasks_per_node,
)

JOBS = {"worker": ["a:1", "b:2"], "ps": {3: "c:4"}}


class Specs(unittest.TestCase):
    def setUp(self):
        self.spec = ClusterSpec(JOBS)

    def test_what_is_in_it(self):
        spec = self.spec
        self.assertEqual(sorted(spec.jobs), ["ps", "worker"])
        self.assertEqual((spec.num_tasks("worker"), spec.num_tasks("ps")), (2, 1))
        self.assertEqual((spec.task_indices("worker"), spec.task_indices("ps")), ([0, 1], [3]))
        self.assertEqual((spec.task_address("worker", 1), spec.task_address("ps", 3)), ("b:2", "c:4"))
        self.assertEqual(spec.as_dict(), JOBS)
        self.assertTrue(spec)
        self.assertFalse(ClusterSpec({}))

    def test_json_and_equality(self):
        again = ClusterSpec.from_json(self.spec.json())
        self.assertEqual(again, self.spec)
        self.assertNotEqual(again, ClusterSpec({"worker": ["a:1"]}))
        self.assertNotEqual(again, JOBS)
        with self.assertRaises(TypeError):
            hash(again)

    def test_union(self):
        both = ClusterSpec.union([ClusterSpec({"worker": ["a:1"]}), ClusterSpec({"worker": ["b:2"], "ps": ["c:3"]})])
        self.assertEqual(both.as_dict(), {"worker": ["a:1", "b:2"], "ps": ["c:3"]})
        for wrong in ([], [ClusterSpec({"ps": {1: "a:1"}}), ClusterSpec({"ps": {1: "b:1"}})]):
            with self.assertRaises(InvalidArgument):
                ClusterSpec.union(wrong)

    def test_rules(self):
        spec = ClusterSpec({"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]})
        spec.validate("worker", 1)
        self.assertEqual((spec.is_chief("chief", 0), spec.is_chief("worker", 0)), (True, False))
        self.assertEqual(spec.collective_leader("worker", 1), "/job:chief/replica:0/task:0")
        self.assertEqual(spec.coordination_leader(), "/job:ps/replica:0/task:0")
        self.assertEqual((spec.worker_count("worker"), spec.id_in_cluster("worker", 1)), (3, 2))
        self.assertTrue(spec.should_save_checkpoint("chief", 0))
        self.assertFalse(spec.should_save_summary("worker", 1))
        self.assertTrue(spec.should_evaluate("chief", 0))
        self.assertTrue(ClusterSpec({}).should_save_checkpoint(None, None))
        for wrong in (("gopher", 0), ("worker", 2), ("worker", None)):
            with self.subTest(wrong), self.assertRaises(InvalidArgument):
                spec.validate(*wrong)

    def test_wrong_ones_are_refused(self):
        for wrong in (
            {"worker": ["a\nb"]},
            {"": ["a:1"] * 2, "x" * libdist.MAX_JOB_NAME_BYTES: ["b:1"]},
            {"worker": {2**31: "a:1"}},
            {"worker": ["a" * libdist.MAX_ADDRESS_BYTES]},
            {f"job{i}": [] for i in range(libdist.MAX_CLUSTER_JOBS + 1)},
        ):
            with self.subTest(wrong=str(wrong)[:40]), self.assertRaises(InvalidArgument):
                ClusterSpec(wrong)
        for wrong in ({"worker": [5]}, {5: ["a:1"]}, {"worker": {"x": "a:1"}}, {"worker": 5}):
            with self.subTest(wrong=wrong), self.assertRaises(TypeError):
                ClusterSpec(wrong)
        for text in ("", "{", "[]", '{"worker": "a:1"}', '{"worker": [5]}'):
            with self.subTest(text=text), self.assertRaises(InvalidArgument):
                ClusterSpec.from_json(text)
        for ask in (self.spec.num_tasks, self.spec.task_indices, lambda job: self.spec.task_address(job, 0)):
            with self.assertRaisesRegex(InvalidArgument, "nobody"):
                ask("nobody")
        with self.assertRaisesRegex(InvalidArgument, r"ClusterSpec\.union\(\)"):
            ClusterSpec.union([])


class Resolvers(unittest.TestCase):
    def test_simple(self):
        options = ClusterResolverOptions("worker", 1, num_accelerators=2, rpc_layer="grpc", session_address="s:9")
        resolver = ClusterResolver.simple(ClusterSpec(JOBS), options)
        self.assertEqual(resolver.spec().as_dict(), JOBS)
        self.assertEqual((resolver.task_type, resolver.task_id, resolver.rpc_layer), ("worker", 1, "grpc"))
        self.assertEqual((resolver.environment, resolver.num_accelerators(), resolver.gpu_ids()), ("", 2, ""))
        self.assertEqual(resolver.master(), "grpc://s:9")
        self.assertEqual(resolver.master("worker", 0, ""), "a:1")
        self.assertIn("worker", resolver.explain())
        with self.assertRaises(InvalidArgument):
            resolver.master("worker", 5)
        unknown = ClusterResolver.simple(ClusterSpec(JOBS))
        self.assertEqual((unknown.task_type, unknown.task_id, unknown.rpc_layer), (None, None, None))
        with self.assertRaises(TypeError):
            ClusterResolver()
        with self.assertRaises(InvalidArgument):
            ClusterResolver.simple(ClusterSpec(JOBS), ClusterResolverOptions(num_accelerators=-1))

    def test_tf_config(self):
        text = '{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": "1"}}'
        given = ClusterResolver.tf_config(ClusterResolverOptions(tf_config=text))
        resolver = ClusterResolver.tf_config()
        with mock.patch.dict(os.environ, {"TF_CONFIG": text}):
            for one in (given, resolver):
                self.assertEqual((one.task_type, one.task_id, one.master()), ("worker", 1, "b:2"))
                self.assertIsNone(one.environment)
        with mock.patch.dict(os.environ, {"TF_CONFIG": "{"}):
            with self.assertRaisesRegex(InvalidArgument, "TF_CONFIG"):
                resolver.spec()
            self.assertEqual(given.task_id, 1)

    def test_slurm(self):
        step = SlurmOptions(rank=3, num_tasks=4, host_list="n[1-2]", tasks_per_node="2(x2)", gpus_per_host=2)
        resolver = ClusterResolver.slurm(step)
        self.assertEqual(resolver.spec().as_dict(), {"worker": ["n1:8888", "n1:8889", "n2:8888", "n2:8889"]})
        self.assertEqual((resolver.task_type, resolver.task_id, resolver.gpu_ids()), ("worker", 3, "1"))
        jobs = SlurmOptions(
            rank=1, host_list="n1,n2", tasks_on_each_host=1, port_base=7, jobs={"chief": 1, "worker": 1}
        )
        self.assertEqual(ClusterResolver.slurm(jobs).spec().as_dict(), {"chief": ["n1:7"], "worker": ["n2:7"]})
        with mock.patch.dict(os.environ):
            os.environ.pop("SLURM_PROCID", None)
            with self.assertRaisesRegex(FailedPrecondition, "SLURM_PROCID"):
                ClusterResolver.slurm()

    def test_slurms_lists(self):
        self.assertEqual(slurm_hosts("n[01-03,7],m1"), ["n01", "n02", "n03", "n7", "m1"])
        self.assertEqual(slurm_tasks_per_node("2(x3),1"), [2, 2, 2, 1])
        for wrong in (lambda: slurm_hosts("n["), lambda: slurm_tasks_per_node("2(x")):
            with self.assertRaises(InvalidArgument):
                wrong()

    def test_kubernetes(self):
        pods = KubernetesOptions(host_name="t-1", num_workers=2, service="s", namespace="ns", domain="d", port=5)
        resolver = ClusterResolver.kubernetes(pods)
        self.assertEqual(resolver.spec().as_dict(), {"worker": ["t-0.s.ns.svc.d:5", "t-1.s.ns.svc.d:5"]})
        self.assertEqual((resolver.task_type, resolver.task_id), ("worker", 1))
        self.assertEqual(resolver.master(), "grpc://t-1.s.ns.svc.d:5")
        with self.assertRaises(InvalidArgument):
            ClusterResolver.kubernetes(KubernetesOptions(host_name="t", num_workers=2))

    def test_rendezvous(self):
        resolver = ClusterResolver.rendezvous(RendezvousOptions(rank=0, size=1))
        self.assertEqual((resolver.task_type, resolver.task_id), ("worker", 0))
        self.assertTrue(resolver.master().startswith("grpc://127.0.0.1:"))
        for wrong in (
            RendezvousOptions(rank=1, size=1),
            RendezvousOptions(rank=0, size=2, address="nonsense"),
            RendezvousOptions(rank=0, size=1, job_name="two\nlines"),
        ):
            with self.assertRaises(InvalidArgument):
                ClusterResolver.rendezvous(wrong)

    def test_union(self):
        members = [
            ClusterResolver.simple(ClusterSpec({"worker": ["a:1"]}), ClusterResolverOptions("worker", 0)),
            ClusterResolver.simple(ClusterSpec({"worker": ["b:2"]})),
        ]
        union = ClusterResolver.union(members)
        del members
        gc.collect()
        self.assertEqual(union.spec().as_dict(), {"worker": ["a:1", "b:2"]})
        self.assertEqual((union.task_type, union.task_id), ("worker", 0))
        self.assertEqual(ClusterResolver.union([union], ClusterResolverOptions(task_id=1)).task_id, 1)
        with self.assertRaises(InvalidArgument):
            ClusterResolver.union([])

    def test_a_strategys(self):
        resolver = ClusterResolver.simple(ClusterSpec(JOBS))
        with Strategy(2, cluster_resolver=resolver) as strategy:
            self.assertIs(strategy.cluster_resolver, resolver)
            self.assertEqual(strategy.run(lambda replica: replica.id), [0, 1])
        self.assertEqual(resolver.spec().as_dict(), JOBS)


class Own(ResolverFunctions):
    """All of a program's own."""

    def spec(self):
        return ClusterSpec(JOBS)

    def task_type(self):
        return "worker"

    def task_id(self):
        return 1

    def rpc_layer(self):
        return "own"

    def environment(self):
        return None

    def master(self, task_type, task_id, rpc_layer):
        return f"{task_type}/{task_id}/{rpc_layer}"

    def num_accelerators(self, task_type, task_id):
        return 7


class OfAProgram(unittest.TestCase):
    def test_what_it_answers(self):
        resolver = ClusterResolver.host(Own())
        self.assertEqual(resolver.spec().as_dict(), JOBS)
        self.assertEqual((resolver.task_type, resolver.task_id, resolver.rpc_layer), ("worker", 1, "own"))
        self.assertIsNone(resolver.environment)
        self.assertEqual(resolver.master("ps", 3, "x"), "ps/3/x")
        self.assertEqual(resolver.num_accelerators(), 7)
        options = ClusterResolverOptions(task_type="chief", rpc_layer="grpc")
        self.assertEqual(ClusterResolver.host(Own(), options).task_type, "chief")
        self.assertEqual(ClusterResolver.union([resolver]).task_id, 1)

    def test_only_the_spec(self):
        class OnlySpec(ResolverFunctions):
            def spec(self):
                return ClusterSpec(JOBS)

        resolver = ClusterResolver.host(OnlySpec())
        self.assertEqual((resolver.task_type, resolver.task_id, resolver.rpc_layer), (None, None, None))
        self.assertEqual((resolver.master("worker", 1), resolver.num_accelerators()), ("b:2", 0))

    def test_what_it_raises_comes_out(self):
        raised = KeyError("mine")

        class Raises(Own):
            answer = None

            def spec(self):
                if self.answer is None:
                    raise raised
                return self.answer

            def task_type(self):
                return "x" * libdist.MAX_ADDRESS_BYTES

            def task_id(self):
                raise libdist.Unavailable("not yet")

        functions = Raises()
        resolver = ClusterResolver.union([ClusterResolver.host(functions)])
        with self.assertRaises(KeyError) as caught:
            resolver.spec()
        self.assertIs(caught.exception, raised)
        with self.assertRaises(libdist.Unavailable):
            resolver.task_id
        with self.assertRaises(InvalidArgument):
            resolver.task_type
        self.assertIn("mine", resolver.explain())
        functions.answer = 5
        with self.assertRaisesRegex(TypeError, "no libdist.ClusterSpec"):
            resolver.spec()
        with self.assertRaises(NotImplementedError):
            ClusterResolver.host(ResolverFunctions()).spec()

    def test_it_is_kept_as_long_as_it_is_asked(self):
        gone = threading.Event()

        class Tells(Own):
            def __del__(self):
                gone.set()

        strategy = Strategy(1, cluster_resolver=ClusterResolver.host(Tells()))
        gc.collect()
        self.assertEqual(strategy.cluster_resolver.task_id, 1)
        self.assertFalse(gone.is_set())
        strategy.close()
        del strategy
        gc.collect()
        self.assertTrue(gone.is_set())

    def test_several_threads_ask(self):
        class Thread(Own):
            def task_id(self):
                raise KeyError(threading.current_thread().name)

        resolver, found = ClusterResolver.host(Thread()), {}

        def ask(name):
            for _ in range(50):
                try:
                    resolver.task_id
                except KeyError as error:
                    found.setdefault(name, set()).add(error.args[0])

        threads = [threading.Thread(target=ask, args=(name,), name=name) for name in ("a", "b", "c")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, {name: {name} for name in ("a", "b", "c")})


class Partitioners(unittest.TestCase):
    def test_parts(self):
        self.assertEqual(fixed_shards([10, 2], 0, 3), [3, 1])
        self.assertEqual(fixed_shards((2, 10), -1, 3), [1, 3])
        self.assertEqual(min_size_shards([10, 3], 0, 4), [1, 1])
        self.assertEqual(min_size_shards([6, 1], 0, 4, 8, 10), [3, 1])
        self.assertEqual(min_size_shards([2**17], 0, 4, max_shards=9), [2])  # of 256 KiB each
        self.assertEqual(max_size_shards([6, 1], 0, 1, 1), [6, 1])
        self.assertEqual(max_size_shards([6, 1], 0, 1, 1, 4), [4, 1])

    def test_rows(self):
        self.assertEqual([rows_of_part(10, 3, part) for part in range(3)], [(0, 4), (4, 3), (7, 3)])
        self.assertEqual([part_of_row(10, 3, row) for row in (0, 4, 9)], [(0, 0), (1, 0), (2, 2)])

    def test_wrong_ones_are_refused(self):
        for wrong in (
            lambda: fixed_shards([], 0, 3),
            lambda: fixed_shards([3], 1, 3),
            lambda: fixed_shards([1] * (libdist.MAX_NDIM + 1), 0, 3),
            lambda: min_size_shards([3], 0, 0),
            lambda: max_size_shards([0, 4], 0, 4, 4),
            lambda: rows_of_part(10, 3, 3),
            lambda: part_of_row(10, 3, 10),
        ):
            with self.assertRaises(InvalidArgument):
                wrong()
        with self.assertRaises(TypeError):
            fixed_shards([2.5], 0, 3)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Objects that one thread closes while others call them: each call succeeds or says that the object is closed."""

import os
import random
import re
import sys
import threading
import unittest

import numpy as np

import libdist
from libdist import FailedPrecondition, Strategy, Threads, _cdist

PATIENCE = 60  # seconds; only against a hang
ROUNDS = int(os.environ.get("ROUNDS", "15"))
HAS_GRPC = libdist.has_feature("grpc")


class Closing(unittest.TestCase):
    def setUp(self):
        self.seed = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
        print(f"# SEED={self.seed}")
        self.random = random.Random(self.seed)
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)  # threads meet between any two steps

    def close_while_called(self, make, *calls, also=(), rounds=ROUNDS):
        """Three threads call an object in turns until it is closed. `also`: exceptions that say nothing of that."""
        first = make()
        for call in calls:
            try:
                call(first)
            except also:
                pass
        first.close()
        for _ in range(rounds):
            thing, together, unexpected = make(), threading.Barrier(4), []
            delay = self.random.choice((0, 0, 1, 10, 100))

            def use(seed):
                order = random.Random(seed)
                together.wait(PATIENCE)  # noqa: B023
                while True:
                    try:
                        order.choice(calls)(thing)  # noqa: B023
                    except FailedPrecondition as error:
                        if "closed" in str(error):
                            return
                        unexpected.append(error)  # noqa: B023
                        return
                    except also:
                        pass
                    except BaseException as error:
                        unexpected.append(error)  # noqa: B023
                        return

            seeds = [self.random.randrange(2**31) for _ in range(3)]
            threads = [threading.Thread(target=use, args=(seed,), daemon=True) for seed in seeds]
            for thread in threads:
                thread.start()
            together.wait(PATIENCE)
            for _ in range(delay):
                _cdist.dist_version()
            thing.close()
            thing.close()
            for thread in threads:
                thread.join(PATIENCE)
                self.assertFalse(thread.is_alive())
            self.assertEqual(unexpected, [])

    def test_datasets(self):
        with Strategy(2) as strategy:
            self.close_while_called(
                lambda: strategy.dataset_from_tensors(np.ones(8), global_batch_size=2),
                lambda dataset: dataset.explain(),
                lambda dataset: dataset.element_spec,
                lambda dataset: next(iter(dataset)),
            )

    def test_iterators(self):
        with Strategy(1) as strategy, strategy.dataset_from_tensors(np.ones(1)) as dataset:
            self.close_while_called(
                lambda: iter(dataset),
                lambda iterator: iterator.position,
                lambda iterator: iterator.next_optional(),
                also=(libdist.OutOfRange,),
            )

    def test_variables_and_metrics(self):
        with Strategy(2) as strategy:
            self.close_while_called(
                lambda: strategy.variable(np.zeros(4)),
                lambda variable: variable.read(),
                lambda variable: variable.assign_add(np.ones(4)),
                lambda variable: strategy.broadcast_to(np.ones(4), variable),
                lambda variable: variable.name,
            )
            self.close_while_called(
                lambda: strategy.metric(), lambda metric: metric.result(), lambda metric: metric.reset()
            )

    def test_groups(self):
        with Strategy(2) as strategy:
            self.close_while_called(
                lambda: strategy.group([0, 1]), lambda group: group.size, lambda group: group.rank(1)
            )

    def test_cancel_objects(self):
        with Strategy(1) as strategy:
            self.close_while_called(
                libdist.Cancel,
                lambda cancel: cancel.signalled,
                lambda cancel: strategy.run(lambda replica: None, cancel=cancel),
            )

    def test_new_objects_at_old_addresses(self):
        # libdist's thread for completions destroys works while this one gets new ones at their addresses.
        with Strategy(1, threads=Threads.LIBRARY) as strategy:
            for _ in range(100):
                requests = [strategy.submit(lambda replica: None) for _ in range(100)]
                for request in requests:
                    request.result(PATIENCE)
            strategy.close_instances()

    def test_versions(self):
        self.close_while_called(
            libdist.Versions, lambda versions: versions.publish("one"), lambda versions: versions.latest
        )

    def test_checkpoints(self):
        with Strategy(1) as strategy:
            path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"libdist-handles-{os.getpid()}.safetensors")
            strategy.save_checkpoint(path, [strategy.variable(np.ones(4), name="w")])
            try:
                self.close_while_called(
                    lambda: strategy.open_checkpoint(path),
                    lambda checkpoint: checkpoint.read("w"),
                    lambda checkpoint: checkpoint.names(),
                    lambda checkpoint: checkpoint.metadata,
                )
            finally:
                os.unlink(path)

    def test_cross_device_objects(self):
        with Strategy(2) as strategy:
            value = strategy.per_replica([np.ones(2), np.ones(2)])
            self.close_while_called(
                libdist.CrossDevice,
                lambda operations: operations.kind,
                lambda operations: operations.reduce("SUM", value, "CPU:0"),
            )

    def test_batchers(self):
        with Strategy(1, threads=Threads.LIBRARY) as strategy:
            self.close_while_called(lambda: strategy.batcher(lambda replica, batch: None), lambda batcher: batcher.count)

    def test_strategies(self):
        self.close_while_called(
            lambda: Strategy(2),
            lambda strategy: strategy.explain(),
            lambda strategy: strategy.devices,
            lambda strategy: strategy.query(),
            lambda strategy: strategy.dataset_from_tensors(np.ones(2)).close(),
        )

    @unittest.skipUnless(HAS_GRPC, "libdist-grpc.so is not there")
    def test_servers_and_clients(self):
        def server():
            return libdist.RpcServer("127.0.0.1:0")

        self.close_while_called(server, lambda one: one.address, rounds=5)
        self.close_while_called(libdist.Server.local, lambda one: one.target, lambda one: one.write_trace(), rounds=5)
        with server() as running:
            running.register("add", lambda call, a, b: a + b)
            running.start()
            self.close_while_called(
                lambda: libdist.RpcClient(running.address),
                lambda client: client.call("add", 1.0, 2.0),
                also=(libdist.Cancelled,),
                rounds=5,
            )

    def test_an_object_stays_open_while_a_call_goes_on(self):
        strategy, inside, leave = Strategy(1), threading.Event(), threading.Event()
        self.addCleanup(strategy.close)

        def state(before, batch):
            inside.set()
            leave.wait(PATIENCE)
            return before

        dataset = strategy.dataset_from_tensors(np.ones(1))
        thread = threading.Thread(target=dataset.reduce, args=(0.0, state))
        thread.start()
        inside.wait(PATIENCE)
        with self.assertRaisesRegex(FailedPrecondition, r"^another thread is in Dataset\.reduce\(\) of this dataset"):
            dataset.close()
        leave.set()
        thread.join()
        dataset.close()


class Names(unittest.TestCase):
    def test_calls_of_closed_objects_have_pythons_names(self):
        """Functions whose first argument is an object with close(), with an id that no object has."""
        owners = "strategy group cancel work batcher versions variable dataset iterator cross_device metric checkpoint"
        nobody = 2**40 + 1
        owners += " preemption rpc_server rpc_client server coordinator"
        begins = tuple(f"dist_{owner}_" for owner in owners.split())
        others = ("dist_reduce", "dist_gather", "dist_run", "dist_set_strategy", "dist_strategy_explain", "dist_update")
        others += ("dist_strategy_local_results", "dist_scope_enter", "dist_value_wrap_tensor", "dist_value_create_none")
        functions = [getattr(_cdist, name) for name in dir(_cdist) if name.startswith(begins) or name in others]
        for holder in (_cdist.Text(), _cdist.Stragglers()):
            begun = ("explain", "read", "write", "describe_variable")
            functions += [getattr(holder, name) for name in dir(holder) if name.startswith(begun)]
        tried = 0
        for function in functions:
            name = function.__name__
            if isinstance(function, type) or name.endswith(("_create", "_create_local", "destroy", "_init", "metric_update", "_topology", "_cluster")):
                continue
            for count in range(1, 9):
                try:
                    function(nobody, *[0] * (count - 1))
                    break
                except FailedPrecondition as error:
                    tried += 1
                    self.assertRegex(str(error), r"^[\w.]+\(\): the [a-z -]+ is closed$", name)
                    self.assertNotRegex(str(error), r"dist_|Text|Stragglers", name)
                    break
                except (TypeError, OverflowError):  # of another number of arguments, or a text
                    pass
        self.assertGreater(tried, 50)

    def test_a_number_that_is_none_names_its_option(self):
        with Strategy(1) as strategy, self.assertRaises(TypeError) as caught:
            strategy.run(lambda replica: replica.reduce_apply("SUM", [np.ones(1)], [np.ones(1)], learning_rate="x"))
        self.assertIsNone(re.search("dist_|double", str(caught.exception)))


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Objects whose __init__() has not run or has failed, copies, and timeouts that are no times."""

import copy
import gc
import importlib
import math
import pickle
import pkgutil
import sys
import threading
import unittest

import numpy as np

import libdist
from libdist import InvalidArgument, Strategy, Threads
from libdist._native import Native


def native_classes():
    for module in pkgutil.iter_modules(libdist.__path__):
        if module.name not in ("_cdist", "__cdist"):
            importlib.import_module(f"libdist.{module.name}")
    found, pending = [], [Native]
    while pending:
        for each in pending.pop().__subclasses__():
            found.append(each)
            pending.append(each)
    return found


class Objects(unittest.TestCase):
    def setUp(self):
        self.ignored = []
        before = sys.unraisablehook
        self.addCleanup(lambda: setattr(sys, "unraisablehook", before))
        sys.unraisablehook = self.ignored.append

    def test_an_object_without_init_is_deleted_quietly(self):
        for each in native_classes():
            with self.subTest(each.__name__):
                each.__new__(each)
                gc.collect()
                self.assertEqual([str(one.exc_value) for one in self.ignored], [])

    def test_an_init_that_fails_raises_its_own_exception_only(self):
        class Mine(Strategy):
            def __init__(self):
                raise KeyError("mine")

        with self.assertRaises(KeyError):
            Mine()
        for each in native_classes():
            with self.subTest(each.__name__), self.assertRaises(TypeError):
                each(no_such_option=3)
        gc.collect()
        self.assertEqual([str(one.exc_value) for one in self.ignored], [])

    def test_every_class_that_deletes_a_native_object_is_native(self):
        modules = [module for name, module in sys.modules.items() if name.startswith("libdist.") and ".tf" not in name]
        for each in {each for module in modules for each in vars(module).values() if isinstance(each, type)}:
            if not each.__name__.startswith("_") and hasattr(each, "__del__") and hasattr(each, "_handle"):
                self.assertTrue(issubclass(each, Native), each)

    def test_copies_and_pickles_are_refused(self):
        with Strategy(2, threads=Threads.LIBRARY) as strategy:
            objects = [strategy, strategy.variable(np.ones(2)), libdist.Cancel(), strategy.group([0, 1]), libdist.Budget(2)]
            objects += [libdist.ClusterSpec({"worker": ["a:1"]}), strategy.per_replica([np.ones(1), np.ones(1)])]
            objects += [strategy.submit(lambda replica: 0), libdist.Versions(), strategy.metric()]
            for each in objects:
                for call in (copy.copy, copy.deepcopy, pickle.dumps):
                    with self.subTest(type(each).__name__), self.assertRaisesRegex(TypeError, type(each).__name__):
                        call(each)
            strategy.run(lambda replica: self.assertRaises(TypeError, copy.copy, replica))
        gc.collect()
        self.assertEqual([str(one.exc_value) for one in self.ignored], [])

    def test_times_that_are_none(self):
        with Strategy(1, threads=Threads.LIBRARY) as strategy, strategy.batcher(lambda replica, batch: None) as batcher:

            def run(timeout):
                return strategy.run(lambda replica: 1, timeout=timeout)[0]

            def submit(timeout):
                return strategy.submit(lambda replica: 1, timeout=timeout).result()

            def item(timeout):
                batcher.submit(timeout=timeout).result()
                return 1

            def barrier(timeout):
                strategy.run(lambda replica: replica.barrier(timeout=timeout))
                return 1

            for call in (run, submit, item, barrier):
                with self.subTest(call.__name__):
                    self.assertEqual([call(each) for each in (None, math.inf, 1e300, np.float32(60), 60)], [1] * 5)
                    with self.assertRaisesRegex(InvalidArgument, "nan"):
                        call(math.nan)
                    with self.assertRaisesRegex(TypeError, "timeout is '3', but must be a positive number of seconds"):
                        call("3")
            for call in (run, submit, item):
                for bad in (-1, -math.inf):
                    with self.subTest(call.__name__), self.assertRaisesRegex(InvalidArgument, f"timeout is {bad}, but must be .*None"):
                        call(bad)


class Hooks(unittest.TestCase):
    """Debuggers and coverage tools see functions on libdist's threads."""

    def test_trace_and_profile(self):
        seen = set()

        def hook(frame, event, argument):
            if frame.f_code.co_name == "traced_function":
                seen.add((event, threading.get_ident()))
            return hook

        def traced_function(replica):
            return threading.get_ident()

        for install, event in ((threading.settrace, "line"), (threading.setprofile, "return")):
            seen.clear()
            install(hook)
            try:
                with Strategy(3, threads=Threads.LIBRARY) as strategy:
                    threads = strategy.run(traced_function)
            finally:
                install(None)
            with self.subTest(event):
                self.assertEqual({(event, thread) for thread in threads} - seen, set())


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Options: each reaches C, and methods show it in their signature and their text."""

import dataclasses
import inspect
import subprocess
import sys
import threading
import unittest

import numpy as np

import libdist
from libdist import _option_fields as fields
from libdist._callbacks import Kept

# A value of each type, and what C gets.
VALUES = {
    "bool": (True, 1),
    "int": (7, 7),
    "Optional[int]": (7, 7),
    "TaskId": (7, 7),
    "float": (0.5, 0.5),
    "Optional[float]": (0.5, 0.5),
    "Optional[str]": ("abc", "abc"),
    "str": ("abc", "abc"),
    "Timeout": (1.5, 1500000000),
    "Limit": (1.5, 1500000000),
    "Delay": (1.5, 1500000000),
    "Optional[bool]": (True, 1),
}
# Their fields have other names, or functions that set them.
RENAMED = {"group": (False, "ungrouped", 1), "namespace": ("abc", "name_space", "abc")}
SET_ONLY = {"task_type", "rpc_layer", "initial", "max_workers"}


def value_of(annotation):
    """A value of an option, and what C gets; None if C has no such field."""
    kind = getattr(libdist, annotation.removeprefix("Optional[").removesuffix("]"), None)
    if inspect.isclass(kind) and issubclass(kind, int):
        member = list(kind)[-1]
        return member, int(member)
    return VALUES.get(annotation)


def simple(parameters):
    """(name, value, field, what C gets) of the options that are one field with a getter."""
    for name, annotation in parameters:
        if name in RENAMED and not annotation.startswith("Optional[Group"):
            yield name, *RENAMED[name]
        elif value_of(annotation) and name not in SET_ONLY:
            value, expected = value_of(annotation)
            yield name, value, name, expected


def read(native, name):
    return getattr(native, name) if hasattr(native, name) else getattr(native, f"{name}_ns")


class Fields(unittest.TestCase):
    def test_each_option_with_a_getter_reaches_its_field(self):
        tried = set()
        for record, (_, makers) in fields.MAKERS.items():
            maker = makers[0]
            parameters = inspect.signature(maker).parameters
            if "token" in parameters:  # a call
                continue
            kept = [Kept()] if parameters.get("kept", None) and parameters["kept"].annotation == "Kept" else []
            if "kept" in parameters and not kept:
                continue
            given = [(name, each.annotation) for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY]
            for name, value, field, expected in simple(given):
                with self.subTest(f"{record}.{name}"):
                    self.assertNotEqual(read(maker(*kept), field), expected)
                    self.assertEqual(read(maker(*kept, **{name: value}), field), expected)
                    tried.add(dict(given)[name])
        self.assertLessEqual({"bool", "int", "float", "Optional[str]", "Timeout", "Limit", "Delay", "Numerics"}, tried)

    def test_each_field_of_a_class_of_options_too(self):
        for record in (
            libdist.ClusterResolverOptions,
            libdist.SlurmOptions,
            libdist.KubernetesOptions,
            libdist.RendezvousOptions,
            libdist.CommunicationOptions,
        ):
            kept = [Kept()] if record is libdist.SlurmOptions else []
            for name, value, field, expected in simple([(one.name, one.type) for one in dataclasses.fields(record)]):
                with self.subTest(f"{record.__name__}.{name}"):
                    self.assertNotEqual(read(record()._native(*kept), field), expected)
                    self.assertEqual(read(record(**{name: value})._native(*kept), field), expected)

    def test_lists_objects_records_and_callbacks_reach_c(self):
        def step(replica):
            x = np.arange(4.0) + replica.id
            mean = replica.all_reduce("MEAN", np.ones(1) * replica.id, weights=[float(replica.id)])
            parts = replica.all_to_all(x, np.empty(2 if replica.id else 6), splits=[3, 1])
            largest = replica.all_reduce(lambda acc, values: np.maximum(acc, values, out=acc), x)
            return mean[0], parts.tolist(), largest.tolist()

        devices, patience = ["CPU:4", "CPU:7"], libdist.CommunicationOptions(timeout=0.25)
        with libdist.Strategy(2, devices=devices, communication=patience, budget=libdist.Budget(8)) as strategy:
            self.assertEqual([name.rpartition("/")[2] for name in strategy.devices], ["device:CPU:4", "device:CPU:7"])
            first, second = strategy.run(step)
            self.assertEqual(first, (1.0, [0.0, 1.0, 2.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0]))
            self.assertEqual(second, (1.0, [3.0, 4.0], [1.0, 2.0, 3.0, 4.0]))
            over = threading.Event()
            with self.assertRaisesRegex(libdist.DeadlineExceeded, "did not arrive"):
                strategy.run(lambda replica: over.wait(60) if replica.id else wait(replica, over))


def wait(replica, over):
    """Waits for a peer that does not come."""
    try:
        replica.barrier()
    finally:
        over.set()


class Shown(unittest.TestCase):
    def test_each_record_has_the_options_of_its_makers_and_their_texts(self):
        for name, (record, makers) in fields.MAKERS.items():
            known = {each for maker in makers for each in inspect.signature(maker).parameters}
            base = fields.Options.__annotations__ if name == "ApplyOptions" else {}
            for option in record.__annotations__:
                with self.subTest(f"{name}.{option}"):
                    self.assertIn(option, known)
                    if option not in base:
                        self.assertRegex(record.__doc__, rf"\n\n    {option}: \S")
            self.assertIs(getattr(libdist, name), record)

    def test_methods_show_each_option_with_its_type_and_default(self):
        parameters = inspect.signature(libdist.Strategy).parameters
        self.assertEqual(list(parameters)[0], "num_replicas")
        self.assertEqual(set(list(parameters)[1:]), set(libdist.StrategyOptions.__annotations__))
        self.assertEqual((parameters["kind"].annotation, parameters["kind"].default), ("StrategyKind", libdist.StrategyKind.MIRRORED))
        self.assertIn("timeout: limit on the time", inspect.getdoc(libdist.Strategy.run))
        self.assertIn("libdist.Options describes the options.", inspect.getdoc(libdist.Replica.all_reduce))
        self.assertIn("tag", inspect.signature(libdist.Replica.all_reduce).parameters)
        self.assertIn("splits", inspect.signature(libdist.Begin.all_to_all).parameters)

    def test_python_without_docstrings(self):
        program = "import inspect, libdist; inspect.signature(libdist.Strategy.run).parameters['timeout']"
        subprocess.run([sys.executable, "-OO", "-c", program], check=True)

    def test_options_of_both_records_of_reduce_apply(self):
        parameters = inspect.signature(libdist.Replica.reduce_apply).parameters
        self.assertLessEqual({"states", "learning_rate", "fn", "tag", "cancel"}, set(parameters))


if __name__ == "__main__":
    unittest.main()

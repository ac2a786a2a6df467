# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments: every public function says which of its arguments is wrong, and what it should be."""

import enum
import functools
import inspect
import math
import unittest

import numpy as np

import libdist
import libdist.tf as tf
from libdist import (
    Aggregation,
    CommunicationOptions,
    CrossDevice,
    HostFunctions,
    InvalidArgument,
    Numerics,
    ReduceOp,
    Strategy,
    Threads,
    Topology,
)
from libdist._arguments import OWN_CHECK, _Plan
from libdist.tf._missing import Namespace


class Wrong:
    """Of no type that any function takes."""

    def __repr__(self):
        return "<wrong>"


# Any object may be a value, and what a program keeps with libdist.
VALUES = {"value", "values", "indices", "dense_shape", "slices", "thing", "initial", "variable"}
KEPT = {"Batch.emit result", "Batch.set_state state", "Batcher.submit user_data", "Versions.publish content"}
# These are made by libdist. The classes of the second line only are a way to call the collectives of a replica.
RESULTS = {
    "Batcher", "Block", "CoordinatorStats", "Drift", "Item", "Properties", "RemoteValue", "RowPlace", "Rows", "RpcCall",
    "Shard", "Straggler", "UpdatePlace", "ValueContext", "VariablePart", "VariableSpec",
    "Begin", "Plan",
}  # fmt: skip
# Their fast paths have no checks, so the other arguments have to be there.
UNCHECKED = {"Replica.all_reduce": ("SUM", np.ones(1)), "Replica.broadcast": (0, np.ones(1))}


def functions():
    """Every public function with its name; those of objects have an object that is not initialized."""
    for name in libdist.__all__:
        thing = getattr(libdist, name)
        if inspect.isfunction(thing):
            yield name, thing
        if not inspect.isclass(thing) or issubclass(thing, (enum.Enum, BaseException, dict, np.ndarray)):
            continue
        if name not in RESULTS and thing.__init__ is not object.__init__:
            yield name, thing
        if issubclass(thing, tuple):
            continue
        for attribute in dir(thing):
            static = inspect.getattr_static(thing, attribute)
            if attribute.startswith("_") or isinstance(static, property) or attribute in vars(Future):
                continue
            if isinstance(static, (staticmethod, classmethod)):
                yield f"{name}.{attribute}", getattr(thing, attribute)
            elif inspect.isfunction(static):
                yield f"{name}.{attribute}", static.__get__(object.__new__(thing))


Future = libdist.Request.__mro__[2]


def parameters(function):
    """The names of the arguments of a function; its signature has its options, too."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            yield parameter.name


def tensorflow_functions():
    """Every function of libdist.tf, as functions() does."""
    spaces, seen = [("tf", tf)], set()
    while spaces:
        title, space = spaces.pop()
        for name in getattr(space, "__all__", None) or vars(space):
            thing = getattr(space, name, None)
            imported = inspect.isfunction(thing) and inspect.ismodule(space) and not hasattr(space, "__all__")
            if name.startswith("_") or id(thing) in seen or imported and thing.__module__ != space.__name__:
                continue
            seen.add(id(thing))
            if isinstance(thing, Namespace):
                spaces.append((f"{title}.{name}", thing))
            elif inspect.ismodule(thing) and thing.__name__.startswith("libdist.tf."):
                spaces.append((f"{title}.{name}", thing))
            elif inspect.isfunction(thing):
                yield f"{title}.{name}", thing
            elif inspect.isclass(thing) and not issubclass(thing, (enum.Enum, BaseException, tuple, np.ndarray)):
                if thing.__init__ is not object.__init__:
                    yield f"{title}.{name}", functools.partial(thing.__init__, object.__new__(thing))
                for attribute in dir(thing):
                    member = inspect.getattr_static(thing, attribute)
                    if inspect.isfunction(member) and not attribute.startswith("_"):
                        yield f"{title}.{name}.{attribute}", functools.partial(member, object.__new__(thing))


# Made by libdist, or not TensorFlow's: what its modules have from others.
TF_RESULTS = {"Namespace", "Mirrored", "PerReplica", "DistributedValues", "PerWorkerValue", "PerWorkerValues"}


class EveryFunction(unittest.TestCase):
    def test_those_of_tensorflow_too(self):
        tried = 0
        for title, function in tensorflow_functions():
            inner = function.func if isinstance(function, functools.partial) else function
            module, name = inner.__module__, title.split(".")[-1]
            if name in TF_RESULTS:
                continue
            plan = _Plan(inspect.unwrap(inner), module, inner is not function)
            for parameter, check in plan.by_name.items():
                if check is OWN_CHECK.check:
                    continue
                tried += 1
                with self.subTest(f"{title}: {parameter}"):
                    with self.assertRaisesRegex((TypeError, ValueError), rf"\(\): {parameter} is <wrong>, but must be "):
                        function(**{parameter: Wrong()})
        self.assertGreater(tried, 300)

    def test_each_names_what_is_wrong(self):
        tried = 0
        for title, function in functions():
            for name in parameters(function):
                if name in VALUES or f"{title} {name}" in KEPT or (title, name) == ("Tensor", "array"):
                    continue
                tried += 1
                if title in UNCHECKED:
                    continue
                with self.subTest(f"{title}: {name}"):
                    with self.assertRaisesRegex(TypeError, rf"^{title}\(\): {name} is <wrong>, but must be "):
                        function(**{name: Wrong()})
        self.assertGreater(tried, 500)

    def test_the_fast_collectives_too(self):
        def step(replica):
            for title, (first, x) in UNCHECKED.items():
                function = getattr(replica, title.partition(".")[2])
                for name in parameters(function):
                    given = {list(parameters(function))[0]: first, "x": x, name: Wrong()}
                    with self.assertRaisesRegex(TypeError, rf"\b{name} is (<wrong>|a Wrong)"):
                        function(**given)

        with Strategy(1) as strategy:
            strategy.run(step)

    def test_what_may_be_any_object_is_refused_by_its_use(self):
        wrong = Wrong()
        with Strategy(2) as strategy:
            variable = strategy.variable(np.ones(2))
            for name, call in (
                ("value", lambda: strategy.reduce("SUM", wrong)),
                ("value", lambda: variable.assign(wrong)),
                ("slices", lambda: variable.scatter(libdist.Scatter.ADD, wrong)),
                ("values", lambda: strategy.indexed_slices(wrong, wrong)),
                ("value", lambda: strategy.run(lambda replica: replica.all_reduce_value("SUM", wrong))),
                ("value", lambda: strategy.run(lambda replica: replica.assign_value(variable, wrong))),
            ):
                with self.assertRaisesRegex(InvalidArgument, rf"\b{name}\b"):
                    call()

    def test_every_public_class_is_checked(self):
        for name, function in functions():
            with self.subTest(name):
                inner = function.__init__ if inspect.isclass(function) else function
                inner = inner if not inspect.isclass(function) or not issubclass(function, tuple) else function.__new__
                self.assertTrue(hasattr(inner, "__wrapped__") or name in UNCHECKED or not list(parameters(function)))


class Arguments(unittest.TestCase):
    def refused(self, error, text, call, *arguments, **options):
        with self.assertRaisesRegex(error, f"^{text}"):
            call(*arguments, **options)

    def test_numbers(self):
        self.refused(TypeError, r"CommunicationOptions\(\): bytes_per_pack is 1.9, ", CommunicationOptions, bytes_per_pack=1.9)
        self.refused(TypeError, r"Strategy\(\): num_replicas is True, but must be an integer$", Strategy, True)
        self.refused(TypeError, r"Topology\(\): mesh_shape is 3, ", Topology, 3, [])
        self.refused(TypeError, r"Strategy\(\): devices\[1\] is 2, but must be a string$", Strategy, 2, devices=["CPU:0", 2])
        with Strategy(np.int64(2), helper_threads=np.False_) as strategy:
            self.assertEqual(strategy.num_replicas, 2)

    def test_times(self):
        for wrong in (math.nan, 0, 0.0):
            text = rf"Strategy\(\): timeout is {wrong}, but must be a positive number of seconds"
            self.refused(InvalidArgument, text, Strategy, 1, timeout=wrong)
        self.refused(TypeError, r"Strategy\(\): timeout is '3', ", Strategy, 1, timeout="3")
        with Strategy(1, threads=Threads.LIBRARY) as strategy:
            self.refused(InvalidArgument, r"Strategy.submit\(\): timeout is 0, ", strategy.submit, lambda r: 1, timeout=0)
            self.refused(InvalidArgument, r"Strategy.shutdown\(\): timeout is nan", strategy.shutdown, math.nan)
            self.refused(InvalidArgument, r"Strategy.batcher\(\): max_delay is -1, ", strategy.batcher, print, max_delay=-1)
            with strategy.instances(spin=0):
                self.assertEqual(strategy.submit(lambda replica: 1).result(timeout=60), 1)

    def test_enums(self):
        with Strategy(1) as strategy:
            text = r"Strategy.variable\(\): aggregation is 'SUM', but must be a libdist.Aggregation$"
            self.refused(TypeError, text, strategy.variable, 1.0, aggregation="SUM")
            text = r"Strategy.variable\(\): aggregation is <Numerics.TREE: \d+>, but must be a libdist.Aggregation$"
            self.refused(TypeError, text, strategy.variable, 1.0, aggregation=Numerics.TREE)
            self.assertIs(strategy.variable(1.0, aggregation=int(Aggregation.SUM)).aggregation, Aggregation.SUM)
            self.refused(InvalidArgument, "variable .*aggregation is 3079; use one of", strategy.variable, 1.0, aggregation=3079)
            self.refused(InvalidArgument, r"Strategy.reduce\(\): op is 'ADD', ", strategy.reduce, "ADD", 1.0)

    def test_options(self):
        with Strategy(1) as strategy:
            text = r"Replica.all_reduce\(\): tags is not an option. The options are numerics, tag, "
            self.refused(TypeError, text, strategy.run, lambda replica: replica.all_reduce(ReduceOp.SUM, 1.0, tags=1))
            text = r"Strategy.dataset_from_tensors\(\): batch is not an option. The options are drop_remainder, "
            self.refused(TypeError, text, strategy.dataset_from_tensors, np.ones(2), batch=1)

    def test_tensors(self):
        def reduced(x, out=None):
            return strategy.run(lambda replica: replica.all_reduce("SUM", x, out))

        frozen = np.ones(1)
        frozen.flags.writeable = False
        with Strategy(1) as strategy:
            self.refused(TypeError, r"Replica.all_reduce\(\): x\[0\] is 'a', but must be an array, ", reduced, ["a"])
            self.refused(InvalidArgument, r"Replica.all_reduce\(\): x is .* one of the dtypes F16, ", reduced, np.ones(1, "c16"))
            self.refused(InvalidArgument, r"Replica.all_reduce\(\): out is .*a writable array", reduced, 1.0, frozen)
            self.refused(TypeError, r"Strategy.variable\(\): initial is 'x', but must be ", strategy.variable, "x")

    def test_arguments_that_do_not_go_together(self):
        self.refused(InvalidArgument, r"CrossDevice\(\): functions has no reduce", CrossDevice, functions=HostFunctions())
        text = r"CrossDevice\(\): accumulate_element_bytes is given without accumulate$"
        self.refused(InvalidArgument, text, CrossDevice, accumulate_element_bytes=8)
        self.refused(InvalidArgument, r"Strategy\(\): max_workers is given without executor$", Strategy, max_workers=1)

    def test_missing_ones_are_of_the_public_class(self):
        with Strategy(1) as strategy:
            self.refused(TypeError, r"Strategy.reduce\(\) missing 1 required positional argument: 'value'", strategy.reduce, 1)

    def test_an_object_whose_text_fails(self):
        class Odd:
            def __repr__(self):
                raise RuntimeError

        self.refused(TypeError, r"Strategy\(\): num_replicas is a Odd, but must be an integer$", Strategy, Odd())


if __name__ == "__main__":
    unittest.main()

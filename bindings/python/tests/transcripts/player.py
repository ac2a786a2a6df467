# SPDX-License-Identifier: Apache-2.0
"""Plays one case of a transcript: makes its calls, is its functions, holds each answer to what is written."""

import re
import threading

import numpy as np

import libdist
from libdist import DistError, Tensor

from calls import CALLS
from given import Answers, Given, NotInPython
from lines import literal_of, quoted, same_literal, same_tree, tensor_of, text_of, tree_of

_NAME = re.compile(r"^[srvxdictapqn]\d+$")
_TENSOR = re.compile(r"^(b?f\d+|[iu]\d+|c64|bool):[\d,]*:[0-9a-f]*$")


def own_words(text):
    """A text of C's that this package gives before C is called: only the function's name differs."""
    function, found, said = text.partition("(): ")
    return libdist._cdist.own_words(f"\x0e{function}()\x0f: {said}") if found else text


class Player:
    """One case."""

    def __init__(self, lines):
        self.lines = lines
        self.objects = {}
        self.names = {}
        self.faults = []
        self.lock = threading.RLock()
        self.local = threading.local()
        self.all_scopes = []
        self.cross_devices = []  # libdist keeps what a strategy was made with; so does Strategy

    def play(self):
        """The faults; raises NotInPython."""
        try:
            for line in self.lines:
                self.call(line)
        finally:
            for scope in reversed(self.scopes):
                scope.__exit__(None, None, None)
            libdist.set_strategy(None)
            for thing in self.objects.values():
                if isinstance(thing, (libdist.Dataset, libdist.DatasetIterator)):
                    thing.close()
            for thing in self.objects.values():
                if isinstance(thing, libdist.Strategy) and thing._owned:
                    thing.close()
        if not self.faults:
            self.check_played(self.lines, False)
        return self.faults

    @property
    def scopes(self):
        """Of this thread: what it has entered."""
        if not hasattr(self.local, "scopes"):
            self.local.scopes = []
        return self.local.scopes

    def fault(self, line, text):
        self.faults.append(f"{line}: {text}")

    def check_played(self, lines, functions):
        for line in lines:
            if functions and not line.used and line.name not in ("source", "file"):
                self.fault(line, "the function has not been called")
            self.check_played(line.below, not functions)

    # ---- objects -------------------------------------------------------------------------------------------

    def object(self, name):
        with self.lock:
            return self.objects[name]

    def bind(self, name, thing):
        with self.lock:
            self.objects[name] = thing
            if name[0] != "v":
                self.names[id(thing)] = (name, thing)

    def name_of(self, thing):
        with self.lock:
            return self.names.get(id(thing), ("an object without a name", None))[0]

    # ---- calls ---------------------------------------------------------------------------------------------

    def call(self, line):
        """Makes a call, and compares."""
        if line.name == "workers":
            self.workers(line)
            return
        function = CALLS.get(line.name)
        if function is None:
            raise NotImplementedError(f"{line}: a call that the player does not know")
        self.local.line = line
        try:
            answer = function(Given(self, line))
        except DistError as error:
            self.local.cause = error
            came = {"status": int(error.status), "error": re.sub("[\x0e\x0f]", "", error._told) or str(error)}
        else:
            came = answer if isinstance(answer, Answers) else {"out": answer}
            if "status" in line.answered:
                came["status"] = 0
        self.compare(line, line.answered, came)

    def workers(self, line):
        """Makes each worker's calls, on a thread of its own."""
        failures = []

        def play(worker):
            try:
                for call in worker.below:
                    self.call(call)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=play, args=(worker,)) for worker in line.below]
        for worker in line.below:
            worker.used = True
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for failure in failures:
            raise failure

    def compare(self, line, expected, came):
        for key, literal in expected.items():
            if key.endswith(".is") and key[:-3] in came:
                continue  # with the value itself
            if key not in came:
                self.fault(line, f"no {key} came, expected {literal[:200]}; but {came}")
                return
            tree = expected.get(key + ".is")
            if not self.same(literal, came[key], tree, key):
                self.fault(line, f"{key} is {self.shown(came[key])}, expected {tree or literal[:300]}")
                return
        extra = set(came) - set(expected)
        if extra and came.get("out", None) is not None:
            self.fault(line, f"{extra} came, expected nothing")

    def shown(self, thing):
        if isinstance(thing, (int, str, type(None))):
            return repr(thing)
        try:
            return " ".join(tree_of(thing, self.name_of))[:300]
        except Exception:
            return repr(thing)

    def same(self, literal, thing, tree, key):
        """Whether a thing is what a literal says; a name is bound to it."""
        if literal == "?":
            return True
        if literal == "-":
            return thing is None
        if literal.startswith("t:"):
            text = text_of(literal)
            return thing == text or (key == "error" and thing == own_words(text))
        if _NAME.match(literal):
            self.bind(literal, thing)
            return tree is None or same_tree(tree, tree_of(thing, self.name_of))
        if _TENSOR.match(literal):
            return isinstance(thing, (np.ndarray, Tensor)) and same_literal(literal, literal_of(thing))
        if literal.startswith("("):
            items = literal[1:-1].split()
            return len(items) == len(thing) and all(self.same(a, b, None, key) for a, b in zip(items, thing))
        return int(literal) == int(thing)

    # ---- the program's functions ---------------------------------------------------------------------------

    def function(self, kind):
        """The function that the call under way is given."""
        call = self.local.line
        return lambda *args, **kwargs: FUNCTIONS[kind](self, call, *args, **kwargs)

    def take(self, call, kind, fits, again=False):
        """The line of a call by libdist, which is used up unless the function is a table."""
        with self.lock:
            for line in call.below:
                if line.name == kind and (again or not line.used) and fits(line.given):
                    line.used = True
                    return line
        self.fault(call, f"its function {kind} was called as no line says")
        raise libdist.Unknown("the player cannot go on")

    def perform(self, line, given=(), table=False):
        """Does what a function's line says; its result."""
        for key, thing in dict(given).items():
            if key in line.given and not self.same(line.given[key], thing, line.given.get(key + ".is"), key):
                self.fault(line, f"it got {self.shown(thing)} as {key}, expected {line.given.get(key + '.is')}")
        self.local.cause = None
        if not table or not line.used:
            for below in line.below:
                self.call(below)
        status = int(line.answered["status"])
        if status:
            text = line.answered.get("error", "t:")
            cause = getattr(self.local, "cause", None)
            if cause is not None and int(cause.status) == status and text in ("?", quoted(str(cause))):
                raise cause
            raise libdist.error_of(status, "a replica failed" if text == "?" else text_of(text))
        result = line.answered.get("result", "-")
        return None if result == "-" else self.object(result)


def _packed(args, literal):
    """Positional arguments as the list or tuple that they are to C."""
    return list(args) if literal is None or literal.startswith("(list") else tuple(args)


def _given(line, args, kwargs):
    given = {}
    if "args" in line.given:
        given["args"] = _packed(args, line.given.get("args.is"))
    if "kwargs" in line.given:
        given["kwargs"] = kwargs
    return given


def _replica(player, call, replica, *args, **kwargs):
    line = player.take(call, "replica", lambda given: int(given["id"]) == replica.id)
    return player.perform(line, {"replica": replica, **_given(line, args, kwargs)})


def _merge(player, call, strategy, *args):
    line = player.take(call, "merge", lambda given: True)
    return player.perform(line, {"strategy": strategy, **_given(line, args, {})})


def _changed(line, copy):
    if "copy" in line.answered:
        after = tensor_of(line.answered["copy"])
        if isinstance(copy, Tensor):
            copy.array[...] = after.array
        else:
            copy[...] = after


def _parallel_update(player, call, place, *args):
    now = literal_of(place.copy)

    def fits(given):
        wanted = given.get("args.is")
        same = wanted is None or same_tree(wanted, tree_of(_packed(args, wanted), player.name_of))
        return same_literal(given["copy"], now) and same

    line = player.take(call, "update", fits)
    _changed(line, place.copy)
    player.perform(line, _given(line, args, {}))


def _update(player, call, place, *args, **kwargs):
    now = None if place.copy is None else literal_of(place.copy)

    def fits(given):
        same = now is None or same_literal(given["copy"], now)
        return int(given["replica"]) == place.replica and text_of(given["device"]) == place.device and same

    line = player.take(call, "update", fits)
    if place.copy is not None:
        _changed(line, place.copy)
    return player.perform(line, _given(line, args, kwargs))


def _value(player, call, context):
    line = player.take(call, "value", lambda given: int(given["replica_id_in_sync_group"]) == context.replica_id)
    return player.perform(line, {"num_replicas_in_sync": context.num_replicas})


def _initial(player, call):
    return player.perform(player.take(call, "initial", lambda given: True))


def _element(player, call, kind, **numbers):
    line = player.take(call, kind, lambda given: all(int(given[key]) == n for key, n in numbers.items()), again=True)
    with player.lock:
        return player.perform(line)


def _dataset(player, call, context):
    line = player.take(call, "dataset", lambda given: int(given["input_pipeline_id"]) == context.input_pipeline_id)
    made = player.perform(line, {name: getattr(context, name) for name in context.__slots__})
    if not isinstance(made, libdist.Dataset):
        raise NotInPython("a function that makes no dataset is a TypeError")
    return made


def _accumulate(player, call, acc, values):
    given = (literal_of(acc), literal_of(values))
    line = player.take(
        call, "accumulate", lambda g: same_literal(g["acc"], given[0]) and same_literal(g["in"], given[1])
    )
    acc[...] = tensor_of(line.answered["acc"])


FUNCTIONS = {
    "replica": _replica,
    "merge": _merge,
    "update": _update,
    "parallel update": _parallel_update,
    "value": _value,
    "initial": _initial,
    "source": lambda player, call, index: _element(player, call, "source", index=index),
    "file": lambda player, call, file, name, index: _element(player, call, "file", file=file, index=index),
    "dataset": _dataset,
    "accumulate": _accumulate,
}

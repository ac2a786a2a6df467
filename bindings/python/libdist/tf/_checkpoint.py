# SPDX-License-Identifier: Apache-2.0
"""Saves what a checkpoint holds to a file, and loads it."""

from __future__ import annotations

import os
from typing import Any, Optional

import numpy as np

import libdist
from libdist._runs import current

from ._module import variables_in, watch
from ._remote import RemoteVariable
from ._variable import Variable

COUNTER = "save_counter"
RUNS = "checkpointed_runs"
"""The variable in which a PreemptionCheckpointHandler keeps its total_run_calls, as in TensorFlow."""
RUNS_TEXT = "preemption.total_run_calls"
"""The same number as a metadata text, which libdist.PreemptionHandler reads and writes."""


def held_by(checkpoint: Any) -> dict[str, Variable]:
    """Returns the variables by name: those of the root under their own names, and the save counter if there is one."""
    found: dict[str, Variable] = {}
    for path, variable in variables_in(checkpoint):
        name = path.removeprefix("_root/")
        if not name.startswith("_counter"):
            found[name] = variable
    counter = checkpoint.__dict__["_counter"]
    if counter is not None:
        found[COUNTER] = counter
    return found


def owner_of(variables: dict[str, Variable]) -> libdist.Strategy:
    """Returns the strategy that writes the file: that of the scope, or else that of the first variable that has one."""
    if libdist.has_strategy():
        return libdist.get_strategy()
    owners = (variable._owner for variable in variables.values() if not variable._plain)
    return next(owners, libdist.get_strategy())


def _has(owner: libdist.Strategy, variable: Variable) -> bool:
    """Returns whether the variable belongs to this strategy, in this process."""
    return variable._owner is owner and not isinstance(variable, RemoteVariable)


def _value(variable: Variable) -> Any:
    """Returns the value of another strategy's variable, as reading it there would return."""
    if isinstance(variable, RemoteVariable):
        return np.asarray(variable)
    native = variable._native
    copies = [np.array(native._copy(copy)) for copy in range(native.num_copies)]
    if native.synchronization != libdist.Synchronization.ON_READ or len(copies) == 1:
        return copies[0]
    if native.aggregation == libdist.Aggregation.ONLY_FIRST_REPLICA:
        return copies[0]
    if native.aggregation == libdist.Aggregation.NONE:
        raise ValueError(f"{variable.name} has aggregation NONE: nobody knows which copy is to be saved")
    total = np.add.reduce(copies).astype(copies[0].dtype)
    mean = native.aggregation == libdist.Aggregation.MEAN
    return (total / total.dtype.type(len(copies))).astype(total.dtype) if mean else total


def _give(variable: Variable, value: Any) -> None:
    """Assigns a value to another strategy's variable."""
    if isinstance(variable, RemoteVariable):
        variable.assign(value)
        return
    native = variable._native
    summed = native.synchronization == libdist.Synchronization.ON_READ and native.aggregation == libdist.Aggregation.SUM
    if summed and native.num_copies > 1:
        value = (value / native.num_copies).astype(value.dtype)
    for copy in range(native.num_copies):
        native._copy(copy)[...] = value


def _texts(checkpoint: Any) -> Optional[dict[str, str]]:
    """Returns the metadata texts: the number of runs, for the checkpoint of a preemption handler."""
    reference = checkpoint.__dict__.get("_handler")
    handler = None if reference is None else reference()
    if handler is None or current.replicas or not handler._strategy._native._handle:
        return None
    runs = handler.total_run_calls
    handler._counter.assign(runs)
    return {RUNS_TEXT: str(runs)}


def save(checkpoint: Any, path: str) -> bool:
    """Implements Checkpoint.write(). Returns whether this worker has written the file."""
    texts = _texts(checkpoint)
    held = held_by(checkpoint)
    if not held:
        raise ValueError("the checkpoint has no variables: Checkpoint(name=variable, ...), or set them as attributes")
    owner = owner_of(held)
    natives: dict[str, libdist.Variable] = {}
    passing = []
    for name, variable in held.items():
        if _has(owner, variable):
            natives[name] = variable._native
        else:
            passing.append(owner.variable(_value(variable), name=name))
            natives[name] = passing[-1]
    try:
        owner.save_checkpoint(path, natives, metadata=texts)
    finally:
        for temporary in passing:
            temporary.close()
    return owner.query().worker == 0


class Status:
    """The result of read() and restore(): the variables that got a value from the file, and those that did not."""

    def __init__(self, checkpoint: Any, path: Optional[str]) -> None:
        self._checkpoint = checkpoint
        self._path = path
        self._pending: dict[str, Any] = {}
        self._given: dict[str, Variable] = {}

    def _restore(self) -> None:
        """Assigns values to all variables that can be reached now and have not got their values yet."""
        for name, variable in held_by(self._checkpoint).items():
            if name in self._pending and self._given.get(name) is not variable:
                value = self._pending[name]
                if tuple(value.shape) != tuple(variable.shape):
                    raise ValueError(
                        f"Received incompatible tensor with shape {tuple(value.shape)} when attempting to restore "
                        f"variable with shape {variable.shape} and name {variable.name}."
                    )
                _give(variable, value.astype(variable.dtype))
                self._given[name] = variable

    def _later(self) -> None:
        self._restore()
        if len(self._given) < len(self._pending):
            watch(self._checkpoint, self._later)

    def _missing_values(self) -> list[str]:
        held = held_by(self._checkpoint)
        held.pop(COUNTER, None)
        return [f"{name}: {variable!r}" for name, variable in held.items() if name not in self._given]

    def assert_existing_objects_matched(self) -> Status:
        """Raises AssertionError if a variable has no value in the file."""
        self._specified()
        left = self._missing_values()
        if left:
            raise AssertionError(f"Found {len(left)} Python objects that were not bound to checkpointed values: {left}")
        return self

    def assert_consumed(self) -> Status:
        """Raises AssertionError if a variable has no value in the file, or if a value of the file was not used."""
        self.assert_existing_objects_matched()
        left = sorted(name for name in self._pending if name not in self._given and name != COUNTER)
        if left:
            raise AssertionError(f"Unresolved objects in checkpoint: {', '.join(left)}")
        return self

    def assert_nontrivial_match(self) -> Status:
        """Raises AssertionError if no variable has a value in the file."""
        self._specified()
        if not set(self._given) - {COUNTER}:
            raise AssertionError("Nothing except the root object matched a checkpointed value.")
        return self

    def expect_partial(self) -> Status:
        """Declares that not everything needs to match. Has no effect, because there are no warnings."""
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Does nothing: values are assigned when the file is read."""

    run_restore_ops = initialize_or_restore

    def _specified(self) -> None:
        if self._path is None:
            raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")


def load(checkpoint: Any, path: str) -> Status:
    """Implements Checkpoint.read()."""
    if not os.path.exists(path):
        raise libdist.NotFound(
            f"there is no checkpoint {path!r}: save() writes a number behind the name, and gives the path"
        )
    watch(checkpoint, None)
    status = Status(checkpoint, path)
    held = held_by(checkpoint)
    owner = owner_of(held)
    with owner.open_checkpoint(path) as file:
        names = set(file.names())
        ours = {name: one for name, one in held.items() if name in names and _has(owner, one)}
        for name, variable in ours.items():
            shape = tuple(file.spec(name)[1])
            if shape != tuple(variable.shape):
                raise ValueError(
                    f"Received incompatible tensor with shape {shape} when attempting to restore variable with shape "
                    f"{variable.shape} and name {variable.name}."
                )
        status._pending = {name: None if name in ours else np.array(file.read(name)) for name in names}
    if ours:
        owner.load_checkpoint(path, {name: variable._native for name, variable in ours.items()})
    status._given = dict(ours)
    status._later()
    return status

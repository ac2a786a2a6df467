# SPDX-License-Identifier: Apache-2.0
"""tf.train in the small: checkpoints of variables."""

from __future__ import annotations

import os
from typing import Any, Union

import libdist

from ._variable import Variable

Path = Union[str, "os.PathLike[str]"]


class Checkpoint:
    """Variables under the names that they are given here, in one safetensors file."""

    def __init__(self, **variables: Variable) -> None:
        for name, variable in variables.items():
            if not isinstance(variable, Variable):
                raise ValueError(f"{name} is no tf.Variable: a checkpoint holds variables, by name")
        self._variables = variables

    def _native(self) -> tuple[libdist.Strategy, dict[str, libdist.Variable]]:
        if not self._variables:
            raise ValueError("the checkpoint has no variables: Checkpoint(name=variable, ...)")
        owner = next(iter(self._variables.values()))._owner
        return owner, {name: variable._native for name, variable in self._variables.items()}

    def write(self, file_prefix: Path) -> str:
        """Writes the file, in one step: the old one or the new one is there, whole."""
        owner, variables = self._native()
        libdist.save_checkpoint(owner, file_prefix, variables)
        return os.fspath(file_prefix)

    save = write

    def read(self, save_path: Path) -> Any:
        """Gives the variables the values that a file has for them, under any strategy and number of replicas."""
        owner, variables = self._native()
        libdist.load_checkpoint(owner, save_path, variables)
        return self

    restore = read

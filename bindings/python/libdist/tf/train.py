# SPDX-License-Identifier: Apache-2.0
"""A small tf.train: checkpoints, each of which is one safetensors file."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from typing import Any, Callable, Optional, Union, cast

import numpy as np

import libdist
from libdist._arguments import checked

from ._checkpoint import Status, load, save
from ._cluster import ClusterSpec
from ._missing import Refusing, missing
from ._module import Watched, is_trackable
from ._options import VariableAggregation
from ._variable import Variable

__getattr__ = missing("tf.train")

_FIRST = VariableAggregation.ONLY_FIRST_REPLICA
Path = Union[str, os.PathLike[str]]


@checked
@dataclass
class CheckpointOptions:
    """Accepted without effect: a file is complete before save() returns."""

    experimental_io_device: Optional[str] = None
    experimental_enable_async_checkpoint: bool = False
    experimental_write_callbacks: Any = None
    enable_async: bool = False
    experimental_skip_slot_variables: bool = False
    experimental_sharding_callback: Any = None


@checked
class Checkpoint(Watched):
    """Variables, and modules, metrics, lists, tuples and dictionaries that hold them, under the names of attributes.

    Attributes that are set later belong to it too. A file has a tensor for each variable, such as "model/layers/0/w".
    """

    _tf_name = "tf.train.Checkpoint"

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        for name, thing in kwargs.items():
            if not is_trackable(thing):
                raise ValueError(
                    f"`Checkpoint` was expecting {name} to be a trackable object: a tf.Variable, tf.Module, metric, "
                    f"list, tuple or dict, got {thing!r}."
                )
        if root is not None and not is_trackable(root):
            raise ValueError(f"`Checkpoint` was expecting root to be a trackable object, got {root!r}.")
        self.__dict__["_root"] = root
        self.__dict__["_counter"] = None
        for name, thing in kwargs.items():
            setattr(self, name, thing)

    @property
    def save_counter(self) -> Variable:
        """The number of times save() was called. It is saved and restored too."""
        counter: Any = self.__dict__["_counter"]
        if counter is None:
            first = np.zeros((), np.int64)
            counter = Variable(first, trainable=False, name="save_counter", aggregation=_FIRST)
            self.__dict__["_counter"] = counter
        return cast(Variable, counter)

    def write(self, file_prefix: Path, options: Optional[CheckpointOptions] = None) -> str:
        """Writes a file with this name in one step: the path has either the old file or the complete new one."""
        save(self, os.fspath(file_prefix))
        return os.fspath(file_prefix)

    def save(self, file_prefix: Path, options: Optional[CheckpointOptions] = None) -> str:
        """Writes a file with a number after its name and returns the path, "model-1". latest_checkpoint() finds it."""
        self.save_counter.assign_add(1)
        path = f"{os.fspath(file_prefix)}-{int(self.save_counter)}"
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        if save(self, path):  # on one of several workers
            directory = os.path.dirname(path)
            known = [one for one in _listed(directory) if one != path]
            _list(directory, [*known, path])
        return path

    def read(self, save_path: Path, options: Optional[CheckpointOptions] = None) -> Status:
        """Loads the values of variables from a file, under any strategy and with any number of replicas.

        Variables that are set as attributes later get their values then. The result has the variables that matched.
        """
        return load(self, os.fspath(save_path))

    def restore(self, save_path: Optional[Path], options: Optional[CheckpointOptions] = None) -> Status:
        """Loads a file of save(), like read(). None loads nothing, as if latest_checkpoint() found no file."""
        if save_path is None:
            return Status(self, None)
        int(self.save_counter)  # creates the counter, so that it is restored too
        return self.read(save_path)

    def sync(self) -> None:
        """Does nothing: a file is complete when save() returns."""


# ---- the files of a folder -------------------------------------------------------------------------------------------


def _listed(directory: str) -> list[str]:
    """Returns the paths in the file "checkpoint", the latest one last."""
    try:
        with open(os.path.join(directory, "checkpoint"), encoding="utf-8") as file:
            names = re.findall(r'^all_model_checkpoint_paths: "(.*)"$', file.read(), re.MULTILINE)
    except FileNotFoundError:
        return []
    return [os.path.join(directory, name) for name in names]


def _list(directory: str, paths: list[str]) -> None:
    names = [os.path.relpath(path, directory or ".") for path in paths]
    lines = [f'model_checkpoint_path: "{names[-1]}"'] if names else []
    lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
    path = os.path.join(directory, "checkpoint")
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(path + ".tmp", path)


@checked
def latest_checkpoint(checkpoint_dir: Path, latest_filename: Optional[str] = None) -> Optional[str]:
    """Returns the path of the latest file that save() wrote in a folder; None if there is none."""
    paths = [path for path in _listed(os.fspath(checkpoint_dir)) if os.path.exists(path)]
    return paths[-1] if paths else None


@checked
def list_variables(ckpt_dir_or_file: Path) -> list[tuple[str, list[int]]]:
    """Returns (name, shape) for each tensor of a file, or of the latest file of a folder."""
    with _open(ckpt_dir_or_file) as file:
        return [(name, list(file.spec(name)[1])) for name in sorted(file.names())]


@checked
def load_variable(ckpt_dir_or_file: Path, name: str) -> Any:
    """Returns a tensor of a file, or of the latest file of a folder."""
    with _open(ckpt_dir_or_file) as file:
        return np.array(file.read(name))


def _open(path: Path) -> libdist.Checkpoint:
    path = os.fspath(path)
    if os.path.isdir(path):
        latest = latest_checkpoint(path)
        if latest is None:
            raise libdist.NotFound(f"there is no checkpoint in {path!r}")
        path = latest
    return libdist.get_strategy().open_checkpoint(path)


@checked
class CheckpointManager(Refusing):
    """Keeps the latest files of a checkpoint in a folder and removes older ones."""

    _tf_name = "tf.train.CheckpointManager"

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Path,
        max_to_keep: Optional[int],
        keep_checkpoint_every_n_hours: Optional[float] = None,
        checkpoint_name: str = "ckpt",
        step_counter: Optional[Variable] = None,
        checkpoint_interval: Optional[int] = None,
        init_fn: Optional[Callable[[], Any]] = None,
    ) -> None:
        """max_to_keep: number of files to keep; None = all.

        checkpoint_interval: save() does nothing until step_counter has advanced by this number.
        """
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed if `checkpoint_interval` is not None.")
        self._checkpoint = checkpoint
        self._directory = os.fspath(directory)
        self._max_to_keep = max_to_keep
        self._hours = keep_checkpoint_every_n_hours
        self._name = checkpoint_name
        self._step_counter = step_counter
        self._interval = checkpoint_interval
        self._last_step: Optional[int] = None
        self._init_fn = init_fn
        self._last_kept = time.time()
        self._look_again()

    def _look_again(self) -> None:
        """Looks in the folder for files."""
        self._paths = [path for path in _listed(self._directory) if os.path.exists(path)]

    @property
    def directory(self) -> str:
        """The folder of the files."""
        return self._directory

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint that is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> Optional[int]:
        """The number of steps between two files."""
        return self._interval

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the files that are kept, the latest one last."""
        return list(self._paths)

    @property
    def latest_checkpoint(self) -> Optional[str]:
        """The path of the latest file; None if there is none."""
        return self._paths[-1] if self._paths else None

    def save(
        self,
        checkpoint_number: Optional[int] = None,
        check_interval: bool = True,
        options: Optional[CheckpointOptions] = None,
    ) -> Optional[str]:
        """Writes the next file and returns its path; None if the interval has not passed."""
        if self._interval is not None and self._step_counter is not None:
            step = int(self._step_counter)
            if check_interval and self._last_step is not None and step < self._last_step + self._interval:
                return None
            self._last_step = step
        os.makedirs(self._directory, exist_ok=True)
        counter = self._checkpoint.save_counter
        counter.assign_add(1)
        number = int(counter) if checkpoint_number is None else int(checkpoint_number)
        path = os.path.join(self._directory, f"{self._name}-{number}")
        writes = save(self._checkpoint, path)
        self._paths = [*(one for one in self._paths if one != path), path]
        listed = list(self._paths)
        if writes:  # before others are removed, so that a file that is listed exists if the process ends in between
            _list(self._directory, listed)
        self._sweep(writes)
        if writes and self._paths != listed:
            _list(self._directory, self._paths)
        return path

    def _sweep(self, writes: bool) -> None:
        """Removes old files. writes: this worker, one of several, removes them; the others must not look at them."""
        while self._max_to_keep is not None and len(self._paths) > self._max_to_keep:
            path = self._paths.pop(0)
            if not writes or not os.path.exists(path):
                continue
            written = os.path.getmtime(path)
            if self._hours is not None and written - self._last_kept >= self._hours * 3600:
                self._last_kept = written  # stays, but no longer belongs to the manager
            else:
                os.remove(path)

    def restore_or_initialize(self) -> Optional[str]:
        """Restores the latest file and returns its path. Without a file, calls init_fn and returns None."""
        if self.latest_checkpoint is not None:
            self._checkpoint.restore(self.latest_checkpoint)
            return self.latest_checkpoint
        if self._init_fn is not None:
            self._init_fn()
        return None

    def sync(self) -> None:
        """Does nothing: a file is complete when save() returns."""


__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "CheckpointOptions",
    "ClusterSpec",
    "latest_checkpoint",
    "list_variables",
    "load_variable",
]

# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: variables in safetensors files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional, Sequence, Union

from . import _cdist, values
from ._arguments import checked
from ._native import Native
from .constants import DType
from .dataset import Position, native_position, position_from
from .errors import FailedPrecondition
from .variables import Variable

if TYPE_CHECKING:
    from .strategy import Strategy

Path = Union[str, os.PathLike[str]]
Variables = Union[Sequence[Variable], Mapping[str, Variable]]
"""Variables under their own names, or by the names that they have in the file."""


def _native_options(variables: Variables) -> tuple[Any, list[int]]:
    options = _cdist.dist_checkpoint_options()
    if isinstance(variables, Mapping):
        options.set_names(list(variables), len(variables))
        variables = list(variables.values())
    return options, [variable._native() for variable in variables]


def _mapping(verify: bool) -> Any:
    options = _cdist.dist_checkpoint_map_options()
    options.verify = int(bool(verify))
    return options


def save(
    strategy: Strategy,
    path: Path,
    variables: Variables,
    *,
    position: Optional[Position] = None,
    metadata: Optional[Mapping[str, str]] = None,
    sharded: bool = False,
) -> None:
    """Writes a checkpoint, in one step: the old file or the new one is there, whole.

    position: where the input is. metadata: texts of the program's, each under a key. sharded: `path` becomes an index, and
    each worker writes the shard of its part of the variables.
    """
    handle = strategy._native("Strategy.save_checkpoint")
    options, given = _native_options(variables)
    native = None
    if position is not None:
        native = native_position(position)
        options.position = native
    if metadata:
        options.set_metadata_keys(list(metadata), len(metadata))
        options.set_metadata_texts(list(metadata.values()), len(metadata))
    options.sharded = int(bool(sharded))
    with strategy._waiting():
        _cdist.dist_checkpoint_save(handle, os.fspath(path), given, len(given), options)


def load(strategy: Strategy, path: Path, variables: Variables, *, position: bool = False) -> Optional[Position]:
    """Gives variables the values that a file has for them; with position=True also where the input was."""
    handle = strategy._native("Strategy.load_checkpoint")
    options, given = _native_options(variables)
    native = native_position(None) if position else None
    if native is not None:
        options.position = native
    with strategy._waiting():
        _cdist.dist_checkpoint_load(handle, os.fspath(path), given, len(given), options)
    return None if native is None else position_from(native)


@checked
class Checkpoint(Native):
    """A safetensors file, or the index of several, that Strategy.open_checkpoint() has opened: its tensors by name.

    `in`, len() and iteration are over the names.
    """

    def __init__(self, strategy: Strategy, path: Path) -> None:
        self._handle = 0
        self._handle = _cdist.dist_checkpoint_open(strategy._native("Strategy.open_checkpoint"), os.fspath(path))

    def __len__(self) -> int:
        return int(_cdist.dist_checkpoint_size(self._native()))

    def names(self) -> list[str]:
        """The tensors' names, in the order of their data."""
        return [str(_cdist.dist_checkpoint_name(self._native(), i)) for i in range(len(self))]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def spec(self, name: str) -> tuple[Optional[DType], tuple[int, ...]]:
        """A tensor's dtype and shape; dtype None: one that libdist has not."""
        _, dtype, shape, _ = _cdist.dist_checkpoint_spec(self._native(), name)
        return (DType(dtype) if dtype else None, shape)

    def read(self, name: str) -> Any:
        """A tensor."""
        return values.owned(_cdist.dist_checkpoint_read(self._native(), name))

    __getitem__ = read

    def map(self, name: str, verify: bool = False) -> Any:
        """A tensor in the file's own memory, which replicas and processes share; not to be written.

        It stays as it is where another file takes this one's place; where others write into the file, read() it. verify:
        compares the checksum, which reads all of it.
        """
        return values.owned(_cdist.dist_checkpoint_map(self._native(), name, _mapping(verify)))

    def map_all(self, verify: bool = False) -> Any:
        """All tensors in the file's own memory, as a dictionary by their names: map()."""
        return values.owned(_cdist.dist_checkpoint_map_all(self._native(), _mapping(verify)))

    @property
    def metadata(self) -> dict[str, str]:
        """The file's texts by key, libdist's among them."""
        keys = [
            str(_cdist.dist_checkpoint_metadata_key(self._native(), i))
            for i in range(_cdist.dist_checkpoint_num_metadata(self._native()))
        ]
        return {key: str(_cdist.dist_checkpoint_metadata(self._native(), key)) for key in keys}

    def close(self) -> None:
        """Closes the file."""
        self._end(_cdist.dist_checkpoint_destroy)

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, _destroy: Any = _cdist.dist_checkpoint_destroy) -> None:
        if self._handle:
            _destroy(self._handle)

    def _native(self) -> int:
        if not self._handle:
            raise FailedPrecondition("the checkpoint is closed")
        return self._handle

# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: variables in safetensors files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional, Sequence, Union

from . import _cdist, values
from ._arguments import checked
from ._callbacks import Kept
from ._native import Native
from ._option_fields import CheckpointMapOptions, CheckpointOptions, checkpoint_map_options, checkpoint_options
from .constants import DType
from .dataset import Position, native_position, position_from
from .errors import FailedPrecondition
from .variables import Variable

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .strategy import Strategy

Path = Union[str, os.PathLike[str]]
Variables = Union[Sequence[Variable], Mapping[str, Variable]]
"""A sequence of variables, saved under their own names, or a mapping from the names in the file to variables."""


def _named(variables: Variables) -> tuple[Optional[list[str]], list[int]]:
    """Returns the names of variables in the file, or None for their own names, and the handles."""
    if isinstance(variables, Mapping):
        return list(variables), [variable._native() for variable in variables.values()]
    return None, [variable._native() for variable in variables]


def save(strategy: Strategy, path: Path, variables: Variables, options: CheckpointOptions) -> None:
    """Implements Strategy.save_checkpoint()."""
    handle, kept = strategy._native("Strategy.save_checkpoint"), Kept()
    names, given = _named(variables)
    native = checkpoint_options(kept, names=names, **options)
    with strategy._waiting():
        _cdist.dist_checkpoint_save(handle, os.fspath(path), given, len(given), native)


def load(strategy: Strategy, path: Path, variables: Variables, *, position: bool = False) -> Optional[Position]:
    """Implements Strategy.load_checkpoint()."""
    handle, kept = strategy._native("Strategy.load_checkpoint"), Kept()
    names, given = _named(variables)
    options = checkpoint_options(kept, names=names)
    native = native_position(None) if position else None
    if native is not None:
        options.position = native
    with strategy._waiting():
        _cdist.dist_checkpoint_load(handle, os.fspath(path), given, len(given), options)
    return None if native is None else position_from(native)


@checked
class Checkpoint(Native):
    """An open safetensors file, or an open index of several; Strategy.open_checkpoint() opens it.

        with strategy.open_checkpoint("model.safetensors") as checkpoint:
            for name in checkpoint:
                print(name, checkpoint.spec(name))
            weights = checkpoint["w"]

    `in`, len() and iteration use the names of the tensors. If the file is replaced later, the object still reads the
    old one. Tensors stay valid after close().
    """

    def __init__(self, strategy: Strategy, path: Path) -> None:
        self._handle = 0
        self._handle = _cdist.dist_checkpoint_open(strategy._native("Strategy.open_checkpoint"), os.fspath(path))

    def __len__(self) -> int:
        return int(_cdist.dist_checkpoint_size(self._native()))

    def names(self) -> list[str]:
        """Returns the names of the tensors, in the order of their data."""
        return [str(_cdist.dist_checkpoint_name(self._native(), i)) for i in range(len(self))]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def spec(self, name: str) -> tuple[Optional[DType], tuple[int, ...]]:
        """Returns the dtype and shape of a tensor. The dtype is None if libdist does not support it.

        Raises NotFound if there is no such tensor.
        """
        _, dtype, shape, _ = _cdist.dist_checkpoint_spec(self._native(), name)
        return (DType(dtype) if dtype else None, shape)

    def read(self, name: str) -> Any:
        """Reads a tensor into memory. `checkpoint[name]` is the same.

        If libdist does not support the dtype, the result has the bytes of the file as uint8. Raises NotFound if there
        is no such tensor, and DataLoss if its data do not match their checksum.
        """
        return values.owned(_cdist.dist_checkpoint_read(self._native(), name))

    __getitem__ = read

    def map(self, name: str, verify: bool = False, **options: Unpack[CheckpointMapOptions]) -> Any:
        """Returns a tensor in the file's own memory, which replicas and processes share. Do not write to it.

        The tensor does not change if another file replaces this one. If other programs write into the file, use read().

        verify: True = verify checksums of mapped data, which reads all of them; False = do not.
        """
        native = checkpoint_map_options(verify=verify, **options)
        return values.owned(_cdist.dist_checkpoint_map(self._native(), name, native))

    def map_all(self, verify: bool = False, **options: Unpack[CheckpointMapOptions]) -> Any:
        """Returns all tensors in the file's own memory, as a dictionary by name; see map()."""
        native = checkpoint_map_options(verify=verify, **options)
        return values.owned(_cdist.dist_checkpoint_map_all(self._native(), native))

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata texts of the file by key, including those of libdist."""
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

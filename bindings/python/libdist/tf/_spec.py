# SPDX-License-Identifier: Apache-2.0
"""tf.TensorSpec and related classes, which describe the elements of a dataset."""

from __future__ import annotations

import re
from typing import Any, Optional

import numpy as np

from libdist._arguments import checked

from ._composites import Composite
from ._nest import map_leaves


@checked
class TensorSpec:
    """A dtype, and a shape with None for sizes that differ."""

    def __init__(self, shape: Any, dtype: Any = np.float32, name: Optional[str] = None) -> None:
        self.shape: Any = None if shape is None else tuple(shape)
        """The shape; None = any rank."""
        self.dtype = np.dtype(dtype)
        """The NumPy dtype."""
        self.name = name
        """The name, used in messages."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype=tf.{self.dtype}, name={self.name!r})"


@checked
class RaggedTensorSpec(TensorSpec):
    """Describes ragged tensors."""

    def __init__(self, shape: Any = None, dtype: Any = np.float32, ragged_rank: Optional[int] = None, **_: Any) -> None:
        super().__init__(shape, dtype)
        self.ragged_rank = ragged_rank


class SparseTensorSpec(TensorSpec):
    """Describes sparse tensors."""


def spec_of(element: Any, static: bool = True) -> Any:
    """Returns a spec for each tensor of an element. static: False = the sizes of the first dimension may differ."""
    return map_leaves(lambda leaf: _spec(leaf, static), element)


def _spec(leaf: Any, static: bool) -> Any:
    if leaf is None:
        return None
    if isinstance(leaf, Composite):
        kind = RaggedTensorSpec if leaf._kind.name == "RAGGED" else SparseTensorSpec
        return kind(leaf.shape, leaf.dtype)
    shape: tuple[Any, ...] = tuple(np.shape(leaf))
    return TensorSpec(shape if static or not shape else (None, *shape[1:]), np.asarray(leaf).dtype)


_DTYPES = {"f": "float", "i": "int", "u": "uint"}


def spec_from_text(text: str) -> Any:
    """Converts libdist's "f32[?, 4]" to a spec. Other texts stay unchanged."""
    found = re.fullmatch(r"([fiu])(\d+)\[(.*)\]|bool\[(.*)\]", text)
    if found is None:
        return text
    kind, bits, sizes, of_bool = found.groups()
    dtype = "bool" if kind is None else f"{_DTYPES[kind]}{bits}"
    names = [size.strip() for size in (sizes if kind else of_bool).split(",") if size.strip()]
    return TensorSpec([None if name == "?" else int(name) for name in names], dtype)


def conform(value: Any, spec: TensorSpec) -> Any:
    """Converts to a tensor with the dtype of a spec. Raises TypeError if the shape differs."""
    if isinstance(value, Composite):
        return value
    array = np.asarray(value, spec.dtype)
    wanted = spec.shape
    fits = wanted is None or (
        len(wanted) == array.ndim and all(size in (None, -1, given) for size, given in zip(wanted, array.shape))
    )
    if not fits:
        raise TypeError(
            f"`generator` yielded an element of shape {array.shape} where an element of shape {wanted} was expected."
        )
    return array

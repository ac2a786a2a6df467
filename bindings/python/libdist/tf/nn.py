# SPDX-License-Identifier: Apache-2.0
"""A small tf.nn: functions that scale losses."""

from __future__ import annotations

from typing import Any, Optional

import libdist
from libdist._arguments import checked

from ._missing import missing
from ._numbers import convert_to_tensor
from ._tensor import plain, tensor_of

__getattr__ = missing("tf.nn")


@checked
def compute_average_loss(
    per_example_loss: Any, sample_weight: Any = None, global_batch_size: Optional[int] = None
) -> Any:
    """Returns a replica's share of the loss. The sum over all replicas is the average over the global batch.

    global_batch_size: None = size of the loss's first dimension times the number of replicas. In cross-replica context,
    this raises RuntimeError.
    """
    if global_batch_size is not None and global_batch_size < 0:
        raise ValueError("global_batch_size must be non-negative")
    loss = plain(convert_to_tensor(per_example_loss))
    weight = None if sample_weight is None else plain(convert_to_tensor(sample_weight))
    return tensor_of(libdist.average_loss(libdist.get_replica(), loss, weight, global_batch_size or 0))


@checked
def scale_regularization_loss(regularization_loss: Any) -> Any:
    """Returns a replica's share of a loss that is the same on all replicas.

    Raises RuntimeError in cross-replica context.
    """
    loss = plain(convert_to_tensor(regularization_loss))
    return tensor_of(libdist.scale_regularization_loss(libdist.get_replica(), loss))

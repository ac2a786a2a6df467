# SPDX-License-Identifier: Apache-2.0
"""tf.nn in the small: the losses' scaling."""

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
    """A replica's share of the loss: the sum over the replicas is the average over the global batch.

    global_batch_size None: the size of the loss's first dimension times the number of replicas; RuntimeError in
    cross-replica context then.
    """
    if global_batch_size is not None and global_batch_size < 0:
        raise ValueError("global_batch_size must be non-negative")
    loss = plain(convert_to_tensor(per_example_loss))
    weight = None if sample_weight is None else plain(convert_to_tensor(sample_weight))
    return tensor_of(libdist.average_loss(libdist.get_replica(), loss, weight, global_batch_size or 0))


@checked
def scale_regularization_loss(regularization_loss: Any) -> Any:
    """A replica's share of a loss that every replica has whole; RuntimeError in cross-replica context."""
    loss = plain(convert_to_tensor(regularization_loss))
    return tensor_of(libdist.scale_regularization_loss(libdist.get_replica(), loss))

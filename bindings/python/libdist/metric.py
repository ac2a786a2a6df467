# SPDX-License-Identifier: Apache-2.0
"""Metrics, which accumulate a number over the updates of all replicas, and functions that scale losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from . import _cdist, _tensors
from ._arguments import checked
from ._native import Native
from ._tensors import TensorLike
from .constants import MetricKind
from .errors import FailedPrecondition
from .variables import Variable, _variables

if TYPE_CHECKING:
    from .replica import Replica
    from .strategy import Strategy


@checked
class Metric(Native):
    """A sum, mean or accuracy over the updates of all replicas; Strategy.metric() creates it.

        metric = strategy.metric(libdist.MetricKind.MEAN, "loss")
        strategy.run(lambda replica: replica.update_metric(metric, losses[replica.id]))
        print(metric.result())

    Sums are exact: the result does not depend on the order of the updates or on the number of replicas.
    """

    def __init__(self, strategy: Strategy, kind: MetricKind = MetricKind.MEAN, name: Optional[str] = None) -> None:
        self._handle = 0
        self._strategy = strategy
        self._handle = _cdist.dist_metric_create(strategy._native("Strategy.metric"), int(kind), name)

    @property
    def kind(self) -> MetricKind:
        """The kind of the metric."""
        return MetricKind(_cdist.dist_metric_kind_of(self._native()))

    @property
    def name(self) -> str:
        """The name of the metric, used in messages."""
        return str(_cdist.dist_metric_name(self._native()))

    @property
    def variable(self) -> Variable:
        """The variable that holds the state, for checkpoints; valid while the metric exists."""
        handle = _cdist.dist_metric_variable(self._native())
        known = _variables.get(handle)
        variable = known if known is not None else Variable._of(self._strategy, handle, "owner")
        variable._keeper = self
        return variable

    def result(self) -> float:
        """Computes the metric over all updates since it was created or reset; 0 for a mean without updates.

        Waits while a run is in progress, and for the other workers.
        """
        handle = self._strategy._native("Metric.result")
        with self._strategy._waiting():
            return float(_cdist.dist_metric_result(handle, self._native()))

    def reset(self) -> None:
        """Discards all updates of all replicas. Waits while a run is in progress."""
        _cdist.dist_metric_reset(self._strategy._native("Metric.reset"), self._native())

    def close(self) -> None:
        """Destroys the metric. Do not close it while a run uses it."""
        variable = _variables.get(_cdist.dist_metric_variable(self._handle)) if self._handle else None
        self._end(_cdist.dist_metric_destroy)
        if variable is not None:
            variable.close()

    def __enter__(self) -> Metric:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, _destroy: Any = _cdist.dist_metric_destroy) -> None:
        if self._handle:
            _destroy(self._handle)

    def _native(self) -> int:
        if not self._handle:
            raise FailedPrecondition("the metric is closed")
        return self._handle


def _scalar_like(loss: Any) -> Any:
    """Allocates a scalar with the dtype of a loss."""
    if isinstance(loss, _tensors.Tensor):
        return _tensors.Tensor(np.empty((), np.uint16), loss.dtype)
    return np.empty((), loss.dtype)


@checked
def average_loss(
    replica: Optional[Replica], per_example_loss: TensorLike, sample_weight: Optional[TensorLike] = None,
    global_batch_size: int = 0,
) -> Any:
    """Returns a replica's share of the loss: the sum of weight * loss, divided by the global batch size.

    The sum of the shares of all replicas is the average over the global batch (TensorFlow: tf.nn.compute_average_loss).

    replica: may be None if global_batch_size is passed.

    per_example_loss: one or more dimensions, of float16, bfloat16, float32 or float64.

    sample_weight: a scalar, or a tensor of the shape of the loss; None = 1.

    global_batch_size: 0 = size of the loss's first dimension times the number of replicas.
    """
    if replica is not None:
        replica._check("average_loss")
    loss = per_example_loss if isinstance(per_example_loss, _tensors.Tensor) else np.asarray(per_example_loss)
    out = _scalar_like(loss)
    weight = None if sample_weight is None else [_tensors.give(sample_weight)]
    handle = replica._handle if replica is not None else 0
    given, room = [_tensors.give(loss)], [_tensors.give(out, writable=True)]
    _cdist.dist_average_loss(handle, given, weight, global_batch_size, room)
    return out


@checked
def scale_regularization_loss(replica: Optional[Replica], loss: TensorLike) -> Any:
    """Returns a replica's share of a loss that is the same on all replicas: its sum divided by the number of replicas.
    """
    if replica is not None:
        replica._check("scale_regularization_loss")
    loss = loss if isinstance(loss, _tensors.Tensor) else np.asarray(loss)
    out = _scalar_like(loss)
    handle = replica._handle if replica is not None else 0
    _cdist.dist_scale_regularization_loss(handle, [_tensors.give(loss)], [_tensors.give(out, writable=True)])
    return out

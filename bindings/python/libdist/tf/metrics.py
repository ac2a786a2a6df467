# SPDX-License-Identifier: Apache-2.0
"""tf.keras.metrics in the small: sums over the updates of all replicas, which are exact here."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

import libdist

from ._numbers import convert_to_tensor


class _Metric:
    _kind: libdist.MetricKind

    def __init__(self, name: Optional[str] = None, dtype: Any = None) -> None:
        """dtype: of what result() gives; float32 by default."""
        self._dtype = np.dtype(dtype or np.float32)
        self._native = libdist.Metric(libdist.get_strategy(), self._kind, name or self._default_name())

    @classmethod
    def _default_name(cls) -> str:
        return "".join("_" + letter.lower() if letter.isupper() else letter for letter in cls.__name__).lstrip("_")

    @property
    def name(self) -> str:
        """For messages."""
        return self._native.name

    def _update(self, values: Any, labels: Any, sample_weight: Any) -> None:
        replica = libdist.get_replica()
        if replica is None:
            raise libdist.FailedPrecondition("update_state() belongs to the replica function: strategy.run(fn)")
        given = [None if tensor is None else convert_to_tensor(tensor) for tensor in (values, labels, sample_weight)]
        self._native.update(replica, *given)

    def result(self) -> Any:
        """The metric over all updates of all replicas since it was made or reset."""
        return np.asarray(self._native.result(), self._dtype)[()]

    def reset_state(self) -> None:
        """Forgets all updates of all replicas."""
        self._native.reset()

    reset_states = reset_state


class Sum(_Metric):
    """The sum of weight * value."""

    _kind = libdist.MetricKind.SUM

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Adds a replica's values."""
        self._update(values, None, sample_weight)

    __call__ = update_state


class Mean(Sum):
    """The sum of weight * value, divided by the sum of the weights."""

    _kind = libdist.MetricKind.MEAN


class Accuracy(_Metric):
    """How often predictions and labels are equal."""

    _kind = libdist.MetricKind.ACCURACY

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a replica's predictions."""
        self._update(y_pred, y_true, sample_weight)

    __call__ = update_state


class SparseCategoricalAccuracy(Accuracy):
    """How often the class with the highest score is the label: y_pred has a score for each class."""

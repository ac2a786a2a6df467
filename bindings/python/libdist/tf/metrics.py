# SPDX-License-Identifier: Apache-2.0
"""A small tf.keras.metrics: sums over the updates of all replicas, which are exact here."""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional, Union

import numpy as np

import libdist
from libdist._arguments import checked

from ._missing import Refusing, missing
from ._numbers import convert_to_tensor
from ._options import VariableAggregation, VariableSynchronization
from ._remote import owner as owner_of_servers
from ._tensor import plain, tensor_of
from ._variable import Variable

__getattr__ = missing("tf.keras.metrics")


def _snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).lstrip("_")


@checked
class Metric(Refusing):
    """The base class of your own metrics: add_weight() in __init__(), update_state() and result().

    Each replica adds to its own copy of a weight without waiting. Outside replicas, a weight reads as the sum of all
    copies, so that result() covers the updates of all replicas.
    """

    _tf_name = "tf.keras.metrics.Metric"

    def __init__(self, dtype: Any = None, name: Optional[str] = None) -> None:
        """dtype: dtype of the weights; float32 by default."""
        self._name = name or _snake(type(self).__name__)
        self._dtype = np.dtype(dtype or np.float32)
        self._weights: list[Variable] = []

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "result" in cls.__dict__:
            setattr(cls, "result", _read(cls.__dict__["result"]))  # noqa: B010

    @property
    def name(self) -> str:
        """The name, used in messages and checkpoints."""
        return self._name

    @property
    def dtype(self) -> Any:
        """The dtype of the weights."""
        return self._dtype

    @property
    def variables(self) -> list[Variable]:
        """The weights."""
        return list(self._weights)

    weights = variables

    def add_weight(
        self,
        shape: Any = (),
        initializer: Union[None, str, Callable[..., Any]] = "zeros",
        dtype: Any = None,
        name: Optional[str] = None,
        synchronization: VariableSynchronization = VariableSynchronization.ON_READ,
        aggregation: Union[str, VariableAggregation] = VariableAggregation.SUM,
        **_: Any,
    ) -> Variable:
        """Creates a variable of the metric, a scalar or of a given shape.

        initializer: "zeros", "ones", or a function of the shape and the dtype.

        The name may be the first argument, as in older programs.
        """
        if isinstance(shape, str):
            shape, name = (), shape
        kind = np.dtype(dtype or self._dtype)
        if callable(initializer):
            first = initializer(shape, dtype=kind)
        else:
            given = {"zeros": 0, "zero": 0, None: 0, "ones": 1, "one": 1}
            if initializer not in given:
                raise ValueError(f"initializer={initializer!r}: 'zeros', 'ones', or a function of shape and dtype")
            first = np.full(tuple(shape), given[initializer], kind)  # reads as the sum over all replicas
        if isinstance(aggregation, str):
            aggregation = VariableAggregation[aggregation.upper()]
        variable = Variable(
            first, name=name or self._name, dtype=kind, synchronization=synchronization, aggregation=aggregation
        )
        variable._of_metric = True
        self._weights.append(variable)
        return variable

    add_variable = add_weight

    def update_state(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a batch. Inside replicas, each adds its own."""
        raise NotImplementedError("update_state() is the subclass's")

    def result(self) -> Any:
        """Returns the metric over all updates."""
        raise NotImplementedError("result() is the subclass's")

    def reset_state(self) -> None:
        """Discards all updates of all replicas."""
        for variable in self._weights:
            variable.assign(np.zeros(variable.shape, variable.dtype))

    def reset_states(self) -> None:
        """Discards all updates, like reset_state(), under its older name."""
        self.reset_state()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls update_state() and returns result(); inside replicas, the result covers the replica's own updates."""
        self.update_state(*args, **kwargs)
        return self.result()

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {"name": self._name, "dtype": self._dtype.name}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


def _read(result: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a result() that returns a tensor if that of the subclass returns a variable."""

    @functools.wraps(result)
    def read(self: Any) -> Any:
        value = result(self)
        return value.read_value() if isinstance(value, Variable) else value

    return read


def _sums(kind: libdist.MetricKind, values: Any, labels: Any, weights: Any) -> tuple[Any, Any]:
    """Returns the sum of weight * value and the sum of weights of a batch, like libdist's metrics except for rounding.
    """
    x = np.asarray(values)
    if kind == libdist.MetricKind.ACCURACY:
        labels = np.asarray(labels)
        if x.ndim == labels.ndim + 1:
            x = np.argmax(np.where(np.isnan(x), -np.inf, x), axis=-1)
        if x.shape != labels.shape:
            raise libdist.InvalidArgument(f"predictions have the shape {np.shape(values)}, labels {labels.shape}")
        x = x == labels
    x = x.astype(np.float64)
    if weights is None:
        return x.sum(), np.float64(x.size)
    w = np.asarray(weights, np.float64)
    w = np.broadcast_to(w[..., None] if 0 < w.ndim == x.ndim - 1 else w, x.shape)
    return (w * x).sum(), w.sum()


class _OnServers:
    """The state of a metric under a ParameterServerStrategy: two float64 numbers on parameter servers."""

    def __init__(self, name: str) -> None:
        self.total = Variable(np.float64(0), name=f"{name}/total")
        self.weight = Variable(np.float64(0), name=f"{name}/weight")

    def add(self, total: Any, weight: Any) -> None:
        """Adds to the numbers after the function on the worker has returned."""
        self.total.assign_add(total)
        self.weight.assign_add(weight)

    def result(self, kind: libdist.MetricKind) -> Any:
        total = self.total.numpy()
        if kind == libdist.MetricKind.SUM:
            return total
        weight = self.weight.numpy()
        return total / weight if weight else np.float64(0)


@checked
class _Native(Metric):
    """A metric that libdist implements."""

    _kind: libdist.MetricKind

    def __init__(self, name: Optional[str] = None, dtype: Any = None) -> None:
        """dtype: dtype of the result; float32 by default."""
        super().__init__(dtype, name)
        self._on_servers = None if owner_of_servers() is None else _OnServers(self._name)
        if self._on_servers is None:
            self._native = libdist.get_strategy().metric(self._kind, self._name)

    def _update(self, values: Any, labels: Any, sample_weight: Any) -> None:
        if self._on_servers is not None:
            given = [None if one is None else plain(convert_to_tensor(one)) for one in (values, labels, sample_weight)]
            self._on_servers.add(*_sums(self._kind, *given))
            return
        replica = libdist.get_replica()
        if replica is None:
            raise libdist.FailedPrecondition("update_state() belongs to the replica function: strategy.run(fn)")
        tensors = (values, labels, sample_weight)
        given = [None if tensor is None else plain(convert_to_tensor(tensor)) for tensor in tensors]
        replica.update_metric(self._native, *given)

    @property
    def variables(self) -> list[Variable]:
        """The variable that holds the state."""
        if self._on_servers is not None:
            return [self._on_servers.total, self._on_servers.weight]
        return [Variable._of(self._native.variable)]

    weights = variables

    def result(self) -> Any:
        """Returns the metric over all updates of all replicas since it was created or reset."""
        result = self._native.result() if self._on_servers is None else self._on_servers.result(self._kind)
        return tensor_of(np.asarray(result, self._dtype))

    def reset_state(self) -> None:
        """Discards all updates of all replicas."""
        if self._on_servers is None:
            self._native.reset()
        else:
            for variable in self.variables:
                variable.assign(0.0)


@checked
class Sum(_Native):
    """The sum of weight * value."""

    _kind = libdist.MetricKind.SUM

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Adds the values of a replica."""
        self._update(values, None, sample_weight)

    __call__ = update_state


@checked
class Mean(Sum):
    """The sum of weight * value, divided by the sum of the weights."""

    _kind = libdist.MetricKind.MEAN


@checked
class Accuracy(_Native):
    """The fraction of predictions that equal their labels."""

    _kind = libdist.MetricKind.ACCURACY

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds the predictions of a replica."""
        self._update(y_pred, y_true, sample_weight)

    __call__ = update_state


@checked
class SparseCategoricalAccuracy(Accuracy):
    """The fraction of examples for which the class with the highest score is the label; y_pred has a score per class.
    """

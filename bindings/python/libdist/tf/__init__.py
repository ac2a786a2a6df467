# SPDX-License-Identifier: Apache-2.0
"""A module shaped like TensorFlow, as far as tf.distribute goes: arrays of NumPy's are the tensors.

    import libdist.tf as tf

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

    def step():
        context = tf.distribute.get_replica_context()
        total.assign_add(tf.constant(1.0) * context.replica_id_in_sync_group)

    strategy.run(step)

Replicas are threads that run at the same time, where TensorFlow's take turns. Gradients are the program's own.
"""

import numpy as _np

from . import data, distribute, keras, metrics, nn, tpu, train
from ._numbers import convert_to_tensor
from ._operations import (
    cast,
    constant,
    function,
    identity,
    ones,
    ones_like,
    range,
    reduce_mean,
    reduce_sum,
    reshape,
    zeros,
    zeros_like,
)
from ._options import VariableAggregation, VariableSynchronization
from ._values import IndexedSlices, RaggedTensor, SparseTensor
from ._variable import Variable

float16 = _np.float16
float32 = _np.float32
float64 = _np.float64
int8 = _np.int8
int16 = _np.int16
int32 = _np.int32
int64 = _np.int64
uint8 = _np.uint8
bool = _np.bool_

__all__ = [
    "IndexedSlices",
    "RaggedTensor",
    "SparseTensor",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "bool",
    "cast",
    "constant",
    "convert_to_tensor",
    "data",
    "distribute",
    "float16",
    "float32",
    "float64",
    "function",
    "identity",
    "int16",
    "int32",
    "int64",
    "int8",
    "keras",
    "metrics",
    "nn",
    "ones",
    "ones_like",
    "range",
    "reduce_mean",
    "reduce_sum",
    "reshape",
    "tpu",
    "train",
    "uint8",
    "zeros",
    "zeros_like",
]

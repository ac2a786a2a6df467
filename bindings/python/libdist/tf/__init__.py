# SPDX-License-Identifier: Apache-2.0
"""A module with the names of TensorFlow that tf.distribute programs use. Its tensors are NumPy arrays.

    import libdist.tf as tf

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

    def step():
        context = tf.distribute.get_replica_context()
        total.assign_add(tf.constant(1.0) * context.replica_id_in_sync_group)

    strategy.run(step)

Replicas are threads that run at the same time, while those of TensorFlow take turns. The program computes gradients
itself. A name of TensorFlow that this module lacks raises an AttributeError, which says what to use instead.
"""

import numpy as _np

from libdist._arguments import checked as _checked

from . import config, data, distribute, errors, keras, metrics, nn, tpu, train
from ._composites import (
    IndexedSlices,
    RaggedTensor,
    SparseTensor,
    ragged_constant,
    sparse_from_dense,
    sparse_to_dense,
)
from ._missing import Namespace as _Namespace
from ._missing import missing as _missing
from ._module import Module
from ._nest import leaves_of as _leaves_of
from ._nest import map_leaves as _map_leaves
from ._numbers import convert_to_tensor
from ._operations import (
    add,
    add_n,
    cast,
    constant,
    function,
    identity,
    matmul,
    ones,
    ones_like,
    range,
    reduce_mean,
    reduce_sum,
    reshape,
    shape,
    square,
    zeros,
    zeros_like,
)
from ._operations import print_ as print  # noqa: A004
from ._options import VariableAggregation, VariableSynchronization
from ._spec import RaggedTensorSpec, SparseTensorSpec, TensorSpec
from ._tensor import Tensor, TensorShape
from ._variable import Variable
from .data import Optional_ as _Optional

__getattr__ = _missing("tf")

__version__ = "2.21.0+libdist"
"""The version of TensorFlow whose behaviour this module follows."""
version = _Namespace("tf.version", VERSION=__version__)
"""tf.version."""

float16 = _np.float16
float32 = _np.float32
float64 = _np.float64
int8 = _np.int8
int16 = _np.int16
int32 = _np.int32
int64 = _np.int64
uint8 = _np.uint8
bool = _np.bool_

dtypes = _Namespace(
    "tf.dtypes",
    bool=bool,
    cast=cast,
    float16=float16,
    float32=float32,
    float64=float64,
    int16=int16,
    int32=int32,
    int64=int64,
    int8=int8,
    uint8=uint8,
)
"""tf.dtypes."""
experimental = _Namespace("tf.experimental", Optional=_Optional)
"""tf.experimental."""
ragged = _Namespace("tf.ragged", constant=ragged_constant)
"""tf.ragged."""
sparse = _Namespace("tf.sparse", SparseTensor=SparseTensor, from_dense=sparse_from_dense, to_dense=sparse_to_dense)
"""tf.sparse."""
nest = _Namespace("tf.nest", flatten=_leaves_of, map_structure=_checked(_map_leaves))
"""tf.nest, for one nest."""

__all__ = [
    "IndexedSlices",
    "Module",
    "RaggedTensor",
    "RaggedTensorSpec",
    "SparseTensor",
    "SparseTensorSpec",
    "Tensor",
    "TensorShape",
    "TensorSpec",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "add",
    "add_n",
    "bool",
    "cast",
    "config",
    "constant",
    "convert_to_tensor",
    "data",
    "distribute",
    "dtypes",
    "errors",
    "experimental",
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
    "matmul",
    "metrics",
    "nest",
    "nn",
    "ones",
    "ones_like",
    "print",
    "ragged",
    "range",
    "reduce_mean",
    "reduce_sum",
    "reshape",
    "shape",
    "sparse",
    "square",
    "tpu",
    "train",
    "uint8",
    "version",
    "zeros",
    "zeros_like",
]

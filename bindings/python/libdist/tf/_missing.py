# SPDX-License-Identifier: Apache-2.0
"""The names of TensorFlow that this module lacks, with a sentence for each that says what to use instead.

Using such a name raises AttributeError, so that hasattr() and getattr(..., default) work as usual.
"""

from __future__ import annotations

from abc import ABCMeta
from typing import TYPE_CHECKING, Any

import numpy as np

_GRADIENTS = (
    "libdist reduces gradients and makes none: compute them in NumPy, or with a framework that has autodiff, and give "
    "them to get_replica_context().all_reduce() or to Variable.assign_sub()"
)
_LAYERS = "a model is the program's own here: a function of arrays, with tf.Variable for its weights"
_FIT = (
    "write the loop: strategy.run(train_step, args=(batch,)) for each batch of "
    "strategy.experimental_distribute_dataset()"
)
_RUN = "it is TensorFlow 1's form: strategy.run(fn, args=(next(iterator),))"
_ITERATOR = "it is TensorFlow 1's form: iter(strategy.experimental_distribute_dataset(dataset))"
_SESSION = "there is no session: options are arguments of the strategy"
_SERVICE = "it asks a service over the network: ask it yourself, and write a subclass of ClusterResolver"
_TPU = "the devices are this host's CPUs"
_GRAPH = "there is no graph: a value is there when the call returns"
_SAVE = "a graph is what it would save: tf.train.Checkpoint saves variables, and safetensors readers read them"
_NEST = "read a dataset with NumPy or Python and give it to tf.data.Dataset.from_generator()"

REASONS = {
    "tf.GradientTape": _GRADIENTS,
    "tf.gradients": _GRADIENTS,
    "tf.custom_gradient": _GRADIENTS,
    "tf.stop_gradient": "nothing is differentiated here: leave it out",
    "tf.autodiff": _GRADIENTS,
    "tf.keras": _LAYERS,
    "tf.keras.Model": _LAYERS + "; for fit(), " + _FIT,
    "tf.keras.Model.fit": _FIT,
    "tf.keras.Sequential": _LAYERS,
    "tf.keras.layers": _LAYERS,
    "tf.keras.losses": "compute the loss of each example in NumPy, and give it to tf.nn.compute_average_loss()",
    "tf.keras.optimizers": "update variables by Variable.assign_sub(rate * gradient), which reduces; "
    "libdist.Replica.reduce_apply() does it in one pass",
    "tf.keras.optimizers.Optimizer.apply_gradients": "Variable.assign_sub(rate * gradient) reduces by its aggregation",
    "tf.optimizers": "update variables by Variable.assign_sub(rate * gradient), which reduces by its aggregation",
    "tf.losses": "compute the loss of each example in NumPy, and give it to tf.nn.compute_average_loss()",
    "tf.keras.callbacks": _FIT,
    "tf.keras.datasets": "nothing is fetched: load the arrays and give them to tf.data.Dataset.from_tensor_slices()",
    "tf.keras.metrics": "write a subclass of tf.keras.metrics.Metric",
    "tf.metrics": "write a subclass of tf.keras.metrics.Metric",
    "tf.estimator": _FIT,
    "tf.saved_model": _SAVE,
    "tf.keras.models": _SAVE,
    "tf.summary": "libdist.Strategy.write_metrics() has libdist's own figures; log the program's as you like",
    "tf.compat": "it is TensorFlow 1's: the names of TensorFlow 2 are in tf itself",
    "tf.device": "the host has one memory: replicas are placed by the strategy's devices",
    "tf.Graph": _GRAPH,
    "tf.Operation": _GRAPH,
    "tf.group": _GRAPH,
    "tf.control_dependencies": _GRAPH,
    "tf.xla": "nothing is compiled",
    "tf.autograph": "nothing is compiled",
    "tf.io": _NEST,
    "tf.data": _NEST,
    "tf.data.Dataset": "map(), batch() and from_generator() of a Python function do what other methods do",
    "tf.distribute.Strategy": "libdist.tf has TensorFlow 2's members of it",
    "tf.image": "compute with NumPy: tensors are its arrays",
    "tf.random": "draw with numpy.random.default_rng(seed): arrays are tensors",
    "tf.train.ClusterSpec.as_cluster_def": "protocol buffers are TensorFlow's own: as_dict() says the same",
    "tf.train": "of tf.train there are Checkpoint, CheckpointManager, latest_checkpoint and ClusterSpec",
    "tf.nn": "compute it in NumPy; of tf.nn there are compute_average_loss() and scale_regularization_loss()",
    "tf.config": "options are arguments of the strategy",
    "tf.variable_creator_scope": "tf.Variable() takes all options; for something on each worker of its own, use "
    "ClusterCoordinator.create_per_worker_value(fn)",
    "tf.errors": "libdist.DistError has a subclass for each status that libdist reports",
    "tf.string": "texts are Python's: str",
    "tf.strings": "texts are Python's: use the methods of str",
    "tf.dtypes": "dtypes are NumPy's: tf.float32 is numpy.float32",
    "tf.tpu": _TPU,
    "tf.tpu.experimental.embedding": "an embedding is a tf.Variable: sparse_read() and scatter_add()",
    "tf.tpu.experimental.HardwareFeature": _TPU,
    "tf.distribute.Strategy.experimental_run": _RUN,
    "tf.distribute.Strategy.make_dataset_iterator": _ITERATOR,
    "tf.distribute.Strategy.make_input_fn_iterator": _ITERATOR,
    "tf.distribute.Strategy.group": _GRAPH,
    "tf.distribute.Strategy.configure": _SESSION,
    "tf.distribute.Strategy.update_config_proto": _SESSION,
    "tf.distribute.Strategy.initialize": _GRAPH,
    "tf.distribute.Strategy.finalize": "strategy.close() ends its threads",
    "tf.distribute.Strategy.make_input_fn": _ITERATOR,
    "tf.distribute.experimental.partitioners": "a partitioner of the program's own is a Partitioner",
    "tf.distribute.coordinator": "of a ClusterCoordinator there are schedule(), join(), done(), fetch(), "
    "create_per_worker_dataset() and create_per_worker_value()",
    "tf.distribute.Server": "of a server there are start(), join(), target, server_def and create_local_server()",
    "tf.distribute.experimental.PreemptionCheckpointHandler": "of a handler there are run(), "
    "save_checkpoint_if_preempted(), watch_preemption_scope() and total_run_calls",
    "tf.distribute.experimental.PreemptionWatcher": "whoever learns of a preemption tells a PreemptionCheckpointHandler: "
    "by SIGTERM, or TerminationConfig(termination_watcher_fn=...)",
    "tf.distribute.cluster_resolver": "a resolver of the program's own is a subclass of ClusterResolver",
    "tf.distribute.cluster_resolver.GCEClusterResolver": _SERVICE,
    "tf.distribute.cluster_resolver.KubernetesExecutableLocation": _SERVICE,
    "tf.distribute.cluster_resolver.TPUClusterResolver.tpu_hardware_feature": _TPU,
    "tf.distribute.ReplicaContext": "strategy.run() makes it, with all_reduce(), all_gather(), merge_call()",
    "tf.Variable": "of a variable's methods there are those of TensorFlow's eager mode that need no graph",
    "tf.Variable.op": _GRAPH,
    "tf.Variable.graph": _GRAPH,
    "tf.Variable.handle": "a variable is no resource of a runtime's: read_value() and assign() are what it is used by",
    "tf.Variable.eval": _GRAPH + ": v.numpy()",
    "tf.Variable.initialized_value": _GRAPH + ": v.read_value()",
    "tf.Variable.to_proto": _SAVE,
    "tf.Variable.from_proto": _SAVE,
    "tf.Tensor.op": _GRAPH,
    "tf.Tensor.graph": _GRAPH,
    "tf.Tensor.eval": _GRAPH + ": t.numpy()",
}
"""Sentences by name or by the beginning of names; the longest match counts."""


def sentence(name: str) -> str:
    """Returns the reason why a name does not exist, and what to use instead."""
    parts = name.split(".")
    for n in range(len(parts), 1, -1):
        reason = REASONS.get(".".join(parts[:n]))
        if reason is not None:
            return f"{name} is not offered: {reason}"
    if len(parts) == 2 and hasattr(np, parts[1]):
        return f"{name} is not offered: tensors are NumPy's arrays, and numpy.{parts[1]} computes with them"
    return (
        f"{name} is not offered: libdist.tf has tf.distribute and what its pages use, and NumPy computes with tensors"
    )


def missing(module: str) -> Any:
    """Returns a module's __getattr__(), which raises AttributeError with a sentence."""

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise AttributeError(sentence(f"{module}.{name}"))

    return get


def missing_attribute(thing: Any, owner: str, name: str) -> AttributeError:
    """Returns the AttributeError for an object's __getattr__()."""
    if name.startswith("_"):
        return AttributeError(f"{type(thing).__name__!r} object has no attribute {name!r}")
    return AttributeError(sentence(f"{owner}.{name}"))


class RefusingType(ABCMeta):
    """A metaclass whose classes raise such an AttributeError."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            raise missing_attribute(cls, cls._tf_name, name)


class Refusing(metaclass=RefusingType):
    """An object whose missing attributes raise such an AttributeError; _tf_name is TensorFlow's name of the class."""

    _tf_name = "tf"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute(self, self._tf_name, name)


class Namespace(Refusing):
    """A module in a module."""

    def __init__(self, tf_name: str, **names: Any) -> None:
        self._tf_name = tf_name
        self.__dict__.update(names)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __dir__(self) -> list[str]:
        return [name for name in self.__dict__ if not name.startswith("_")]

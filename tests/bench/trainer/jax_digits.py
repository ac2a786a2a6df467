#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The network of examples/digits in JAX, as one program on all CPUs: a compiled step per batch, or a compiled scan per
epoch.

The arguments are the table and the number of epochs. Compilation happens before timing.
"""

import json
import os
import sys
import time

os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402  (reads the environment when it is imported)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

BATCH_ROWS, RATE = 64, 0.1


def load(path, stream):
    """Returns (features, labels) for training, and held-out ones."""
    rows = np.loadtxt(path, delimiter=",", dtype=np.float32)
    stream.shuffle(rows)
    features, labels = rows[:, :-1], rows[:, -1].astype(np.int32)
    kept = len(rows) - len(rows) // 5
    largest = np.abs(features[:kept]).max(axis=0)
    features[:, largest > 0] /= largest[largest > 0]
    return (features[:kept], labels[:kept]), (features[kept:], labels[kept:])


def first_parameters(sizes, stream):
    parameters = []
    for rows, columns in zip(sizes, sizes[1:]):
        weights = np.sqrt(6 / rows) * (2 * stream.random((rows, columns)) - 1)
        parameters.append((jnp.asarray(weights, jnp.float32), jnp.zeros(columns, jnp.float32)))
    return parameters


def forward(parameters, x):
    for weights, biases in parameters[:-1]:
        x = jax.nn.relu(x @ weights + biases)
    weights, biases = parameters[-1]
    return x @ weights + biases


def loss(parameters, x, y, counts):
    """Returns the mean over the rows that count, because the last batch is padded."""
    log = jnp.take_along_axis(jax.nn.log_softmax(forward(parameters, x)), y[:, None], 1)[:, 0]
    return -jnp.sum(log * counts) / jnp.sum(counts)


def step(parameters, batch):
    value, gradients = jax.value_and_grad(loss)(parameters, *batch)
    return jax.tree.map(lambda p, g: p - RATE * g, parameters, gradients), value


def batches(features, labels, stream):
    rows = len(labels)
    n = -(-rows // BATCH_ROWS)
    order = np.zeros(n * BATCH_ROWS, np.int64)
    order[:rows] = stream.permutation(rows)
    counts = np.ones(len(order), np.float32)
    counts[rows:] = 0
    shape = (n, BATCH_ROWS)
    return features[order].reshape(*shape, -1), labels[order].reshape(shape), counts.reshape(shape)


STEP = jax.jit(step, donate_argnums=0)
SCAN = jax.jit(lambda parameters, all_batches: jax.lax.scan(step, parameters, all_batches), donate_argnums=0)


def by_steps(parameters, all_batches):
    for batch in zip(*all_batches):
        parameters, _ = STEP(parameters, batch)
    return parameters


def by_scan(parameters, all_batches):
    return SCAN(parameters, all_batches)[0]


def train(epoch, path, epochs):
    """Returns seconds and held-out accuracy."""
    stream = np.random.default_rng(1)
    (features, labels), (held_out, expected) = load(path, stream)
    sizes = [features.shape[1], 256, 320, int(labels.max()) + 1]
    jax.block_until_ready(epoch(first_parameters(sizes, stream), batches(features, labels, stream)))
    parameters = jax.block_until_ready(first_parameters(sizes, stream))
    start = time.perf_counter()
    for _ in range(epochs):
        parameters = jax.block_until_ready(epoch(parameters, batches(features, labels, stream)))
    seconds = time.perf_counter() - start
    found = np.argmax(np.asarray(forward(parameters, held_out)), axis=1)
    return {"seconds": seconds, "accuracy": float(np.mean(found == expected))}


def main():
    path, epochs = sys.argv[1], int(sys.argv[2])
    forms = {"step": by_steps, "scan": by_scan}
    print(json.dumps({name: train(epoch, path, epochs) for name, epoch in forms.items()}))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Trains a small neural network on handwritten digits, data-parallel with libdist.

This is examples/digits in NumPy. It computes the same parameters, to the last bit: every sum is folded in the same
order, from left to right, and nothing is fused. With --numerics reproducible, the parameters do not depend on the
number of replicas.
"""

import argparse
import csv
import hashlib
import pathlib
import sys

import numpy as np

import libdist
from libdist import Numerics, ReduceOp, Strategy

BATCH_ROWS, MICRO_BATCH_ROWS, NO_LABEL = 64, 8, -1
RATE = np.float32(0.1)
F = np.float32


# ---- Data --------------------------------------------------------------------------------------------------


class Stream:
    """SplitMix64, as specified in examples/digits/random.h."""

    def __init__(self, seed):
        self.state = seed

    def bits(self, n):
        """Returns the next n 64-bit numbers."""
        gamma = np.uint64(0x9E3779B97F4A7C15)
        z = np.uint64(self.state) + gamma * np.arange(1, n + 1, dtype=np.uint64)
        self.state = (self.state + n * int(gamma)) & (2**64 - 1)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    def signed_units(self, n):
        """Returns n numbers in [-1, 1)."""
        return (self.bits(n) >> np.uint64(40)).astype(F) * F(2.0**-23) - F(1)

    def shuffle(self, order):
        """Shuffles a list in place."""
        draws = self.bits(len(order) - 1).tolist()
        for i, draw in zip(range(len(order) - 1, 0, -1), draws):
            j = (draw >> 32) * (i + 1) >> 32
            order[i], order[j] = order[j], order[i]


def load(path, seed):
    """Returns (features, labels) of the training part and of the held-out part."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = np.array([[float(cell) for cell in row] for row in csv.reader(file)], F)
    order = list(range(len(rows)))
    Stream(seed).shuffle(order)
    features, labels = rows[order, :-1], rows[order, -1].astype(np.int32)
    kept = len(rows) - len(rows) // 5
    largest = np.abs(features[:kept]).max(axis=0)
    features[:, largest > 0] /= largest[largest > 0]
    return (features[:kept], labels[:kept]), (features[kept:], labels[kept:])


def micro_batches(features, labels):
    """Groups rows into micro-batches. Padding rows complete the last one."""
    missing = -len(labels) % MICRO_BATCH_ROWS
    features = np.concatenate([features, np.zeros((missing, features.shape[1]), F)])
    labels = np.concatenate([labels, np.full(missing, NO_LABEL, np.int32)])
    return features.reshape(-1, MICRO_BATCH_ROWS, features.shape[1]), labels.reshape(-1, MICRO_BATCH_ROWS)


# ---- The network: features - 256 - 320 - classes, ReLU between the layers ----------------------------------


def multiply(a, b, start=None):
    """Returns a @ b + start, with each sum folded from left to right. NumPy's @ uses a different order."""
    out = np.zeros((a.shape[0], b.shape[1]), F)
    if start is not None:
        out[:] = start
    term = np.empty_like(out)
    for k in range(a.shape[1]):
        np.multiply(a[:, k : k + 1], b[k], out=term)
        out += term
    return out


def sum_rows(a):
    """Sums the rows, from the first to the last."""
    out = np.zeros(a.shape[1], F)
    for row in a:
        out += row
    return out


def exp(x):
    """Like matrix_exp() in examples/digits. np.exp() may give different bits on different machines."""
    n = (x * F(1.44269504) - F(0.5)).astype(np.int32)
    whole = n.astype(F)
    r = (x - whole * F(0.693359375)) + whole * F(2.12194440e-4)
    p = np.full_like(r, F(1.9875691500e-4))
    for c in (1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1):
        p = p * r + F(c)
    e = (p * (r * r) + r) + F(1)
    power = ((np.maximum(n, -126) + 127).astype(np.uint32) << np.uint32(23)).view(F)
    return np.where(x < F(-87), F(0), e * power)


def forward(parameters, features):
    """Returns the outputs of each layer. Those of the last layer are probabilities."""
    outputs, x = [], features
    for layer in range(3):
        x = multiply(x, parameters[2 * layer], parameters[2 * layer + 1])
        if layer < 2:
            x = np.where(x > 0, x, F(0))
        outputs.append(x)
    e = exp(x - x.max(axis=1, keepdims=True))
    total = np.zeros((len(e), 1), F)
    for j in range(e.shape[1]):
        total += e[:, j : j + 1]
    outputs[-1] = e / total
    return outputs


def backward(parameters, features, labels, outputs, scale):
    """Returns the gradients of the mean loss with respect to each parameter."""
    gradients = [None] * 6
    one_hot = (np.arange(outputs[-1].shape[1]) == labels[:, None]).astype(F)
    delta = (outputs[-1] - one_hot) * scale
    for layer in (2, 1, 0):
        x = outputs[layer - 1] if layer else features
        gradients[2 * layer] = multiply(x.T, delta)
        gradients[2 * layer + 1] = sum_rows(delta)
        if layer:
            delta = multiply(delta, np.ascontiguousarray(parameters[2 * layer].T))
            delta[~(x > 0)] = 0
    return gradients


def make_model(strategy, features, classes, seed):
    """Creates the six variables, with He's initial weights."""
    sizes, stream, variables = [features, 256, 320, classes], Stream(seed), []
    for layer, (rows, columns) in enumerate(zip(sizes, sizes[1:]), 1):
        weights = (np.sqrt(F(6) / F(rows)) * stream.signed_units(rows * columns)).reshape(rows, columns)
        variables.append(strategy.variable(weights, name=f"layer{layer}/weights"))
        variables.append(strategy.variable(np.zeros(columns, F), name=f"layer{layer}/biases"))
    return variables


# ---- Training ----------------------------------------------------------------------------------------------


def train_step(replica, features, labels, variables, batch_rows, numerics):
    """Runs on every replica: computes gradients on its part of the batch, sums them over all replicas, updates its copies."""
    parameters = [variable.component(replica.id) for variable in variables]
    if features.ndim == 3 and len(features):
        parts = list(zip(features, labels))  # each micro-batch is a separate contribution
    else:
        parts = [(features.reshape(-1, features.shape[-1]), labels.reshape(-1))]
    gradients = []
    for x, y in parts:
        x, y = x[y != NO_LABEL], y[y != NO_LABEL]
        outputs = forward(parameters, x)
        gradients += backward(parameters, x, y, outputs, F(1) / F(batch_rows.item()))
    options = {"tag": "gradients", "numerics": int(numerics), "contributions": len(parts)}
    total = replica.all_reduce(ReduceOp.SUM, gradients, out=gradients[:6], **options)
    for parameter, gradient in zip(parameters, total):
        parameter -= RATE * gradient


def count_correct(replica, features, labels, variables):
    """Runs on every replica: returns the number of correctly classified rows in its part."""
    outputs = forward([variable.component(replica.id) for variable in variables], features)
    return np.int64((outputs[-1].argmax(axis=1) == labels).sum())


def digest(variables):
    """The SHA-256 of all parameters: equal digests mean equal bits."""
    for variable in variables:
        variable.check_drift()
    return hashlib.sha256(b"".join(variable.read().astype("<f4").tobytes() for variable in variables)).hexdigest()


def train(chosen):
    """Trains once and prints the results."""
    (features, labels), held_out = load(chosen.data, chosen.seed)
    reproducible = chosen.numerics == "reproducible"
    numerics = Numerics.REPRODUCIBLE if reproducible else Numerics.ORDERED
    with Strategy(chosen.replicas) as strategy:
        rows = micro_batches(features, labels) if reproducible else (features, labels)
        size = BATCH_ROWS // MICRO_BATCH_ROWS if reproducible else BATCH_ROWS
        train_set = strategy.dataset_from_tensors(list(rows), global_batch_size=size, shuffle=True, seed=chosen.seed)
        test_set = strategy.dataset_from_tensors(list(held_out), global_batch_size=BATCH_ROWS)
        variables = make_model(strategy, features.shape[1], int(labels.max()) + 1, chosen.seed)
        for epoch in range(1, chosen.epochs + 1):
            for x, y in train_set:
                batch_rows = sum(int((part != NO_LABEL).sum()) for part in strategy.local_results(y))
                strategy.run_values(train_step, (x, y, variables, batch_rows, int(numerics)))
            correct = 0
            for x, y in test_set:
                found = strategy.run_values(count_correct, (x, y, variables))
                correct += int(strategy.reduce(ReduceOp.SUM, found))
            print(f"epoch {epoch}: test accuracy {correct / len(held_out[1]):.3f}", flush=True)
        print(f"test accuracy: {correct / len(held_out[1]):.3f}\nparameters: {digest(variables)}")


def main():
    """Parses the command line."""
    here = pathlib.Path(__file__).resolve()
    parser = argparse.ArgumentParser(description="Trains a small neural network on handwritten digits.")
    parser.add_argument("--replicas", type=int, default=2, help="each a thread (2)")
    parser.add_argument("--numerics", choices=("ordered", "reproducible"), default="ordered")
    parser.add_argument("--epochs", type=int, default=40, help="passes over the training part (40)")
    parser.add_argument("--seed", type=int, default=1, help="of the split, the weights and the order (1)")
    parser.add_argument("--data", default=here.parents[3] / "examples" / "data" / "digits.csv", help="a CSV file")
    try:
        train(parser.parse_args())
    except libdist.DistError as error:
        sys.exit(f"digits: {error}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DistributedDataParallel over Gloo, for dist_bench_overlap.

peer_ddp.py LIBRARY FOLDER FORM SIDE RANK. The LIBRARY simulates the backward pass, and the processes meet by a file in
FOLDER. Each layer of the model is an autograd function whose backward pass is that of the library. In the FORM
"copied", DDP copies each gradient into its bucket, as it does for any model. In the form "in_buckets", the backward pass
writes the gradients into the buckets, so that DDP copies nothing."""

import ctypes
import os
import sys

os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch  # noqa: E402  (after the environment is set)
import torch.distributed  # noqa: E402

LIBRARY, FOLDER, FORM = sys.argv[1:4]
SIDE, RANK = map(int, sys.argv[4:])


class Failed(Exception):
    """A failure whose reason the library has recorded."""


def checked(result):
    if result != 0:
        raise Failed


class Layer(torch.autograd.Function):
    @staticmethod
    def forward(context, signal, part, number, *parameters):
        context.part, context.number = part, number
        return signal.clone()

    @staticmethod
    def backward(context, gradient):
        context.part.library.overlap_pass(context.number)
        # New tensors on the same memory, so that autograd keeps them instead of copying them.
        return gradient, None, None, *(each.detach() for each in context.part.gradients[context.number])


class Model(torch.nn.Module):
    def __init__(self, library):
        super().__init__()
        self.library = library
        self.tensors, self.layers, self.gradients = [], [], []
        for layer in range(library.overlap_num_layers()):
            tensors = [len(self.tensors) + i for i in range(library.overlap_num_tensors(layer))]
            self.tensors += tensors
            parameters = [torch.nn.Parameter(torch.zeros(library.overlap_num_elements(tensor))) for tensor in tensors]
            for tensor, parameter in zip(tensors, parameters):
                self.register_parameter(f"tensor{tensor}", parameter)
            self.layers.append((tensors, parameters))
            self.use_gradients(layer, [torch.zeros_like(parameter) for parameter in parameters])

    def use_gradients(self, layer, gradients):
        """Sets where the backward pass writes the gradients of a layer."""
        self.gradients[layer : layer + 1] = [gradients]
        for tensor, gradient in zip(self.layers[layer][0], gradients):
            self.library.overlap_place(tensor, ctypes.c_void_p(gradient.data_ptr()))

    def forward(self, signal):
        for number, (_, parameters) in enumerate(self.layers):
            signal = Layer.apply(signal, self, number, *parameters)
        return signal.sum()


def load_library():
    library = ctypes.CDLL(LIBRARY)
    library.overlap_num_elements.restype = ctypes.c_long
    checked(library.overlap_join(SIDE, RANK))
    return library


def step(library, model, forward, communicates):
    for parameter in model.parameters():
        parameter.grad = None
    loss = forward(torch.zeros(1, requires_grad=True))
    checked(library.overlap_begin_step())
    loss.backward()
    checked(library.overlap_end_step())
    for tensors, parameters in model.layers if communicates else []:
        for tensor, parameter in zip(tensors, parameters):
            checked(library.overlap_check(tensor, ctypes.c_void_p(parameter.grad.data_ptr())))


def work_in_buckets(model):
    """After a step, the gradients are views of the buckets, which do not change any more."""
    for layer, (_, parameters) in enumerate(model.layers):
        model.use_gradients(layer, [parameter.grad.detach() for parameter in parameters])


def take_turns(library, model, parallel):
    steps, communicates = ctypes.c_int(), ctypes.c_int()
    reduced = 0
    while True:
        checked(library.overlap_next_turn(ctypes.byref(steps), ctypes.byref(communicates)))
        if steps.value == 0:
            return
        for _ in range(steps.value):
            step(library, model, parallel if communicates.value else model, communicates.value)
            reduced += communicates.value
            # DDP creates its buckets again in the second step.
            if FORM == "in_buckets" and reduced == 2 and communicates.value:
                work_in_buckets(model)


def main():
    torch.set_num_threads(1)
    library = load_library()
    name = f"PyTorch {torch.__version__.split('+')[0]} DDP" + (", in buckets" if FORM == "in_buckets" else "")
    library.overlap_name(name.encode())
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{FOLDER}/{FORM}", rank=RANK, world_size=library.overlap_num_workers()
    )
    model = Model(library)
    parallel = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    try:
        take_turns(library, model, parallel)
    except Failed:
        sys.exit(1)
    except Exception as error:
        library.overlap_fail(f"{type(error).__name__}: {error}".encode())
        raise
    os._exit(0)  # skips the slow exit of the libraries' threads


if __name__ == "__main__":
    main()

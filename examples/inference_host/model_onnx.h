// SPDX-License-Identifier: Apache-2.0
//
// model.h by ONNX Runtime, for the benchmark: the file is make_onnx.py's, and an instance computes with nothing of its own.
#ifndef EXAMPLES_INFERENCE_HOST_MODEL_ONNX_H
#define EXAMPLES_INFERENCE_HOST_MODEL_ONNX_H

#include "model.h"

// model_load() for a session of `threads` threads, the caller's among them; model_load()'s own has one.
dist_status model_load_threads(const char *path, int threads, model **out);

#endif

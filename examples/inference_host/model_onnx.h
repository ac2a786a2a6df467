// SPDX-License-Identifier: Apache-2.0
//
// Implements model.h with ONNX Runtime, for the benchmark. make_onnx.py creates the file. Instances need no
// workspace.
#ifndef EXAMPLES_INFERENCE_HOST_MODEL_ONNX_H
#define EXAMPLES_INFERENCE_HOST_MODEL_ONNX_H

#include "model.h"

// Like model_load(), but the session uses `threads` threads including the caller. model_load() uses one.
dist_status model_load_threads(const char *path, int threads, model **out);

#endif

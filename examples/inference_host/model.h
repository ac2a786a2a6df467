// SPDX-License-Identifier: Apache-2.0
//
// A sentence encoder with weights from a file. It maps token ids to a vector of length 1. It computes on the
// calling thread only. Any number of threads can use a model at the same time.
#ifndef EXAMPLES_INFERENCE_HOST_MODEL_H
#define EXAMPLES_INFERENCE_HOST_MODEL_H

#include <dist/dist.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MODEL_MOST_TOKENS = 256, MODEL_MOST_OUTPUTS = 1024 };

typedef struct model model;

// Maps the file and packs its matrices once for all threads. If `like` is not NULL, the sizes must be those
// of `like`. Call model_release() even if this fails.
dist_status model_load(dist_strategy *strategy, const char *path, const model *like, model **out);
// A dist_version_release_fn that ignores user_data.
void model_release(void *m, void *user_data);

int64_t model_outputs(const model *m);

// An instance's buffers, for models of the same sizes. Use these functions as create_state and destroy_state
// in dist_instances_options; they ignore user_data.
dist_status workspace_create(dist_replica *replica, void **out_workspace, void *user_data);
void workspace_destroy(void *workspace, void *user_data);

// A text: its ids, which need not be valid, and the destination of its vector. `status` is an error if the
// model does not have one of the ids.
typedef struct {
  const int32_t *ids;
  int64_t tokens;  // 1 to MODEL_MOST_TOKENS
  float *vector;   // [model_outputs()]
  dist_status status;
} text;

// Encodes texts of any lengths together: their rows are concatenated in the matrix products.
dist_status model_encode(const model *m, void *workspace, text *const *texts, size_t n);

// Prepares `workspace` for batches of up to `most` texts of any lengths.
dist_status model_warm_up(const model *m, void *workspace, size_t most);

#ifdef __cplusplus
}
#endif
#endif

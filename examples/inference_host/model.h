// SPDX-License-Identifier: Apache-2.0
//
// A sentence encoder with a file's weights: token ids in, one vector of length 1 out. On the calling thread
// alone; a model is read by any number of threads at a time.
#ifndef EXAMPLES_INFERENCE_HOST_MODEL_H
#define EXAMPLES_INFERENCE_HOST_MODEL_H

#include <dist/dist.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MODEL_MOST_TOKENS = 256, MODEL_MOST_OUTPUTS = 1024 };

typedef struct model model;

// Maps the file and packs its matrices, once for all threads. `like` is a model whose sizes this one has to
// have; NULL: any. model_release() in any case.
dist_status model_load(dist_strategy *strategy, const char *path, const model *like, model **out);
// A dist_version_release_fn, without user_data.
void model_release(void *m, void *user_data);

int64_t model_outputs(const model *m);

// What an instance computes with, for models of the same sizes: dist_instances_options' create_state and
// destroy_state, without user_data.
dist_status workspace_create(dist_replica *replica, void **out_workspace, void *user_data);
void workspace_destroy(void *workspace, void *user_data);

// A text: its ids, which have been checked against nothing yet, and where its vector goes. status is of that
// text alone: an id that the model has not.
typedef struct {
  const int32_t *ids;
  int64_t tokens;  // 1 .. MODEL_MOST_TOKENS
  float *vector;   // [model_outputs()]
  dist_status status;
} text;

// Encodes texts together, of any lengths: their rows follow one another in the matrix products.
dist_status model_encode(const model *m, void *workspace, text *const *texts, size_t n);

// Has `workspace` make what it needs for batches of up to `most` texts of any lengths.
dist_status model_warm_up(const model *m, void *workspace, size_t most);

#ifdef __cplusplus
}
#endif
#endif

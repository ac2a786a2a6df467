// SPDX-License-Identifier: Apache-2.0
//
// Parses the bodies of requests and writes those of answers.
#ifndef EXAMPLES_INFERENCE_HOST_JSON_H
#define EXAMPLES_INFERENCE_HOST_JSON_H

#include <dist/dist.h>
#include <stddef.h>
#include <stdint.h>

// Parses {"ids": [101, 7592, 102]}. Returns between 1 and `most` ids in *out_n.
dist_status json_ids(const char *body, size_t size, int32_t *ids, int64_t most, int64_t *out_n);

// Parses {"file": "model.safetensors"} into a path. The file must be directly in `folder`.
dist_status json_path(const char *body, size_t size, const char *folder, char *path, size_t most);

// Writes {"version": 1, "embedding": [0.5, ...]}. The caller frees the result; NULL if memory is exhausted.
// *out_size excludes the NUL.
char *json_embedding(int64_t version, const float *vector, int64_t n, size_t *out_size);

// Writes {"version": 1}; otherwise like json_embedding().
char *json_version(int64_t version, size_t *out_size);

typedef struct {
  int draining;
  int64_t version, waiting, active, accepted, answered, gone;
} json_health_of;
char *json_health(const json_health_of *now, size_t *out_size);

// Writes {"error": "..."}; otherwise like json_embedding().
char *json_error(const char *text, size_t *out_size);

#endif

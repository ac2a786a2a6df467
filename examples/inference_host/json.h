// SPDX-License-Identifier: Apache-2.0
//
// The bodies of requests and answers.
#ifndef EXAMPLES_INFERENCE_HOST_JSON_H
#define EXAMPLES_INFERENCE_HOST_JSON_H

#include <dist/dist.h>
#include <stddef.h>
#include <stdint.h>

// {"ids": [101, 7592, 102]}. *out_n: 1 .. most.
dist_status json_ids(const char *body, size_t size, int32_t *ids, int64_t most, int64_t *out_n);

// {"file": "model.safetensors"}: a file of that folder, by its name alone.
dist_status json_path(const char *body, size_t size, const char *folder, char *path, size_t most);

// {"version": 1, "embedding": [0.5, ...]}, to be freed; NULL: no memory. *out_size without the NUL.
char *json_embedding(int64_t version, const float *vector, int64_t n, size_t *out_size);

// {"version": 1}, likewise.
char *json_version(int64_t version, size_t *out_size);

typedef struct {
  int draining;
  int64_t version, waiting, active, accepted, answered, gone;
} json_health_of;
char *json_health(const json_health_of *now, size_t *out_size);

// {"error": "..."}, likewise.
char *json_error(const char *text, size_t *out_size);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "model_onnx.h"

#include <onnxruntime_c_api.h>
#include <stdlib.h>

struct model {
  OrtEnv *env;
  OrtSession *session;
  OrtMemoryInfo *memory;
  int64_t outputs;
};

static const OrtApi *ort(void) { return OrtGetApiBase()->GetApi(ORT_API_VERSION); }

// Converts an ONNX Runtime error to a libdist error and releases it.
static dist_status status_of(OrtStatus *error, dist_status kind) {
  if (error == NULL) return DIST_OK;
  const dist_status status = dist_fail(kind, ort()->GetErrorMessage(error));
  ort()->ReleaseStatus(error);
  return status;
}

static dist_status find_outputs(model *m) {
  const OrtTensorTypeAndShapeInfo *shape = NULL;
  OrtTypeInfo *info = NULL;
  size_t dimensions = 0;
  OrtStatus *error = ort()->SessionGetOutputTypeInfo(m->session, 0, &info);
  if (error == NULL) error = ort()->CastTypeInfoToTensorInfo(info, &shape);
  if (error == NULL) error = ort()->GetDimensionsCount(shape, &dimensions);
  if (error == NULL && dimensions == 1) error = ort()->GetDimensions(shape, &m->outputs, 1);
  if (info != NULL) ort()->ReleaseTypeInfo(info);
  const dist_status status = status_of(error, DIST_INVALID_ARGUMENT);
  if (status || (m->outputs > 0 && m->outputs <= MODEL_MOST_OUTPUTS)) return status;
  return dist_fail(DIST_INVALID_ARGUMENT, "the file's model gives no vector that is short enough");
}

dist_status model_load_threads(const char *path, int threads, model **out) {
  model *m = *out = calloc(1, sizeof *m);
  if (m == NULL) return dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory for a model");
  if (ort() == NULL) return dist_fail(DIST_FAILED_PRECONDITION, "the library is older than its header");
  OrtSessionOptions *options = NULL;
  OrtStatus *error = ort()->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "inference_host", &m->env);
  if (error == NULL) error = ort()->CreateSessionOptions(&options);
  if (error == NULL) error = ort()->SetIntraOpNumThreads(options, threads);
  if (error == NULL) error = ort()->SetInterOpNumThreads(options, 1);
  if (error == NULL) error = ort()->SetSessionGraphOptimizationLevel(options, ORT_ENABLE_ALL);
  if (error == NULL) error = ort()->CreateSession(m->env, path, options, &m->session);
  if (error == NULL) error = ort()->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &m->memory);
  if (options != NULL) ort()->ReleaseSessionOptions(options);
  const dist_status status = status_of(error, DIST_INVALID_ARGUMENT);
  return status ? status : find_outputs(m);
}

dist_status model_load(dist_strategy *strategy, const char *path, const model *like, model **out) {
  (void)strategy;
  const dist_status status = model_load_threads(path, 1, out);
  if (status || like == NULL || like->outputs == (*out)->outputs) return status;
  return dist_fail(DIST_INVALID_ARGUMENT, "the file's model has other sizes than the one that is served");
}

void model_release(void *made, void *user_data) {
  (void)user_data;
  model *m = made;
  if (m == NULL) return;
  if (m->memory != NULL) ort()->ReleaseMemoryInfo(m->memory);
  if (m->session != NULL) ort()->ReleaseSession(m->session);
  if (m->env != NULL) ort()->ReleaseEnv(m->env);
  free(m);
}

int64_t model_outputs(const model *m) { return m->outputs; }

dist_status workspace_create(dist_replica *replica, void **out_workspace, void *user_data) {
  (void)replica, (void)user_data;
  *out_workspace = NULL;
  return DIST_OK;
}

void workspace_destroy(void *workspace, void *user_data) { (void)workspace, (void)user_data; }

// Any number of threads can call this at the same time, because a session has no state.
static OrtStatus *run(const model *m, const text *t) {
  static const char *const input_name = "ids", *const output_name = "vector";
  int64_t ids[MODEL_MOST_TOKENS];
  for (int64_t i = 0; i < t->tokens; i++) ids[i] = t->ids[i];
  OrtValue *input = NULL, *output = NULL;
  OrtStatus *error =
      ort()->CreateTensorWithDataAsOrtValue(m->memory, ids, (size_t)t->tokens * sizeof *ids, &t->tokens, 1,
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &input);
  if (error == NULL)
    error =
        ort()->CreateTensorWithDataAsOrtValue(m->memory, t->vector, (size_t)m->outputs * sizeof *t->vector,
                                              &m->outputs, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &output);
  if (error == NULL)
    error = ort()->Run(m->session, NULL, &input_name, (const OrtValue *const *)&input, 1, &output_name, 1,
                       &output);
  if (input != NULL) ort()->ReleaseValue(input);
  if (output != NULL) ort()->ReleaseValue(output);
  return error;
}

// Encodes each text separately. If ONNX Runtime rejects an id, only that text fails.
dist_status model_encode(const model *m, void *workspace, text *const *texts, size_t n) {
  (void)workspace;
  for (size_t i = 0; i < n; i++) {
    text *t = texts[i];
    t->status = DIST_OK;
    for (int64_t k = 0; k < t->tokens; k++)
      if (t->ids[k] < 0) t->status = DIST_OUT_OF_RANGE;
    if (!t->status) t->status = status_of(run(m, t), DIST_OUT_OF_RANGE);
  }
  return DIST_OK;
}

dist_status model_warm_up(const model *m, void *workspace, size_t most) {
  (void)most;
  static const int32_t ids[MODEL_MOST_TOKENS];
  float vector[MODEL_MOST_OUTPUTS];
  for (int64_t tokens = 16; tokens <= MODEL_MOST_TOKENS; tokens *= 2) {
    text one = {.ids = ids, .tokens = tokens, .vector = vector};
    text *const texts[] = {&one};
    const dist_status status = model_encode(m, workspace, texts, 1);
    if (status || one.status) return status ? status : one.status;
  }
  return DIST_OK;
}

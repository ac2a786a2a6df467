// SPDX-License-Identifier: Apache-2.0
// Names that the programs in the C headers leave to the reader; see programs.py.
#include <stdio.h>

extern dist_status status;
extern dist_strategy* strategy;
extern dist_replica* replica;
extern dist_tensor tensor, gradient, gradients[2], losses, initial, features, labels, zeros;
extern dist_variable* const* variables;
extern size_t n;
extern int steps;
extern void* data;

// ---- dist/batch.h
extern struct dist_batch* batch;
extern dist_completions* completions;
extern dist_request* item;
extern int32_t done;
extern void *model, *request, *token, *the_last;
void gather(void* request);
dist_status compute(void* model);
void* new_cache(void* request);
void* decode(void* cache);
void send(void* request, void* token);
void finish(void* request);

// ---- dist/budget.h
extern dist_strategy *small, *large;

// ---- dist/checkpoint.h
extern dist_iterator* pass;

// ---- dist/cross_replica.h
extern dist_values_fn step;
extern dist_value *model, *batch;

// ---- dist/dataset.h
extern dist_values_fn step;
extern dist_value* model;
void handle_error(dist_status status);

// ---- dist/error.h
extern dist_replica_fn step;

// ---- dist/experimental/coordinator.h
extern dist_value* batch;

// ---- dist/experimental/links.h
dist_status open_tcp(const dist_link_module_options* options, void** out_module, char* error,
                     size_t error_size);

// ---- dist/experimental/preemption.h
extern dist_replica_fn train_step;

// ---- dist/experimental/rpc.h
extern dist_value* arguments;

// ---- dist/experimental/server.h
dist_status compute(dist_value* w, dist_value* arguments, dist_value** out_gradient);

// ---- dist/inspect.h
extern FILE *trace, *scrape;

// ---- dist/mesh.h
extern dist_value* image;
extern dist_values_fn fn;

// ---- dist/scope.h
void train(void);

// ---- dist/serve.h
extern dist_replica_fn answer;
extern void* question;
void reply(void* question, dist_status status);

// ---- dist/strategy.h
extern dist_replica_fn step;

// ---- dist/value.h
extern dist_values_fn step;

// ---- dist/version.h
void* load_model(const char* name);
void release_model(void* model, void* user_data);

// ---- dist/work.h
void compute_gradient(size_t t);

// ---- dist/workers.h
extern dist_replica_fn step;
extern dist_cluster_resolver* resolver;

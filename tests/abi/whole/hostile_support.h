/* SPDX-License-Identifier: Apache-2.0
 *
 * Valid arguments for the calls of test_hostile.c: an object of each kind, callbacks that do nothing, and
 * arrays. Each call gets new ones in a child process, which exits without destroying them.
 */
#ifndef TESTS_ABI_HOSTILE_SUPPORT_H
#define TESTS_ABI_HOSTILE_SUPPORT_H

#include "tests/abi/common.h" /* before system headers, because it sets feature macros */

#include <math.h>
#include <unistd.h>

#include <dist/experimental/coordinator.h>
#include <dist/experimental/links.h>
#include <dist/experimental/preemption.h>
#include <dist/experimental/rendezvous.h>
#include <dist/experimental/rpc.h>
#include <dist/experimental/server.h>
#include <dist/tf.h>
#include "tests/abi/utf8.h"

enum place { OUTSIDE, IN_REPLICA, IN_DEVICE };

struct variant {
  const char *what;
  int fails;         /* 1 = it must not succeed */
  const char *words; /* its message must contain this */
};

/* The child's report to the test. */
struct shared {
  char what[256]; /* the call in progress */
  char fault[1024];
};

struct fixture {
  struct shared *shared;
  const struct function *function; /* the function that is called */
  const char *path;                /* of a checkpoint with a tensor "variable" */
  size_t variant;
  int shut; /* the strategy was shut down before the call */
  dist_status status;

  dist_strategy *strategy; /* one replica with one logical device */
  dist_strategy *host;     /* one replica on a host thread */
  dist_replica *replica;   /* or logical device, if the call is made in one */
  dist_group *group;
  dist_work *work;
  dist_value *value, *list, *dict, *slices, *variable_value, *ragged_splits;
  dist_variable *variable;
  dist_dataset *dataset;
  dist_iterator *iterator;
  dist_cross_device *cross_device;
  dist_metric *metric;
  dist_cancel *cancel;
  dist_versions *versions;
  dist_budget *budget;
  dist_checkpoint *checkpoint;
  dist_preemption_handler *preemption;
  dist_topology *topology, *host_topology;
  dist_device_assignment *assignment;
  dist_cluster_spec *cluster_spec;
  dist_network *network;
  dist_cluster_resolver *resolver;

  float data[2][4];
  float number[2];
  int64_t shape[1];
  dist_tensor tensors[2], scalar, scalar_out;
  dist_value *items[2], *parts[2];
  dist_variable *variables[2];
  dist_destination destination;
  dist_straggler stragglers[4];
  const char *texts[2], *device_names[2];
  dist_mesh_axis axes[1];
  dist_partition partition;
  const dist_partition *partitions[1];
  dist_cluster_job jobs[1];
  const char *addresses[1];
  const dist_cluster_spec *specs[1];
  dist_cluster_resolver *resolvers[1];
  int64_t numbers[4];
  int32_t zero_axes[1], zeros[4], ones[4];
};

struct function {
  const char *name;
  void (*call)(struct fixture *f);
  const struct variant *variants;
  size_t num_variants;
  enum place place;
  int fallible;
};

#define NEED(call)                                                                           \
  do {                                                                                       \
    if ((call) != DIST_OK) {                                                                 \
      if (f->shut) pthread_exit(NULL); /* the call's arguments cannot be created any more */ \
      snprintf(f->shared->fault, sizeof f->shared->fault, "fixture: %.200s: %.700s", #call,  \
               dist_last_error());                                                           \
      _exit(1);                                                                              \
    }                                                                                        \
  } while (0)

/* ---- Callbacks that do nothing, or return one value ---- */

/* For callbacks whose user_data may be NULL. An earlier call's datasets may still call theirs. */
static _Atomic(struct fixture *) fixture_here;

static dist_status replica_fn(dist_replica *replica, void *user_data) {
  (void)replica, (void)user_data;
  return DIST_OK;
}
static dist_status values_fn(dist_replica *replica, dist_value *args, dist_value *kwargs,
                             dist_value **out_result, void *user_data) {
  (void)replica, (void)args, (void)kwargs, (void)out_result, (void)user_data;
  return DIST_OK;
}
static dist_status merge_fn(dist_strategy *strategy, dist_value *args, dist_value **out_result,
                            void *user_data) {
  (void)strategy, (void)args, (void)out_result, (void)user_data;
  return DIST_OK;
}
static void range_fn(int64_t begin, int64_t end, void *user_data) { (void)begin, (void)end, (void)user_data; }
static dist_status value_fn(dist_strategy *strategy, const dist_value_context *context,
                            dist_value **out_value, void *user_data) {
  (void)strategy;
  (void)context, (void)user_data;
  *out_value = dist_value_retain(fixture_here->value);
  return DIST_OK;
}
static dist_status update_fn(dist_strategy *strategy, const dist_update_place *place, dist_value *args,
                             dist_value *kwargs, dist_value **out_result, void *user_data) {
  (void)strategy;
  (void)place, (void)args, (void)kwargs, (void)out_result, (void)user_data;
  return DIST_OK;
}
static dist_status link_open(const dist_link_module_options *options, void **out_module, char *error,
                             size_t error_size) {
  (void)options, (void)out_module, (void)error, (void)error_size;
  return DIST_UNAVAILABLE;
}
static dist_status link_listen(void *module, const dist_link_options *options, void **out_connection,
                               void *address, size_t *address_size, char *error, size_t error_size) {
  (void)module, (void)options, (void)out_connection, (void)address, (void)address_size, (void)error,
      (void)error_size;
  return DIST_UNAVAILABLE;
}
static void link_connect(void *connection, const void *address, size_t address_size) {
  (void)connection, (void)address, (void)address_size;
}
static ptrdiff_t link_move(void *connection, const dist_link_block *blocks, size_t num_blocks) {
  (void)connection, (void)blocks, (void)num_blocks;
  return -1;
}
static void link_end(void *object) { (void)object; }
static const dist_link_functions link_module = {
    sizeof link_module, 0,         "hostile", "nothing", link_open, link_end, link_listen,
    link_connect,       link_move, link_move, link_end,  link_end,  NULL};
static dist_status source_fn(dist_strategy *strategy, int64_t index, dist_value **out_element,
                             void *user_data) {
  (void)strategy;
  (void)user_data;
  if (index >= 4) return DIST_OUT_OF_RANGE;
  *out_element = dist_value_retain(fixture_here->value);
  return DIST_OK;
}
static dist_status file_source_fn(dist_strategy *strategy, size_t file, const char *name, int64_t index,
                                  dist_value **out_element, void *user_data) {
  (void)file, (void)name;
  return source_fn(strategy, index, out_element, user_data);
}
static dist_status dataset_fn(dist_strategy *strategy, const dist_input_context *context,
                              dist_dataset **out_dataset, void *user_data) {
  (void)strategy;
  (void)context, (void)user_data;
  return dist_dataset_create_from_callback(fixture_here->strategy, source_fn, NULL, NULL, NULL, out_dataset);
}
static dist_status dataset_reduce_fn(dist_dataset *dataset, dist_value *state, dist_value *batch,
                                     dist_value **out_state, void *user_data) {
  (void)dataset, (void)batch, (void)user_data;
  *out_state = dist_value_retain(state);
  return DIST_OK;
}
static void text_fn(const char *text, size_t size_bytes, void *user_data) {
  (void)text, (void)size_bytes, (void)user_data;
}
static void apply_fn(const dist_block *block, void *user_data) { (void)block, (void)user_data; }
static void no_release(void *user_data) { (void)user_data; }
static void no_version_release(void *content, void *user_data) { (void)content, (void)user_data; }

/* ---- Objects ---- */

static inline void make_arrays(struct fixture *f) {
  f->shape[0] = 4;
  for (int i = 0; i < 2; i++) {
    f->tensors[i] = (dist_tensor){f->data[i], DIST_F32, 1, f->shape, NULL};
    f->texts[i] = i == 0 ? "a" : "b";
    f->device_names[i] = i == 0 ? "CPU:0" : "CPU:1";
  }
  for (int i = 0; i < 4; i++) f->ones[i] = 1, f->numbers[i] = 1;
  f->scalar = (dist_tensor){&f->number[0], DIST_F32, 0, NULL, NULL};
  f->scalar_out = (dist_tensor){&f->number[1], DIST_F32, 0, NULL, NULL};
  f->axes[0] = (dist_mesh_axis){"x", 1};
  const dist_partition replicated = DIST_PARTITION_INIT;
  f->partition = replicated;
  f->partition.kind = DIST_PARTITION_REPLICATE;
  f->partition.num_logical_devices = 1;
  f->partitions[0] = &f->partition;
  f->addresses[0] = "a:1";
  f->jobs[0] = (dist_cluster_job){"worker", f->addresses, NULL, 1};
}

static inline void make_cluster(struct fixture *f) {
  NEED(dist_cluster_spec_create(f->jobs, 1, NULL, &f->cluster_spec));
  NEED(dist_cluster_resolver_create_simple(f->cluster_spec, NULL, &f->resolver));
  NEED(dist_network_create(2, NULL, &f->network));
  f->specs[0] = f->cluster_spec;
  f->resolvers[0] = f->resolver;
}

static inline void make_strategies(struct fixture *f) {
  NEED(dist_topology_create(f->ones, 4, f->zeros, 1, 1, NULL, &f->topology));
  NEED(dist_topology_from_host(NULL, &f->host_topology));
  NEED(dist_device_assignment_create_single(f->topology, &f->assignment));
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_mesh_options mesh = DIST_MESH_OPTIONS_INIT;
  options.mesh = &mesh;
  options.kind = DIST_STRATEGY_MESH;
  mesh.device_assignment = f->assignment;
  mesh.axes = f->axes;
  mesh.num_axes = 1;
  NEED(dist_strategy_create(&options, &f->strategy));
  dist_strategy_options host = DIST_STRATEGY_OPTIONS_INIT;
  host.num_replicas = 1;
  host.threads = DIST_THREADS_HOST;
  NEED(dist_strategy_create(&host, &f->host));
  NEED(dist_group_create(f->strategy, f->zeros, 1, &f->group));
}

static inline dist_value *tensor_value(struct fixture *f, void *data, dist_dtype dtype, int64_t size) {
  const dist_tensor tensor = {data, dtype, 1, &size, NULL};
  dist_value *value = NULL;
  NEED(dist_value_create_tensor(f->strategy, &tensor, &value));
  return value;
}

static inline void make_values(struct fixture *f) {
  int64_t splits[] = {0, 4}, index[] = {0}, dense[] = {4};
  f->value = tensor_value(f, f->data[0], DIST_F32, 4);
  f->items[0] = f->items[1] = f->value;
  f->parts[0] = f->value;
  f->parts[1] = tensor_value(f, splits, DIST_I64, 2);
  dist_value *const rows[] = {tensor_value(f, f->data[0], DIST_F32, 1), tensor_value(f, index, DIST_I64, 1),
                              tensor_value(f, dense, DIST_I64, 1)};
  NEED(dist_value_create_composite(f->strategy, DIST_VALUE_INDEXED_SLICES, rows, 3, &f->slices));
  NEED(dist_value_create_list(f->strategy, f->items, 1, &f->list));
  NEED(dist_value_create_dict(f->strategy, f->texts, f->items, 1, &f->dict));
  dist_variable_options named = DIST_VARIABLE_OPTIONS_INIT;
  named.name = "variable";
  named.aggregation = DIST_AGGREGATION_MEAN;
  NEED(dist_variable_create(f->strategy, &f->tensors[0], &named, &f->variable));
  NEED(dist_value_create_variable(f->variable, &f->variable_value));
  f->variables[0] = f->variables[1] = f->variable;
  f->destination.value = f->value;
}

static inline void make_fixture(struct fixture *f, struct shared *shared, const char *path,
                                const struct function *function, size_t variant) {
  memset(f, 0, sizeof *f);
  f->shared = shared;
  f->path = path;
  f->function = function;
  f->variant = variant;
  make_arrays(f);
  make_cluster(f);
  make_strategies(f);
  make_values(f);
  fixture_here = f;
  NEED(dist_dataset_create_from_callback(f->strategy, source_fn, NULL, NULL, NULL, &f->dataset));
  NEED(dist_iterator_create(f->dataset, &f->iterator));
  const dist_cross_device_options options = DIST_CROSS_DEVICE_OPTIONS_INIT;
  NEED(dist_cross_device_create(&options, &f->cross_device));
  NEED(dist_cancel_create(NULL, &f->cancel));
  NEED(dist_versions_create(NULL, &f->versions));
  NEED(dist_budget_create(NULL, 1, &f->budget));
  NEED(dist_versions_publish(f->versions, f, NULL, NULL, NULL));
  NEED(dist_metric_create(f->strategy, DIST_METRIC_SUM, "metric", &f->metric));
  if (access(path, R_OK) == 0) NEED(dist_checkpoint_open(f->strategy, path, &f->checkpoint));
  const dist_preemption_options of_preemption = DIST_PREEMPTION_OPTIONS_INIT;
  NEED(dist_preemption_handler_create(f->strategy, &of_preemption, &f->preemption));
}

/* ---- Arguments of single functions ---- */

static inline dist_status rpc_fn(const dist_rpc_context *context, dist_value *arguments,
                                 dist_value **out_result, void *user_data) {
  (void)context, (void)user_data;
  *out_result = dist_value_retain(arguments);
  return DIST_OK;
}
static inline dist_rpc_server *rpc_server(struct fixture *f, int started) {
  dist_rpc_server *server = NULL;
  NEED(dist_rpc_server_create("grpc", "127.0.0.1:0", NULL, &server));
  NEED(dist_rpc_server_register(server, "echo", rpc_fn, NULL, NULL));
  if (started) NEED(dist_rpc_server_start(server));
  return server;
}
static inline dist_rpc_client *rpc_client(struct fixture *f) {
  dist_rpc_client *client = NULL;
  NEED(dist_rpc_client_create("grpc", dist_rpc_server_address(rpc_server(f, 1)), NULL, &client));
  return client;
}
static inline dist_remote_value *remote_value(struct fixture *f) {
  dist_remote_value *remote = NULL;
  NEED(dist_rpc_begin(rpc_client(f), "echo", NULL, NULL, &remote));
  return remote;
}

#include "hostile_serve.h"
#include "hostile_servers.h"

static inline dist_group *own_group(struct fixture *f) {
  dist_group *group = NULL;
  NEED(dist_group_create(f->strategy, f->zeros, 1, &group));
  return group;
}
static inline dist_strategy *scoped(struct fixture *f) {
  NEED(dist_scope_enter(f->strategy));
  return f->strategy;
}
static inline dist_strategy *colocated(struct fixture *f) {
  NEED(dist_scope_enter(f->strategy));
  NEED(dist_colocate_enter(f->strategy, f->variable_value));
  return f->strategy;
}
static inline dist_replica *entered(struct fixture *f) {
  dist_replica *replica = NULL;
  NEED(dist_replica_enter(f->host, 0, &replica));
  return replica;
}
static inline dist_replica *detached(struct fixture *f) {
  NEED(dist_replica_detach(f->replica));
  return f->replica;
}
static dist_status replicate(dist_replica *replica, void *user_data) {
  struct fixture *f = user_data;
  return dist_replicate_to_logical_devices(replica, f->value, &f->items[1]);
}
static inline dist_value *sharded(struct fixture *f) {
  NEED(dist_run(f->strategy, replicate, f, NULL));
  return f->items[1];
}
static inline struct DLManagedTensor *imported(void) {
  struct fixture *f = fixture_here;
  struct DLManagedTensor *managed = NULL;
  NEED(dist_value_to_dlpack(f->value, &managed));
  return managed;
}

static inline void fill_dist_apply_options(struct fixture *f, dist_apply_options *options) {
  (void)f;
  options->kind = DIST_APPLY_CALLBACK;
  options->fn = apply_fn;
}
static inline void fill_dist_partition(struct fixture *f, dist_partition *partition) {
  *partition = f->partition;
  partition->shape = f->shape;
  partition->ndim = 1;
}
static inline void fill_dist_slurm_options(struct fixture *f, dist_slurm_options *slurm) {
  (void)f;
  slurm->has_rank = 1;
  slurm->num_tasks = 4;
  slurm->host_list = "n[1-2]";
  slurm->tasks_per_node = "2(x2)";
}
static inline void fill_dist_kubernetes_options(struct fixture *f, dist_kubernetes_options *kubernetes) {
  (void)f;
  kubernetes->num_workers = 2;
  kubernetes->host_name = "trainer-1";
}
static inline void fill_dist_rendezvous_options(struct fixture *f, dist_rendezvous_options *rendezvous) {
  (void)f;
  rendezvous->has_rank = 1;
  rendezvous->size = 1;
}
static dist_status cluster_spec_fn(dist_cluster_spec **out_spec, void *user_data) {
  (void)user_data;
  return dist_cluster_spec_create(fixture_here->jobs, 1, NULL, out_spec);
}
static inline void fill_dist_cluster_resolver_functions(struct fixture *f,
                                                        dist_cluster_resolver_functions *functions) {
  (void)f;
  functions->spec = cluster_spec_fn;
}
static inline void fill_dist_halo(struct fixture *f, dist_halo *halo) {
  halo->ndim = 1;
  halo->parts = f->numbers;
}
static inline void fill_dist_input_context(struct fixture *f, dist_input_context *context) {
  (void)f;
  context->num_input_pipelines = context->num_replicas_in_sync = 1;
}
static inline void fill_dist_position(struct fixture *f, dist_position *position) {
  (void)f;
  position->elements = position->batches = 1;
}

#endif

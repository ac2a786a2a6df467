// SPDX-License-Identifier: Apache-2.0
// Every callback of the library: an exception that it throws becomes a status, or is dropped if the callback
// cannot report one, and calls of libdist that cannot work there are refused. Afterwards the strategy works.
#include <sched.h>

#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

#define DIST_EXPERIMENTAL 1
#include <dist/dist.h>

extern "C" {
#include <cmocka.h>
}

namespace {

constexpr int32_t kReplicas = 2;

// What the callback of the current row does: it throws, or it calls libdist and notes the status.
enum class Act { kThrow, kThrowInt, kCall, kNothing };
Act act = Act::kThrow;
std::atomic<int> acted{0};
std::atomic<dist_status> run_status{DIST_OK};
std::atomic<dist_status> barrier_status{DIST_OK};
std::atomic<dist_status> value_status{DIST_OK};
dist_strategy *current = nullptr;
thread_local dist_replica *here = nullptr;

dist_status fine(dist_replica *replica, void *) { return dist_barrier(replica, nullptr); }

void behave() {
  if (act == Act::kNothing) return;
  ++acted;
  if (act == Act::kThrow) throw std::runtime_error("no promise kept");
  if (act == Act::kThrowInt) throw 7;
  run_status = dist_run(current, fine, nullptr, nullptr);
  barrier_status = here == nullptr ? dist_status{DIST_FAILED_PRECONDITION} : dist_barrier(here, nullptr);
  dist_value *value = nullptr;
  value_status = dist_value_create_text(current, "text", &value);
  dist_value_release(value);
}

dist_status first_of(dist_status a, dist_status b) { return a != DIST_OK ? a : b; }

float scalars[kReplicas];
dist_tensor scalar(int32_t id) { return {&scalars[id], DIST_F32, 0, nullptr, nullptr}; }

dist_value *spread() {
  dist_value *items[kReplicas], *value = nullptr;
  for (int32_t r = 0; r < kReplicas; ++r) {
    const dist_tensor tensor = scalar(r);
    assert_int_equal(dist_value_create_tensor(current, &tensor, &items[r]), DIST_OK);
  }
  assert_int_equal(dist_value_create_per_replica(current, items, kReplicas, &value), DIST_OK);
  for (dist_value *item : items) dist_value_release(item);
  return value;
}

dist_variable *variable() {
  const dist_tensor zero = scalar(0);
  dist_variable *made = nullptr;
  assert_int_equal(dist_variable_create(current, &zero, nullptr, &made), DIST_OK);
  return made;
}

// ---- The rows: each makes libdist call one kind of callback, and returns what the host gets ----

dist_status in_replica() {
  return dist_run(
      current, [](dist_replica *, void *) -> dist_status { return behave(), DIST_OK; }, nullptr, nullptr);
}

dist_status in_values() {
  return dist_run_values(
      current,
      [](dist_replica *, dist_value *, dist_value *, dist_value **, void *) -> dist_status {
        return behave(), DIST_OK;
      },
      nullptr, nullptr, nullptr, nullptr, nullptr);
}

dist_status in_merge() {
  return dist_run(
      current,
      [](dist_replica *replica, void *) {
        return dist_merge_call(
            replica,
            [](dist_strategy *, dist_value *, dist_value **, void *) -> dist_status {
              return behave(), DIST_OK;
            },
            nullptr, nullptr, nullptr, nullptr);
      },
      nullptr, nullptr);
}

dist_status in_range() {
  return dist_run(
      current,
      [](dist_replica *replica, void *) {
        here = replica;
        const dist_status status = dist_parallel_for(
            replica, 0, 100, 1, [](int64_t, int64_t, void *) { behave(); }, nullptr);
        here = nullptr;
        return first_of(status, act == Act::kCall ? dist_barrier(replica, nullptr) : DIST_OK);
      },
      nullptr, nullptr);
}

// The operator, in a collective of n elements.
dist_status reduce(dist_replica *replica, int64_t n, bool asynchronous) {
  static float room[kReplicas][1 << 18];
  const dist_tensor tensor = {room[dist_replica_id(replica)], DIST_F32, 1, &n, nullptr};
  dist_tensor result = tensor;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.reduce_fn = [](void *, const void *, size_t, dist_dtype, void *user_data) {
    here = static_cast<dist_replica *>(user_data);
    behave();
  };
  options.reduce_user_data = replica;
  dist_work *work = nullptr;
  if (asynchronous) options.out_work = &work;
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_USER, &tensor, &result, 1, &options);
  if (asynchronous && status == DIST_OK) status = dist_work_wait(work, 0);
  dist_work_destroy(work);
  here = nullptr;
  return status;
}

// The replicas of an operator that throws all get the report.
std::atomic<int> failed_replicas{0};

template <int64_t kCount, bool kAsynchronous>
dist_status in_operator() {
  failed_replicas = 0;
  const dist_status status = dist_run(
      current,
      [](dist_replica *replica, void *) {
        const dist_status reduced = reduce(replica, kCount, kAsynchronous);
        if (reduced == DIST_UNKNOWN) ++failed_replicas;
        return reduced;
      },
      nullptr, nullptr);
  if (status == DIST_UNKNOWN) assert_int_equal(failed_replicas.load(), kReplicas);
  return status;
}

dist_status in_plan() {
  return dist_run(
      current,
      [](dist_replica *replica, void *) {
        dist_tensor tensor = scalar(dist_replica_id(replica));
        dist_work *plan = nullptr;
        dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
        options.reduce_fn = [](void *, const void *, size_t, dist_dtype, void *user_data) {
          here = static_cast<dist_replica *>(user_data);
          behave();
        };
        options.reduce_user_data = replica;
        options.out_work = &plan;
        options.planned = 1;
        dist_status status = dist_all_reduce(replica, DIST_REDUCE_USER, &tensor, &tensor, 1, &options);
        if (status == DIST_OK) status = dist_work_start(plan);
        if (status == DIST_OK) status = dist_work_wait(plan, 0);
        dist_work_destroy(plan);
        here = nullptr;
        return status;
      },
      nullptr, nullptr);
}

dist_status in_scan() {
  return dist_run(
      current,
      [](dist_replica *replica, void *) {
        dist_tensor tensor = scalar(dist_replica_id(replica));
        dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
        options.reduce_fn = [](void *, const void *, size_t, dist_dtype, void *user_data) {
          here = static_cast<dist_replica *>(user_data);
          behave();
        };
        options.reduce_user_data = replica;
        const dist_status status =
            dist_scan(replica, DIST_REDUCE_USER, DIST_SCAN_INCLUSIVE, &tensor, &tensor, 1, &options);
        here = nullptr;
        return status;
      },
      nullptr, nullptr);
}

dist_status in_apply() {
  return dist_run(
      current,
      [](dist_replica *replica, void *) {
        float gradient = 1;
        static float parameters[kReplicas];
        dist_tensor from = {&gradient, DIST_F32, 0, nullptr, nullptr};
        dist_tensor to = {&parameters[dist_replica_id(replica)], DIST_F32, 0, nullptr, nullptr};
        dist_apply_options options = DIST_APPLY_OPTIONS_INIT;
        options.kind = DIST_APPLY_CALLBACK;
        options.user_data = replica;
        options.fn = [](const dist_block *, void *user_data) {
          here = static_cast<dist_replica *>(user_data);
          behave();
        };
        const dist_status status =
            dist_reduce_apply(replica, DIST_REDUCE_SUM, &from, &to, 1, &options, nullptr);
        here = nullptr;
        return status;
      },
      nullptr, nullptr);
}

dist_status with_cross_device(dist_status (*use)(dist_cross_device *, dist_value *,
                                                 const dist_destination *)) {
  dist_cross_device_functions functions = DIST_CROSS_DEVICE_FUNCTIONS_INIT;
  functions.reduce = [](dist_reduce_op, const dist_tensor *, size_t, dist_tensor *, void *) -> dist_status {
    return behave(), DIST_OK;
  };
  functions.broadcast = [](const dist_tensor *, dist_tensor *, size_t, void *) -> dist_status {
    return behave(), DIST_OK;
  };
  functions.gather = [](const dist_tensor *, size_t, int32_t, dist_tensor *, void *) -> dist_status {
    return behave(), DIST_OK;
  };
  dist_cross_device_options options = DIST_CROSS_DEVICE_OPTIONS_INIT;
  options.kind = DIST_CROSS_DEVICE_HOST;
  options.functions = &functions;
  dist_cross_device *made = nullptr;
  assert_int_equal(dist_cross_device_create(&options, &made), DIST_OK);
  float rows[kReplicas] = {};
  const int64_t one = 1;
  dist_value *items[kReplicas], *value = nullptr;
  for (int32_t r = 0; r < kReplicas; ++r) {
    const dist_tensor tensor = {&rows[r], DIST_F32, 1, &one, nullptr};
    assert_int_equal(dist_value_create_tensor(current, &tensor, &items[r]), DIST_OK);
  }
  assert_int_equal(dist_value_create_per_replica(current, items, kReplicas, &value), DIST_OK);
  const dist_destination everywhere = {nullptr, value, nullptr};
  const dist_status status = use(made, value, &everywhere);
  for (dist_value *item : items) dist_value_release(item);
  dist_value_release(value);
  dist_cross_device_destroy(made);
  return status;
}

dist_status in_reduce_values() {
  return with_cross_device([](dist_cross_device *ops, dist_value *value, const dist_destination *to) {
    dist_value *result = nullptr;
    const dist_status status = dist_cross_device_reduce(ops, DIST_REDUCE_SUM, value, to, &result);
    dist_value_release(result);
    return status;
  });
}

dist_status in_broadcast_values() {
  return with_cross_device([](dist_cross_device *ops, dist_value *value, const dist_destination *to) {
    dist_value *result = nullptr;
    const dist_status status = dist_cross_device_broadcast(ops, dist_value_item(value, 0), to, &result);
    dist_value_release(result);
    return status;
  });
}

dist_status in_gather_values() {
  return with_cross_device([](dist_cross_device *ops, dist_value *value, const dist_destination *) {
    dist_value *result = nullptr;
    const dist_status status = dist_cross_device_gather(ops, value, 0, &result);
    dist_value_release(result);
    return status;
  });
}

// The operator of a reduction outside runs.
dist_status in_accumulate() {
  dist_cross_device_options options = DIST_CROSS_DEVICE_OPTIONS_INIT;
  options.kind = DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE;
  options.accumulate = [](void *, const void *, size_t, dist_dtype, void *) { behave(); };
  dist_cross_device *made = nullptr;
  assert_int_equal(dist_cross_device_create(&options, &made), DIST_OK);
  dist_value *value = spread(), *result = nullptr;
  const dist_destination everywhere = {nullptr, value, nullptr};
  const dist_status status = dist_cross_device_reduce(made, DIST_REDUCE_SUM, value, &everywhere, &result);
  dist_value_release(result);
  dist_value_release(value);
  dist_cross_device_destroy(made);
  return status;
}

dist_status in_component() {
  dist_value *value = nullptr;
  const dist_status status = dist_values_from_function(
      current,
      [](const dist_value_context *, dist_value **, void *) -> dist_status {
        return behave(), DIST_CANCELLED;
      },
      nullptr, &value);
  assert_null(value);
  return status;
}

dist_status in_initial() {
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.initial_fn = [](dist_value **, void *) -> dist_status { return behave(), DIST_CANCELLED; };
  dist_variable *made = nullptr;
  const dist_status status = dist_variable_create(current, nullptr, &options, &made);
  assert_null(made);
  return status;
}

dist_status in_update() {
  dist_variable *made = variable();
  const dist_status status = dist_update(
      current, made, [](dist_tensor *, dist_value *, void *) -> dist_status { return behave(), DIST_OK; },
      nullptr, nullptr);
  dist_variable_destroy(made);
  return status;
}

dist_status in_update_values() {
  dist_variable *made = variable();
  const dist_status status = dist_update_values(
      current, made,
      [](const dist_update_place *, dist_value *, dist_value *, dist_value **, void *) -> dist_status {
        return behave(), DIST_OK;
      },
      nullptr, nullptr, nullptr, nullptr, nullptr);
  dist_variable_destroy(made);
  return status;
}

dist_status read_pass(dist_dataset *dataset) {
  dist_iterator *iterator = nullptr;
  dist_value *batch = nullptr;
  dist_status status = dist_iterator_create(dataset, &iterator);
  if (status == DIST_OK) status = dist_iterator_next(iterator, &batch);
  dist_value_release(batch);
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(dataset);
  return status;
}

dist_status element(dist_value **out) {
  const dist_tensor tensor = scalar(0);
  return dist_value_create_tensor(current, &tensor, out);
}

template <int64_t kPrefetch>
dist_status in_source() {
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = kReplicas;
  options.prefetch = kPrefetch;
  dist_dataset *dataset = nullptr;
  assert_int_equal(dist_dataset_create_from_callback(
                       current,
                       [](int64_t index, dist_value **out, void *) -> dist_status {
                         if (index > 3) return DIST_OUT_OF_RANGE;
                         behave();
                         return element(out);
                       },
                       nullptr, nullptr, &options, &dataset),
                   DIST_OK);
  return read_pass(dataset);
}

dist_status in_file_source() {
  static const char *const names[] = {"a", "b"};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = kReplicas;
  dist_dataset *dataset = nullptr;
  assert_int_equal(dist_dataset_create_from_files(
                       current, names, 2,
                       [](size_t, const char *, int64_t index, dist_value **out, void *) -> dist_status {
                         if (index > 3) return DIST_OUT_OF_RANGE;
                         behave();
                         return element(out);
                       },
                       nullptr, nullptr, &options, &dataset),
                   DIST_OK);
  return read_pass(dataset);
}

dist_status in_dataset_function() {
  dist_dataset *dataset = nullptr;
  const dist_status status = dist_dataset_create_from_function(
      current,
      [](const dist_input_context *, dist_dataset **, void *) -> dist_status {
        return behave(), DIST_CANCELLED;
      },
      nullptr, nullptr, &dataset);
  assert_null(dataset);
  return status;
}

dist_status in_dataset_reduce() {
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = kReplicas;
  dist_dataset *dataset = nullptr;
  float rows[4] = {};
  const int64_t four = 4;
  const dist_tensor tensor = {rows, DIST_F32, 1, &four, nullptr};
  assert_int_equal(dist_dataset_create_from_tensors(current, &tensor, 1, &options, &dataset), DIST_OK);
  dist_value *state = nullptr, *result = nullptr;
  assert_int_equal(dist_value_create_none(current, &state), DIST_OK);
  const dist_status status = dist_dataset_reduce(
      dataset, state,
      [](dist_value *before, dist_value *, dist_value **out, void *) -> dist_status {
        behave();
        *out = dist_value_retain(before);
        return DIST_OK;
      },
      nullptr, &result);
  dist_value_release(result);
  dist_value_release(state);
  dist_dataset_destroy(dataset);
  return status;
}

dist_status in_text() {
  return dist_explain(
      current, [](const char *, size_t, void *) { behave(); }, nullptr);
}

// ---- Requests and items ----

enum class Served { kCreate, kDestroy, kWarmUp, kRequest, kDone };

template <Served kWhat>
dist_status in_serving() {
  dist_instances_options options = DIST_INSTANCES_OPTIONS_INIT;
  if (kWhat == Served::kCreate || kWhat == Served::kDestroy) {
    options.create_state = [](dist_replica *, void **out, void *) -> dist_status {
      if (kWhat == Served::kCreate) behave();
      *out = &acted;
      return DIST_OK;
    };
    options.destroy_state = [](void *, void *) {
      if (kWhat == Served::kDestroy) behave();
    };
  }
  if (kWhat == Served::kWarmUp)
    options.warm_up = [](dist_replica *, void *) -> dist_status { return behave(), DIST_OK; };
  dist_status status = dist_instances_open(current, &options);
  dist_work *work = nullptr;
  dist_submit_options submit = DIST_SUBMIT_OPTIONS_INIT;
  if (kWhat == Served::kDone) submit.done = [](dist_work *, void *) { behave(); };
  if (status == DIST_OK)
    status = dist_submit(
        current,
        [](dist_replica *, void *) -> dist_status {
          if (kWhat == Served::kRequest) behave();
          return DIST_OK;
        },
        nullptr, &submit, &work);
  if (status == DIST_OK) status = dist_work_wait(work, -1);
  dist_work_destroy(work);
  const dist_status closed = dist_instances_close(current, INT64_C(30000000000));
  return first_of(status, closed);
}

enum class Batched { kStep, kState, kResult };

template <Batched kWhat>
dist_status in_batch() {
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.free_state = [](void *, void *) {
    if (kWhat == Batched::kState) behave();
  };
  options.free_result = [](void *, void *) {
    if (kWhat == Batched::kResult) behave();
  };
  dist_batcher *batcher = nullptr;
  assert_int_equal(dist_instances_open(current, nullptr), DIST_OK);
  assert_int_equal(dist_batcher_create(
                       current,
                       [](dist_replica *, dist_batch *batch, void *) -> dist_status {
                         if (kWhat == Batched::kStep) behave();
                         if (kWhat == Batched::kState) dist_batch_set_state(batch, 0, &acted);
                         if (kWhat == Batched::kResult) return dist_batch_emit(batch, 0, &acted);
                         return DIST_OK;
                       },
                       nullptr, &options, &batcher),
                   DIST_OK);
  dist_work *work = nullptr;
  dist_status status = dist_batcher_submit(batcher, nullptr, nullptr, &work);
  if (status == DIST_OK) status = dist_work_wait(work, -1);
  dist_work_destroy(work);
  const dist_status destroyed = dist_batcher_destroy(batcher);
  const dist_status closed = dist_instances_close(current, INT64_C(30000000000));
  return first_of(status, first_of(destroyed, closed));
}

// ---- Callbacks that end something, and those of a strategy of their own ----

dist_status in_release() {
  dist_value *value = nullptr;
  assert_int_equal(dist_value_wrap_object(
                       current, &acted, [](void *) { behave(); }, &value),
                   DIST_OK);
  dist_value_release(value);
  return DIST_OK;
}

dist_status in_version_release() {
  dist_versions *versions = nullptr;
  assert_int_equal(dist_versions_create(nullptr, &versions), DIST_OK);
  dist_status status = DIST_OK;
  for (int k = 0; k < 2 && status == DIST_OK; ++k)
    status = dist_versions_publish(
        versions, &acted, [](void *, void *) { behave(); }, nullptr, nullptr);
  dist_versions_destroy(versions);
  return status;
}

dist_status with_strategy(const dist_strategy_options &options, dist_replica_fn fn) {
  dist_strategy *own = nullptr;
  dist_status status = dist_strategy_create(&options, &own);
  if (status == DIST_OK) status = dist_run(own, fn, nullptr, nullptr);
  const dist_status destroyed = dist_strategy_destroy(own);
  return first_of(status, destroyed);
}

dist_status in_clock() {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = kReplicas;
  options.clock = [](void *) -> int64_t { return behave(), 1; };
  dist_strategy *own = nullptr;
  dist_status status = dist_strategy_create(&options, &own);
  dist_run_options run = DIST_RUN_OPTIONS_INIT;
  run.timeout_ns = INT64_MAX;
  if (status == DIST_OK) status = dist_run(own, fine, nullptr, &run);
  const dist_status destroyed = dist_strategy_destroy(own);
  return first_of(status, destroyed);
}

// Replica 1 is late by the clock, which makes replica 0 write a line.
std::atomic<int64_t> seconds{0};

dist_status in_log() {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = kReplicas;
  options.timeout_ns = -1;
  options.clock = [](void *) -> int64_t { return ++seconds * 1000000000; };
  options.log = [](void *, int32_t, const char *) { behave(); };
  return with_strategy(options, [](dist_replica *replica, void *) {
    while (dist_replica_id(replica) == 1 && acted == 0) sched_yield();
    return dist_barrier(replica, nullptr);
  });
}

// The allocator: `alloc` fails if it throws, and `free` frees nothing.
dist_status in_alloc() {
  static bool armed;
  dist_allocator allocator = {nullptr,
                              [](void *, size_t size, size_t align) -> void * {
                                if (armed) behave();
                                return std::aligned_alloc(align, (size + align - 1) / align * align);
                              },
                              [](void *, void *memory, size_t, size_t) { std::free(memory); }};
  dist_completions *made = nullptr;
  armed = true;
  const dist_status status = dist_completions_create(&allocator, &made);
  armed = false;
  dist_completions_destroy(made);
  return status;
}

dist_status in_free() {
  dist_allocator allocator = {nullptr,
                              [](void *, size_t size, size_t align) -> void * {
                                return std::aligned_alloc(align, (size + align - 1) / align * align);
                              },
                              [](void *, void *memory, size_t, size_t) {
                                std::free(memory);
                                behave();
                              }};
  dist_completions *made = nullptr;
  const dist_status status = dist_completions_create(&allocator, &made);
  dist_completions_destroy(made);
  return status;
}

dist_status in_execute() {
  dist_executor executor = DIST_EXECUTOR_INIT;
  executor.num_threads = 2;
  executor.execute = [](dist_task_fn, void *, void *) -> int32_t { return behave(), 1; };
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = kReplicas;
  options.executor = &executor;
  return with_strategy(options, [](dist_replica *replica, void *) {
    return dist_parallel_for(
        replica, 0, 1000, 1, [](int64_t, int64_t, void *) {}, nullptr);
  });
}

dist_status in_layout() {
  dist_strategy_functions functions = DIST_STRATEGY_FUNCTIONS_INIT;
  functions.copy_of_replica = [](int32_t replica, int32_t, void *) -> int32_t { return behave(), replica; };
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = kReplicas;
  options.functions = &functions;
  return with_strategy(options, fine);
}

dist_status in_resolver(bool release) {
  static bool releases;
  releases = release;
  dist_cluster_resolver_functions functions = DIST_CLUSTER_RESOLVER_FUNCTIONS_INIT;
  functions.spec = [](dist_cluster_spec **out, void *) -> dist_status {
    if (!releases) behave();
    return dist_cluster_spec_from_json("{\"worker\": [\"a:1\"]}", nullptr, out);
  };
  functions.release = [](void *) {
    if (releases) behave();
  };
  dist_cluster_resolver *resolver = nullptr;
  dist_cluster_spec *spec = nullptr;
  dist_status status = dist_cluster_resolver_create_host(&functions, nullptr, nullptr, &resolver);
  if (status == DIST_OK) status = dist_cluster_resolver_spec(resolver, &spec);
  dist_cluster_spec_destroy(spec);
  dist_cluster_resolver_destroy(resolver);
  return status;
}
dist_status in_spec() { return in_resolver(false); }
dist_status in_resolver_release() { return in_resolver(true); }

// What a callback may call.
enum class May { kAll, kNotWait, kNothing };

struct Row {
  const char *callback;
  dist_status (*provoke)();
  dist_status thrown;  // what the host gets if the callback throws
  May may;
  bool serves = false;  // requests, which need threads of the library
};

// The callbacks of servers are called on threads of a server, which survives their exceptions: test_rpc.c and
// test_coordinator.c. dist_task_fn is libdist's own.
// @every callback but rpc_fn, closure_fn, server_update_fn, partition_fn, task_fn: see above
const Row kRows[] = {
    {"dist_replica_fn", in_replica, DIST_UNKNOWN, May::kAll},
    {"dist_values_fn", in_values, DIST_UNKNOWN, May::kAll},
    {"dist_merge_fn", in_merge, DIST_UNKNOWN, May::kAll},
    {"dist_range_fn", in_range, DIST_UNKNOWN, May::kNotWait},
    {"dist_reduce_fn", in_operator<1, false>, DIST_UNKNOWN, May::kNothing},
    {"dist_reduce_fn of much data", in_operator<1 << 18, false>, DIST_UNKNOWN, May::kNothing},
    {"dist_reduce_fn of a work", in_operator<1, true>, DIST_UNKNOWN, May::kNothing},
    {"dist_reduce_fn of a large work", in_operator<1 << 18, true>, DIST_UNKNOWN, May::kNothing},
    {"dist_reduce_fn of a plan", in_plan, DIST_UNKNOWN, May::kNothing},
    {"dist_reduce_fn of a scan", in_scan, DIST_UNKNOWN, May::kNothing},
    {"dist_reduce_fn outside runs", in_accumulate, DIST_UNKNOWN, May::kNothing},
    {"dist_apply_fn", in_apply, DIST_UNKNOWN, May::kNothing},
    {"dist_reduce_values_fn", in_reduce_values, DIST_UNKNOWN, May::kAll},
    {"dist_broadcast_values_fn", in_broadcast_values, DIST_UNKNOWN, May::kAll},
    {"dist_gather_values_fn", in_gather_values, DIST_UNKNOWN, May::kAll},
    {"dist_value_fn", in_component, DIST_UNKNOWN, May::kAll},
    {"dist_initial_fn", in_initial, DIST_UNKNOWN, May::kAll},
    {"dist_update_fn", in_update, DIST_UNKNOWN, May::kAll},
    {"dist_update_values_fn", in_update_values, DIST_UNKNOWN, May::kAll},
    {"dist_source_fn", in_source<0>, DIST_UNKNOWN, May::kNotWait},
    {"dist_source_fn ahead", in_source<2>, DIST_UNKNOWN, May::kNotWait},
    {"dist_file_source_fn", in_file_source, DIST_UNKNOWN, May::kNotWait},
    {"dist_dataset_fn", in_dataset_function, DIST_UNKNOWN, May::kAll},
    {"dist_dataset_reduce_fn", in_dataset_reduce, DIST_UNKNOWN, May::kAll},
    {"dist_text_fn", in_text, DIST_UNKNOWN, May::kAll},
    {"dist_instance_create_fn", in_serving<Served::kCreate>, DIST_UNKNOWN, May::kAll, true},
    {"dist_instance_destroy_fn", in_serving<Served::kDestroy>, DIST_OK, May::kAll, true},
    {"dist_replica_fn that warms up", in_serving<Served::kWarmUp>, DIST_UNKNOWN, May::kAll, true},
    {"dist_replica_fn of a request", in_serving<Served::kRequest>, DIST_UNKNOWN, May::kAll, true},
    {"dist_done_fn", in_serving<Served::kDone>, DIST_OK, May::kAll, true},
    {"dist_batch_fn", in_batch<Batched::kStep>, DIST_UNKNOWN, May::kAll, true},
    {"dist_batch_free_fn of a state", in_batch<Batched::kState>, DIST_OK, May::kAll, true},
    {"dist_batch_free_fn of a result", in_batch<Batched::kResult>, DIST_OK, May::kAll, true},
    {"dist_release_fn", in_release, DIST_OK, May::kAll},
    {"dist_version_release_fn", in_version_release, DIST_OK, May::kAll},
    {"dist_clock_fn", in_clock, DIST_OK, May::kNothing},
    {"dist_log_fn", in_log, DIST_OK, May::kNothing},
    {"dist_allocator.alloc", in_alloc, DIST_RESOURCE_EXHAUSTED, May::kNothing},
    {"dist_allocator.free", in_free, DIST_OK, May::kNothing},
    {"dist_execute_fn", in_execute, DIST_OK, May::kAll},
    {"dist_strategy_functions.copy_of_replica", in_layout, DIST_UNKNOWN, May::kAll},
    {"dist_cluster_resolver_functions.spec", in_spec, DIST_UNKNOWN, May::kAll},
    {"dist_cluster_resolver_functions.release", in_resolver_release, DIST_OK, May::kAll},
};

void play(const Row &row, Act what, dist_status wanted) {
  act = what;
  acted = 0;
  const dist_status status = row.provoke();
  act = Act::kNothing;
  if (status != wanted || acted == 0)
    fail_msg("%s: %s: %s (%d calls)", row.callback, dist_status_name(status), dist_last_error(),
             acted.load());
  if (wanted == DIST_UNKNOWN && std::strstr(dist_last_error(), "threw a C++ exception") == nullptr)
    fail_msg("%s: %s", row.callback, dist_last_error());
  if (dist_run(current, fine, nullptr, nullptr) != DIST_OK)
    fail_msg("after %s: %s", row.callback, dist_last_error());
}

void for_each_row(void (*use)(const Row &)) {
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; ++threads) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.num_replicas = kReplicas;
    options.threads = threads;
    assert_int_equal(dist_strategy_create(&options, &current), DIST_OK);
    for (const Row &row : kRows) {
      if (threads == DIST_THREADS_LIBRARY || !row.serves) use(row);
    }
    assert_int_equal(dist_strategy_destroy(current), DIST_OK);
  }
}

void exceptions_of_callbacks_are_a_status(void **) {
  for_each_row([](const Row &row) {
    play(row, Act::kThrow, row.thrown);
    play(row, Act::kThrowInt, row.thrown);
  });
}

// In the others, calls that cannot work are refused by what they would wait for; see the tests of these.
void calls_that_cannot_work_are_refused(void **) {
  for_each_row([](const Row &row) {
    if (row.may == May::kAll) return;
    run_status = barrier_status = value_status = DIST_OK;
    play(row, Act::kCall, DIST_OK);
    assert_int_equal(run_status.load(), DIST_FAILED_PRECONDITION);
    assert_int_equal(barrier_status.load(), DIST_FAILED_PRECONDITION);
    assert_int_equal(value_status.load(), row.may == May::kNothing ? DIST_FAILED_PRECONDITION : DIST_OK);
  });
}

// One replica's exception ends the run of all.
dist_status throw_in_one(dist_replica *replica, void *user_data) {
  if (dist_replica_id(replica) == *static_cast<int32_t *>(user_data))
    throw std::runtime_error("no promise kept");
  return dist_barrier(replica, nullptr);
}

void an_exception_of_one_replica_ends_the_run(void **) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 3;
  for (options.threads = DIST_THREADS_CALLER; options.threads <= DIST_THREADS_LIBRARY; ++options.threads) {
    dist_strategy *strategy = nullptr;
    assert_int_equal(dist_strategy_create(&options, &strategy), DIST_OK);
    for (int32_t who = 0; who < 3; ++who) {
      assert_int_equal(dist_run(strategy, throw_in_one, &who, nullptr), DIST_UNKNOWN);
      char wanted[64];
      std::snprintf(wanted, sizeof wanted, "replica %d's function threw a C++ exception: no promise", who);
      assert_non_null(std::strstr(dist_last_error(), wanted));
      assert_int_equal(dist_run(strategy, fine, nullptr, nullptr), DIST_OK);
    }
    assert_int_equal(dist_strategy_destroy(strategy), DIST_OK);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(exceptions_of_callbacks_are_a_status),
                              cmocka_unit_test(calls_that_cannot_work_are_refused),
                              cmocka_unit_test(an_exception_of_one_replica_ends_the_run)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

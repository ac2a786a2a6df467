// SPDX-License-Identifier: Apache-2.0
// For test_callbacks.cpp: makes libdist call all other callbacks.
#pragma once

#include "tests/abi/whole/callbacks_in_runs.hpp"

namespace {

dist_status in_component() {
  dist_value *value = nullptr;
  const dist_status status = dist_values_from_function(
      current,
      [](dist_strategy *, const dist_value_context *, dist_value **, void *) -> dist_status {
        return behave(), DIST_CANCELLED;
      },
      nullptr, &value);
  assert_null(value);
  return status;
}

dist_status in_initial() {
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.initial_fn = [](dist_strategy *, dist_value **, void *) -> dist_status {
    return behave(), DIST_CANCELLED;
  };
  dist_variable *made = nullptr;
  const dist_status status = dist_variable_create(current, nullptr, &options, &made);
  assert_null(made);
  return status;
}

dist_status in_update() {
  dist_variable *made = variable();
  const dist_status status = dist_update(
      current, made,
      [](dist_strategy *, const dist_update_place *, dist_value *, dist_value *, dist_value **,
         void *) -> dist_status { return behave(), DIST_OK; },
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
                       [](dist_strategy *, int64_t index, dist_value **out, void *) -> dist_status {
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
  assert_int_equal(
      dist_dataset_create_from_files(
          current, names, 2,
          [](dist_strategy *, size_t, const char *, int64_t index, dist_value **out, void *) -> dist_status {
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
      [](dist_strategy *, const dist_input_context *, dist_dataset **, void *) -> dist_status {
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
      [](dist_dataset *, dist_value *before, dist_value *, dist_value **out, void *) -> dist_status {
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
  return dist_strategy_explain(
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
  dist_request *work = nullptr;
  dist_submit_options submit = DIST_SUBMIT_OPTIONS_INIT;
  if (kWhat == Served::kDone) submit.done = [](dist_request *, void *) { behave(); };
  if (status == DIST_OK)
    status = dist_submit(
        current,
        [](dist_replica *, void *) -> dist_status {
          if (kWhat == Served::kRequest) behave();
          return DIST_OK;
        },
        nullptr, &submit, &work);
  if (status == DIST_OK) status = dist_request_wait(work, -1);
  dist_request_destroy(work);
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
  dist_request *work = nullptr;
  dist_status status = dist_batcher_submit(batcher, nullptr, nullptr, &work);
  if (status == DIST_OK) status = dist_request_wait(work, -1);
  dist_request_destroy(work);
  const dist_status destroyed = dist_batcher_destroy(batcher);
  const dist_status closed = dist_instances_close(current, INT64_C(30000000000));
  return first_of(status, first_of(destroyed, closed));
}

// ---- Callbacks that release something, and those of a separate strategy ----

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
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = kReplicas;
  host.clock = [](void *) -> int64_t { return behave(), 1; };
  dist_strategy *own = nullptr;
  dist_status status = dist_strategy_create(&options, &own);
  dist_run_options run = DIST_RUN_OPTIONS_INIT;
  run.timeout_ns = INT64_MAX;
  if (status == DIST_OK) status = dist_run(own, fine, nullptr, &run);
  const dist_status destroyed = dist_strategy_destroy(own);
  return first_of(status, destroyed);
}

// Replica 1 is late on the host's clock, so that replica 0 writes a log line.
std::atomic<int64_t> seconds{0};

dist_status in_log() {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = kReplicas;
  options.timeout_ns = -1;
  host.clock = [](void *) -> int64_t { return ++seconds * 1000000000; };
  host.log = [](dist_log_level, const char *, void *) { behave(); };
  return with_strategy(options, [](dist_replica *replica, void *) {
    while (dist_replica_id(replica) == 1 && acted == 0) sched_yield();
    return dist_barrier(replica, nullptr, nullptr);
  });
}

// `alloc` fails if it throws. `free` frees nothing.
dist_status in_alloc() {
  static bool armed;
  dist_allocator allocator = {[](size_t size, size_t align, void *) -> void * {
                                if (armed) behave();
                                return std::aligned_alloc(align, (size + align - 1) / align * align);
                              },
                              [](void *memory, size_t, size_t, void *) { std::free(memory); }, nullptr};
  dist_completions *made = nullptr;
  armed = true;
  const dist_status status = dist_completions_create(&allocator, &made);
  armed = false;
  dist_completions_destroy(made);
  return status;
}

dist_status in_free() {
  dist_allocator allocator = {[](size_t size, size_t align, void *) -> void * {
                                return std::aligned_alloc(align, (size + align - 1) / align * align);
                              },
                              [](void *memory, size_t, size_t, void *) {
                                std::free(memory);
                                behave();
                              },
                              nullptr};
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
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = kReplicas;
  host.executor = &executor;
  return with_strategy(options, [](dist_replica *replica, void *) {
    return dist_replica_parallel_for(
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

}  // namespace

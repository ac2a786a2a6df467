// SPDX-License-Identifier: Apache-2.0
// For test_callbacks.cpp: makes libdist call the callbacks of runs and of reductions.
#pragma once

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

#include <dist/dist.h>
#include <dist/tf.h>

extern "C" {
#include <cmocka.h>
}

namespace {

constexpr int32_t kReplicas = 2;

// What the callback of the current row does: it throws, or it calls libdist and records the status.
enum class Act { kThrow, kThrowInt, kCall, kDestroy, kShutDown, kNothing };
Act act = Act::kThrow;
std::atomic<int> acted{0};
std::atomic<dist_status> run_status{DIST_OK};
std::atomic<dist_status> barrier_status{DIST_OK};
std::atomic<dist_status> value_status{DIST_OK};
std::atomic<dist_status> end_status{DIST_OK};
dist_strategy *current = nullptr;
thread_local dist_replica *here = nullptr;

dist_status fine(dist_replica *replica, void *) { return dist_barrier(replica, nullptr, nullptr); }

void behave() {
  if (act == Act::kNothing) return;
  ++acted;
  if (act == Act::kThrow) throw std::runtime_error("no promise kept");
  if (act == Act::kThrowInt) throw 7;
  if (act == Act::kDestroy || act == Act::kShutDown) {
    end_status = act == Act::kDestroy ? dist_strategy_destroy(current) : dist_strategy_shutdown(current, 0);
    return;
  }
  run_status = dist_run(current, fine, nullptr, nullptr);
  barrier_status =
      here == nullptr ? dist_status{DIST_FAILED_PRECONDITION} : dist_barrier(here, nullptr, nullptr);
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

// ---- Rows: each makes libdist call one kind of callback, and returns the result that the host gets ----

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
            [](dist_strategy *, dist_value *, dist_value *, dist_value **, void *) -> dist_status {
              return behave(), DIST_OK;
            },
            nullptr, nullptr, nullptr, nullptr, nullptr);
      },
      nullptr, nullptr);
}

dist_status in_range() {
  return dist_run(
      current,
      [](dist_replica *replica, void *) {
        here = replica;
        const dist_status status = dist_replica_parallel_for(
            replica, 0, 100, 1, [](int64_t, int64_t, void *) { behave(); }, nullptr);
        here = nullptr;
        return first_of(status, act == Act::kCall ? dist_barrier(replica, nullptr, nullptr) : DIST_OK);
      },
      nullptr, nullptr);
}

// Calls the operator in a collective of n elements.
dist_status reduce(dist_replica *replica, int64_t n, bool asynchronous) {
  static float room[kReplicas][1 << 18];
  const dist_tensor tensor = {room[dist_replica_id(replica)], DIST_F32, 1, &n, nullptr};
  dist_tensor result = tensor;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.reduce_fn = [](void *, const void *, int64_t, dist_dtype, void *user_data) {
    here = static_cast<dist_replica *>(user_data);
    behave();
  };
  options.reduce_user_data = replica;
  dist_work *work = nullptr;
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_USER, &tensor, &result, 1, &options,
                                       asynchronous ? &work : nullptr);
  if (asynchronous && status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  here = nullptr;
  return status;
}

// If an operator throws, all replicas get the report.
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
        options.reduce_fn = [](void *, const void *, int64_t, dist_dtype, void *user_data) {
          here = static_cast<dist_replica *>(user_data);
          behave();
        };
        options.reduce_user_data = replica;
        options.planned = 1;
        dist_status status = dist_all_reduce(replica, DIST_REDUCE_USER, &tensor, &tensor, 1, &options, &plan);
        if (status == DIST_OK) status = dist_work_start(plan);
        if (status == DIST_OK) status = dist_work_wait(plan, DIST_NO_TIMEOUT);
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
        options.reduce_fn = [](void *, const void *, int64_t, dist_dtype, void *user_data) {
          here = static_cast<dist_replica *>(user_data);
          behave();
        };
        options.reduce_user_data = replica;
        const dist_status status =
            dist_scan(replica, DIST_REDUCE_USER, DIST_SCAN_INCLUSIVE, &tensor, &tensor, 1, &options, nullptr);
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
            dist_reduce_apply(replica, DIST_REDUCE_SUM, &from, &to, 1, &options, nullptr, nullptr);
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

// Calls the operator of a reduction outside runs.
dist_status in_accumulate() {
  dist_cross_device_options options = DIST_CROSS_DEVICE_OPTIONS_INIT;
  options.kind = DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE;
  options.accumulate = [](void *, const void *, int64_t, dist_dtype, void *) { behave(); };
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

}  // namespace

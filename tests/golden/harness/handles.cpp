// SPDX-License-Identifier: Apache-2.0
#include "handles.hpp"

#include <exception>
#include <mutex>

namespace golden {
namespace {

// The first exception since the last rethrow_kept() that is not a Failed.
std::mutex kept_mutex;
std::exception_ptr kept;

thread_local bool looking = false;

dist_status call_replica(dist_replica* replica, dist_value* args, dist_value* kwargs, dist_value** out_result,
                         void* user_data) {
  return guarded(
      [&] { *out_result = (*static_cast<const ReplicaFn*>(user_data))(replica, args, kwargs).release(); });
}

dist_status call_merge(dist_strategy* strategy, dist_value* args, dist_value* kwargs, dist_value** out_result,
                       void* user_data) {
  (void)kwargs;
  return guarded([&] { *out_result = (*static_cast<const MergeFn*>(user_data))(strategy, args).release(); });
}

dist_status call_update(dist_strategy*, const dist_update_place* place, dist_value* args, dist_value*,
                        dist_value**, void* user_data) {
  return guarded([&] { (*static_cast<const UpdateFn*>(user_data))(place->copy, args); });
}

// user_data is not const in C.
template <class Fn>
void* pointer_to(const Fn& fn) noexcept {
  return const_cast<Fn*>(&fn);
}

void check_call(dist_status status) {
  rethrow_kept();
  check(status);
}

}  // namespace

Looking::Looking() noexcept : before_(std::exchange(looking, true)) {}
Looking::~Looking() { looking = before_; }
bool Looking::now() noexcept { return looking; }

dist_status guarded(const std::function<void()>& body) noexcept {
  try {
    body();
    return DIST_OK;
  } catch (const Failed& failed) {
    return dist_fail(failed.status, failed.message.c_str());
  } catch (...) {
    const std::lock_guard lock(kept_mutex);
    if (kept == nullptr) kept = std::current_exception();
    return dist_fail(DIST_UNKNOWN, "the replay cannot go on");
  }
}

void rethrow_kept() {
  std::exception_ptr exception;
  {
    const std::lock_guard lock(kept_mutex);
    std::swap(exception, kept);
  }
  if (exception != nullptr) std::rethrow_exception(exception);
}

Value run(dist_strategy* strategy, const ReplicaFn& fn, const Value& args, const Value& kwargs,
          const dist_run_options* options) {
  Value result;
  check_call(dist_run_values(strategy, call_replica, pointer_to(fn), args.get(), kwargs.get(), options,
                             result.out()));
  return result;
}

Value merge_call(dist_replica* replica, const MergeFn& fn, const Value& args,
                 const dist_collective_options* options) {
  Value result;
  check_call(
      dist_merge_call(replica, call_merge, pointer_to(fn), args.get(), nullptr, options, result.out()));
  return result;
}

void update(dist_strategy* strategy, dist_variable* variable, const UpdateFn& fn, const Value& args) {
  dist_update_options options = DIST_UPDATE_OPTIONS_INIT;
  options.parallel = 1;
  Value nothing;
  check_call(dist_update(strategy, variable, call_update, pointer_to(fn), args.get(), nullptr, &options,
                         nothing.out()));
}

}  // namespace golden

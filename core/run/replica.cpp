// SPDX-License-Identifier: Apache-2.0
#include "core/run/replica.hpp"

#include <cstdio>

#include "core/run/current.hpp"
#include "core/run/replica_pool.hpp"

namespace dist {

Current& current() noexcept {
  thread_local constinit Current here;
  return here;
}

namespace {

// "replica 1" or "logical device 2 of replica 1".
class Name {
 public:
  explicit Name(const Replica& replica) noexcept {
    const MemberName& name = replica.name();
    if (replica.is_device()) {
      std::snprintf(text_, sizeof text_, "logical device %d of replica %d", name.logical_device,
                    number(name.replica));
    } else {
      std::snprintf(text_, sizeof text_, "replica %d", number(name.replica));
    }
  }
  const char* c_str() const noexcept { return text_; }

 private:
  char text_[64];
};

}  // namespace

Status in_forked_child() noexcept {
  return failed_precondition(
      "this is a forked child of the strategy's process, and threads do not survive fork(). Create a "
      "strategy in the child.");
}

Status Replica::check_range(int64_t begin, int64_t end, int64_t grain) noexcept {
  int64_t length = 0;
  if (end < begin || __builtin_sub_overflow(end, begin, &length)) {
    return invalid_argument("`dist_replica_parallel_for()`: the range %lld to %lld %s",
                            static_cast<long long>(begin), static_cast<long long>(end),
                            end < begin ? "ends before it begins" : "has more than 2^63 - 1 indices");
  }
  if (grain < 1) {
    return invalid_argument("`dist_replica_parallel_for()`: `grain` is %lld, but must be 1 or more",
                            static_cast<long long>(grain));
  }
  return kOk;
}

void Replica::show(std::uintptr_t thread) noexcept {
  // A forked child that leaves a merge function stays without a replica.
  if (here_ == &nowhere_ || place_.alone || pool_.memory().forked()) return;
  here_->store(thread, std::memory_order_relaxed);
}

void Replica::stay(std::uintptr_t thread) noexcept {
  show(thread);
  // release pairs with attach(): publishes the effects of the previous thread.
  thread_.store(thread, std::memory_order_release);
}

void Replica::set_away(Away away) noexcept {
  away_ = away;
  show(away == Away::kNo ? this_thread() : kNobody);
}

ReplicaCount Replica::replicas() const noexcept { return pool_.replicas(); }

// The reason why check() failed, or OK if there is nothing to check.
Status Replica::not_here(const char* call) const noexcept {
  if (pool_.memory().forked()) return in_forked_child();
  const std::uintptr_t thread = thread_.load(std::memory_order_relaxed);
  if (thread == kNobody) {
    return failed_precondition("`%s()`: %s %d is not running. Its handle is valid only inside its function.",
                               call, name().word(), name().number());
  }
  if (thread == kDetached) {
    return failed_precondition("`%s()`: %s is detached from its thread. Call `dist_replica_attach()` first.",
                               call, Name(*this).c_str());
  }
  if (thread != this_thread()) return of_another(call);
  if (given_up_.load(std::memory_order_relaxed)) return replaced(call);
  if (is_instance_here()) return no_peers(call);
  if (away_ == Away::kNo) return kOk;
  if (away_ == Away::kOnDevices) return devices_run(call);
  return failed_precondition(
      "`%s()` must be called in the replica context, but this `thread` is inside a merge function, which "
      "runs "
      "once for all replicas. Use the functions of the strategy here.",
      call);
}

bool Replica::is_instance_here() const noexcept {
  return place_.alone && away_ == Away::kNo && thread_.load(std::memory_order_relaxed) == this_thread() &&
         !pool_.memory().forked() && !given_up_.load(std::memory_order_relaxed);
}

Status Replica::no_peers(const char* call) const noexcept {
  return failed_precondition(
      "`%s()` needs all replicas, but this function was submitted to replica %d only. Use `dist_run()` to "
      "run on "
      "all replicas.",
      call, name().number());
}

Status Replica::replaced(const char* call) const noexcept {
  return fail(DIST_CANCELLED,
              "`%s()`: this request has already completed, because its function did not return in time, and "
              "replica %d has a new thread (`dist_instances_options.stuck_ns`). Return from the function.",
              call, name().number());
}

Status Replica::check_going_on() noexcept {
  DIST_TRY(check_own("dist_replica_check"));
  return group().check_run();
}

Status Replica::see(Versions& series, Version** out) const noexcept {
  DIST_TRY(check_own("dist_replica_version"));
  if (current().replica == this) [[likely]]
    return pool_.see(series, out);
  return failed_precondition(
      "`dist_replica_version()`: this is the thread's default replica, which is in no run. Only a run sees a "
      "version.");
}

Status Replica::devices_run(const char* call) const noexcept {
  return failed_precondition(
      "`%s()`: replica %d is inside `dist_run_on_devices()`. Use the handle that was passed to the logical "
      "device's function.",
      call, number(name().replica));
}

Status Replica::of_another(const char* call) const noexcept {
  const Replica* const here = current().replica;
  if (here == nullptr) {
    return failed_precondition(
        "`%s()`: this is the handle of %s, but the calling `thread` is not inside a replica's function. Use "
        "a "
        "replica's handle only on the `thread` that runs its function.",
        call, Name(*this).c_str());
  }
  if (here->is_device() && here->local() == local() && here->pool().belongs_with(pool_)) {
    return devices_run(call);
  }
  return failed_precondition(
      "`%s()`: this is the handle of %s%s, but the calling `thread` is in the function of %s. Use the handle "
      "that was passed to this function.",
      call, Name(*this).c_str(), here->pool().belongs_with(pool_) ? "" : " of another strategy",
      Name(*here).c_str());
}

Status Replica::is_a_part(const char* call) const noexcept {
  return failed_precondition(
      "`%s()` is for whole replicas, but this is logical device %d of replica %d. Call it with the replica's "
      "handle, outside `dist_run_on_devices()`.",
      call, name().logical_device, number(name().replica));
}

}  // namespace dist

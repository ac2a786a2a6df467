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
      "this is a forked child of the strategy's process, and threads do not survive a fork: create "
      "a strategy in the child");
}

Status Replica::check_range(int64_t begin, int64_t end, int64_t grain) noexcept {
  int64_t length = 0;
  if (end < begin || __builtin_sub_overflow(end, begin, &length)) {
    return invalid_argument("dist_parallel_for(): the range is %lld .. %lld; it %s",
                            static_cast<long long>(begin), static_cast<long long>(end),
                            end < begin ? "ends before it begins" : "has at most 2^63 - 1 indices");
  }
  if (grain < 1) {
    return invalid_argument("dist_parallel_for(): grain is %lld; it is 1 or more",
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
    return failed_precondition("%s(): %s %d is not running: its handle is valid inside its function only",
                               call, name().word(), name().number());
  }
  if (thread == kDetached) {
    return failed_precondition("%s(): %s is detached from its thread: dist_replica_attach() first", call,
                               Name(*this).c_str());
  }
  if (thread != this_thread()) return of_another(call);
  if (given_up_.load(std::memory_order_relaxed)) return replaced(call);
  if (is_instance_here()) return no_peers(call);
  if (away_ == Away::kNo) return kOk;
  if (away_ == Away::kOnDevices) return devices_run(call);
  return failed_precondition(
      "%s() belongs to the replica context, and this is a merge function, which runs once for all "
      "replicas: use the strategy's functions here",
      call);
}

bool Replica::is_instance_here() const noexcept {
  return place_.alone && away_ == Away::kNo && thread_.load(std::memory_order_relaxed) == this_thread() &&
         !pool_.memory().forked() && !given_up_.load(std::memory_order_relaxed);
}

Status Replica::no_peers(const char* call) const noexcept {
  return failed_precondition(
      "%s() needs all replicas, and this function was submitted to one: replica %d runs it alone, while the "
      "others do "
      "something else; dist_run() has all of them",
      call, name().number());
}

Status Replica::replaced(const char* call) const noexcept {
  return fail(DIST_CANCELLED,
              "%s(): this request has ended without its function, which did not return, and replica %d has "
              "got another thread "
              "(dist_instances_options.stuck_ns)",
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
      "dist_replica_version(): this is the thread's own default replica, which is in no run: a version is "
      "seen by a run, to "
      "its end");
}

Status Replica::devices_run(const char* call) const noexcept {
  return failed_precondition(
      "%s(): replica %d's logical devices are running, inside dist_run_on_devices(): use the handle that "
      "their function gets",
      call, number(name().replica));
}

Status Replica::of_another(const char* call) const noexcept {
  const Replica* const here = current().replica;
  if (here == nullptr) {
    return failed_precondition(
        "%s(): this is %s's handle, and the calling thread is in no replica's function: a replica's handle "
        "is for the thread that its function runs on",
        call, Name(*this).c_str());
  }
  if (here->is_device() && here->local() == local() && here->pool().owner() == pool_.owner()) {
    return devices_run(call);
  }
  return failed_precondition(
      "%s(): this is %s's handle%s, and the calling thread is in the function of %s: use the handle that "
      "this function got",
      call, Name(*this).c_str(), here->pool().owner() == pool_.owner() ? "" : " of another strategy",
      Name(*here).c_str());
}

Status Replica::is_a_part(const char* call) const noexcept {
  return failed_precondition(
      "%s() is for whole replicas, and this is logical device %d of replica %d: call it with the replica's "
      "handle, outside dist_run_on_devices()",
      call, name().logical_device, number(name().replica));
}

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/update.hpp"

#include <memory_resource>
#include <mutex>
#include <vector>

#include "core/cross_replica/copies.hpp"

namespace dist {
namespace {

// The failure of the lowest replica, transferred from the thread on which it occurred.
class FirstFailure {
 public:
  void set(GlobalReplica replica, dist_status code) noexcept {
    // If the host set no message, this thread's record contains an older one, which is not the reason.
    if (last_error().code != code) {
      (void)fail(code, "the update function returned %s without a reason. Use dist_fail() to report one",
                 status_name(code));
    }
    const std::scoped_lock lock(mutex_);
    if (replica_ != kNoReplica && replica_ < replica) return;
    replica_ = replica;
    record_ = last_error();
    if (record_.culprit.replica == kNoReplica) record_.culprit = {replica};
  }
  Status status() const noexcept { return replica_ == kNoReplica ? kOk : fail(record_); }

 private:
  std::mutex mutex_;
  GlobalReplica replica_ = kNoReplica;
  ErrorRecord record_;
};

}  // namespace

Status update(const CrossReplica& context, Variable& variable, const UpdateFn& fn, Value* args) {
  DIST_TRY(check_owner(context, variable));
  if (args != nullptr && !args->is_sequence()) {
    return invalid_argument("args is %s; give a list of the update function's arguments, or NULL",
                            Value::kind_name(args->kind()));
  }
  const auto n = static_cast<std::size_t>(context.replicas.local());
  std::pmr::vector<ValueRef> components(n, context.memory);
  for (std::size_t r = 0; r < n; ++r) {
    DIST_TRY(component_of(*context.memory, args, LocalReplica(r), &components[r]));
  }
  FirstFailure failure;
  const auto body = [&](LocalReplica r) {
    const dist_status before = last_error().code;
    last_error().code = DIST_OK;  // to distinguish a failure with a message from one without
    dist_tensor copy = variable.component(r);
    const dist_status code = fn.call(&copy, components[index(r)].get(), fn.context);
    if (code != DIST_OK) {
      failure.set(context.replicas.global_of(r), code);
    } else if (last_error().code == DIST_OK) {
      last_error().code = before;
    }
  };
  DIST_TRY(for_each_copy(context, variable, body));
  return failure.status();
}

}  // namespace dist

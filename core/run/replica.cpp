// SPDX-License-Identifier: Apache-2.0
#include "core/run/replica.hpp"

#include "core/run/current.hpp"

namespace dist {

Current& current() noexcept {
  thread_local constinit Current here;
  return here;
}

Status check_cross_replica_context(const char* call, const char* instead) noexcept {
  const Current& here = current();
  if (here.replica == nullptr || here.merging) return kOk;
  return failed_precondition(
      "%s() belongs to the cross-replica context, and this thread is inside replica %d's function: "
      "%s",
      call, here.replica->id(), instead);
}

Status Replica::not_now(const char* call) const noexcept {
  if (!inside_) {
    return failed_precondition(
        "%s(): replica %d is not running: its handle is valid inside its function only", call, id_);
  }
  return failed_precondition(
      "%s() belongs to the replica context, and this is a merge function, which runs once for all "
      "replicas: use the strategy's functions here",
      call);
}

}  // namespace dist

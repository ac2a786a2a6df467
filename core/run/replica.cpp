// SPDX-License-Identifier: Apache-2.0
#include "core/run/replica.hpp"

#include "core/run/current.hpp"

namespace dist {

Current& current() noexcept {
  thread_local constinit Current here;
  return here;
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

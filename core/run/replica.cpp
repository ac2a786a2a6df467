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
    return failed_precondition("%s(): %s %d is not running: its handle is valid inside its function only",
                               call, member_word(part_of_), id_);
  }
  if (away_ == Away::kOnDevices) {
    return failed_precondition(
        "%s(): replica %d's logical devices are running, inside dist_run_on_devices(): use the handle that "
        "their function gets",
        call, id_);
  }
  return failed_precondition(
      "%s() belongs to the replica context, and this is a merge function, which runs once for all "
      "replicas: use the strategy's functions here",
      call);
}

Status Replica::is_a_part(const char* call) const noexcept {
  return failed_precondition(
      "%s() is for whole replicas, and this is logical device %d of replica %d: call it with the replica's "
      "handle, outside dist_run_on_devices()",
      call, id_, part_of_);
}

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/batches.hpp"

#include "core/run/current.hpp"
#include "core/run/replica.hpp"

namespace dist {

Status check_may_pass(const Dataset& dataset, const char* call) noexcept {
  DIST_TRY(dataset.check_process());
  const Current& here = current();
  if (here.replica == nullptr || here.merging || dataset.num_replicas() == 1) [[likely]]
    return kOk;
  return failed_precondition(
      "%s() of a dataset for %d replicas belongs to the cross-replica context, and this thread is inside "
      "replica %d's function: take the batch outside, and give it to dist_run_values()",
      call, dataset.num_replicas(), here.replica->name().number());
}

Status next_batch(Iterator& iterator, const char* call, ValueRef* out) {
  DIST_TRY(check_may_pass(iterator.dataset(), call));
  Replica* const replica = current().replica;
  if (replica == nullptr) return iterator.next({}, call, out);
  // The source may never give it, and the run have a deadline, or be cancelled.
  const auto check_run = [](void* inside) noexcept {
    return static_cast<Replica*>(inside)->group().check_run();
  };
  return iterator.next({check_run, replica}, call, out);
}

Status next_batch_if_any(Iterator& iterator, const char* call, ValueRef* out) {
  const Status status = next_batch(iterator, call, out);
  return status.code() == DIST_OUT_OF_RANGE ? kOk : status;
}

}  // namespace dist

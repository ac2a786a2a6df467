// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/batches.hpp"

#include <utility>

#include "core/run/current.hpp"
#include "core/run/replica.hpp"

namespace dist {
namespace {

// With several workers: if one of them has a batch, all take a step, and workers without data get an empty
// batch. If one of these cannot have an empty batch, the step is skipped.
Status next_step(Iterator& iterator, Steps& steps, const Iterator::Interrupt& interrupt, const char* call,
                 Iterator::FilledUp filled_up, ValueRef* out) {
  if (iterator.has_ended()) return iterator.next(interrupt, call, filled_up, out);
  bool there = false;
  if (!iterator.look(interrupt, call, &there).ok()) return steps.fail_all(call, last_error());
  ValueRef empty;
  const Status known = there ? kOk : iterator.empty(&empty);
  const ErrorRecord why = known.ok() ? ErrorRecord{} : last_error();
  Steps::Outcome any;
  DIST_TRY(steps.vote(call, {there, known.ok() && !there && !empty, !known.ok()}, &any));
  if (!any.batch || (any.nothing && any.unknown < 0)) {
    iterator.end_pass();
    return iterator.next(interrupt, call, filled_up, out);
  }
  if (!known.ok()) return fail(why);
  if (any.unknown >= 0) {
    return failed_precondition(
        "`%s()`: worker %d has no more data, and its source had no element to derive an empty batch from",
        call, any.unknown);
  }
  if (there) return iterator.next(interrupt, call, filled_up, out);
  *out = std::move(empty);
  return kOk;
}

Status take_batch(Iterator& iterator, const char* call, Iterator::FilledUp filled_up, ValueRef* out) {
  DIST_TRY(check_may_pass(iterator.dataset(), call));
  Replica* const replica = current().replica;
  Iterator::Interrupt interrupt;
  if (replica != nullptr) {
    // The source may never deliver the batch, but the run can have a deadline or be cancelled.
    interrupt.check = [](void* inside) noexcept {
      return static_cast<Replica*>(inside)->group().check_run();
    };
    interrupt.context = replica;
  }
  Steps* const steps = iterator.dataset().steps();
  return steps == nullptr ? iterator.next(interrupt, call, filled_up, out)
                          : next_step(iterator, *steps, interrupt, call, filled_up, out);
}

}  // namespace

Status check_may_pass(const Dataset& dataset, const char* call) noexcept {
  DIST_TRY(dataset.check_process());
  const Current& here = current();
  const bool for_one = dataset.num_replicas() == 1 && dataset.steps() == nullptr;
  if (here.replica == nullptr || here.merging || for_one) [[likely]]
    return kOk;
  return failed_precondition(
      "`%s()` of a dataset for %d replicas%s must be called in the cross-replica context, but this `thread` "
      "is "
      "inside replica %d's function. Take the batch outside, and pass it to `dist_run_values()`.",
      call, dataset.num_replicas(), dataset.steps() != nullptr ? " of one of several workers" : "",
      here.replica->name().number());
}

Status next_batch(Iterator& iterator, const char* call, ValueRef* out) {
  const Status status = take_batch(iterator, call, Iterator::FilledUp::kEnds, out);
  return status.code() == DIST_OUT_OF_RANGE ? kOk : status;
}

Status next_batch_or_rest(Iterator& iterator, const char* call, ValueRef* out) {
  const Status status = take_batch(iterator, call, Iterator::FilledUp::kIsDelivered, out);
  return status.code() == DIST_OUT_OF_RANGE ? kOk : status;
}

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
#include "core/serve/instances.hpp"

#include <utility>

#include "core/run/current.hpp"
#include "core/serve/error_room.hpp"

namespace dist {

Instances::Instances(Memory& memory, ReplicaPool& pool)
    : Counted(memory),
      host_(pool.host()),
      dispatcher_(memory, pool, host_, InstancesOptions{}.max_queued),
      withdrawals_(dispatcher_, batchers_, tally_),
      replacements_(*this, pool, host_, options_, dispatcher_, batchers_, lifecycle_, tally_.elsewhere()),
      helpers_(memory, pool, host_, lifecycle_, tally_, dispatcher_, withdrawals_, replacements_),
      serving_{pool,
               host_,
               options_,
               lifecycle_,
               dispatcher_,
               withdrawals_,
               helpers_.clock(),
               {memory, host_, dispatcher_, lifecycle_, supply_},
               pool.policy(),
               !pool.caller_in_the_way()},
      idle_(serving_),
      opening_(serving_, idle_, tally_, batchers_, supply_, helpers_, replacements_) {}

Instances::~Instances() { helpers_.stop(); }

// The reason why nothing is accepted. Must be called under the mutex.
Status Instances::refusal(const char* call) const noexcept {
  if (lifecycle_.refuses_all()) return pool().shutting_down();
  DIST_TRY(lifecycle_.refusal(call));
  if (dispatcher_.queue().has_instances() || pool().threads() == DIST_THREADS_HOST ||
      dispatcher_.some_begin())
    return kOk;
  return fail(DIST_UNAVAILABLE,
              "`%s()`: no instance is left. The threads of all instances ended, and none could create a "
              "new state.",
              call);
}

Status Instances::accept(const char* call) noexcept {
  // seq_cst: a closing thread first sets the phase, and then counts. So either it counts this item, or this thread
  // sees that the instances are closing.
  tally_.accept_item();
  if (lifecycle_.is_open() && dispatcher_.queue().has_instances()) [[likely]]
    return kOk;
  const Status refused = [&] {
    const std::lock_guard lock(dispatcher_.mutex());
    return refusal(call);
  }();
  if (refused.ok()) return kOk;
  tally_.elsewhere().one_completed();
  lifecycle_.delivered(tally_.elsewhere());
  return refused;
}

Status Instances::submit(const Submission& given, Request** out) {
  Cancel* const cancel = given.cancel;
  const auto cancelled = [cancel] {
    return fail(DIST_CANCELLED, "the request was cancelled before it started: %s", cancel->reason());
  };
  if (cancel != nullptr && cancel->signalled()) return tally_.refuse(cancelled());
  if (const Status helped = helpers_.need(given, false); !helped.ok()) return tally_.refuse(helped);
  Request* request = nullptr;
  if (const Status made = supply_.take(*this, &request); !made.ok()) return tally_.refuse(made);
  // One reference belongs to the thread that completes it.
  request->begin(given, given.timeout_ns > 0 ? host_.now_ns() : 0, out == nullptr ? 1 : 2, pool().insider());
  const bool kept = request->keeps_home;
  if (kept) retain();
  const bool linked = request->link();
  request->accepted_at = dispatcher_.stamp();
  using Arrived = RequestQueue::Arrived;
  Arrived arrived = Arrived::kFull;
  Status refused = kOk;
  bool sooner = false;
  {
    const std::lock_guard lock(dispatcher_.mutex());
    // It may have been cancelled since begin().
    if (cancel != nullptr && (!linked || request->cancel_asked.load(std::memory_order_relaxed))) [[unlikely]]
      refused = cancelled();
    else if (lifecycle_.phase() != Phase::kOpen || !dispatcher_.queue().has_instances()) [[unlikely]]
      refused = refusal("dist_submit");
    if (request->id == 0) request->id = tally_.next_number();
    if (refused.ok()) arrived = dispatcher_.arrive(*request, &sooner);
    if (kept) supply_.count_kept();
    if (arrived != Arrived::kFull) tally_.accept_request();
  }
  if (sooner) helpers_.deadline_changed();
  if (arrived != Arrived::kFull) [[likely]] {
    if (out != nullptr) *out = request;
    return kOk;
  }
  if (refused.ok()) {
    refused = fail(DIST_RESOURCE_EXHAUSTED,
                   "`dist_submit()`: %zu requests are queued, which is the limit. Raise "
                   "`dist_instances_options.max_queued` or retry later.",
                   dispatcher_.queue().most());
  }
  request->drop();
  return tally_.refuse(refused);
}

void Instances::recycle(Request& request) noexcept {
  const bool kept = request.keeps_home;
  if (kept) supply_.count_released();
  supply_.put_back(request);
  if (kept) release();
}

// Until the instances close, this thread waits for no run.
Status Instances::serve_here(GlobalReplica replica) {
  if (const Replica* const here = current().replica; here != nullptr && here->pool().belongs_with(pool())) {
    return failed_precondition(
        "`dist_serve()`: this `thread` is already replica %d. Call `dist_replica_leave()` first.",
        here->name().number());
  }
  if (pool().threads() != DIST_THREADS_HOST) {
    return failed_precondition(
        "`dist_serve()`: the strategy serves on its own threads. Only call `dist_submit()`.");
  }
  const LocalReplica local = pool().replicas().local_of(replica);
  if (local == kNoLocalReplica) {
    return invalid_argument("`dist_serve()`: `replica_id` is %d, but this strategy's replicas are %d to %d",
                            number(replica), number(pool().replicas().first()),
                            number(pool().replicas().last()));
  }
  DIST_TRY(open_once("dist_serve"));
  const int rank = static_cast<int>(local);
  {
    const std::lock_guard lock(dispatcher_.mutex());
    Instance& at = dispatcher_.at(rank);
    if (at.attended)
      return failed_precondition("`dist_serve()`: another thread is already serving as replica %d",
                                 number(replica));
    if (const Phase now = lifecycle_.phase(); now != Phase::kOpen && now != Phase::kOpening)
      return fail(DIST_UNAVAILABLE, "`dist_serve()`: the strategy's instances are closed");
    at.attended = true;
    at.failure = DIST_OK;
  }
  return InstanceThread(serving_, rank).serve_until_closed();
}

void Instances::detach() noexcept {
  helpers_.stop();
  for (Instance& at : dispatcher_.instances()) {
    InnerPool::destroy(std::exchange(at.pool, nullptr));
    free_error_room(memory(), at.why);
  }
}

Instances::Counts Instances::counts() const noexcept {
  Counts now{};
  {
    const std::lock_guard lock(dispatcher_.mutex());
    now.accepted = tally_.accepted();
    now.queued = dispatcher_.queue().queued();
    now.running = static_cast<uint64_t>(dispatcher_.queue().busy());
    now.replaced = replacements_.replaced_ever();
    now.stuck = static_cast<uint64_t>(replacements_.stuck());
  }
  for (std::size_t i = 0; i < kRefusals; ++i) now.refused[i] = tally_.refused(i);
  for (std::size_t i = 0; i < kRequestEnds; ++i) {
    now.ended[i] = tally_.unbegun(i);
    for (const Instance& each : dispatcher_.instances()) now.ended[i] += each.numbers.ended[i].get();
  }
  return now;
}

InstancesOptions Instances::options() const noexcept {
  const std::lock_guard lock(dispatcher_.mutex());
  return options_;
}

}  // namespace dist

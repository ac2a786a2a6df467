// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/reform.hpp"

#include <algorithm>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/host_call.hpp"
#include "core/base/os/clock.hpp"
#include "core/base/text.hpp"
#include "core/net/grpc_network.hpp"
#include "core/strategy/scope.hpp"

namespace dist {
namespace {

std::size_t index(int worker) noexcept { return static_cast<std::size_t>(worker); }

Status check(Strategy& strategy, const ReformOptions& options, const char* call) noexcept {
  DIST_TRY(strategy.check_process());
  DIST_TRY(check_may_wait(call));
  DIST_TRY(check_may_end(strategy, call));
  const int all = strategy.cluster_place().num_workers();
  if (strategy.kind() != DIST_STRATEGY_MULTI_WORKER_MIRRORED || all == 1) {
    return failed_precondition("`%s()`: the strategy has only one worker, so there is nothing to re-form",
                               call);
  }
  if (strategy.connection_options().network != nullptr) {
    return fail(DIST_UNIMPLEMENTED,
                "`%s()`: workers that share a process (`dist_worker_options.network`) cannot re-form. Create "
                "new strategies on a new network.",
                call);
  }
  if (options.min_workers < 0 || options.min_workers > all) {
    return invalid_argument("`dist_reform_options.min_workers` is %d, but the cluster has %s",
                            options.min_workers, CountText(all, "worker").text);
  }
  if (options.window_ns < 0) {
    return invalid_argument("`dist_reform_options.window_ns` is %lld; use 0 or more",
                            static_cast<long long>(options.window_ns));
  }
  return kOk;
}

Status check_nothing_left(Strategy& strategy, const char* call) noexcept {
  DIST_TRY(
      strategy.pool().check_idle(call, "wait for it first, or cancel it with `dist_strategy_cancel()`"_m));
  if (strategy.pool().has_groups()) {
    return failed_precondition("`%s()`: the strategy still has groups; `destroy` them first", call);
  }
  if (strategy.group().held()) {
    return failed_precondition("`%s()`: the strategy still has works; `destroy` them first", call);
  }
  return kOk;
}

// By number in the cluster.
WorkerSet members_of(const WorkerPlace& place) {
  WorkerSet set;
  if (place.numbers.empty()) {
    for (int w = 0; w < place.num_workers(); ++w) set.set(index(w));
  }
  for (const int each : place.numbers) set.set(index(each));
  return set;
}

WorkerPlace place_in(Memory& memory, const WorkerPlace& cluster, const WorkerSet& members) {
  WorkerPlace place(memory);
  place = cluster;
  place.replicas.clear();
  place.numbers.clear();
  for (int w = 0; w < cluster.num_workers(); ++w) {
    if (!members[index(w)]) continue;
    if (w == cluster.me) place.me = static_cast<int>(place.numbers.size());
    place.numbers.push_back(w);
    place.replicas.push_back(cluster.replicas[index(w)]);
  }
  return place;
}

class Reforming {
 public:
  Reforming(Strategy& strategy, const ReformOptions& options, const char* call)
      : strategy_(strategy),
        options_(options),
        call_(call),
        cancelled_(strategy.begin_wait()),
        old_(Ref<Membership>::share(&strategy.membership())) {}

  Status operator()() {
    Membership& old = *old_;
    char inside[256] = "";
    const int64_t limit = strategy_.timeout_ns();
    const Host& host = old.group().host();
    old.pool().shut_down(limit < 0 ? 0 : deadline_after(host.now_ns(), limit), inside, call_);
    if (inside[0] != '\0') {
      return fail(DIST_DEADLINE_EXCEEDED, "`%s()`: the functions of %s have not returned", call_, inside);
    }
    old.end_datasets();
    Network* const network = old.network();
    parting_ = network != nullptr ? network->leave() : old.change().parting;
    const Status formed = form();
    if (formed.ok()) return kOk;
    // All the strategy can still do is to report the reason.
    ErrorRecord why = last_error();
    WorkerPlace place(strategy_.memory());
    place = old.worker();
    parting_.newcomers.reset();
    DIST_TRY(strategy_.enter(std::move(place), WorkerLink::Connection(why.message),
                             {.generation = old.generation(), .failed = true, .parting = parting_}));
    return fail(why);
  }

 private:
  Status form() {
    const WorkerPlace& cluster = strategy_.cluster_place();
    if (parting_.gone[0]) return without_leader("it has ended");
    Forming wanted;
    wanted.generation = old_->generation() + 1;
    wanted.before = members_of(old_->worker());
    wanted.expected = (wanted.before - parting_.gone) | parting_.newcomers;
    wanted.least = std::max(options_.min_workers, 1);
    wanted.cancelled = &cancelled_;
    const int64_t limit =
        std::max<int64_t>(options_.timeout_ns == 0 ? strategy_.timeout_ns() : options_.timeout_ns, 0);
    const int64_t begin = steady_now_ns();
    std::optional<WorkerLink::Connection> connection;
    Formed formed;
    for (;;) {
      if (limit != 0) wanted.timeout_ns = std::max<int64_t>(limit - (steady_now_ns() - begin), 1);
      const Status made = try_to_form(wanted, &connection, &formed);
      if (made.ok()) break;
      const ErrorRecord why = last_error();
      // Worker 0 has given up or is about to, and will return.
      if (made.code() == DIST_ABORTED) continue;
      if (made.code() == DIST_UNAVAILABLE && cluster.me != 0) return without_leader(why.message);
      if (made.code() == DIST_PERMISSION_DENIED)
        return fail(DIST_UNAVAILABLE, "`%s()`: %s", call_, why.message);
      return fail(made.code(), "`%s()`: %s", call_, why.message);
    }
    Membership::Change change;
    change.generation = formed.generation;
    change.num_joined = static_cast<int>((formed.members - formed.stayed).count());
    if (parting_.met) change.num_left = static_cast<int>((wanted.before - formed.stayed).count());
    return strategy_.enter(place_in(strategy_.memory(), cluster, formed.members), std::move(*connection),
                           change);
  }

  Status try_to_form(Forming& wanted, std::optional<WorkerLink::Connection>* connection, Formed* formed) {
    Memory& memory = strategy_.memory();
    // Read the settings again, because certificates may have changed.
    JobSettings settings(memory);
    DIST_TRY(read_job_settings(&settings));
    DIST_TRY(find_connection_to_form(
        memory, strategy_.connection_options(), strategy_.cluster_place(), settings,
        {parting_.met ? old_->generation() : kNoGeneration, parting_.job}, connection));
    wanted.window_ns = options_.window_ns != 0           ? options_.window_ns
                       : settings.security.lease_ns != 0 ? settings.security.lease_ns
                                                         : kDefaultLeaseNs;
    Network& network = *(*connection)->network();
    const Status made = network.form(wanted, formed);
    if (made.ok()) return kOk;
    // This worker may try again, so it must not count as having left.
    const ErrorRecord why = last_error();
    wanted.expected |= network.leave().newcomers;
    connection->reset();
    return fail(why);
  }

  Status without_leader(const char* why) const noexcept {
    return fail(DIST_UNAVAILABLE,
                "`%s()`: worker 0, which forms the group of workers, is lost (%s). Restart the job from its "
                "last checkpoint.",
                call_, why);
  }

  Strategy& strategy_;
  const ReformOptions options_;
  const char* const call_;
  const std::atomic<bool>& cancelled_;
  const Ref<Membership> old_;
  Parting parting_;
};

}  // namespace

Status reform(Strategy& strategy, const ReformOptions& options, const char* call) {
  DIST_TRY(check(strategy, options, call));
  // The strategy may be shut down and destroyed meanwhile.
  const auto kept = Ref<Strategy>::share(&strategy);
  const std::unique_lock lock(strategy.reforming(), std::try_to_lock);
  if (!lock) return failed_precondition("`%s()`: another thread is re-forming the strategy", call);
  DIST_TRY(check_nothing_left(strategy, call));
  return Reforming(strategy, options, call)();
}

Status reform_due(Strategy& strategy, const char* call, bool* out) noexcept {
  DIST_TRY(strategy.check_process());
  *out = strategy.membership().change().failed;
  if (*out) return kOk;
  if (strategy.workers() == nullptr) {
    // A single worker 0: checks for new workers.
    const Network* const network = strategy.membership().network();
    *out = network != nullptr && network->has_newcomers();
    return kOk;
  }
  uint32_t announced = 0;
  const Status heard = strategy.hear_leader(call, nullptr, &announced);
  if (!heard.ok() && heard.code() != DIST_UNAVAILABLE) return heard;
  *out = !heard.ok() || (announced & WorkerLink::kReformDue) != 0 || strategy.workers()->reporter_lost();
  return kOk;
}

Status reform_before_run(Strategy& strategy, const char* call) {
  bool due = false;
  DIST_TRY(reform_due(strategy, call, &due));
  return due ? reform(strategy, {}, call) : kOk;
}

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
// Instances: the work of a replica's thread between runs.
#include <algorithm>
#include <utility>

#include "core/base/os/thread.hpp"
#include "core/run/current.hpp"
#include "core/serve/eager_spin.hpp"
#include "core/serve/instances.hpp"
#include "core/serve/stuck.hpp"

namespace dist {
// Marks the calling thread as an instance. The thread may end inside a host callback (pthread_exit); then the
// request has failed, and the replica gets another thread.
class Instances::Attending {
 public:
  Attending(Instances& instances, int rank) noexcept
      : instances_(instances), rank_(rank), instance_(instances.instance(rank)) {
    const std::lock_guard lock(instances_.mutex_);
    instance_.attended = true;
    instance_.stay = &stay_;
  }
  ~Attending() {
    if (stay_.left()) stay_.stuck->end();
    if (stay_.left() || left_) return;
    Request* cut = nullptr;
    {
      const std::lock_guard lock(instances_.mutex_);
      cut = std::exchange(instance_.current, nullptr);
      instance_.stay = nullptr;
      instance_.stuck_at = 0;
      instance_.awaited = false;
      instance_.given.store(nullptr, std::memory_order_relaxed);
      instance_.inside.store(false, std::memory_order_release);
      instance_.attended = false;
      // Do not retry an instance that failed before it even began.
      if (!std::exchange(instance_.ready, false)) instance_.failure = DIST_FAILED_PRECONDITION;
    }
    (void)failed_precondition("replica %d's thread ended inside its function (pthread_exit)",
                              instances_.pool_.name_of(rank_));
    const ErrorRecord why = last_error();
    if (cut != nullptr) {
      instances_.pool_.recorder()[LocalReplica{rank_}].end_request();
      instances_.count_end(instance_, *cut, why.code);
      cut->end(Status(why.code), &why, instance_.endings);
    }
    if (instance_.failure != DIST_OK && instance_.why != nullptr) *instance_.why = why;
    const bool library = instances_.pool_.threads() != DIST_THREADS_HOST;
    Status replaced = kOk;
    {
      // The instance counts as busy until the new thread has arrived here, so that no run begins before.
      const std::lock_guard lock(instances_.mutex_);
      if (library) {
        instance_.awaited = true;
        replaced = instances_.pool_.replace_thread(LocalReplica{rank_});
      }
      if (!replaced.ok()) {
        instance_.failure = replaced.code();
        instance_.awaited = false;
      }
      instances_.queue_.take_no_part(rank_);
      instances_.dispatch();
    }
    instances_.settled_.advance();
    instances_.end_if_none_is_left(replaced.ok() ? why : last_error());
  }
  Attending(const Attending&) = delete;
  Attending& operator=(const Attending&) = delete;

  int rank() const noexcept { return rank_; }
  Instance& instance() const noexcept { return instance_; }
  Stay& stay() noexcept { return stay_; }
  // The thread leaves regularly.
  void leave() noexcept { left_ = true; }

 private:
  Instances& instances_;
  const int rank_;
  Instance& instance_;
  Stay stay_;
  bool left_ = false;
};

bool Instances::serve(int rank, const std::atomic<uint32_t>& started, uint32_t seen,
                      const std::atomic<bool>& stopping) {
  Attending here(*this, rank);
  const bool mine = stay(here, started, seen, stopping);
  here.leave();
  return mine;
}

// The request that an idle instance takes; NULL: it waits.
inline Request* Instances::come(Instance& at) noexcept {
  auto* const request = static_cast<Request*>(at.ready ? queue_.come(at.rank) : nullptr);
  occupy(at, request);
  if (request == nullptr && at.ready && queue_.any_for_all() != nullptr) dispatch();
  return at.current;
}

// Waits for a request or another ring of the bell or, if there is no clock thread, until something is due.
void Instances::await(Instance& at, uint32_t rung) noexcept {
  const auto news = [&] {
    return at.given.load(std::memory_order_acquire) != nullptr ||
           at.bell.value.load(std::memory_order_seq_cst) != rung;
  };
  const WaitPolicy policy = idling();
  if (spin_eagerly(spins_eagerly(), policy, news)) return;
  const int64_t left = help_and_left(0);
  if (left != 0) at.bell.sleep(rung, host_.slice_ns(left), policy, news);
}

bool Instances::stay(Attending& here, const std::atomic<uint32_t>& started, uint32_t seen,
                     const std::atomic<bool>& stopping) {
  Instance& at = here.instance();
  const auto called = [&] {
    return started.load(std::memory_order_seq_cst) != seen || stopping.load(std::memory_order_seq_cst);
  };
  // The instance is idle, and has looked at everything for which the bell rang up to this number.
  bool idle = false;
  uint32_t rung = 0;
  for (;;) {
    Request* request = take_given(at);
    if (request != nullptr) {
      ++rung;
    } else if (!idle || at.bell.value.load(std::memory_order_seq_cst) != rung) {
      // The acquire keeps this load before the checks, so a later change ends the wait.
      rung = at.bell.value.load(std::memory_order_acquire);
      tend(here.rank());
      const std::lock_guard lock(mutex_);
      if (std::exchange(at.awaited, false)) settled_.advance();
      request = take_given(at);
      if (request == nullptr) {
        if (called()) {
          (void)queue_.leave(here.rank());
          at.attended = false;
          at.stay = nullptr;
          return true;
        }
        if (at.ready && !queue_.is_free(here.rank())) request = come(at);
      }
      idle = true;
    }
    if (request == nullptr) {
      await(at, rung);
      continue;
    }
    while (request != nullptr) request = perform(at, here.stay(), *request);
    if (memory().forked() || here.stay().left()) return false;
  }
}

// Creates or destroys the instance's state, according to the phase.
void Instances::tend(int rank) {
  Instance& at = instance(rank);
  switch (phase()) {
    case Phase::kOpening:
    case Phase::kOpen:
    case Phase::kClosing:
      if (!at.ready && at.failure == DIST_OK) make_state(rank);
      break;
    case Phase::kEnding:
    case Phase::kClosed:
      // Also cleans up after a thread that ended inside a callback.
      if (at.ready || at.pool->pool().host_state() != nullptr) end_state(at);
      break;
    case Phase::kNever: break;
  }
}

namespace {

struct Making {
  const Instances::Options& options;
  void* state = nullptr;
};

}  // namespace

dist_status Instances::call_make(Replica& replica, const Body& self) {
  auto& making = *static_cast<Making*>(self.context);
  const Options& options = making.options;
  if (options.create_state != nullptr) {
    if (const dist_status made = options.create_state(replica, options, &making.state); made != DIST_OK)
      return made;
    replica.set_host_state(making.state);
  }
  return options.warm_up == nullptr ? DIST_OK : options.warm_up(replica, options);
}

void Instances::make_state(int rank) {
  Instance& at = instance(rank);
  Making making{options_};
  Status made = kOk;
  // Left behind by a thread that ended inside a callback.
  if (at.pool->pool().host_state() != nullptr)
    (void)run_alone(at, Body{.call = call_end, .context = &options_},
                    {.call = "dist_instances_open", .uncounted = true});
  if (options_.create_state != nullptr || options_.warm_up != nullptr) {
    made = run_alone(at, Body{.call = call_make, .context = &making},
                     {.call = "dist_instances_open", .uncounted = true});
    // It was created but failed to warm up.
    if (!made.ok() && at.pool->pool().host_state() != nullptr) end_state(at);
  }
  {
    const std::lock_guard lock(mutex_);
    at.failure = made.code();
    if (!made.ok() && at.why != nullptr) *at.why = last_error();
    at.ready = made.ok();
    if (made.ok()) queue_.take_part(rank);
  }
  settled_.advance();
  if (!made.ok()) end_if_none_is_left(last_error());
}

// Ends the waiting requests, because no instance is left to serve them.
void Instances::end_if_none_is_left(const ErrorRecord& why) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (phase() == Phase::kOpening || pool_.threads() == DIST_THREADS_HOST) return;
    if (queue_.has_instances() || some_begin()) return;
  }
  ErrorRecord none = why;
  none.code = DIST_UNAVAILABLE;
  batchers_.end_all(none);  // first, as in end_all()
  end_queued(none);
}

dist_status Instances::call_end(Replica& replica, const Body& self) {
  const auto& options = *static_cast<const Options*>(self.context);
  void* const state = replica.host_state();
  replica.set_host_state(nullptr);
  if (state != nullptr && options.destroy_state != nullptr) options.destroy_state(state, options);
  return DIST_OK;
}

void Instances::end_state(Instance& at) {
  if (at.pool->pool().host_state() != nullptr)
    (void)run_alone(at, Body{.call = call_end, .context = &options_},
                    {.call = "dist_instances_close", .uncounted = true});
  {
    const std::lock_guard lock(mutex_);
    at.ready = false;
    queue_.take_no_part(at.rank);
  }
  settled_.advance();
}

// Errors recorded on this thread belong to the request that it ran for.
Status Instances::run_alone(Instance& at, const Body& body, const RunLimits& limits) {
  at.inside.store(true, std::memory_order_relaxed);
  const Status status = at.pool->pool().run(body, limits);
  at.inside.store(false, std::memory_order_release);
  return status;
}

struct Instances::Asked {
  Request& request;
  Stay& stay;
};

// Once the function was abandoned, its request belongs to another thread or to nobody.
dist_status Instances::call_request(Replica& replica, const Body& self) {
  const auto& asked = *static_cast<const Asked*>(self.context);
  const Request& request = asked.request;
  // A cancellation that came before the run's groups had begun.
  if (request.cancel_asked.load(std::memory_order_seq_cst))
    request.home().cancel_late(request, replica.pool());
  const Body body = request.body();
  struct Inside {
    Inside(Stay& of, Replica& on) noexcept : stay(of), replica(on) {
      // release: publishes what this thread has recorded to the thread that may abandon it.
      stay.call.store(Stay::kIn, std::memory_order_release);
    }
    ~Inside() {
      uint32_t in = Stay::kIn;
      if (!stay.call.compare_exchange_strong(in, Stay::kOut, std::memory_order_acq_rel))
        replica.record_in(stay.stuck->recorder());
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    Stay& stay;
    Replica& replica;
  };
  const Inside inside(asked.stay, replica);
  return body.call(replica, body);
}

void Instances::cancel_late(const Request& request, ReplicaPool& pool) noexcept {
  char reason[kReasonBytes];
  copy_text(reason, "`dist_request_cancel()`"_m);
  {
    const std::lock_guard lock(mutex_);
    if (request.cancelled_with_all) copy_text(reason, all_cancelled_);
  }
  pool.cancel(reason);
}

// Whether the request's deadline has expired. `now` is a stamp. The time counter, which is faster than the clock,
// shows it if the request has waited only for a small part of its timeout. The host's own clock may run at another
// rate.
inline bool Instances::is_overdue(const Request& request, uint64_t now) const noexcept {
  constexpr uint64_t kMostNsPerTick = 64;  // counters run at 16 MHz or more, those of x86 at 1 GHz or more
  if (host_.clock_fn == nullptr && !request.unlimited &&
      now - request.accepted_at < static_cast<uint64_t>(request.timeout_ns()) / kMostNsPerTick)
    return false;
  return host_.now_ns() >= request.deadline_ns;
}

[[gnu::noinline, gnu::cold]] Status Instances::refuse_overdue(const Request& request) const noexcept {
  return fail(overdue_in_queue(request));
}

inline Status Instances::run_request(Instance& at, Stay& stay, Request& request) {
  Recorder& recorder = *at.recorder;
  const uint64_t begun = recorder.now();
  if (request.deadline_ns != 0 && is_overdue(request, begun)) [[unlikely]]
    return refuse_overdue(request);
  // Cancel objects, budgets, logical devices and the replacement of stuck threads need more than a call.
  if (request.cancel_object() != nullptr || options_.stuck_ns != 0 || !at.pool->runs_alone()) [[unlikely]]
    return run_in_full(at, stay, request);
  const bool of_batcher = request.unlimited;
  const uint64_t accepted = request.accepted_at;
  if (!of_batcher) recorder.begin_request(request.id, accepted);
  at.inside.store(true, std::memory_order_relaxed);
  at.pool->begin_alone({request.deadline_ns, request.timeout_ns()});
  // A cancellation that came before the group was clean.
  if (request.cancel_asked.load(std::memory_order_seq_cst)) [[unlikely]]
    cancel_late(request, at.pool->pool());
  uint64_t ended = begun;
  const Status status = at.pool->call_alone(request.body(), stay.caller, begun, &ended);
  at.inside.store(false, std::memory_order_release);
  if (!of_batcher) {
    recorder.end_request();
    count_times(at, accepted, begun, ended);
  }
  return status;
}

[[gnu::noinline]] Status Instances::run_in_full(Instance& at, Stay& stay, Request& request) {
  if (const Cancel* const by = request.cancel_object(); by != nullptr && by->signalled())
    return fail(DIST_CANCELLED, "the request was cancelled before it started: %s", by->reason());
  Recorder& recorder = *at.recorder;
  const bool of_batcher = request.unlimited;
  const uint64_t accepted = of_batcher ? 0 : request.accepted_at;
  const uint64_t begun = recorder.now();
  if (!of_batcher) recorder.begin_request(request.id, accepted);
  Asked asked{request, stay};
  at.inside.store(true, std::memory_order_relaxed);
  const Status status = at.pool->pool().run(Body{.call = call_request, .context = &asked},
                                            {.timeout_ns = request.timeout_ns(),
                                             .cancel = request.cancel_object(),
                                             .call = "dist_submit",
                                             .deadline_ns = request.deadline_ns,
                                             .cancel_asked = &request.cancel_asked});
  if (stay.left()) return status;
  at.inside.store(false, std::memory_order_release);
  recorder.end_request();
  if (!of_batcher) count_times(at, accepted, begun, clock_.now());
  return status;
}

// Runs the request and returns what the instance runs next. NULL: the instance must check for itself; or this
// thread was abandoned and must not touch the instance and the request any more.
Request* Instances::perform(Instance& at, Stay& stay, Request& request) {
  const Status status = run_request(at, stay, request);
  if (memory().forked() || stay.left()) return nullptr;
  count_end(at, request, status.code());
  Request* next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    next = come(at);
  }
  // It was prefetched itself when it was second.
  if (next != nullptr) next->prefetch_behind();
  if (request.is_plain() && !request.unlimited) [[likely]] {
    at.endings.own_completed();
    supply_.put_back(request);
    one_less(at.endings);
  } else {
    request.end(status, status.ok() ? nullptr : &last_error(), at.endings);
  }
  return next;
}

void Instances::wake() noexcept {
  for (Instance& each : instances_) each.bell.advance();
}

bool Instances::is_inside(int rank) const noexcept {
  return instances_[static_cast<std::size_t>(rank)].inside.load(std::memory_order_acquire);
}

// Called by host threads. Until the instances close, this thread waits for no run.
Status Instances::serve_here(GlobalReplica replica) {
  if (const Replica* const here = current().replica; here != nullptr && here->pool().belongs_with(pool_)) {
    return failed_precondition(
        "`dist_serve()`: this `thread` is already replica %d. Call `dist_replica_leave()` first.",
        here->name().number());
  }
  if (pool_.threads() != DIST_THREADS_HOST) {
    return failed_precondition(
        "`dist_serve()`: the strategy serves on its own threads. Only call `dist_submit()`.");
  }
  const LocalReplica local = pool_.replicas().local_of(replica);
  if (local == kNoLocalReplica) {
    return invalid_argument("`dist_serve()`: `replica_id` is %d, but this strategy's replicas are %d to %d",
                            number(replica), number(pool_.replicas().first()),
                            number(pool_.replicas().last()));
  }
  DIST_TRY(open_once("dist_serve"));
  const int rank = static_cast<int>(local);
  Instance& at = instance(rank);
  {
    const std::lock_guard lock(mutex_);
    if (at.attended)
      return failed_precondition("`dist_serve()`: another thread is already serving as replica %d",
                                 number(replica));
    if (const Phase now = phase(); now != Phase::kOpen && now != Phase::kOpening)
      return fail(DIST_UNAVAILABLE, "`dist_serve()`: the strategy's instances are closed");
    at.attended = true;
    at.failure = DIST_OK;
  }
  Attending here(*this, rank);
  for (;;) {
    const uint32_t rung = at.bell.value.load(std::memory_order_acquire);
    tend(rank);
    Request* request = nullptr;
    {
      const std::lock_guard lock(mutex_);
      request = take_given(at);
      if (request == nullptr && at.ready && !queue_.is_free(rank)) request = come(at);
      if (request == nullptr && !at.ready) {
        at.attended = false;
        at.stay = nullptr;
        here.leave();
        return at.failure == DIST_OK ? kOk : at.why != nullptr ? fail(*at.why) : Status(at.failure);
      }
    }
    while (request != nullptr) request = perform(at, here.stay(), *request);
    await(at, rung);
  }
}

}  // namespace dist

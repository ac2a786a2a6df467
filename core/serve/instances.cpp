// SPDX-License-Identifier: Apache-2.0
// Instances: requests from dist_submit() to completion, and the assignment of replicas. The instances'
// threads are in serving.cpp, opening and closing in opening.cpp.
#include "core/serve/instances.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/base/os/park.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/text.hpp"
#include "core/run/current.hpp"
#include "core/serve/batcher.hpp"

namespace dist {
namespace {

ErrorRecord record_of(dist_status code) noexcept {
  ErrorRecord record;
  record.code = code;
  return record;
}

}  // namespace

Instances::Instances(Memory& memory, ReplicaPool& pool)
    : Counted(memory),
      pool_(pool),
      clock_(pool.recorder()[LocalReplica{0}]),
      host_(pool.host()),
      policy_(pool.policy()),
      spins_eagerly_(!pool.caller_in_the_way()),
      has_helpers_(pool.threads() != DIST_THREADS_HOST),
      queue_(memory, pool.num_replicas(), Options{}.max_queued),
      instances_(static_cast<std::size_t>(pool.num_replicas()), &memory),
      helpers_(memory, *this) {
  for (Instance& each : instances_) {
    each.rank = static_cast<int>(&each - instances_.data());
    each.recorder = &pool.recorder()[LocalReplica{each.rank}];
  }
}

Instances::~Instances() { helpers_.stop(); }

// The reason why nothing is accepted. Must be called under the mutex.
Status Instances::refusal(const char* call) const noexcept {
  if (refused_.load(std::memory_order_relaxed)) return pool_.shutting_down();
  switch (phase()) {
    case Phase::kOpen:
      if (queue_.has_instances() || pool_.threads() == DIST_THREADS_HOST || some_begin()) break;
      return fail(DIST_UNAVAILABLE,
                  "`%s()`: no instance is left. The threads of all instances ended, and none could create a "
                  "new state.",
                  call);
    case Phase::kNever:
      return failed_precondition(
          "`%s()`: the strategy's instances are not open. Call `dist_instances_open()` first.", call);
    case Phase::kOpening:
      return fail(DIST_UNAVAILABLE, "`%s()`: the strategy's instances are being opened. Retry later.", call);
    case Phase::kClosing:
    case Phase::kEnding:
      return fail(DIST_UNAVAILABLE, "`%s()`: the strategy's instances are closing and accept no new requests",
                  call);
    case Phase::kClosed:
      return fail(
          DIST_UNAVAILABLE,
          "`%s()`: the strategy's instances are closed. Call `dist_instances_open()` to open them again.",
          call);
  }
  return kOk;
}

// Whether a replacement thread may still create its state. Must be called under the mutex.
bool Instances::some_begin() const noexcept {
  return std::any_of(instances_.begin(), instances_.end(),
                     [](const Instance& at) { return at.failure == DIST_OK; });
}

Status Instances::accept(const char* call) noexcept {
  // seq_cst: close() first announces that it waits, and then counts. So either it counts this item, or this
  // thread sees that the instances are closing.
  items_ever_.fetch_add(1, std::memory_order_seq_cst);
  if (phase_.load(std::memory_order_seq_cst) == Phase::kOpen && queue_.has_instances()) [[likely]]
    return kOk;
  const Status refused = [&] {
    const std::lock_guard lock(mutex_);
    return refusal(call);
  }();
  if (refused.ok()) return kOk;
  ends_one(elsewhere_);
  one_less(elsewhere_);
  return refused;
}

// The number of accepted futures that have not been delivered. Must be called under the mutex, so that no
// request is accepted meanwhile.
std::size_t Instances::count_undelivered() const noexcept {
  uint64_t left = accepted_ever_ + items_ever_.load(std::memory_order_seq_cst) -
                  elsewhere_.delivered.load(std::memory_order_seq_cst);
  for (const Instance& each : instances_) left -= each.endings.delivered.load(std::memory_order_seq_cst);
  return left;
}

// Whether an accepted future has not completed. Must be called under the mutex.
bool Instances::some_under_way() const noexcept {
  uint64_t left = accepted_ever_ + items_ever_.load(std::memory_order_seq_cst) -
                  elsewhere_.completed.load(std::memory_order_relaxed);
  for (const Instance& each : instances_) left -= each.endings.completed.load(std::memory_order_relaxed);
  return left != 0;
}

Status Instances::start_helpers(const Submission& given, bool clock) noexcept {
  if (has_helpers_.load(std::memory_order_relaxed)) {
    if (clock || given.timeout_ns > 0) DIST_TRY(helpers_.need_clock());
    if (given.done != nullptr) DIST_TRY(helpers_.need_teller());
  } else if (given.done != nullptr) {
    return failed_precondition(
        "`done` needs a libdist thread, but a strategy with `DIST_THREADS_HOST` has none. Set "
        "`dist_instances_options.helper_threads`, or use completions.");
  }
  return kOk;
}

// Counts a request that is not accepted.
[[gnu::noinline, gnu::cold]] Status Instances::refuse(Status why) noexcept {
  refusals_[static_cast<std::size_t>(refusal_of(why.code()))].fetch_add(1, std::memory_order_relaxed);
  return why;
}

Status Instances::submit(const Submission& given, Request** out) {
  Cancel* const cancel = given.cancel;
  const auto cancelled = [cancel] {
    return fail(DIST_CANCELLED, "the request was cancelled before it started: %s", cancel->reason());
  };
  if (cancel != nullptr && cancel->signalled()) return refuse(cancelled());
  if (const Status helped = need_helpers(given, false); !helped.ok()) return refuse(helped);
  Request* request = nullptr;
  if (const Status made = supply_.take(*this, &request); !made.ok()) return refuse(made);
  // One reference belongs to the thread that completes it.
  request->begin(given, given.timeout_ns > 0 ? host_.now_ns() : 0, out == nullptr ? 1 : 2, pool_.insider());
  const bool kept = request->keeps_home;
  if (kept) retain();
  const bool linked = request->link();
  request->accepted_at = clock_.now();
  using Arrived = RequestQueue::Arrived;
  Arrived arrived = Arrived::kFull;
  Status refused = kOk;
  bool sooner = false;
  {
    const std::lock_guard lock(mutex_);
    // It may have been cancelled since begin().
    if (cancel != nullptr && (!linked || request->cancel_asked.load(std::memory_order_relaxed))) [[unlikely]]
      refused = cancelled();
    else if (phase() != Phase::kOpen || !queue_.has_instances()) [[unlikely]]
      refused = refusal("dist_submit");
    int instance = 0;
    if (request->id == 0) request->id = ++numbered_;
    if (refused.ok()) arrived = queue_.arrive(*request, &instance);
    if (kept) ++out_;
    if (arrived != Arrived::kFull) ++accepted_ever_;
    if (arrived == Arrived::kGiven) give(instance, *request);
    if (arrived == Arrived::kQueued && request->deadline_ns != 0) sooner = is_sooner(*request);
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
                   queue_.most());
  }
  request->drop();
  return refuse(refused);
}

// Whether the clock thread must look at the queue earlier than planned, because of this request. Must be called
// under the mutex.
bool Instances::is_sooner(const Request& request) noexcept {
  if (planned_ns_ != 0 && planned_ns_ <= request.deadline_ns) return false;
  planned_ns_ = request.deadline_ns;
  return true;
}

// Must be called under the mutex. Rarely assigns more than one entry.
void Instances::dispatch() noexcept {
  int instance = 0;
  while (RequestQueue::Entry* const entry = queue_.next(&instance))
    give(instance, static_cast<Request&>(*entry));
  if (RequestQueue::Entry* const entry = queue_.next_for_all(); entry != nullptr) grant(*entry);
}

void Instances::give(int rank, Request& request) noexcept {
  Instance& to = instance(rank);
  occupy(to, &request);
  to.given.store(&request, std::memory_order_release);
  to.bell.advance();
}

// Must be called under the mutex. A run may have been waiting only for this entry.
void Instances::withdraw(RequestQueue::Entry& entry) noexcept {
  queue_.withdraw(entry);
  if (queue_.any_for_all() != nullptr) dispatch();
}

void Instances::grant(RequestQueue::Entry& entry) noexcept {
  auto& asker = static_cast<Asker&>(entry);
  // The asker may be destroyed as soon as its thread reads this.
  const std::atomic<uint32_t>& word = asker.word;
  const bool entering = &asker == &entering_;
  asker.word.store(Asker::kHas, std::memory_order_release);
  unpark_all(word);
  if (entering) pool_.handler_gives();
}

void Instances::recycle(Request& request) noexcept {
  const bool kept = request.keeps_home;
  if (kept) {
    const std::lock_guard lock(mutex_);
    --out_;
  }
  supply_.put_back(request);
  if (kept) release();
}

Instances::Counts Instances::counts() const noexcept {
  Counts now{};
  {
    const std::lock_guard lock(mutex_);
    now.accepted = accepted_ever_;
    now.queued = queue_.queued();
    now.running = static_cast<uint64_t>(queue_.busy());
    now.replaced = static_cast<uint64_t>(replaced_ever_);
    now.stuck = static_cast<uint64_t>(stuck_.load(std::memory_order_relaxed));
  }
  for (std::size_t i = 0; i < kRefusals; ++i) now.refused[i] = refusals_[i].load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < kRequestEnds; ++i) {
    now.ended[i] = unbegun_[i].load(std::memory_order_relaxed);
    for (const Instance& each : instances_) now.ended[i] += each.numbers.ended[i].get();
  }
  return now;
}

// ---- Steps ----

void Instances::enqueue_step(Request& step) noexcept {
  const std::lock_guard lock(mutex_);
  int instance = 0;
  if (queue_.arrive(step, &instance) == RequestQueue::Arrived::kGiven) give(instance, step);
}

bool Instances::withdraw_step(Request& step) noexcept {
  const std::lock_guard lock(mutex_);
  if (!step.queued) return false;
  withdraw(step);
  return true;
}

void Instances::raise_step(Request& step, int32_t priority) noexcept {
  const std::lock_guard lock(mutex_);
  if (!step.queued) return;
  queue_.withdraw(step);
  step.priority = priority;
  int instance = 0;
  if (queue_.arrive(step, &instance) == RequestQueue::Arrived::kGiven) give(instance, step);
}

// ---- Completion ----

void Instances::end_unbegun(Request& request, const ErrorRecord& why) noexcept {
  if (!request.unlimited) count_unbegun(why.code);
  request.end(Status(why.code), &why, elsewhere_);
}

int64_t Instances::end_overdue() noexcept {
  const int64_t next_ns = end_overdue_requests();
  const int64_t items_ns = batchers_.tend();
  return next_ns == 0 || (items_ns != 0 && items_ns < next_ns) ? items_ns : next_ns;
}

int64_t Instances::end_overdue_requests() noexcept {
  for (;;) {
    Request* over = nullptr;
    {
      const std::lock_guard lock(mutex_);
      RequestQueue::Entry* const first = queue_.first_deadline();
      planned_ns_ = first == nullptr ? 0 : first->deadline_ns;
      if (first == nullptr || first->deadline_ns > host_.now_ns()) return planned_ns_;
      withdraw(*first);
      over = static_cast<Request*>(first);
    }
    end_unbegun(*over, overdue_in_queue(*over));
  }
}

int64_t Instances::help() noexcept { return helpers_.has_clock() ? 0 : end_overdue(); }

int64_t Instances::help_and_left(int64_t end_ns) noexcept {
  const int64_t next_ns = help();
  const int64_t now_ns = host_.now_ns();
  const int64_t left = end_ns == 0 ? -1 : std::max<int64_t>(end_ns - now_ns, 0);
  if (next_ns == 0) return left;
  const int64_t until_next = std::max<int64_t>(next_ns - now_ns, 0);
  return left < 0 ? until_next : std::min(left, until_next);
}

ErrorRecord Instances::overdue_in_queue(const Request& request) const noexcept {
  ErrorRecord why = record_of(DIST_DEADLINE_EXCEEDED);
  std::snprintf(why.message, sizeof why.message,
                "the request's deadline of %s was over before an instance was free",
                DurationText(request.timeout_ns()).text);
  copy_text(why.hint, "Send fewer requests, use more replicas, or give a longer `timeout_ns`."_m);
  return why;
}

void Instances::withdraw_cancelled(Request& request, const char* reason) noexcept {
  {
    const std::lock_guard lock(mutex_);
    request.cancel_asked.store(true, std::memory_order_relaxed);
    // If it is running, its run is linked to the cancel object as well.
    if (!request.queued) {
      for (Instance& each : instances_) {
        if (each.current == &request) watch_told(each);
      }
      return;
    }
    withdraw(request);
  }
  ErrorRecord why = record_of(DIST_CANCELLED);
  std::snprintf(why.message, sizeof why.message, "the request was cancelled before it started: %.900s",
                reason);
  count_unbegun(why.code);
  request.end_in_signal(why);
}

void Instances::cancel(Request& request) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (request.ended()) return;
    // seq_cst: either its run sees this after it has begun, or this thread finds it running below.
    request.cancel_asked.store(true, std::memory_order_seq_cst);
    if (!request.queued) {
      for (Instance& each : instances_) {
        if (each.current != &request) continue;
        each.pool->pool().cancel("`dist_request_cancel()`"_m);
        watch_told(each);
      }
      return;
    }
    withdraw(request);
  }
  ErrorRecord why = record_of(DIST_CANCELLED);
  copy_text(why.message, "the request was cancelled before it started: `dist_request_cancel()`"_m);
  end_unbegun(request, why);
}

void Instances::end_queued(const ErrorRecord& why) noexcept {
  for (;;) {
    RequestQueue::Entry* entry = nullptr;
    {
      const std::lock_guard lock(mutex_);
      entry = queue_.any();
      if (entry == nullptr) {
        dispatch();
        return;
      }
      queue_.withdraw(*entry);
    }
    end_unbegun(static_cast<Request&>(*entry), why);
  }
}

void Instances::cancel(const char* reason) noexcept {
  const std::lock_guard lock(mutex_);
  copy_text(all_cancelled_, reason == nullptr ? "`dist_strategy_cancel()`"_m : reason);
  for (Instance& each : instances_) {
    if (each.current == nullptr) continue;
    each.current->cancelled_with_all = true;
    each.current->cancel_asked.store(true, std::memory_order_seq_cst);
    reason == nullptr ? each.pool->pool().cancel() : each.pool->pool().cancel(reason);
    watch_told(each);
  }
}

Status Instances::check_wait(const char* call) const noexcept {
  const Replica* const here = current().replica;
  if (here == nullptr || !here->pool().belongs_with(pool_)) return kOk;
  return failed_precondition(
      "`%s()`: this `thread` is in the function of replica %d of the same strategy, so the call may wait for "
      "itself. Call it outside the replicas, or use completions, which do not block.",
      call, here->name().number());
}

// ---- Runs, and other users of all replicas ----

void Instances::Asker::cancelled(const char*) noexcept {
  uint32_t waiting = kWaiting;
  if (word.compare_exchange_strong(waiting, kCancelled, std::memory_order_relaxed)) unpark_all(word);
}

Status Instances::take_all(const Asking& asking) noexcept {
  // The destruction of the strategy waits for this count: a refused caller has yet to report its error.
  struct Here {
    explicit Here(std::atomic<int>& count) noexcept : askers(count) {
      askers.fetch_add(1, std::memory_order_relaxed);
    }
    ~Here() { askers.fetch_sub(1, std::memory_order_release); }
    std::atomic<int>& askers;
  } const here(askers_);
  Asker me;
  {
    const std::lock_guard lock(mutex_);
    if (refused_.load(std::memory_order_relaxed)) return pool_.shutting_down();
    if (queue_.arrive_for_all(me)) return kOk;
  }
  // acquire pairs with the release in grant(): makes the effects of earlier requests visible.
  const auto told = [&] { return me.word.load(std::memory_order_acquire) != Asker::kWaiting; };
  bool late = false;
  {
    const CancelScope scope(asking.cancel, me);
    bool waiting = !scope.late() && !spin_until(policy_, told);
    while (waiting && !late) {
      const int64_t left = asking.deadline_ns == 0 ? -1 : asking.deadline_ns - host_.now_ns();
      late = asking.deadline_ns != 0 && left <= 0;
      if (!late) park(me.word, Asker::kWaiting, host_.slice_ns(left));
      waiting = !told();
    }
  }
  if (me.word.load(std::memory_order_acquire) == Asker::kHas) return kOk;
  {
    const std::lock_guard lock(mutex_);
    if (me.word.load(std::memory_order_acquire) == Asker::kHas) return kOk;
    if (me.queued) {
      queue_.withdraw(me);
      dispatch();
    }
  }
  if (refused_.load(std::memory_order_relaxed)) return pool_.shutting_down();
  if (!late)
    return fail(DIST_CANCELLED, "the run was cancelled before it started: %s", asking.cancel->reason());
  char inside[256];
  const int count = list_inside(inside);
  return fail(DIST_DEADLINE_EXCEEDED, "`%s()`: the replicas did not become idle within %s%s%s", asking.call,
              DurationText(asking.timeout_ns).text, count == 0 ? "" : "; requests run on ", inside);
}

void Instances::give_back() noexcept {
  const std::lock_guard lock(mutex_);
  queue_.give_back();
  dispatch();
}

bool Instances::ask_to_enter() noexcept {
  const std::lock_guard lock(mutex_);
  uint32_t has = Asker::kHas;
  if (entering_.word.compare_exchange_strong(has, Asker::kWaiting, std::memory_order_acquire)) return true;
  return !entering_.queued && queue_.arrive_for_all(entering_);
}

void Instances::no_longer_asks() noexcept {
  const std::lock_guard lock(mutex_);
  if (entering_.queued) {
    queue_.withdraw(entering_);
  } else if (entering_.word.exchange(Asker::kWaiting, std::memory_order_relaxed) == Asker::kHas) {
    queue_.give_back();
  }
  dispatch();
  pool_.handler_gives();
}

void Instances::refuse_all() noexcept {
  refuse_askers();
  // acquire: these callers have finished using the pool.
  while (askers_.load(std::memory_order_acquire) != 0) yield_this_thread();
}

void Instances::refuse_askers() noexcept {
  const std::lock_guard lock(mutex_);
  refused_.store(true, std::memory_order_relaxed);
  while (RequestQueue::Entry* const entry = queue_.any_for_all()) {
    queue_.withdraw(*entry);
    auto& asker = static_cast<Asker&>(*entry);
    if (&asker == &entering_) continue;
    const std::atomic<uint32_t>& word = asker.word;
    // Its thread continues with the mutex and finds that it is not queued.
    asker.word.store(Asker::kRefused, std::memory_order_release);
    unpark_all(word);
  }
}

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
#include "core/serve/idle_replicas.hpp"

#include "core/base/os/park.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/text.hpp"

namespace dist {

bool IdleReplicas::serve(int rank, const std::atomic<uint32_t>& started, uint32_t seen,
                         const std::atomic<bool>& stopping) {
  return InstanceThread(serving_, rank).serve_between_runs(started, seen, stopping);
}

Status IdleReplicas::take_all(const Asking& asking) noexcept {
  // The destruction of the strategy waits for this count: a refused caller has yet to report its error.
  struct Here {
    explicit Here(std::atomic<int>& count) noexcept : askers(count) {
      askers.fetch_add(1, std::memory_order_relaxed);
    }
    ~Here() { askers.fetch_sub(1, std::memory_order_release); }
    std::atomic<int>& askers;
  } const here(askers_);
  RunAsker me(false);
  {
    const std::lock_guard lock(dispatcher_.mutex());
    if (serving_.lifecycle.refuses_all()) return serving_.pool.shutting_down();
    if (dispatcher_.queue().arrive_for_all(me)) return kOk;
  }
  // acquire pairs with the release in Dispatcher::grant(): makes the effects of earlier requests visible.
  const auto told = [&] { return me.word.load(std::memory_order_acquire) != RunAsker::kWaiting; };
  bool late = false;
  {
    const CancelScope scope(asking.cancel, me);
    bool waiting = !scope.late() && !spin_until(serving_.policy, told);
    while (waiting && !late) {
      const int64_t left = asking.deadline_ns == 0 ? -1 : asking.deadline_ns - serving_.host.now_ns();
      late = asking.deadline_ns != 0 && left <= 0;
      if (!late) park(me.word, RunAsker::kWaiting, serving_.host.slice_ns(left));
      waiting = !told();
    }
  }
  if (me.word.load(std::memory_order_acquire) == RunAsker::kHas) return kOk;
  {
    const std::lock_guard lock(dispatcher_.mutex());
    if (me.word.load(std::memory_order_acquire) == RunAsker::kHas) return kOk;
    if (me.queued) {
      dispatcher_.queue().withdraw(me);
      dispatcher_.dispatch();
    }
  }
  if (serving_.lifecycle.refuses_all()) return serving_.pool.shutting_down();
  if (!late)
    return fail(DIST_CANCELLED, "the run was cancelled before it started: %s", asking.cancel->reason());
  char inside[256];
  const int count = dispatcher_.list_inside(inside);
  return fail(DIST_DEADLINE_EXCEEDED, "`%s()`: the replicas did not become idle within %s%s%s", asking.call,
              DurationText(asking.timeout_ns).text, count == 0 ? "" : "; requests run on ", inside);
}

void IdleReplicas::give_back() noexcept {
  const std::lock_guard lock(dispatcher_.mutex());
  dispatcher_.queue().give_back();
  dispatcher_.dispatch();
}

bool IdleReplicas::ask_to_enter() noexcept {
  const std::lock_guard lock(dispatcher_.mutex());
  uint32_t has = RunAsker::kHas;
  if (entering_.word.compare_exchange_strong(has, RunAsker::kWaiting, std::memory_order_acquire)) return true;
  return !entering_.queued && dispatcher_.queue().arrive_for_all(entering_);
}

void IdleReplicas::no_longer_asks() noexcept {
  const std::lock_guard lock(dispatcher_.mutex());
  if (entering_.queued) {
    dispatcher_.queue().withdraw(entering_);
  } else if (entering_.word.exchange(RunAsker::kWaiting, std::memory_order_relaxed) == RunAsker::kHas) {
    dispatcher_.queue().give_back();
  }
  dispatcher_.dispatch();
  serving_.pool.handler_gives();
}

void IdleReplicas::refuse_all() noexcept {
  refuse_askers();
  // acquire: these callers have finished using the pool.
  while (askers_.load(std::memory_order_acquire) != 0) yield_this_thread();
}

void IdleReplicas::refuse_askers() noexcept {
  const std::lock_guard lock(dispatcher_.mutex());
  serving_.lifecycle.refuse_all();
  while (RequestQueue::Entry* const entry = dispatcher_.queue().any_for_all()) {
    dispatcher_.queue().withdraw(*entry);
    auto& asker = static_cast<RunAsker&>(*entry);
    if (asker.entering) continue;
    const std::atomic<uint32_t>& word = asker.word;
    // Its thread continues with the mutex and finds that it is not queued.
    asker.word.store(RunAsker::kRefused, std::memory_order_release);
    unpark_all(word);
  }
}

}  // namespace dist

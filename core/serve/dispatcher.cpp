// SPDX-License-Identifier: Apache-2.0
#include "core/serve/dispatcher.hpp"

#include <algorithm>
#include <cstdio>

#include "core/base/os/park.hpp"
#include "core/base/text.hpp"

namespace dist {

void RunAsker::cancelled(const char*) noexcept {
  uint32_t waiting = kWaiting;
  if (word.compare_exchange_strong(waiting, kCancelled, std::memory_order_relaxed)) unpark_all(word);
}

Dispatcher::Dispatcher(Memory& memory, ReplicaPool& pool, const Host& host, std::size_t most)
    : queue_(memory, pool.num_replicas(), most),
      instances_(static_cast<std::size_t>(pool.num_replicas()), &memory),
      pool_(pool),
      host_(host),
      clock_(pool.recorder()[LocalReplica{0}]),
      watch_(host, alarm_) {
  for (Instance& each : instances_) {
    each.rank = static_cast<int>(&each - instances_.data());
    each.recorder = &pool.recorder()[LocalReplica{each.rank}];
  }
}

void Dispatcher::wake() noexcept {
  for (Instance& each : instances_) each.bell.advance();
}

int Dispatcher::list_inside(std::span<char> text) const noexcept {
  int count = 0;
  std::size_t used = 0;
  text[0] = '\0';
  for (const Instance& each : instances_) {
    if (!is_inside(each.rank)) continue;
    const int length = std::snprintf(text.data() + used, text.size() - used, "%s%d",
                                     count == 0 ? "replica " : ", ", pool_.name_of(each.rank));
    used = std::min(text.size() - 1, used + static_cast<std::size_t>(std::max(0, length)));
    ++count;
  }
  return count;
}

// Whether the clock thread must look at the queue earlier than planned, because of this request.
bool Dispatcher::is_sooner(const Request& request) noexcept {
  if (planned_ns_ != 0 && planned_ns_ <= request.deadline_ns) return false;
  planned_ns_ = request.deadline_ns;
  return true;
}

// Rarely assigns more than one entry.
void Dispatcher::dispatch() noexcept {
  int instance = 0;
  while (RequestQueue::Entry* const entry = queue_.next(&instance))
    give(instance, static_cast<Request&>(*entry));
  if (RequestQueue::Entry* const entry = queue_.next_for_all(); entry != nullptr) grant(*entry);
}

void Dispatcher::give(int rank, Request& request) noexcept {
  Instance& to = at(rank);
  occupy(to, &request);
  to.given.store(&request, std::memory_order_release);
  to.bell.advance();
}

void Dispatcher::withdraw(RequestQueue::Entry& entry) noexcept {
  queue_.withdraw(entry);
  if (queue_.any_for_all() != nullptr) dispatch();
}

void Dispatcher::grant(RequestQueue::Entry& entry) noexcept {
  auto& asker = static_cast<RunAsker&>(entry);
  // The asker may be destroyed as soon as its thread reads this.
  const std::atomic<uint32_t>& word = asker.word;
  const bool entering = asker.entering;
  asker.word.store(RunAsker::kHas, std::memory_order_release);
  unpark_all(word);
  if (entering) pool_.handler_gives();
}

Request* Dispatcher::withdraw_overdue(int64_t* out_next_ns) noexcept {
  RequestQueue::Entry* const first = queue_.first_deadline();
  planned_ns_ = first == nullptr ? 0 : first->deadline_ns;
  *out_next_ns = planned_ns_;
  if (first == nullptr || first->deadline_ns > host_.now_ns()) return nullptr;
  withdraw(*first);
  return static_cast<Request*>(first);
}

Instance* Dispatcher::running(const Request& request) noexcept {
  const auto found = std::find_if(instances_.begin(), instances_.end(),
                                  [&](const Instance& at) { return at.current == &request; });
  return found == instances_.end() ? nullptr : &*found;
}

bool Dispatcher::some_begin() const noexcept {
  return std::any_of(instances_.begin(), instances_.end(),
                     [](const Instance& at) { return at.failure == DIST_OK; });
}

void Dispatcher::cancel_running(const char* reason) noexcept {
  const std::lock_guard lock(mutex_);
  copy_text(all_cancelled_, reason == nullptr ? "`dist_strategy_cancel()`"_m : reason);
  for (Instance& each : instances_) {
    if (each.current == nullptr) continue;
    each.current->cancelled_with_all = true;
    each.current->cancel_asked.store(true, std::memory_order_seq_cst);
    reason == nullptr ? each.pool->pool().cancel() : each.pool->pool().cancel(reason);
    watch_.told(each);
  }
}

void Dispatcher::copy_reason(const Request& request, char (&reason)[kReasonBytes]) const noexcept {
  copy_text(reason, "`dist_request_cancel()`"_m);
  const std::lock_guard lock(mutex_);
  if (request.cancelled_with_all) copy_text(reason, all_cancelled_);
}

void Dispatcher::enqueue_step(Request& step) noexcept {
  const std::lock_guard lock(mutex_);
  int instance = 0;
  if (queue_.arrive(step, &instance) == RequestQueue::Arrived::kGiven) give(instance, step);
}

bool Dispatcher::withdraw_step(Request& step) noexcept {
  const std::lock_guard lock(mutex_);
  if (!step.queued) return false;
  withdraw(step);
  return true;
}

void Dispatcher::raise_step(Request& step, int32_t priority) noexcept {
  const std::lock_guard lock(mutex_);
  if (!step.queued) return;
  queue_.withdraw(step);
  step.priority = priority;
  int instance = 0;
  if (queue_.arrive(step, &instance) == RequestQueue::Arrived::kGiven) give(instance, step);
}

void Dispatcher::tell_step(int rank, const Request& step) noexcept {
  const std::lock_guard lock(mutex_);
  // The step may have ended and be on its way to its batcher.
  if (at(rank).current == &step) watch_.told(at(rank));
}

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
#include "core/serve/instance_thread.hpp"

#include <algorithm>
#include <utility>

#include "core/serve/eager_spin.hpp"
#include "core/serve/stuck.hpp"

namespace dist {

InstanceThread::InstanceThread(Serving& serving, int rank) noexcept
    : serving_(serving), dispatcher_(serving.dispatcher), at_(serving.dispatcher.at(rank)) {
  const std::lock_guard lock(dispatcher_.mutex());
  at_.attended = true;
  at_.stay = &stay_;
}

InstanceThread::~InstanceThread() {
  if (stay_.left()) stay_.stuck->end();
  if (!stay_.left() && !left_) ended_inside();
}

// The thread ends inside a host callback. The instance counts as busy until the new thread has arrived here, so that
// no run begins before.
void InstanceThread::ended_inside() noexcept {
  Request* cut = nullptr;
  {
    const std::lock_guard lock(dispatcher_.mutex());
    cut = std::exchange(at_.current, nullptr);
    at_.stay = nullptr;
    at_.stuck_at = 0;
    at_.awaited = false;
    at_.given.store(nullptr, std::memory_order_relaxed);
    at_.inside.store(false, std::memory_order_release);
    at_.attended = false;
    // Do not retry an instance that failed before it even began.
    if (!std::exchange(at_.ready, false)) at_.failure = DIST_FAILED_PRECONDITION;
  }
  ReplicaPool& pool = serving_.pool;
  (void)failed_precondition("replica %d's thread ended inside its function (pthread_exit)",
                            pool.name_of(at_.rank));
  const ErrorRecord why = last_error();
  if (cut != nullptr) {
    at_.recorder->end_request();
    at_.count_end(*cut, why.code);
    cut->end(Status(why.code), &why, at_.endings);
  }
  if (at_.failure != DIST_OK && at_.why != nullptr) *at_.why = why;
  Status replaced = kOk;
  {
    const std::lock_guard lock(dispatcher_.mutex());
    if (pool.threads() != DIST_THREADS_HOST) {
      at_.awaited = true;
      replaced = pool.replace_thread(LocalReplica{at_.rank});
    }
    if (!replaced.ok()) {
      at_.failure = replaced.code();
      at_.awaited = false;
    }
    dispatcher_.queue().take_no_part(at_.rank);
    dispatcher_.dispatch();
  }
  serving_.lifecycle.changed();
  end_if_none_is_left(replaced.ok() ? why : last_error());
}

// Must be called under the mutex.
void InstanceThread::leave() noexcept {
  at_.attended = false;
  at_.stay = nullptr;
  left_ = true;
}

// Waits for a request or another ring of the bell or, if there is no clock thread, until something is due.
void InstanceThread::await(uint32_t rung) noexcept {
  const auto news = [&] {
    return at_.given.load(std::memory_order_acquire) != nullptr ||
           at_.bell.value.load(std::memory_order_seq_cst) != rung;
  };
  WaitPolicy policy = serving_.policy;
  policy.spin_ns = serving_.spin_ns.load(std::memory_order_relaxed);
  if (spin_eagerly(serving_.spins_eagerly, policy, news)) return;
  const int64_t left = serving_.clock.help_and_left(0);
  if (left != 0) at_.bell.sleep(rung, serving_.host.slice_ns(left), policy, news);
}

bool InstanceThread::serve_between_runs(const std::atomic<uint32_t>& started, uint32_t seen,
                                        const std::atomic<bool>& stopping) {
  const auto called = [&] {
    return started.load(std::memory_order_seq_cst) != seen || stopping.load(std::memory_order_seq_cst);
  };
  // The instance is idle, and has looked at everything for which the bell rang up to this number.
  bool idle = false;
  uint32_t rung = 0;
  for (;;) {
    Request* request = at_.take_given();
    if (request != nullptr) {
      ++rung;
    } else if (!idle || at_.bell.value.load(std::memory_order_seq_cst) != rung) {
      // The acquire keeps this load before the checks, so a later change ends the wait.
      rung = at_.bell.value.load(std::memory_order_acquire);
      tend();
      const std::lock_guard lock(dispatcher_.mutex());
      if (std::exchange(at_.awaited, false)) serving_.lifecycle.changed();
      request = at_.take_given();
      if (request == nullptr) {
        if (called()) {
          (void)dispatcher_.queue().leave(at_.rank);
          leave();
          return true;
        }
        if (at_.ready && !dispatcher_.queue().is_free(at_.rank)) request = dispatcher_.come(at_);
      }
      idle = true;
    }
    if (request == nullptr) {
      await(rung);
      continue;
    }
    while (request != nullptr) request = serving_.runner.perform(at_, stay_, *request);
    if (serving_.pool.memory().forked() || stay_.left()) {
      left_ = true;
      return false;
    }
  }
}

Status InstanceThread::serve_until_closed() {
  for (;;) {
    const uint32_t rung = at_.bell.value.load(std::memory_order_acquire);
    tend();
    Request* request = nullptr;
    {
      const std::lock_guard lock(dispatcher_.mutex());
      request = at_.take_given();
      if (request == nullptr && at_.ready && !dispatcher_.queue().is_free(at_.rank))
        request = dispatcher_.come(at_);
      if (request == nullptr && !at_.ready) {
        leave();
        return at_.failure == DIST_OK ? kOk : at_.why != nullptr ? fail(*at_.why) : Status(at_.failure);
      }
    }
    while (request != nullptr) request = serving_.runner.perform(at_, stay_, *request);
    await(rung);
  }
}

// Creates or destroys the instance's state, according to the phase.
void InstanceThread::tend() {
  switch (serving_.lifecycle.phase()) {
    case Phase::kOpening:
    case Phase::kOpen:
    case Phase::kClosing:
      if (!at_.ready && at_.failure == DIST_OK) make_state();
      break;
    case Phase::kEnding:
    case Phase::kClosed:
      // Also cleans up after a thread that ended inside a callback.
      if (at_.ready || at_.pool->pool().host_state() != nullptr) end_state();
      break;
    case Phase::kNever: break;
  }
}

void InstanceThread::make_state() {
  const Status made = serving_.options.create_state_of(at_);
  // It was created but failed to warm up.
  if (!made.ok() && at_.pool->pool().host_state() != nullptr) end_state();
  {
    const std::lock_guard lock(dispatcher_.mutex());
    at_.failure = made.code();
    if (!made.ok() && at_.why != nullptr) *at_.why = last_error();
    at_.ready = made.ok();
    if (made.ok()) dispatcher_.queue().take_part(at_.rank);
  }
  serving_.lifecycle.changed();
  if (!made.ok()) end_if_none_is_left(last_error());
}

void InstanceThread::end_state() {
  serving_.options.destroy_state_of(at_, "dist_instances_close");
  {
    const std::lock_guard lock(dispatcher_.mutex());
    at_.ready = false;
    dispatcher_.queue().take_no_part(at_.rank);
  }
  serving_.lifecycle.changed();
}

// Ends the waiting requests if no instance is left to serve them.
void InstanceThread::end_if_none_is_left(const ErrorRecord& why) noexcept {
  {
    const std::lock_guard lock(dispatcher_.mutex());
    if (serving_.lifecycle.phase() == Phase::kOpening || serving_.pool.threads() == DIST_THREADS_HOST) return;
    if (dispatcher_.queue().has_instances() || dispatcher_.some_begin()) return;
  }
  ErrorRecord none = why;
  none.code = DIST_UNAVAILABLE;
  serving_.withdrawals.end_waiting(none);
}

}  // namespace dist

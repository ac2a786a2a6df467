// SPDX-License-Identifier: Apache-2.0
#include "core/serve/item.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "core/serve/batcher.hpp"
#include "core/serve/eager_spin.hpp"
#include "core/serve/error_room.hpp"
#include "core/serve/instances.hpp"

namespace dist {

Item::~Item() { free_error_room(memory(), why); }

RequestHandle& Item::arrival(bool last) noexcept {
  return last ? static_cast<RequestHandle&>(*this) : earlier_;
}

// An item that delivers results to completions has ended for the host when it arrives there for the last
// time.
Status Item::test(bool* out_ended) noexcept {
  *out_ended =
      ended() && (!arrives_.load(std::memory_order_acquire) || arrived.load(std::memory_order_acquire));
  return *out_ended ? result() : kOk;
}

void Item::close() noexcept {
  if (memory().forked()) return;
  has_handle_.store(false, std::memory_order_release);
  if (!has_taker()) {
    // Nobody could take further results.
    free_results();
    batcher_.has_room_again(*this);
  }
  let_go();
}

void Item::end_with(dist_status status) noexcept {
  ends = true;
  ends_with = status;
  if (status == DIST_OK) return;
  need_error_room(memory(), why);
  if (why == nullptr) return;
  *why = last_error();
  if (why->code == status) return;
  (void)dist::fail(status,
                   "the step ended the item with %s, without a reason. Use `dist_fail()` to report one",
                   status_name(status));
  *why = last_error();
}

void Item::end(Status status, const ErrorRecord* reason, Endings& by) noexcept {
  if (state != nullptr) batcher_.free_state(*this);
  finish(status, reason, by);
}

void Item::cut_off() noexcept {
  hold();
  const std::lock_guard lock(mutex_);
  cut_off_.store(true, std::memory_order_relaxed);
}

void Item::end_left(const ErrorRecord& stuck) noexcept {
  const ErrorRecord own = batcher_.why_left(*this, stuck);
  finish(Status(own.code), &own, home().tally().elsewhere());
}

void Item::come_back() noexcept {
  batcher_.free_state(*this);
  batcher_.let_go_of_left(*this);
}

void Item::finish(Status status, const ErrorRecord* reason, Endings& by) noexcept {
  // Nobody waits for its results.
  if (is_plain()) return Future::end(status, reason, by);
  hold();
  Future::end(status, reason, by);
  // Wakes the threads that wait for results.
  news_.advance();
  let_go();
}

void Item::cancel() noexcept { batcher_.cancel(*this, "`dist_request_cancel()`"_m, false); }

void Item::cancelled(const char* reason) noexcept { batcher_.cancel(*this, reason, true); }

void Item::recycle() noexcept {
  // Nobody else uses it.
  if (count_ != 0) free_results();
  batcher_.recycle(*this);
}

// ---- Results ----

Item::Emitted Item::emit(void* result) noexcept {
  const auto most = static_cast<std::size_t>(batcher_.options().max_results);
  if (!has_taker()) {
    if (cut_off_.load(std::memory_order_relaxed)) return Emitted::kLeft;
    batcher_.free_result(result);
    return Emitted::kKept;
  }
  {
    const std::lock_guard lock(mutex_);
    if (cut_off_.load(std::memory_order_relaxed)) return Emitted::kLeft;
    if (count_ == most) return Emitted::kFull;
    if (results_.empty()) {
      try {
        results_.resize(most);
      } catch (const std::bad_alloc&) {
        return Emitted::kFull;
      }
    }
    results_[(first_ + count_) % most] = result;
    ++count_;
    // Under the lock, because the thread that abandons the step ends the item next.
    if (!arrive_early()) arrives_.store(false, std::memory_order_release);
  }
  news_.advance();
  if (!has_taker()) free_results();
  return Emitted::kKept;
}

bool Item::is_full() noexcept {
  const std::lock_guard lock(mutex_);
  return count_ == static_cast<std::size_t>(batcher_.options().max_results);
}

void* Item::take_first(bool* out_was_full) noexcept {
  const std::lock_guard lock(mutex_);
  *out_was_full = false;
  if (count_ == 0) return nullptr;
  *out_was_full = count_ == results_.size();
  void* const result = results_[first_];
  first_ = (first_ + 1) % results_.size();
  --count_;
  return result;
}

void Item::free_results() noexcept {
  bool was_full = false;
  while (void* const result = take_first(&was_full)) batcher_.free_result(result);
}

Status Item::take(int64_t timeout_ns, void** out) noexcept {
  std::optional<BudgetStay> stay;  // set once it waits, because the strategy may be destroyed before
  const Host& host = home().host();
  const int64_t end_ns = timeout_ns > 0 ? deadline_after(host.now_ns(), timeout_ns) : 0;
  for (bool may_wait = false;;) {
    const uint32_t seen = news_.value.load(std::memory_order_acquire);
    // Checked first, so that results added before the end are found.
    const bool over = ended();
    bool was_full = false;
    *out = take_first(&was_full);
    if (was_full) batcher_.has_room_again(*this);
    if (*out != nullptr || over || timeout_ns == 0) return kOk;
    if (!std::exchange(may_wait, true)) {
      DIST_TRY(check_wait(home().pool(), "dist_request_take"));
      stay.emplace(home().pool().insider());
    }
    const int64_t left = home().helpers().clock().help_and_left(end_ns);
    if (end_ns != 0 && host.now_ns() >= end_ns) return kOk;
    if (left == 0) continue;
    const auto changed = [&] { return news_.value.load(std::memory_order_seq_cst) != seen; };
    if (!spin_eagerly(home().spins_eagerly(), WaitPolicy{}, changed))
      news_.sleep(seen, host.slice_ns(left), WaitPolicy{}, changed);
  }
}

}  // namespace dist

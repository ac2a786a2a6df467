// SPDX-License-Identifier: Apache-2.0
#include "core/serve/future.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/text.hpp"
#include "core/run/current.hpp"
#include "core/serve/completions.hpp"
#include "core/serve/eager_spin.hpp"
#include "core/serve/error_room.hpp"
#include "core/serve/instances.hpp"

namespace dist {

Future::~Future() {
  unlink();
  free_error_room(memory(), error_);
}

// Sets the members that a plain future does not use; see is_plain().
void Future::link_to(const Submission& given, BudgetParty* insider) noexcept {
  if (given.cancel != nullptr) cancel_ = Ref<Cancel>::share(given.cancel);
  if (given.completions != nullptr) completions_ = Ref<Completions>::share(given.completions);
  done_ = given.done;
  done_function_ = given.done_function;
  lies_there = comes_last = false;
  arrived.store(false, std::memory_order_relaxed);
  ended_.value.store(0, std::memory_order_relaxed);
  inside_ = insider;
  if (insider != nullptr) insider->enter_inside();
}

bool Future::add_link() noexcept {
  linked_ = cancel_->add(*this);
  return linked_;
}

// Waits for a signal that is being delivered.
void Future::unlink() noexcept {
  if (std::exchange(linked_, false)) cancel_->remove(*this);
  cancel_ = {};
}

void Future::end(Status status, const ErrorRecord* why, Endings& by) noexcept {
  Instances& home = home_;
  if (plain_) {
    by.one_completed();
    let_go();
    return home.lifecycle().delivered(by);
  }
  if (cancel_) unlink();
  code_ = status.code();
  if (!status.ok() && why != nullptr) {
    need_error_room(memory(), error_);
    if (error_ != nullptr) *error_ = *why;
  }
  leave_budget();
  by.one_completed();
  const Ref<Completions> completions = std::move(completions_);
  const bool tells = done_ != nullptr;
  // seq_cst: ordered with the checks of waiting threads. After this, the host may release its handle.
  ended_.advance();
  home.any().announce();
  if (tells) return home.helpers().teller().tell(*this);
  if (completions) {
    completions->add(*this, true);
  } else {
    let_go();
  }
  home.lifecycle().delivered(by);
}

void Future::leave_budget() noexcept {
  if (BudgetParty* const party = std::exchange(inside_, nullptr); party != nullptr) party->leave_inside();
}

void Future::end_in_signal(const ErrorRecord& why) noexcept {
  Ref<Cancel> kept = std::exchange(cancel_, {});
  const bool linked = std::exchange(linked_, false);
  // The released reference may be the last one, but the request must exist until the signal has been
  // delivered.
  hold();
  end(Status(why.code), &why, home_.tally().elsewhere());
  cancel_ = std::move(kept);
  linked_ = linked;
  if (uses_.fetch_sub(1, std::memory_order_acq_rel) == 1) recycle();
}

void Future::drop() noexcept {
  completions_ = {};
  unlink();
  leave_budget();
  recycle();
}

Status Future::result() const noexcept {
  if (code_ == DIST_OK) return kOk;
  if (error_ != nullptr && error_->code == code_) return fail(*error_);
  return fail(code_, "the request failed with %s, and memory was exhausted before the reason could be stored",
              status_name(code_));
}

Status Future::take(int64_t, void**) noexcept {
  return failed_precondition(
      "`dist_request_take()`: this request has no partial results. Only items of batches have them.");
}

Status Future::test(bool* out_ended) noexcept {
  *out_ended = ended();
  return *out_ended ? result() : kOk;
}

Status Future::wait(int64_t timeout_ns) noexcept {
  RequestHandle* const one = this;
  std::size_t index = 0;
  return wait_any(&one, 1, timeout_ns, &index);
}

Status Future::wait_any(RequestHandle* const* works, std::size_t n, int64_t timeout_ns,
                        std::size_t* out_index) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    if (&works[i]->future().home_ == &home_) continue;
    return invalid_argument(
        "`dist_request_wait_any()`: requests[0] and requests[%zu] belong to different strategies", i);
  }
  std::size_t at = n;
  // seq_cst: see AnyCompletion.
  const auto done = [&] {
    for (at = 0; at < n && works[at]->future().ended_.value.load(std::memory_order_seq_cst) == 0; ++at) {
    }
    return at < n;
  };
  const char* const call = n == 1 ? "dist_request_wait" : "dist_request_wait_any";
  if (timeout_ns == 0 && !done())
    return fail(DIST_DEADLINE_EXCEEDED, "`%s()`: the request has not completed. It continues to run.", call);
  // Futures of a destroyed strategy have completed.
  std::optional<BudgetStay> stay;
  if (!done()) {
    DIST_TRY(check_wait(home_.pool(), call));
    stay.emplace(home_.pool().insider());
  }
  const Host& host = home_.host();
  const int64_t end_ns = timeout_ns > 0 ? deadline_after(host.now_ns(), timeout_ns) : 0;
  const AnyCompletion::Waiting waiting(home_.any(), n > 1);
  Word& word = n == 1 ? ended_ : home_.any().completions();
  while (at == n && !spin_eagerly(home_.spins_eagerly(), WaitPolicy{}, done)) {
    const uint32_t seen = word.value.load(std::memory_order_acquire);
    if (done()) break;
    const int64_t left = home_.helpers().clock().help_and_left(end_ns);
    if (end_ns != 0 && host.now_ns() >= end_ns) {
      return fail(DIST_DEADLINE_EXCEEDED,
                  "`%s()`: the request did not complete within %s. It continues to run.", call,
                  DurationText(timeout_ns).text);
    }
    if (left == 0) continue;
    word.sleep(seen, host.slice_ns(left), WaitPolicy{},
               [&] { return word.value.load(std::memory_order_seq_cst) != seen; });
  }
  *out_index = at;
  return works[at]->future().result();
}

bool Future::arrive_early() noexcept {
  if (!completions_) return false;
  hold();
  return completions_->add(*this, false);
}

void Future::close() noexcept {
  if (!memory().forked()) let_go();
}

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
#include "core/async/work.hpp"

#include <algorithm>
#include <cstdio>

#include "core/base/text.hpp"
#include "core/comm/standstill.hpp"

namespace dist {
namespace {

constexpr int64_t kForever = INT64_MAX;
// The longest sleep. It exists so that a thread notices failures that wake no thread.
constexpr int64_t kLongestSleepNs = 100'000'000;
// A thread can sleep on the word of one group only. If it waits for works of several groups, it checks them
// at this interval.
constexpr int64_t kLookNs = 1'000'000;
// How many members of a group may check for messages of other workers at that interval. The members of a
// larger group check less often, so that hundreds of them do not keep late replicas from the CPUs.
constexpr int kFrequentLookers = 4;

// A sleep that ends when any of several works ends.
class AnyWork final : public Waits {
 public:
  AnyWork(Work* const* works, std::size_t n) noexcept : works_(works), n_(n) {}
  std::size_t size() const noexcept override { return n_; }
  Wait at(std::size_t i) const noexcept override { return {&works_[i]->wait_place(), works_[i]->rank(), 0}; }

 private:
  Work* const* const works_;
  const std::size_t n_;
};

bool one_group(Work* const* works, std::size_t n) noexcept {
  return std::all_of(works, works + n, [&](const Work* w) { return &w->group() == &works[0]->group(); });
}

int64_t longest_sleep(Work* const* works, std::size_t n, int64_t left_ns, bool limited) noexcept {
  // The transport may need progress() even if nothing has changed in this process.
  const bool crosses = std::any_of(works, works + n, [](const Work* w) { return w->crosses(); });
  Group& group = works[0]->group();
  const int64_t crossing = kLookNs * std::max(1, group.size() / kFrequentLookers);
  const int64_t longest = !one_group(works, n) ? kLookNs : crosses ? crossing : kLongestSleepNs;
  const int64_t slice = group.host().slice_ns(limited ? left_ns : -1);
  return std::min(slice < 0 ? kLongestSleepNs : slice, longest);
}

// The condition under which a thread wakes that already counts as a sleeper. It only checks and processes no
// blocks, because a failure waits until no thread counts as a sleeper.
bool worth_a_look(Work* const* works, std::size_t n) noexcept {
  return std::any_of(works, works + n, [](const Work* w) { return w->settled() || w->stuck(); });
}

Status still_in_progress(const char* call, int64_t timeout_ns) noexcept {
  if (timeout_ns == 0)
    return fail(DIST_DEADLINE_EXCEEDED, "`%s()`: the collective has not completed. It continues.", call);
  return fail(DIST_DEADLINE_EXCEEDED,
              "`%s()`: the collective did not complete within %s. It continues: wait again, or call "
              "`dist_work_cancel()`.",
              call, DurationText(timeout_ns).text);
}

// The index of the first work that has ended; n: none.
std::size_t first_ended(Work* const* works, std::size_t n) noexcept {
  std::size_t i = 0;
  while (i < n && !works[i]->ended()) ++i;
  return i;
}

}  // namespace

int WorkWaitPlace::size() const noexcept { return work_.group().size(); }
int32_t WorkWaitPlace::number() const noexcept { return work_.group().number(); }
int WorkWaitPlace::local_rank(int rank) const noexcept { return work_.group().local_rank(rank); }
Naming WorkWaitPlace::naming() const noexcept { return work_.group().naming(); }
bool WorkWaitPlace::arrived(int rank, uint32_t) const noexcept { return work_.has_come(rank); }
const Signature& WorkWaitPlace::signature(int, uint32_t, int64_t* out_sequence) const noexcept {
  return work_.signature(out_sequence);
}
bool WorkWaitPlace::claim() noexcept { return work_.group().claim(); }
void WorkWaitPlace::post(const ErrorRecord& report) noexcept { work_.group().post(report); }

void WorkList::add(Work& work) noexcept { works_.push_front(work); }

void WorkList::remove(Work& work) noexcept {
  if (next_look_ == &work) next_look_ = works_.after(work);
  works_.remove(work);
}

void WorkList::advance() noexcept {
  if (next_look_ == nullptr) next_look_ = works_.first();
  for (int looks = 0; next_look_ != nullptr && looks < kLooks;) {
    Work* const work = next_look_;
    next_look_ = works_.after(*work);
    if (!work->ended()) ++looks;
  }
}

Status WorkList::drain(Status returned, const ErrorRecord& failure) noexcept {
  Status first;
  while (!works_.empty()) {
    Work& work = *works_.first();
    if (!returned.ok() && !work.ended() && work.waits()) {
      // A member that has failed does not wait: its peers get a report, and its tensors are released. The
      // group does not know yet that the member leaves, so no signature differs, and the report is made here.
      ErrorRecord report = work.report(Trouble::kCancelled, 0);
      report.code = DIST_ABORTED;
      const MemberName name = work.group().name(work.rank());
      report.culprit = name;
      copy_text(report.received, status_name(returned.code()));
      std::snprintf(report.message, sizeof report.message, "%s %d failed with %s: %.900s", name.word(),
                    name.number(), status_name(returned.code()), failure.message);
      hint_to_mend(report, name);
      work.group().condemn(report);
    }
    const Status ended = work.wait(-1);
    if (first.ok() && !ended.ok()) first = ended;
  }
  return first;
}

void Work::begin() noexcept {
  owner_.add(*this);
  was_waited_for_ = false;
  limit_of_wait_ns_ = 0;
  if (cancel_ && !cancel_->add(cancel_link_)) group_.cancel(cancel_->reason());
}

Status Work::check_cancel() noexcept {
  if (!cancel_ || !cancel_->signalled()) return kOk;
  group_.cancel(cancel_->reason());
  return group_.failure();
}

void Work::record(Recorder* recorder, const Signature& signature, uint32_t number, uint32_t sequence,
                  std::size_t bytes) noexcept {
  recorder_ = recorder;
  if (recorder == nullptr) return;
  recorded_ = recorder->issue({static_cast<int32_t>(signature.collective), signature.op, signature.dtype,
                               group_.number(), group_.size(), number, sequence, true, bytes, signature.tag});
}

void Work::end(dist_status code) noexcept {
  if (cancel_) cancel_->remove(cancel_link_);
  if (recorder_ != nullptr) recorder_->complete(recorded_, code);
  code_ = code;
  ended_in_ = group_.failures();
  owner_.remove(*this);
}

bool Work::ended() noexcept {
  if (!under_way()) return true;
  // If a member only tests, this is the only check of the clock.
  const bool late = group_.past_deadline();
  if (advance()) {
    if (late) (void)group_.check_run();
    // If the host's operator has thrown, the group failed before the work was complete.
    end(calls_host() && group_.aborted() ? group_.failure().code() : DIST_OK);
    return true;
  }
  if (late && waits()) end_late(Trouble::kRunDeadline, 0);
  if (!group_.aborted()) return false;
  group_.explain_cancel([&] { return report(Trouble::kCancelled, 0); });
  give_up();
  // A work that was complete before the failure is complete on all members.
  const bool well = complete() && !calls_host();
  end(well ? DIST_OK : group_.failure().code());
  return true;
}

Status Work::check_owner(const WorkList* here, const char* call) const noexcept {
  if (here == &owner_) return kOk;
  return failed_precondition(
      "`%s()`: this work belongs to replica %d of its group. Only that replica may call this, inside its "
      "function.",
      call, rank_);
}

void Work::close() noexcept {
  if (memory().forked()) return;
  (void)wait(-1);
  release();
}

int Work::missing() const noexcept {
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (!has_come(rank)) return rank;
  }
  return -1;
}

bool Work::stuck() const noexcept {
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (group_.has_left(rank) && !has_come(rank)) return true;
  }
  return false;
}

Status Work::result() noexcept {
  if (code_ == DIST_OK) return kOk;
  // The group's report may belong to a later run.
  const ErrorRecord* const report = ended_in_ == group_.failures() ? group_.report() : nullptr;
  if (report != nullptr) return fail(*report);
  return fail(code_, "this work failed in an earlier run, with %s", status_name(code_));
}

Status Work::test(bool* out_ended) noexcept {
  if (!ended()) check(0);
  const bool now = ended();
  if (now) DIST_TRY(result());
  *out_ended = now;
  return kOk;
}

void Work::cancel() noexcept {
  if (!ended()) group_.condemn(report(Trouble::kCancelled, 0));
}

Status Work::wait_any(Work* const* works, std::size_t n, int64_t timeout_ns,
                      std::size_t* out_index) noexcept {
  std::size_t at = first_ended(works, n);
  const auto done = [&] { return (at = first_ended(works, n)) < n; };
  Group& group = works[0]->group();
  if (at == n && (timeout_ns == 0 || !spin_until(group.policy(), done))) {
    const int64_t start = group.host().now_ns();
    for (std::size_t i = 0; i < n; ++i) {
      if (!works[i]->was_waited_for_) works[i]->waiting_since_ns_ = start;
      works[i]->was_waited_for_ = true;
    }
    // A wait with a timeout ends by itself, so it is no part of a deadlock.
    const AnyWork any(works, n);
    const BlockedHere blocked(timeout_ns < 0 ? group.wait_graph() : nullptr,
                              group.local_rank(works[0]->rank()), any);
    Standstill standstill;
    for (;;) {
      const int64_t passed_ns = group.host().now_ns() - start;
      const bool forgiven = standstill.forgives(passed_ns);
      int64_t left_ns = timeout_ns < 0 ? kForever : timeout_ns - passed_ns;
      for (std::size_t i = 0; i < n; ++i) {
        Work& work = *works[i];
        const int64_t limit_ns = work.limit_ns();
        int64_t waited_ns = 0;
        const Trouble overdue = work.group().overdue(work.waiting_since_ns_, limit_ns, &waited_ns);
        work.check(waited_ns);
        if (!forgiven && overdue != Trouble::kNone && work.waits()) work.end_late(overdue, waited_ns);
        if (limit_ns > 0) left_ns = std::min(left_ns, limit_ns - waited_ns);
      }
      // acquire keeps this load before done(), so that a later change of the word ends the sleep.
      const uint32_t seen = group.progress().value.load(std::memory_order_acquire);
      if (done()) break;
      if (timeout_ns >= 0 && passed_ns >= timeout_ns)
        return still_in_progress(n == 1 ? "dist_work_wait" : "dist_work_wait_any", timeout_ns);
      group.progress().sleep(seen, forgiven ? kLookNs : longest_sleep(works, n, left_ns, left_ns != kForever),
                             group.policy(), [&] { return worth_a_look(works, n); });
      if (at < n || done()) break;
    }
  }
  *out_index = at;
  return works[at]->result();
}

Status Work::wait(int64_t timeout_ns) noexcept {
  if (!under_way()) return result();
  Work* const one = this;
  std::size_t index;
  return wait_any(&one, 1, timeout_ns, &index);
}

Status Work::wait_for_peers(int64_t limit_ns) noexcept {
  if (!under_way()) return result();
  Work* const one = this;
  std::size_t index;
  was_waited_for_ = false;
  limit_of_wait_ns_ = limit_ns;
  return wait_any(&one, 1, -1, &index);
}

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
// Work: a member's handle of an asynchronous or planned collective. Only that member's thread may use it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/cancel.hpp"
#include "core/base/intrusive_list.hpp"
#include "core/base/memory.hpp"
#include "core/base/on_stack.hpp"
#include "core/base/status.hpp"
#include "core/comm/group.hpp"
#include "core/trace/recorder.hpp"

namespace dist {

// Cancels a group's rounds when the cancel object is signalled. It is linked only while a run lasts.
class GroupCancelLink final : public Cancel::Link {
 public:
  explicit GroupCancelLink(Group& group) noexcept : group_(group) {}
  void cancelled(const char* reason) noexcept override { group_.cancel(reason); }

 private:
  Group& group_;
};

class Work;

// A member's works that are under way, whose buffers are in use.
class WorkList {
 public:
  WorkList() noexcept = default;
  WorkList(const WorkList&) = delete;
  WorkList& operator=(const WorkList&) = delete;

  bool empty() const noexcept { return works_.empty(); }
  // Advances some of the works, different ones in each call. Does not wait.
  void advance() noexcept;
  void add(Work& work) noexcept;
  void remove(Work& work) noexcept;

  // Called when the member's function has returned: completes every work. After a failure, works at which not
  // all members have arrived are abandoned. Returns the first failure.
  Status drain(Status returned, const ErrorRecord& failure) noexcept;

 private:
  static constexpr int kLooks = 16;  // limit for the works that one advance() helps without completing them

  IntrusiveList<Work, WorkList> works_;
  Work* next_look_ = nullptr;  // where advance() continues; NULL: at the first
};

// A work as the wait graph sees it: a round that lacks the members that have not arrived at the work.
class WorkWaitPlace final : public WaitPlace {
 public:
  explicit WorkWaitPlace(const Work& work) noexcept : work_(work) {}
  int size() const noexcept override;
  int32_t number() const noexcept override;
  int local_rank(int rank) const noexcept override;
  Naming naming() const noexcept override;
  bool arrived(int rank, uint32_t round) const noexcept override;
  const Signature& signature(int rank, uint32_t round, int64_t* out_sequence) const noexcept override;
  bool claim() noexcept override;
  void post(const ErrorRecord& report) noexcept override;

 private:
  const Work& work_;
};

class Work : public Counted, private ListLink<WorkList> {
 public:
  // Advances the work and returns whether it has ended, successfully or not. Does not wait.
  bool ended() noexcept;
  // The result; if the work failed, fails with the report.
  Status result() noexcept;
  // Like ended(), and fails with the report if the work failed. It also detects that a peer can never arrive,
  // for members that only test and never wait.
  Status test(bool* out_ended) noexcept;
  // Cancels the group's rounds if the work has not ended.
  void cancel() noexcept;

  // Returns FAILED_PRECONDITION unless `here` (the works of the replica on this thread; NULL outside
  // replicas) is the list of this work's member. `call` is the function's name for messages.
  Status check_owner(const WorkList* here, const char* call) const noexcept;
  // Like check_owner(), but any thread may hold a work that is not under way.
  Status check_use(const WorkList* here, const char* call) const noexcept {
    return under_way() ? check_owner(here, call) : kOk;
  }
  // Releases the owner's reference after the work has ended, because peers may use its tensors until then;
  // the result is in the run's status. In a forked child no thread continues the work, and this does nothing.
  void close() noexcept;
  // Waits until the work has ended, and returns its result. If that takes longer than timeout_ns, returns
  // DEADLINE_EXCEEDED, and the work continues. 0 does not wait; a negative value waits without limit.
  // Meanwhile, the collective's own timeout limits how long peers may take to arrive, counted from the first
  // wait.
  Status wait(int64_t timeout_ns) noexcept;
  // Like wait(), but without a limit on this call, and with another timeout for the peers, which counts from
  // now; < 0: none.
  Status wait_for_peers(int64_t limit_ns) noexcept;
  // Waits until one of n works has ended; *out_index is that one. One that is not under way counts as ended.
  static Status wait_any(Work* const* works, std::size_t n, int64_t timeout_ns,
                         std::size_t* out_index) noexcept;

  // Planned work: announces that all tensors, or one, may be touched from now on.
  virtual Status start() = 0;
  virtual Status ready(std::size_t tensor) = 0;

  // Sets the object that can cancel the work whenever it is under way; NULL: none.
  void end_by(Cancel* cancel) noexcept { cancel_ = Ref<Cancel>::share(cancel); }

  Group& group() const noexcept { return group_; }
  int rank() const noexcept { return rank_; }
  int64_t timeout_ns() const noexcept { return timeout_ns_; }
  bool under_way() const noexcept { return linked(); }
  // Whether ended() would return true without doing any of the work.
  bool settled() const noexcept { return !under_way() || complete() || group_.aborted(); }

  // ---- For waiting threads ----

  virtual bool has_come(int rank) const noexcept = 0;
  // Called before sleeping. Ends the group's rounds if this work can never complete. `waited_ns` is how long
  // the caller has waited.
  virtual void check(int64_t waited_ns) noexcept = 0;
  virtual ErrorRecord report(Trouble trouble, int64_t waited_ns) const noexcept = 0;
  // The signature of its members, and its number.
  virtual const Signature& signature(int64_t* out_sequence) const noexcept = 0;
  // missing(): the first member that has not arrived, or -1. stuck(): whether it never will, because it has
  // left the run.
  int missing() const noexcept;
  bool stuck() const noexcept;
  // Whether the work is being exchanged with other workers and not all of their members have arrived.
  virtual bool crosses() const noexcept { return false; }
  // Whether it uses an operator of the host.
  virtual bool calls_host() const noexcept { return false; }
  // Whether it waits for other members to arrive.
  bool waits() const noexcept { return crosses() || missing() >= 0; }
  // Fails the group's rounds because this work has waited for too long.
  virtual void end_late(Trouble trouble, int64_t waited_ns) noexcept {
    group_.condemn(report(trouble, waited_ns));
  }
  WaitPlace& wait_place() noexcept { return wait_place_; }

 protected:
  Work(Memory& memory, Group& group, WorkList& list, int rank, int64_t timeout_ns) noexcept
      : Counted(memory), group_(group), owner_(list), rank_(rank), timeout_ns_(timeout_ns) {
    group.hold();
  }
  ~Work() override { group_.let_go(); }  // not called while it is under way

  // Advances the work; returns true if it is complete.
  virtual bool advance() noexcept = 0;
  // Called when the group is aborted. Afterwards no thread touches the member's tensors.
  virtual void give_up() noexcept = 0;
  virtual bool complete() const noexcept = 0;
  void begin() noexcept;
  // Called before the work begins. If the work has been cancelled already, ends the group's rounds and
  // returns their report.
  Status check_cancel() noexcept;
  // Records the beginning. `number` is equal on all members, and different for each work of the group.
  void record(Recorder* recorder, const Signature& signature, uint32_t number, uint32_t sequence,
              std::size_t bytes) noexcept;

  Group& group_;

 private:
  friend class WorkList;
  friend class IntrusiveList<Work, WorkList>;
  // How long peers may take to arrive; < 0: no limit.
  int64_t limit_ns() const noexcept {
    if (limit_of_wait_ns_ != 0) return limit_of_wait_ns_;
    return timeout_ns_ != 0 ? timeout_ns_ : group_.timeout_ns();
  }
  void end(dist_status code) noexcept;

  Recorder* recorder_ = nullptr;
  uint64_t recorded_ = 0;

  WorkList& owner_;  // lists it while it is under way
  const int rank_;
  const int64_t timeout_ns_;
  int64_t waiting_since_ns_ = 0;  // when its owner first waited for it, if it did
  bool was_waited_for_ = false;
  int64_t limit_of_wait_ns_ = 0;  // of wait_for_peers()
  WorkWaitPlace wait_place_{*this};
  Ref<Cancel> cancel_;
  GroupCancelLink cancel_link_{group_};
  dist_status code_ = DIST_OK;  // its latest result
  uint32_t ended_in_ = 0;       // the group's failures() when it ended
};

// Returns the report on a work of a group. signature_of(rank) is the signature of that member, or NULL if it
// has not arrived. A member that has not arrived and has left the run is reported as having left. Not inlined
// because it needs much stack.
template <class SignatureOf>
[[gnu::noinline, gnu::cold]] ErrorRecord report_on_works(const Group& group, int64_t sequence,
                                                         Trouble trouble, int64_t waited_ns,
                                                         SignatureOf&& signature_of) noexcept {
  const auto size = static_cast<std::size_t>(group.size());
  auto* const signatures = DIST_ON_STACK(const Signature*, size);
  auto* const failures = DIST_ON_STACK(const ErrorRecord*, size);
  for (std::size_t p = 0; p < size; ++p) {
    const int rank = static_cast<int>(p);
    failures[p] = nullptr;
    // Check this first: the member may arrive and then leave.
    const bool left = group.has_left(rank);
    signatures[p] = signature_of(rank);
    if (signatures[p] != nullptr || !left) continue;
    signatures[p] = &group.departed(rank, &failures[p]);
  }
  Evidence evidence;
  evidence.trouble = trouble;
  evidence.signatures = {signatures, size};
  evidence.failures = {failures, size};
  evidence.local_ranks = group.local_ranks();
  evidence.group = group.number();
  evidence.naming = group.naming();
  evidence.sequence = sequence;
  evidence.waited_ns = waited_ns;
  evidence.given_ns = group.deadline().given_ns;
  evidence.reason = group.cancel_reason();
  return diagnosis(evidence);
}

}  // namespace dist

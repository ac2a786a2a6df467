// SPDX-License-Identifier: Apache-2.0
// Work: a member's handle of an asynchronous or planned collective. Only that member's thread may use it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/async/host_work.hpp"
#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/comm/group.hpp"
#include "core/trace/recorder.hpp"

namespace dist {

// Ends a group's rounds when the cancel object asks for it. It is linked only while a run lasts.
class GroupCancelLink final : public Cancel::Link {
 public:
  explicit GroupCancelLink(Group& group) noexcept : group_(group) {}
  void cancelled(const char* reason) noexcept override { group_.cancel(reason); }

 private:
  Group& group_;
};

// A member's works that are under way, whose buffers are in use.
class WorkList {
 public:
  WorkList() noexcept = default;
  WorkList(const WorkList&) = delete;
  WorkList& operator=(const WorkList&) = delete;

  bool empty() const noexcept { return first_ == nullptr; }
  // Helps some of the works on, other ones at each call. Waits for nobody.
  void advance() noexcept;
  void add(Work& work) noexcept;
  void remove(Work& work) noexcept;

  // Called when the member's function has returned: brings every work to an end. After a failure, works to
  // which not all members have come are given up. Returns the first failure.
  Status drain(Status returned, const ErrorRecord& failure) noexcept;

 private:
  static constexpr int kLooks = 16;  // at most as many works that do not end are helped by one advance()

  Work* first_ = nullptr;
  Work* next_look_ = nullptr;  // advance() goes on here; NULL: from the first
};

// A work as the wait graph sees it: a round that misses the members that have not come to the work.
class WorkRendezvous final : public Rendezvous {
 public:
  explicit WorkRendezvous(const Work& work) noexcept : work_(work) {}
  int size() const noexcept override;
  int32_t number() const noexcept override;
  int seat(int rank) const noexcept override;
  Naming naming() const noexcept override;
  bool arrived(int rank, uint32_t round) const noexcept override;
  const Signature& signature(int rank, uint32_t round, int64_t* out_sequence) const noexcept override;
  bool claim() noexcept override;
  void post(const ErrorRecord& report) noexcept override;

 private:
  const Work& work_;
};

class Work : public HostWork {
 public:
  // Helps it on, and returns whether it has ended, well or not. Waits for nobody.
  bool ended() noexcept;
  // How it ended; with the report if it failed.
  Status result() noexcept;
  // As ended(), and fails with the report if it failed. It also finds out that a peer can never come, for
  // members that only test and never wait.
  Status test(bool* out_ended) noexcept override;
  // Ends the group's rounds if the work has not ended.
  void cancel() noexcept override;

  // FAILED_PRECONDITION unless `here`, the works of the replica that this thread is inside, are its member's; NULL:
  // it is inside none. `call` is the function's name in messages.
  Status check_owner(const WorkList* here, const char* call) const noexcept;
  // The same, but who holds what is not under way may be anybody.
  Status check_use(const WorkList* here, const char* call) const noexcept override {
    return under_way() ? check_owner(here, call) : kOk;
  }
  // Releases the owner's reference, after the end of what is under way: peers may use its tensors until then, and
  // how it ends is in the run's status. In a forked child nobody goes on with it, and this does nothing.
  void close() noexcept override;
  // It limits how long peers may take to come, as in Member.
  Status wait(int64_t timeout_ns) noexcept override;
  // All of them are collectives'.
  Status wait_any(HostWork* const* works, std::size_t n, int64_t timeout_ns,
                  std::size_t* out_index) noexcept override;
  Work* collective() noexcept override { return this; }

  // Planned work: all tensors, or one, may be touched from now on.
  virtual Status start() = 0;
  virtual Status ready(std::size_t tensor) = 0;

  // The object that can cancel it whenever it is under way; NULL: none.
  void end_by(Cancel* cancel) noexcept { cancel_ = Ref<Cancel>::share(cancel); }

  Group& group() const noexcept { return group_; }
  int rank() const noexcept { return rank_; }
  int64_t timeout_ns() const noexcept { return timeout_ns_; }
  bool under_way() const noexcept { return list_ != nullptr; }
  // Whether ended() would return true without doing any of the work.
  bool settled() const noexcept { return !under_way() || complete() || group_.poisoned(); }

  // ---- For those who wait ----

  virtual bool has_come(int rank) const noexcept = 0;
  // Called before sleeping: ends the group's rounds if this work can never complete. `waited_ns`: how long
  // the caller has waited.
  virtual void check(int64_t waited_ns) noexcept = 0;
  virtual ErrorRecord report(Trouble trouble, int64_t waited_ns) const noexcept = 0;
  // What its members came for, and its number.
  virtual const Signature& signature(int64_t* out_sequence) const noexcept = 0;
  // The first member that has not come, or -1; whether it never will, as it has left the run.
  int missing() const noexcept;
  bool stuck() const noexcept;
  // Whether it has left for other workers, and not all their members have come.
  virtual bool crosses() const noexcept { return false; }
  // Whether it waits for others to come.
  bool waits() const noexcept { return crosses() || missing() >= 0; }
  // Ends the group's rounds, since it has waited for too long.
  virtual void end_late(Trouble trouble, int64_t waited_ns) noexcept {
    group_.condemn(report(trouble, waited_ns));
  }
  Rendezvous& rendezvous() noexcept { return rendezvous_; }

 protected:
  Work(Memory& memory, Group& group, WorkList& list, int rank, int64_t timeout_ns) noexcept
      : HostWork(memory), group_(group), owner_(list), rank_(rank), timeout_ns_(timeout_ns) {
    group.hold();
  }
  ~Work() override { group_.let_go(); }  // not while it is under way

  // Helps the work on; true: it is complete.
  virtual bool advance() noexcept = 0;
  // Called when the group is poisoned. Afterwards nobody touches the member's tensors.
  virtual void give_up() noexcept = 0;
  virtual bool complete() const noexcept = 0;
  void begin() noexcept;
  // Called before it begins. If it has been cancelled already, ends the group's rounds and returns their
  // report.
  Status check_cancel() noexcept;
  // Records that it is under way. `number` is equal on all members, and different for each work of the group.
  void record(Recorder* recorder, const Signature& signature, uint32_t number, uint32_t sequence,
              std::size_t bytes) noexcept;

  Group& group_;

 private:
  friend class WorkList;
  void end(dist_status code) noexcept;

  Recorder* recorder_ = nullptr;
  uint64_t recorded_ = 0;

  WorkList& owner_;
  WorkList* list_ = nullptr;  // where it is while it is under way
  Work* next_ = nullptr;
  Work* previous_ = nullptr;
  const int rank_;
  const int64_t timeout_ns_;
  WorkRendezvous rendezvous_{*this};
  Ref<Cancel> cancel_;
  GroupCancelLink cancel_link_{group_};
  dist_status code_ = DIST_OK;  // how it ended last
  uint32_t ended_in_ = 0;       // the group's failures() when it ended
};

// The report on a work of a group. signature_of(rank) is what that member came for; NULL: it has not come. A
// member that has not come and has left the run counts as one that left. Not inlined, since it takes room on
// the stack.
template <class SignatureOf>
[[gnu::noinline, gnu::cold]] ErrorRecord report_on_works(const Group& group, int64_t sequence,
                                                         Trouble trouble, int64_t waited_ns,
                                                         SignatureOf&& signature_of) noexcept {
  const Signature* signatures[DIST_MAX_REPLICAS];
  const ErrorRecord* failures[DIST_MAX_REPLICAS];
  const auto size = static_cast<std::size_t>(group.size());
  for (std::size_t p = 0; p < size; ++p) {
    const int rank = static_cast<int>(p);
    failures[p] = nullptr;
    // This is asked before whether it has come, as it may come and then leave.
    const bool left = group.has_left(rank);
    signatures[p] = signature_of(rank);
    if (signatures[p] != nullptr || !left) continue;
    signatures[p] = &group.departed(rank, &failures[p]);
  }
  Evidence evidence;
  evidence.trouble = trouble;
  evidence.signatures = {signatures, size};
  evidence.failures = {failures, size};
  evidence.seats = group.seats();
  evidence.group = group.number();
  evidence.naming = group.naming();
  evidence.sequence = sequence;
  evidence.waited_ns = waited_ns;
  evidence.given_ns = group.deadline().given_ns;
  evidence.reason = group.cancel_reason();
  return verdict(evidence);
}

}  // namespace dist

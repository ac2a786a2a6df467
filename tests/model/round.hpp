// SPDX-License-Identifier: Apache-2.0
// The group's scenarios: members execute a program of collectives on the unmodified source of BasicGroup,
// with invariants that must hold in every interleaving.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "core/comm/group-inl.hpp"
#include "tests/model/model_sync.hpp"

namespace dist::model {

enum class Act {
  kBarrier,
  kExchange,  // every member writes to every member's output, like all_reduce
  kAlone,     // the same, done by the last member that arrives
  kShared,    // the same: the last member that arrives shares the work with all
  kOneWay,    // member 0's input to all outputs, like broadcast: only member 0 waits at the end
  kTickets,   // blocks, each for the first member that takes it
  kTravel,    // bytes that travel with the slots, like a small all_reduce: no member waits at the end
  kRefuse,    // an exchange that member 0 refuses for all
  kHasty,     // an exchange that does not wait at the end, which is a mistake
  kFail,      // no collective: the function returns an error
};

struct Step {
  Act act;
  const char* tag = nullptr;
};

struct Plan {
  std::vector<std::vector<Step>> programs;  // one per member, which leaves at the end
  bool oversubscribed = false;
  bool asymmetric = false;
  bool cancels = false;          // another thread calls cancel()
  bool condemns = false;         // another thread calls condemn(), as for a run past its deadline
  bool time_passes = false;      // at any moment, time advances beyond every timeout and deadline
  int64_t timeout_ns = -1;       // of a collective, if time passes
  int64_t deadline_ns = 0;       // of the run
  int runs = 1;                  // number of runs of these programs, one after another
  dist_status report = DIST_OK;  // expected from the programs without a disturbance, with its culprit
  int culprit = -1;
};

// Memory for everything that a run creates, at the same addresses in each run.
class Arena {
 public:
  Arena() : bytes_(new (std::align_val_t{kApart}) std::byte[kBytes]) {}
  ~Arena() { operator delete[](bytes_, std::align_val_t{kApart}); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  void reset() { used_ = 0; }
  void* take(std::size_t bytes, std::size_t align) {
    used_ = (used_ + align - 1) / align * align + bytes;
    if (used_ > kBytes) std::abort();
    return bytes_ + used_ - bytes;
  }
  Memory& memory() {
    dist_allocator allocator{};
    allocator.alloc = [](size_t bytes, size_t align, void* self) {
      return static_cast<Arena*>(self)->take(bytes, align);
    };
    allocator.free = [](void*, size_t, size_t, void*) {};
    allocator.user_data = this;
    return *Memory::create(allocator);
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{1} << 18;
  std::byte* bytes_;
  std::size_t used_ = 0;
};

template <class Sync>
class Round {
 public:
  explicit Round(const Plan& plan) : plan_(plan), size_(static_cast<int>(plan.programs.size())) {}

  Explorer::Scenario scenario() {
    return {[this](Explorer& explorer) { make(explorer); }, [this] { return fault(); }};
  }

 private:
  static constexpr int kMost = 3;    // members
  static constexpr int kBlocks = 2;  // kTickets
  static constexpr int64_t kLate = 100'000'000'000;
  struct Buffers {
    int in = 0;
    int out[kMost] = {};  // one element from each member
  };
  struct Outcome {
    dist_status code;
    uint64_t report;
  };
  struct PerMember {
    Buffers buffers;
    std::vector<Outcome> outcomes;  // of all runs
    std::vector<int> run_at;        // index in `outcomes` at which each run begins
  };

  void make(Explorer& explorer) {
    arena_.reset();
    Machine& machine = explorer.machine();
    machine.timed = plan_.time_passes;
    WaitPolicy policy;
    policy.oversubscribed = plan_.oversubscribed;
    policy.asymmetric = plan_.asymmetric;
    Host host;
    host.clock_fn = [](void*) { return Sync::now_ns(); };
    auto* place = arena_.take(sizeof(BasicGroup<Sync>), alignof(BasicGroup<Sync>));
    group_ = new (place) BasicGroup<Sync>(arena_.memory(), size_, policy, host, plan_.timeout_ns);
    joined_ = new (arena_.take(sizeof(Word), alignof(Word))) Word();
    group_->begin_run({plan_.deadline_ns, 0});
    if (!machine.has_names()) name_all(machine);
    for (int me = 0; me < size_; ++me) {
      per_member_[me].buffers = {};
      per_member_[me].outcomes.clear();
      per_member_[me].run_at.clear();
      explorer.add_fiber([this, me] { live(me); });
    }
    if (plan_.condemns) explorer.add_fiber([this] { condemn(); });
    if (plan_.cancels) explorer.add_fiber([this] { group_->cancel(); });
    if (plan_.time_passes)
      explorer.add_fiber([&machine, &explorer] {
        explorer.step(Kind::kTimePasses, nullptr, "");
        machine.pass_time(explorer.running(), kLate);
      });
  }

  // Runs a member's program, once per run.
  void live(int me) {
    for (int run = 0; run < plan_.runs; ++run) {
      per_member_[me].run_at.push_back(static_cast<int>(per_member_[me].outcomes.size()));
      Status status;
      for (const Step& step : plan_.programs[static_cast<std::size_t>(me)]) {
        status = perform(me, step);
        keep(me, status);
        if (!status.ok()) break;
      }
      group_->leave(me, status, last_error());
      if (run + 1 < plan_.runs) next_run(me, run);
    }
  }

  // The last member that leaves begins the next run, as the caller of dist_run() does when all have finished.
  void next_run(int me, int run) {
    const auto all = static_cast<uint32_t>(size_);
    if (joined_->sleepers.fetch_add(1, std::memory_order_acq_rel) + 1 ==
        all * static_cast<uint32_t>(run + 1)) {
      group_->begin_run({plan_.deadline_ns, 0});
      joined_->value.store(static_cast<uint32_t>(run + 1), std::memory_order_release);
    }
    while (joined_->value.load(std::memory_order_acquire) != static_cast<uint32_t>(run + 1)) Sync::yield();
    Explorer::current().machine().keeps(me, mixed(state_of(me), static_cast<uint64_t>(run)));
  }

  // From here on, the member's behaviour depends only on what its collectives returned.
  void keep(int me, Status status) {
    const uint64_t report = status.ok() ? 0 : Sync::hash_of(last_error());
    per_member_[me].outcomes.push_back({status.code(), report});
    if (!status.ok()) free_buffers(me);
    Explorer::current().machine().keeps(me, state_of(me));
  }
  uint64_t state_of(int me) const {
    uint64_t state = static_cast<uint64_t>(me) + 1;
    for (const Outcome& outcome : per_member_[me].outcomes) {
      state = mixed(mixed(state, static_cast<uint64_t>(outcome.code) + 1), outcome.report);
    }
    return state;
  }

  void free_buffers(int me) {
    Buffers& own = per_member_[me].buffers;
    Sync::writing(own.in);
    for (int peer = 0; peer < size_; ++peer) Sync::writing(own.out[peer]);
  }

  Status perform(int me, const Step& step) {
    if (step.act == Act::kFail) return fail(DIST_UNKNOWN, "member %d fails", me);
    DIST_TRY(group_->open());
    Signature& signature = group_->draft(me);
    signature.collective = step.act == Act::kBarrier  ? Collective::kBarrier
                           : step.act == Act::kOneWay ? Collective::kBroadcast
                                                      : Collective::kAllReduce;
    close_digest(signature, step.tag);
    if (step.act == Act::kBarrier) return group_->arrive(me, 0);
    if (step.act == Act::kTravel) return travel(me);

    Buffers& own = per_member_[me].buffers;
    free_buffers(me);
    own.in = 10 * me + static_cast<int>(per_member_[me].outcomes.size()) + 1;
    std::memset(own.out, 0, sizeof own.out);
    group_->outgoing(me).extra = &own;
    const bool by_last = step.act == Act::kAlone || step.act == Act::kShared;
    DIST_TRY(by_last ? alone(me, step.act == Act::kShared) : together(me, step.act));
    free_buffers(me);
    return step.act == Act::kHasty ? kOk : check(me, step.act);
  }

  Status travel(int me) {
    // Uses the memory next to the slots, which an oversubscribed group does not have.
    const std::size_t size = plan_.oversubscribed ? sizeof(int) : EagerPayload::kBytes;
    const auto sent = [&](int member) {
      return 10 * member + static_cast<int>(per_member_[me].outcomes.size()) + 1;
    };
    const int mine = sent(me);
    std::memcpy(group_->outgoing_bytes(me, size), &mine, sizeof mine);
    DIST_TRY(group_->arrive(me, 0));
    for (int from = 0; from < size_; ++from) {
      int got;
      std::memcpy(&got, group_->bytes(me, from, size), sizeof got);
      if (got != sent(from))
        Explorer::current().fault("member " + std::to_string(me) + " read other bytes than member " +
                                  std::to_string(from) + " sent");
    }
    return kOk;
  }

  Status alone(int me, bool leaves_it) {
    bool shares = false;
    const auto work = [&](bool* out_shares) -> const ErrorRecord* {
      *out_shares = leaves_it;
      for (int from = 0; from < size_ && !leaves_it; ++from) give(me, from, true);
      return nullptr;
    };
    DIST_TRY(group_->arrive_and_work_alone(me, 0, work, &shares));
    if (shares != leaves_it) Explorer::current().fault("the last one's word has not come");
    if (!shares) return kOk;
    if (group_->enter(me)) give(me, me, true);
    return group_->finish(me);
  }

  Status together(int me, Act act) {
    if (act == Act::kTickets) group_->arm_tickets(me);
    DIST_TRY(group_->arrive(me, 0));
    if (!group_->enter(me)) return group_->finish(me);
    if (act == Act::kOneWay) {
      copy(me, 0, me);
      // No other member writes to this member's output.
      if (me == 0 || group_->aborted()) return group_->finish(me);
      group_->finish_without_waiting(me);
      return kOk;
    }
    if (act == Act::kRefuse && me == 0) {
      ErrorRecord why;
      why.code = DIST_INVALID_ARGUMENT;
      why.culprit = {GlobalReplica{0}};
      return group_->refuse(me, why);
    }
    if (act == Act::kTickets) {
      for (std::size_t block; (block = group_->take_ticket(me, 0)) < kBlocks && !group_->aborted();) {
        for (int from = static_cast<int>(block); from < size_; from += kBlocks) give(me, from, false);
      }
    } else {
      give(me, me, true);
    }
    if (act != Act::kHasty) return group_->finish(me);
    group_->finish_without_waiting(me);
    return kOk;
  }

  // `by` writes the input of `from` to all outputs. With `looks`, it checks the abort state in between.
  void give(int by, int from, bool looks) {
    for (int to = 0; to < size_; ++to) {
      copy(by, from, to);
      if (looks && to == 0 && group_->aborted()) return;
    }
  }
  void copy(int by, int from, int to) {
    auto& source = *static_cast<Buffers*>(const_cast<void*>(group_->slot(by, from).extra));
    auto& target = *static_cast<Buffers*>(const_cast<void*>(group_->slot(by, to).extra));
    Sync::reading(source.in);
    Sync::writing(target.out[from]);
    target.out[from] = source.in;
  }

  Status check(int me, Act act) {
    const int nth = static_cast<int>(per_member_[me].outcomes.size());
    for (int from = 0; from < (act == Act::kOneWay ? 1 : size_); ++from) {
      if (per_member_[me].buffers.out[from] == 10 * from + nth + 1) continue;
      Explorer::current().fault("member " + std::to_string(me) + " returned OK without member " +
                                std::to_string(from) + "'s data");
    }
    return kOk;
  }

  void condemn() {
    ErrorRecord late;
    late.code = DIST_DEADLINE_EXCEEDED;
    group_->condemn(late);
  }

  // ---- After all have left ----

  std::string fault() const {
    for (int run = 0; run < plan_.runs; ++run) {
      std::string fault = fault_of_run(run);
      if (!fault.empty()) return "run " + std::to_string(run) + ": " + fault;
    }
    return {};
  }

  struct Outcomes {
    const Outcome* first;
    std::size_t count;
    bool failed() const { return count != 0 && first[count - 1].code != DIST_OK; }
  };
  Outcomes outcomes(int me, int run) const {
    const PerMember& member = per_member_[me];
    const auto at = static_cast<std::size_t>(member.run_at[static_cast<std::size_t>(run)]);
    const bool last = run + 1 == plan_.runs;
    const auto end = last ? member.outcomes.size()
                          : static_cast<std::size_t>(member.run_at[static_cast<std::size_t>(run) + 1]);
    return {member.outcomes.data() + at, end - at};
  }

  bool failed_itself(int me, std::size_t nth) const {
    const auto& program = plan_.programs[static_cast<std::size_t>(me)];
    return nth < program.size() && program[nth].act == Act::kFail;
  }

  // Checks that all members got one report, that each OK collective was reached by all members, and that a
  // failure has a cause.
  std::string fault_of_run(int run) const {
    const Outcome* report = nullptr;
    for (int me = 0; me < size_; ++me) {
      const Outcomes mine = outcomes(me, run);
      for (std::size_t nth = 0; nth < mine.count; ++nth) {
        const Outcome& outcome = mine.first[nth];
        if (outcome.code == DIST_OK) {
          for (int peer = 0; peer < size_; ++peer) {
            if (outcomes(peer, run).count <= nth)
              return "member " + std::to_string(me) + " returned OK from collective " + std::to_string(nth) +
                     ", to which member " + std::to_string(peer) + " never came";
          }
          continue;
        }
        if (failed_itself(me, nth)) continue;
        if (report == nullptr) report = &outcome;
        if (report->report != outcome.report) return "the members got different reports";
      }
    }
    return judge(report, run);
  }

  std::string judge(const Outcome* report, int run) const {
    const bool disturbed = plan_.cancels || plan_.condemns || plan_.time_passes;
    if (report == nullptr) {
      return plan_.report != DIST_OK && !disturbed ? "nobody was told of the mistake" : "";
    }
    if (plan_.report == DIST_OK && !disturbed) return "a report without a cause";
    const bool last = run + 1 == plan_.runs;
    const ErrorRecord* kept = last ? group_->report() : nullptr;
    if (last && (kept == nullptr || Sync::hash_of(*kept) != report->report)) return "the report was not kept";
    if (kept != nullptr && !disturbed &&
        (kept->code != plan_.report || number(kept->culprit.replica) != plan_.culprit))
      return "the report blames replica " + std::to_string(number(kept->culprit.replica)) + " (" +
             status_name(kept->code) + ")";
    return {};
  }

  // Sets the names for schedules, in the order in which the group creates its atomics. If their number has
  // changed, schedules show numbers.
  void name_all(Machine& machine) {
    std::vector<std::string> names = {"time",
                                      "abort state",
                                      "run",
                                      "come",
                                      "out",
                                      "digest 0",
                                      "digest 1",
                                      "released",
                                      "released.sleepers",
                                      "all out",
                                      "all out.sleepers",
                                      "asleep",
                                      "progress",
                                      "progress.sleepers",
                                      "holders",
                                      "watched",
                                      "reason"};
    for (int me = 0; me < size_; ++me) {
      const std::string who = "member " + std::to_string(me) + "'s ";
      for (const char* text :
           {"slot 0", "slot 0.sleepers", "slot 0.cpu", "slot 1", "slot 1.sleepers", "slot 1.cpu", "ticket 0",
            "ticket 1", "done", "done.sleepers", "entered", "left"}) {
        names.push_back(who + text);
      }
      machine.name(&per_member_[me].buffers.in, who + "input");
      for (int peer = 0; peer < kMost; ++peer)
        machine.name(&per_member_[me].buffers.out[peer], who + "output");
    }
    names.push_back("next run");
    names.push_back("next run's members");
    if (machine.cells() != static_cast<int>(names.size())) return;
    for (int cell = 0; cell < machine.cells(); ++cell)
      machine.name_cell(cell, names[static_cast<std::size_t>(cell)]);
  }

  using Word = BasicWord<Sync>;
  const Plan plan_;
  const int size_;
  Arena arena_;
  BasicGroup<Sync>* group_ = nullptr;
  Word* joined_ = nullptr;  // between runs: value is the next run, sleepers counts the members that have left
  PerMember per_member_[kMost];
};

}  // namespace dist::model

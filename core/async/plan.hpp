// SPDX-License-Identifier: Apache-2.0
// Planned collectives are validated, compared and copied once, and can then be started any number of times.
//
// Creating a plan is itself a collective. Afterwards a round costs each member one comparison (has a run
// failed since?) and one atomic addition for each pack, without allocation, lock or signature. A list of
// tensors is divided into packs of about the size that the caller asked for. A pack starts as soon as all
// members have announced that its tensors are ready, so one pack can be exchanged while the next one is being
// computed.
//
// Invariant: plans made before a failed run are unusable, because the members may have stopped at different
// rounds. With several workers this holds no matter on which worker the run has failed: before its first
// round in a run, a member waits until the other workers have reported how the previous run ended, and later
// rounds check that this is known.
//
// If the group has members on other workers, each pack has its own stream to them (crossings.hpp), so that
// workers may start packs and plans in different orders.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <vector>

#include "core/async/channel.hpp"
#include "core/async/crossings.hpp"
#include "core/async/kept_call.hpp"
#include "core/async/pack.hpp"
#include "core/async/work.hpp"
#include "core/base/arena.hpp"
#include "core/collective/collectives.hpp"
#include "core/collective/exchange.hpp"
#include "core/collective/worker_crossing.hpp"

namespace dist {

struct Plan;

// One member's side of a plan.
struct PlanSide final : Counted {
  PlanSide(Memory& memory, std::size_t packs) : Counted(memory), calls(&memory), descriptors(&memory) {
    calls.reserve(packs);
    descriptors.reserve(packs);
  }
  std::pmr::vector<KeptCall> calls;  // by pack
  std::pmr::vector<CallDescriptor> descriptors;
  Plan* plan = nullptr;                            // of rank 0's side: set while the plan is being created
  alignas(kApart) std::atomic<uint32_t> round{0};  // the latest round for which all tensors are ready
};

// A pack that is being exchanged with other workers.
class PlanCrossing final : public Crossings::Item {
 public:
  PlanCrossing(Memory& memory, Crossings& home, WorkerCommunicator& communicator, Group& group, Plan& plan,
               std::size_t part, const WorkerCrossing::Options& options)
      : Item(group), home_(home), plan_(plan), part_(part), crossing_(memory, communicator, group, options) {}
  ~PlanCrossing() override { home_.end(*this); }

  void begin(uint32_t round) noexcept;
  // Whether it has not ended.
  bool under_way() const noexcept { return under_way_.load(std::memory_order_acquire); }
  void advance() noexcept { home_.advance(); }
  void let_go() noexcept { home_.stop(group()); }
  void fail(Trouble trouble, int64_t waited_ns) noexcept;

  bool go_on() noexcept override;
  void stop() noexcept override;

 private:
  void end() noexcept { under_way_.store(false, std::memory_order_release); }

  Crossings& home_;
  Plan& plan_;
  const std::size_t part_;
  WorkerCrossing crossing_;
  uint32_t round_ = 0;
  std::atomic<bool> under_way_{false};
};

// The state that all members share.
struct Plan final : Counted {
  struct Part {
    Pack pack;
    std::optional<Exchange> exchange;
    std::size_t end = 0;                   // one past its last tensor
    std::optional<PlanCrossing> crossing;  // set if there are other workers
  };

  // The `num_parts` parts follow the object in memory.
  Plan(Memory& memory, std::size_t num_parts, Group& group, Arena* helpers);
  ~Plan() override;

  // begin() is called when all members of this worker have arrived at a round of a part. open() starts the
  // work of the round. With other workers, open() is called later, when everything that the members bring has
  // arrived.
  void begin(std::size_t part, uint32_t round, int rank) noexcept;
  void open(std::size_t part, uint32_t round, int rank, const Exchange& exchange) noexcept;
  void help(std::size_t part, int rank) noexcept;
  bool complete(uint32_t round) const noexcept;

  Group& group;
  Arena* const helpers;
  std::pmr::vector<Ref<PlanSide>> sides;                // by rank
  std::pmr::vector<const CallDescriptor*> descriptors;  // by part, then by rank
  Part* parts = nullptr;
  const std::size_t num_parts;
  Signature signature;
  int64_t sequence = 0;  // number of the round that created it

 private:
  static void run_task(void* plan, uint32_t part) noexcept;
  void submit(std::size_t part) noexcept;
};

class PlannedWork final : public Work {
 public:
  // Creates a plan. This is a collective call of all members.
  static Status create(Memory& memory, const Member& member, Call& call, WorkList& list,
                       const ChannelHome& home, int64_t bytes_per_pack, Ref<Work>* out);

  PlannedWork(Memory& memory, const Member& member, WorkList& list, std::size_t num_tensors,
              std::size_t num_parts);

  Status start() override;
  Status ready(std::size_t tensor) override;
  bool has_come(int rank) const noexcept override;
  void check(int64_t waited_ns) noexcept override;
  ErrorRecord report(Trouble trouble, int64_t waited_ns) const noexcept override;
  const Signature& signature(int64_t* out_sequence) const noexcept override {
    *out_sequence = plan_->sequence;
    return plan_->signature;
  }

  bool crosses() const noexcept override;
  bool calls_host() const noexcept override { return plan_->sides[0]->calls[0].call().group != nullptr; }
  void end_late(Trouble trouble, int64_t waited_ns) noexcept override;

 private:
  bool advance() noexcept override;
  void give_up() noexcept override;
  bool complete() const noexcept override { return plan_->complete(round_); }

  Status meet(const Member& member, PlanSide& side, const Ref<Plan>& made) noexcept;
  static Status put_together(const Member& member, Plan& plan) noexcept;
  Status begin_round() noexcept;
  void arrive(std::size_t part) noexcept;
  // The first part that is being exchanged with other workers; NULL: none.
  PlanCrossing* crossing() const noexcept;
  std::size_t first_of(std::size_t part) const noexcept { return part == 0 ? 0 : plan_->parts[part - 1].end; }
  std::size_t part_of(std::size_t tensor) const noexcept;

  Ref<Plan> plan_;
  Recorder* const caller_recorder_;
  std::size_t bytes_ = 0;
  const uint32_t failures_;                 // the group's failures() when the plan was made
  WorkerCommunicator* const communicator_;  // with the other workers; NULL: none
  uint64_t failed_runs_ = 0;                // on all workers, before the run in which it was created
  uint32_t round_ = 0;
  std::size_t parts_to_come_ = 0;            // number of parts that are not ready in this round
  std::pmr::vector<unsigned char> ready_;    // by tensor: whether it is ready in this round
  std::pmr::vector<std::size_t> not_ready_;  // by part: number of tensors that are not ready in this round
};

}  // namespace dist

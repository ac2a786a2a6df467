// SPDX-License-Identifier: Apache-2.0
#include "core/async/plan.hpp"

#include <algorithm>
#include <new>

#include "core/collective/worker_collective.hpp"

namespace dist {
namespace {

std::size_t bytes_of(const Call& call, std::size_t t) noexcept {
  const dist_tensor& tensor = call.in != nullptr ? call.in[t] : call.out[t];
  return elements_of(tensor) * dtype_size(tensor.dtype);
}

// The end of the pack that begins with tensor `first`. All members get the same result, because their sizes
// are equal.
std::size_t end_of_pack(const Call& call, std::size_t first, int64_t bytes_per_pack) noexcept {
  if (bytes_per_pack <= 0 || !call.sized_alike()) return call.n;
  std::size_t bytes = 0;
  std::size_t t = first;
  while (t < call.n && bytes < static_cast<std::size_t>(bytes_per_pack)) bytes += bytes_of(call, t++);
  return t;
}

std::size_t count_packs(const Call& call, int64_t bytes_per_pack) noexcept {
  std::size_t packs = 0;
  std::size_t first = 0;
  do {
    first = end_of_pack(call, first, bytes_per_pack);
    ++packs;
  } while (first < call.n);
  return packs;
}

// Copies one pack of a call: tensors [first, end) of each list.
void keep_pack(PlanSide& side, const Call& call, std::size_t first, std::size_t end, int members) {
  std::pmr::vector<dist_tensor> in(&side.memory());
  Call pack = call;
  pack.n = end - first;
  if (call.in != nullptr) {
    in.reserve(pack.n * call.lists());
    for (std::size_t j = 0; j < call.lists(); ++j) {
      in.insert(in.end(), call.in + j * call.n + first, call.in + j * call.n + end);
    }
    pack.in = in.data();
  }
  if (call.out != nullptr) pack.out = call.out + first;
  side.calls.emplace_back(side.memory());
  side.calls.back().keep(pack, members);
  side.calls.back().call().describe_in(side.descriptors.emplace_back());
}

// Agrees with the other workers on the streams that the parts of the plan use. `plan` is NULL except on
// rank 0, which creates it.
Status make_crossings(Memory& memory, const Member& member, const Signature& signature,
                      const ChannelHome& home, Plan* plan) {
  WorkerCommunicator& communicator = *member.communicator;
  uint64_t first = plan != nullptr ? communicator.next_stream() : 0;
  DIST_TRY(agree_on_most(member, communicator, signature, &first));
  if (plan == nullptr) return kOk;
  const WorkerCrossing::Options options{
      .stream = 0,
      .most_bytes = std::max<std::size_t>(communicator.own_staging_bytes() / plan->num_parts, 1),
      .cache_bytes = home.cache_bytes};
  DIST_TRY(communicator.take_streams(first, plan->num_parts));
  for (std::size_t k = 0; k < plan->num_parts; ++k) {
    WorkerCrossing::Options own = options;
    own.stream = static_cast<uint32_t>(first + k);
    plan->parts[k].crossing.emplace(memory, *home.crossings, communicator, plan->group, *plan, k, own);
  }
  return kOk;
}

}  // namespace

Plan::Plan(Memory& memory, std::size_t num, Group& members, Arena* arena)
    : Counted(memory), group(members), helpers(arena), sides(&memory), descriptors(&memory), num_parts(num) {
  const auto size = static_cast<std::size_t>(group.size());
  group.watch_departures();
  sides.resize(size);
  descriptors.resize(num * size);
  parts = static_cast<Part*>(memory.allocate(num * sizeof(Part), alignof(Part)));
  for (std::size_t k = 0; k < num; ++k) new (&parts[k]) Part();
}

Plan::~Plan() {
  for (std::size_t k = 0; k < num_parts; ++k) parts[k].~Part();
  memory().free(parts, num_parts * sizeof(Part), alignof(Part));
}

void Plan::begin(std::size_t part, uint32_t round, int rank) noexcept {
  if (parts[part].crossing) return parts[part].crossing->begin(round);
  open(part, round, rank, *parts[part].exchange);
}

void Plan::open(std::size_t part, uint32_t round, int rank, const Exchange& exchange) noexcept {
  parts[part].pack.open(round, static_cast<uint32_t>(group.size()), group.stripes(), exchange);
  // Wakes waiting members, so that they take part.
  group.progress().advance();
  if (exchange.bytes() <= Pack::kAtOnceBytes) {
    help(part, rank);
  } else if (helpers != nullptr) {
    submit(part);
  }
}

void Plan::help(std::size_t part, int rank) noexcept {
  parts[part].pack.help(static_cast<uint32_t>(rank), [&] { group.progress().advance(); });
}

bool Plan::complete(uint32_t round) const noexcept {
  return std::all_of(parts, parts + num_parts, [&](const Part& part) { return part.pack.complete(round); });
}

// Each task holds a reference to the plan, because the plan might otherwise be destroyed before oneTBB starts
// the task. If oneTBB accepts no tasks, the members do the work.
void Plan::submit(std::size_t part) noexcept {
  for (int i = 0; i < group.stripes(); ++i) {
    retain();
    if (helpers->submit(run_task, this, static_cast<uint32_t>(part), 1).ok()) continue;
    release();
    return;
  }
}

void Plan::run_task(void* plan, uint32_t part) noexcept {
  auto* shared = static_cast<Plan*>(plan);
  shared->help(part, static_cast<int>(part));
  shared->release();
}

void PlanCrossing::begin(uint32_t round) noexcept {
  home_.begin(*this, [&] {
    round_ = round;
    under_way_.store(true, std::memory_order_release);
    for (int p = 0; p < group().size(); ++p) {
      const PlanSide& side = *plan_.sides[static_cast<std::size_t>(p)];
      crossing_.side(p) = {&side.calls[part_].call(), &side.descriptors[part_]};
    }
    crossing_.begin(round, plan_.signature);
  });
}

bool PlanCrossing::go_on() noexcept {
  if (!under_way()) return false;
  const WorkerCrossing::State state = crossing_.advance();
  if (state == WorkerCrossing::State::kUnderWay) return true;
  Pack& pack = plan_.parts[part_].pack;
  const auto members = static_cast<uint32_t>(group().size());
  end();
  if (state == WorkerCrossing::State::kHere) {
    plan_.open(part_, round_, 0, crossing_.exchange());
  } else if (state == WorkerCrossing::State::kDone) {
    pack.open_done(round_, members);
    group().progress().advance();
  } else {
    pack.abandon(round_, members);
  }
  return false;
}

void PlanCrossing::stop() noexcept {
  if (!under_way()) return;
  crossing_.stop();
  end();
  plan_.parts[part_].pack.abandon(round_, static_cast<uint32_t>(group().size()));
}

void PlanCrossing::fail(Trouble trouble, int64_t waited_ns) noexcept {
  home_.with_lock([&] {
    if (under_way()) crossing_.fail(trouble, waited_ns);
  });
}

PlannedWork::PlannedWork(Memory& memory, const Member& member, WorkList& list, std::size_t num_tensors,
                         std::size_t num_parts)
    : Work(memory, member.group, list, member.me, member.timeout_ns),
      caller_recorder_(member.recorder),
      failures_(member.group.failures()),
      communicator_(member.communicator),
      ready_(num_tensors, 0, &memory),
      not_ready_(num_parts, 0, &memory) {}

Status PlannedWork::create(Memory& memory, const Member& member, Call& call, WorkList& list,
                           const ChannelHome& home, int64_t bytes_per_pack, Ref<Work>* out) {
  Group& group = member.group;
  WorkerCommunicator* const communicator = member.communicator;
  const int members = member.num_global();
  DIST_TRY(group.open());
  Signature& signature = group.draft(member.me);
  signature.asynchronous = 2;
  DIST_TRY(call.check(communicator != nullptr ? communicator->first() + member.me : member.me, members,
                      signature));
  signature.digest = mix(signature.digest, static_cast<uint64_t>(bytes_per_pack));
  close_digest(signature, member.tag);

  const std::size_t packs = count_packs(call, bytes_per_pack);
  auto side = make_counted<PlanSide>(memory, packs);
  Ref<Plan> plan;
  if (member.me == 0) {
    plan = make_counted<Plan>(memory, packs, group, home.helpers);
    plan->signature = signature;
    plan->sequence = group.sequence(0) + 1;
    side->plan = plan.get();
  }
  for (std::size_t k = 0, first = 0; k < packs; ++k) {
    const std::size_t end = end_of_pack(call, first, bytes_per_pack);
    if (plan) plan->parts[k].end = end;
    keep_pack(*side, call, first, end, members);
    first = end;
  }
  auto work = make_counted<PlannedWork>(memory, member, list, call.n, packs);
  work->bytes_ = call.bytes;
  if (communicator != nullptr) {
    DIST_TRY(communicator->hear_of_run_before(group, &work->failed_runs_));
    const Signature stated = signature;
    DIST_TRY(make_crossings(memory, member, stated, home, plan.get()));
    group.draft(member.me) = stated;
  }
  DIST_TRY(work->meet(member, *side, plan));
  *out = Ref<Work>::adopt(work.take());
  return kOk;
}

// Meets when all members have created their sides. Rank 0 combines the sides while the others wait in the
// round.
Status PlannedWork::meet(const Member& member, PlanSide& side, const Ref<Plan>& made) noexcept {
  Group& group = member.group;
  group.outgoing(member.me).extra = &side;
  DIST_TRY(group.arrive(member.me, member.timeout_ns));
  if (!group.enter(member.me)) return group.finish(member.me);
  const auto side_of = [&](int rank) {
    return static_cast<PlanSide*>(const_cast<void*>(group.slot(member.me, rank).extra));
  };
  plan_ = Ref<Plan>::share(side_of(0)->plan);
  if (made) {
    for (int r = 0; r < group.size(); ++r)
      made->sides[static_cast<std::size_t>(r)] = Ref<PlanSide>::share(side_of(r));
    // With several workers, the members' data are compared in each round, when they have arrived here.
    if (member.communicator == nullptr && !put_together(member, *made).ok()) return group.failure();
  }
  return group.finish(member.me);
}

Status PlannedWork::put_together(const Member& member, Plan& plan) noexcept {
  Group& group = member.group;
  const auto size = static_cast<std::size_t>(group.size());
  for (std::size_t k = 0; k < plan.num_parts; ++k) {
    for (std::size_t r = 0; r < size; ++r) plan.descriptors[k * size + r] = &plan.sides[r]->descriptors[k];
    const Call& call = plan.sides[0]->calls[k].call();
    plan.parts[k].exchange.emplace(call, group.size(), &plan.descriptors[k * size], member.cache_bytes);
    const int rank = plan.parts[k].exchange->first_refusing(group);
    if (rank < 0) continue;
    ErrorRecord why;
    plan.parts[k].exchange->refuses(group, rank, &why);
    return group.refuse(member.me,
                        refusal(group, call.collective, member.tag, group.sequence(member.me), why));
  }
  return kOk;
}

Status PlannedWork::begin_round() noexcept {
  if (group_.aborted()) return group_.failure();
  uint64_t failed_runs = failed_runs_;
  if (communicator_ != nullptr) DIST_TRY(communicator_->hear_of_run_before(group_, &failed_runs));
  if (failures_ != group_.failures() || failed_runs != failed_runs_) {
    return failed_precondition("a run has failed since this work was planned. Plan it again.");
  }
  DIST_TRY(check_cancel());
  ++round_;
  parts_to_come_ = plan_->num_parts;
  std::fill(ready_.begin(), ready_.end(), 0);
  for (std::size_t k = 0; k < plan_->num_parts; ++k) not_ready_[k] = plan_->parts[k].end - first_of(k);
  begin();
  // All members have the same address for the plan, and no other plan has it.
  const uint64_t number = mix(reinterpret_cast<uintptr_t>(plan_.get()), round_);
  record(caller_recorder_, plan_->signature, static_cast<uint32_t>(number >> 32), round_, bytes_);
  return kOk;
}

Status PlannedWork::start() {
  if (!under_way()) {
    DIST_TRY(begin_round());
  } else if (parts_to_come_ == 0) {
    return failed_precondition("`dist_work_start()`: this work has already started. Wait for it first.");
  }
  // Announces the remaining tensors: those of parts that dist_work_ready() has not completed in this round.
  for (std::size_t k = 0; k < plan_->num_parts; ++k) {
    if (not_ready_[k] != 0 || plan_->parts[k].end == first_of(k)) arrive(k);
  }
  return kOk;
}

std::size_t PlannedWork::part_of(std::size_t tensor) const noexcept {
  const Plan::Part* const first = plan_->parts;
  const Plan::Part* const end = first + plan_->num_parts;
  const auto after = [](std::size_t t, const Plan::Part& part) { return t < part.end; };
  return static_cast<std::size_t>(std::upper_bound(first, end, tensor, after) - first);
}

Status PlannedWork::ready(std::size_t tensor) {
  if (tensor >= ready_.size()) {
    return invalid_argument("`dist_work_ready()`: `tensor` is %zu, but the plan has %zu tensors", tensor,
                            ready_.size());
  }
  if (!under_way()) DIST_TRY(begin_round());
  const std::size_t part = part_of(tensor);
  // The tensor may be ready because of an earlier dist_work_ready(), or because of dist_work_start(), which
  // covers all remaining tensors.
  if (ready_[tensor] != 0 || not_ready_[part] == 0) {
    return failed_precondition("`dist_work_ready()`: tensor %zu is already ready in this round", tensor);
  }
  ready_[tensor] = 1;
  if (--not_ready_[part] == 0) arrive(part);
  return kOk;
}

// Called when all tensors of the part are ready on this member.
void PlannedWork::arrive(std::size_t k) noexcept {
  Plan::Part& part = plan_->parts[k];
  not_ready_[k] = 0;
  const auto members = static_cast<uint32_t>(group_.size());
  if (--parts_to_come_ == 0) {
    // release: publishes this member's writes to threads that check whether it has arrived.
    plan_->sides[static_cast<std::size_t>(rank())]->round.store(round_, std::memory_order_release);
  }
  if (part.pack.arrive(members)) plan_->begin(k, round_, rank());
}

bool PlannedWork::advance() noexcept {
  if (PlanCrossing* const part = crossing()) part->advance();
  for (std::size_t k = 0; k < plan_->num_parts; ++k) {
    if (!plan_->parts[k].pack.complete(round_)) plan_->help(k, rank());
  }
  return complete();
}

void PlannedWork::give_up() noexcept {
  if (PlanCrossing* const part = crossing()) part->let_go();
  for (std::size_t k = 0; k < plan_->num_parts; ++k) {
    plan_->parts[k].pack.close(round_, static_cast<uint32_t>(group_.size()));
  }
}

PlanCrossing* PlannedWork::crossing() const noexcept {
  for (std::size_t k = 0; k < plan_->num_parts; ++k) {
    std::optional<PlanCrossing>& part = plan_->parts[k].crossing;
    if (part && part->under_way()) return &*part;
  }
  return nullptr;
}

bool PlannedWork::crosses() const noexcept { return crossing() != nullptr; }

void PlannedWork::end_late(Trouble trouble, int64_t waited_ns) noexcept {
  // A missing member of this worker takes precedence over those of other workers.
  PlanCrossing* const part = missing() >= 0 ? nullptr : crossing();
  part != nullptr ? part->fail(trouble, waited_ns) : Work::end_late(trouble, waited_ns);
}

bool PlannedWork::has_come(int rank) const noexcept {
  const uint32_t round = plan_->sides[static_cast<std::size_t>(rank)]->round.load(std::memory_order_acquire);
  return static_cast<int32_t>(round - round_) >= 0;
}

void PlannedWork::check(int64_t waited_ns) noexcept {
  if (stuck() && !complete()) group_.condemn(report(Trouble::kDisagreement, waited_ns));
}

ErrorRecord PlannedWork::report(Trouble trouble, int64_t waited_ns) const noexcept {
  return report_on_works(group_, plan_->sequence, trouble, waited_ns, [&](int rank) -> const Signature* {
    return has_come(rank) ? &plan_->signature : nullptr;
  });
}

}  // namespace dist

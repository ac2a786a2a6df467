// SPDX-License-Identifier: Apache-2.0
#include "core/async/plan.hpp"

#include <algorithm>
#include <new>

namespace dist {
namespace {

std::size_t bytes_of(const Call& call, std::size_t t) noexcept {
  const dist_tensor& tensor = call.in != nullptr ? call.in[t] : call.out[t];
  return elements_of(tensor) * dtype_size(tensor.dtype);
}

// One past the last tensor of the pack that begins with `first`. All members get the same, as sizes are
// equal.
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

// Keeps one pack of the member's call: tensors [first, end) of each of its lists.
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
  side.calls.back().call().offer_in(side.offers.emplace_back());
}

}  // namespace

Plan::Plan(Memory& memory, std::size_t num, Group& group, Arena* arena)
    : Counted(memory),
      helpers(arena),
      progress(&group.progress()),
      sides(&memory),
      offers(&memory),
      num_parts(num) {
  const auto size = static_cast<std::size_t>(group.size());
  group.watch_departures();
  sides.resize(size);
  offers.resize(num * size);
  parts = static_cast<Part*>(memory.allocate(num * sizeof(Part), alignof(Part)));
  for (std::size_t k = 0; k < num; ++k) new (&parts[k]) Part();
}

Plan::~Plan() {
  for (std::size_t k = 0; k < num_parts; ++k) parts[k].~Part();
  memory().free(parts, num_parts * sizeof(Part), alignof(Part));
}

PlannedWork::PlannedWork(Memory& memory, const Member& member, WorkList& list, std::size_t num_tensors,
                         std::size_t num_parts)
    : Work(memory, member.group, list, member.me, member.timeout_ns),
      caller_recorder_(member.recorder),
      failures_(member.group.failures()),
      ready_(num_tensors, 0, &memory),
      not_ready_(num_parts, 0, &memory) {}

Status PlannedWork::create(Memory& memory, const Member& member, Call& call, WorkList& list, Arena* helpers,
                           int64_t bytes_per_pack, Ref<Work>* out) {
  Group& group = member.group;
  DIST_TRY(group.open());
  Signature& signature = group.draft(member.me);
  signature.asynchronous = 2;
  DIST_TRY(call.check(member.me, group.size(), signature));
  signature.digest = mix(signature.digest, static_cast<uint64_t>(bytes_per_pack));
  close_digest(signature, member.tag);

  const std::size_t packs = count_packs(call, bytes_per_pack);
  auto side = make_counted<PlanSide>(memory, packs);
  Ref<Plan> plan;
  if (member.me == 0) {
    plan = make_counted<Plan>(memory, packs, group, helpers);
    plan->signature = signature;
    plan->sequence = group.sequence(0) + 1;
    side->plan = plan.get();
  }
  for (std::size_t k = 0, first = 0; k < packs; ++k) {
    const std::size_t end = end_of_pack(call, first, bytes_per_pack);
    if (plan) plan->parts[k].end = end;
    keep_pack(*side, call, first, end, group.size());
    first = end;
  }
  auto work = make_counted<PlannedWork>(memory, member, list, call.n, packs);
  work->bytes_ = call.bytes;
  DIST_TRY(work->meet(member, *side, plan));
  *out = Ref<Work>::adopt(work.take());
  return kOk;
}

// Meets when all members have made their sides. Rank 0 puts the sides together, and the others wait in the
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
    const auto size = static_cast<std::size_t>(group.size());
    for (std::size_t r = 0; r < size; ++r) {
      made->sides[r] = Ref<PlanSide>::share(side_of(static_cast<int>(r)));
      for (std::size_t k = 0; k < made->num_parts; ++k)
        made->offers[k * size + r] = &made->sides[r]->offers[k];
    }
    for (std::size_t k = 0; k < made->num_parts; ++k) {
      const Call& call = side.calls[k].call();
      made->parts[k].exchange.emplace(call, group.size(), &made->offers[k * size], member.cache_bytes);
      for (int rank = 0; rank < group.size(); ++rank) {
        ErrorRecord why;
        if (!made->parts[k].exchange->refuses(group, rank, &why)) continue;
        return group.refuse(member.me, refusal(group, call, member.tag, group.sequence(member.me), why));
      }
    }
  }
  return group.finish(member.me);
}

Status PlannedWork::begin_round() noexcept {
  if (group_.poisoned()) return group_.failure();
  if (failures_ != group_.failures()) {
    return failed_precondition("a run has failed since this work was planned: plan it again");
  }
  DIST_TRY(check_cancel());
  ++round_;
  parts_to_come_ = plan_->num_parts;
  std::fill(ready_.begin(), ready_.end(), 0);
  for (std::size_t k = 0; k < plan_->num_parts; ++k) not_ready_[k] = plan_->parts[k].end - first_of(k);
  begin();
  // All members know the plan by the same address, and no other plan has it.
  const uint64_t number = mix(reinterpret_cast<uintptr_t>(plan_.get()), round_);
  record(caller_recorder_, plan_->signature, static_cast<uint32_t>(number >> 32), round_, bytes_);
  return kOk;
}

Status PlannedWork::start() {
  if (!under_way()) {
    DIST_TRY(begin_round());
  } else if (parts_to_come_ == 0) {
    return failed_precondition("dist_work_start(): this work is under way; wait for it first");
  }
  // Parts that no dist_work_ready() has named in this round.
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
    return invalid_argument("dist_work_ready(): tensor is %zu; the plan has %zu", tensor, ready_.size());
  }
  if (!under_way()) DIST_TRY(begin_round());
  const std::size_t part = part_of(tensor);
  // It may be ready by an earlier dist_work_ready(), or by dist_work_start(), which takes all the rest.
  if (ready_[tensor] != 0 || not_ready_[part] == 0) {
    return failed_precondition("dist_work_ready(): tensor %zu is ready already in this round", tensor);
  }
  ready_[tensor] = 1;
  if (--not_ready_[part] == 0) arrive(part);
  return kOk;
}

// All tensors of the part are ready on this member.
void PlannedWork::arrive(std::size_t k) noexcept {
  Plan::Part& part = plan_->parts[k];
  not_ready_[k] = 0;
  const auto members = static_cast<uint32_t>(group_.size());
  if (--parts_to_come_ == 0) {
    // release: publishes what this member wrote to those who look whether it has come.
    plan_->sides[static_cast<std::size_t>(rank())]->round.store(round_, std::memory_order_release);
  }
  if (!part.pack.arrive(members)) return;
  part.pack.open(round_, members, group_.lanes(), *part.exchange);
  // Members that wait wake up and take part.
  group_.progress().advance();
  if (part.exchange->bytes() <= Pack::kAtOnceBytes) {
    help(k);
  } else if (plan_->helpers != nullptr) {
    submit(static_cast<uint32_t>(k));
  }
}

// Each task holds a reference to the plan, which might end before oneTBB starts the task. If oneTBB takes no
// tasks, the members do the work.
void PlannedWork::submit(uint32_t part) noexcept {
  for (int i = 0; i < group_.lanes(); ++i) {
    plan_->retain();
    if (plan_->helpers->submit(run_task, plan_.get(), part, 1).ok()) continue;
    plan_->release();
    return;
  }
}

void PlannedWork::run_task(void* plan, uint32_t part) noexcept {
  auto* shared = static_cast<Plan*>(plan);
  shared->parts[part].pack.help(part, [&] { shared->progress->advance(); });
  shared->release();
}

void PlannedWork::help(std::size_t part) noexcept {
  plan_->parts[part].pack.help(static_cast<uint32_t>(rank()), [&] { group_.progress().advance(); });
}

bool PlannedWork::advance() noexcept {
  for (std::size_t k = 0; k < plan_->num_parts; ++k) {
    if (!plan_->parts[k].pack.complete(round_)) help(k);
  }
  return complete();
}

bool PlannedWork::complete() const noexcept {
  return std::all_of(plan_->parts, plan_->parts + plan_->num_parts,
                     [&](const Plan::Part& part) { return part.pack.complete(round_); });
}

void PlannedWork::give_up() noexcept {
  for (std::size_t k = 0; k < plan_->num_parts; ++k) {
    plan_->parts[k].pack.close(round_, static_cast<uint32_t>(group_.size()));
  }
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

// SPDX-License-Identifier: Apache-2.0
#include "core/cross_device/channel.hpp"

#include <algorithm>
#include <cstdio>
#include <new>

namespace dist {
namespace {

// Where members disagree but not all have come, the report waits this long for the others' statements.
constexpr int64_t kVerdictGraceNs = 1'000'000'000;

}  // namespace

Channel::Channel(Memory& memory, Group& group, Arena* helpers, std::size_t cache_bytes)
    : memory_(memory), group_(group), helpers_(helpers), cache_bytes_(cache_bytes), size_(group.size()) {
  const auto size = static_cast<std::size_t>(size_);
  const std::size_t entries = kSlots * size;
  slots_ = static_cast<Slot*>(memory.try_allocate(kSlots * sizeof(Slot), alignof(Slot)));
  entries_ = static_cast<Entry*>(memory.try_allocate(entries * sizeof(Entry), alignof(Entry)));
  offers_ = static_cast<const Offer**>(memory.try_allocate(entries * sizeof(Offer*), alignof(Offer*)));
  issued_ = static_cast<uint32_t*>(memory.try_allocate(size * sizeof(uint32_t), alignof(uint32_t)));
  const bool made = slots_ != nullptr && entries_ != nullptr && offers_ != nullptr && issued_ != nullptr;
  for (uint32_t i = 0; i < kSlots && slots_ != nullptr; ++i) new (&slots_[i]) Slot();
  for (std::size_t i = 0; i < entries && entries_ != nullptr; ++i) {
    new (&entries_[i]) Entry(memory);
    if (offers_ != nullptr) offers_[i] = &entries_[i].offer;
  }
  if (!made) {
    this->~Channel();
    throw std::bad_alloc();
  }
  std::fill_n(issued_, size, 0);
  group.watch_departures();
}

Channel::~Channel() {
  const auto size = static_cast<std::size_t>(size_);
  const std::size_t entries = kSlots * size;
  for (uint32_t i = 0; i < kSlots && slots_ != nullptr; ++i) slots_[i].~Slot();
  for (std::size_t i = 0; i < entries && entries_ != nullptr; ++i) entries_[i].~Entry();
  if (slots_ != nullptr) memory_.free(slots_, kSlots * sizeof(Slot), alignof(Slot));
  if (entries_ != nullptr) memory_.free(entries_, entries * sizeof(Entry), alignof(Entry));
  if (offers_ != nullptr) memory_.free(offers_, entries * sizeof(Offer*), alignof(Offer*));
  if (issued_ != nullptr) memory_.free(issued_, size * sizeof(uint32_t), alignof(uint32_t));
}

void Channel::begin_run() noexcept {
  // After trouble members may have issued different numbers, and slots are shut, also those of what still
  // came to its end: go on from a number that no slot holds.
  const uint32_t latest = *std::max_element(issued_, issued_ + size_);
  if (group_.poisoned()) {
    std::fill_n(issued_, size_, latest);
    for (uint32_t i = 0; i < kSlots; ++i) slot(latest - i).pack.reset(latest - i);
  }
  first_ = latest;
}

Status Channel::issue(const Caller& caller, Call& call, uint32_t* out_number) {
  DIST_TRY(group_.poisoned() ? group_.failure() : kOk);
  const uint32_t number = issued_[caller.me] + 1;
  // Earlier work is others' to do, unless its slot is wanted.
  if (!complete(number - kSlots)) help(number - kSlots, caller.me);
  if (!complete(number - kSlots)) {
    return fail(DIST_RESOURCE_EXHAUSTED,
                "%u asynchronous collectives of this group are under way; wait for one first", kSlots);
  }
  Entry& mine = entry(caller.me, number);
  mine.statement = Statement{};
  mine.statement.asynchronous = 1;
  DIST_TRY(call.check(caller.me, size_, mine.statement));
  mine.kept.keep(call, size_);
  mine.kept.call().offer_in(mine.offer);
  seal(mine.statement, caller.tag);
  issued_[caller.me] = *out_number = number;
  // release: a peer that finds it in place of an earlier one knows that that is complete.
  mine.signature.store(mine.statement.signature, std::memory_order_release);
  // release: for those who read the statement.
  mine.number.store(number, std::memory_order_release);
  if (slot(number).pack.arrive(static_cast<uint32_t>(size_))) open(caller.me, number);
  return kOk;
}

bool Channel::has_come(int rank, uint32_t number) const noexcept {
  // A member that is further has been there.
  return static_cast<int32_t>(entry(rank, number).number.load(std::memory_order_acquire) - number) >= 0;
}

bool Channel::disagree(int rank, uint32_t number, bool* out_decidable) const noexcept {
  const Statement* statements[DIST_MAX_REPLICAS];
  const uint64_t signature = entry(rank, number).statement.signature;
  bool differ = false;
  for (int p = 0; p < size_; ++p) {
    statements[p] = has_come(p, number) ? &entry(p, number).statement : nullptr;
    // acquire: for the release in issue().
    differ = differ || (statements[p] != nullptr &&
                        entry(p, number).signature.load(std::memory_order_acquire) != signature);
  }
  // A peer that is further may use its entry again: then this one is complete, and that peer had seen it.
  // Members that differ never are, and their statements stay.
  if (!differ || complete(number)) return false;
  Evidence evidence;
  evidence.statements = {statements, static_cast<std::size_t>(size_)};
  *out_decidable = decidable(evidence);
  return true;
}

ErrorRecord Channel::report(uint32_t number, Trouble trouble, int64_t waited_ns) const noexcept {
  return report_on_works(group_, number - first_, trouble, waited_ns, [&](int rank) {
    return has_come(rank, number) ? &entry(rank, number).statement : nullptr;
  });
}

// All have come, the last of them here.
void Channel::open(int rank, uint32_t number) noexcept {
  Slot& here = slot(number);
  const auto members = static_cast<uint32_t>(size_);
  const auto give_up = [&](const ErrorRecord& why) {
    here.pack.abandon(number, members);
    group_.condemn(why);
  };
  bool decided = false;
  if (disagree(rank, number, &decided)) return give_up(report(number, Trouble::kDisagreement, 0));
  const Call& call = entry(rank, number).kept.call();
  here.exchange.emplace(call, size_, offers_ + place(0, number), cache_bytes_);
  for (int member = 0; member < size_; ++member) {
    ErrorRecord why;
    if (!here.exchange->refuses(group_, member, &why)) continue;
    return give_up(refusal(group_, call, entry(rank, number).statement.tag, number - first_, why));
  }
  here.pack.open(number, members, group_.lanes(), *here.exchange);
  if (here.exchange->units() == 0) {
    group_.progress().advance();
  } else if (here.exchange->units() * kUnitBytes <= Pack::kAtOnceBytes) {
    help(number, rank);
  } else {
    launch(number);
  }
}

void Channel::run_task(void* channel, uint32_t number) noexcept {
  static_cast<Channel*>(channel)->help(number, static_cast<int>(number));
}

// Where oneTBB cannot help, the members do it.
void Channel::launch(uint32_t number) noexcept {
  // Who waits takes part.
  group_.progress().advance();
  if (helpers_ != nullptr) (void)helpers_->submit(run_task, this, number, group_.lanes());
}

void Channel::help(uint32_t number, int first) noexcept {
  slot(number).pack.help(static_cast<uint32_t>(first), [&] { group_.progress().advance(); });
}

LazyChannel::~LazyChannel() {
  // Late tasks, those of plans too, find nothing to do, but look, and wake the group.
  if (helpers_ != nullptr) helpers_->wait_for_tasks();
  Channel* channel = made();
  if (channel == nullptr) return;
  channel->~Channel();
  memory_.free(channel, sizeof(Channel), alignof(Channel));
}

Channel& LazyChannel::get() {
  if (Channel* channel = made()) return *channel;
  const std::lock_guard lock(mutex_);
  if (Channel* channel = made()) return *channel;
  void* place = memory_.allocate(sizeof(Channel), alignof(Channel));
  Channel* channel;
  try {
    channel = new (place) Channel(memory_, group_, helpers_, cache_bytes_);
  } catch (...) {
    memory_.free(place, sizeof(Channel), alignof(Channel));
    throw;
  }
  made_.store(channel, std::memory_order_release);
  return *channel;
}

Status ChannelWork::start() {
  return failed_precondition("this work is under way already; dist_work_start() is for planned work");
}

Status ChannelWork::ready(std::size_t) {
  return failed_precondition("this work is under way already; dist_work_ready() is for planned work");
}

bool ChannelWork::advance() noexcept {
  if (!complete()) channel_.help(number_, rank());
  return complete();
}

void ChannelWork::check(int64_t waited_ns) noexcept {
  bool decided = false;
  const bool differ =
      channel_.disagree(rank(), number_, &decided) && (decided || waited_ns >= kVerdictGraceNs);
  // Complete meanwhile: peers may be further, and what was looked at another collective's.
  if ((differ || stuck()) && !complete()) {
    group_.condemn(channel_.report(number_, Trouble::kDisagreement, waited_ns));
  }
}

}  // namespace dist

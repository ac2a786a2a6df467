// SPDX-License-Identifier: Apache-2.0
#include "core/async/channel.hpp"

#include <algorithm>
#include <new>

#include "core/async/kept_call.hpp"
#include "core/base/on_stack.hpp"

namespace dist {
namespace {

// If members disagree and some have not arrived yet, the report waits up to this long for their signatures.
constexpr int64_t kDiagnosisGraceNs = 1'000'000'000;

// Whether a member has arrived at this collective, or at a later one.
bool has_come(Places::Chunk& chunk, int rank, uint32_t number) noexcept {
  // acquire: makes visible what the member brought.
  const uint32_t there = chunk.brought(rank, number).number.load(std::memory_order_acquire);
  return static_cast<int32_t>(there - number) >= 0;
}

}  // namespace

// Memory that is accounted for copies of tensor descriptors. It is given back at the end unless a place takes
// it over.
class Channel::Counted {
 public:
  Counted(AsyncMemory& bound, std::size_t words) noexcept
      : bound_(bound), wanted_(words > Places::kCopiedWords ? words * sizeof(uint64_t) : 0) {}
  ~Counted() { bound_.give_back(taken_); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  bool take() noexcept {
    if (wanted_ != 0 && !bound_.take(wanted_)) return false;
    taken_ = wanted_;
    return true;
  }
  void take_anyway() noexcept {
    bound_.take_anyway(wanted_);
    taken_ = wanted_;
  }
  std::size_t hand_over() noexcept { return std::exchange(taken_, 0); }

 private:
  AsyncMemory& bound_;
  const std::size_t wanted_;
  std::size_t taken_ = 0;
};

// Limits how long one call waits for peers in total.
class Channel::Patience {
 public:
  explicit Patience(const Member& member) noexcept
      : host_(member.group.host()),
        timeout_ns_(member.timeout_ns != 0 ? member.timeout_ns : member.group.timeout_ns()) {}
  Status wait_for(Work& work) noexcept {
    if (timeout_ns_ < 0) return work.wait_for_peers(timeout_ns_);
    const int64_t now = host_.now_ns();
    if (!waiting_) start_ns_ = now;
    waiting_ = true;
    return work.wait_for_peers(std::max<int64_t>(timeout_ns_ - (now - start_ns_), 1));
  }

 private:
  const Host& host_;
  const int64_t timeout_ns_;
  bool waiting_ = false;
  int64_t start_ns_ = 0;
};

Channel::Channel(Memory& memory, Group& group, const ChannelHome& home, WorkerCommunicator* communicator)
    : memory_(memory),
      group_(group),
      home_(home),
      size_(group.size()),
      all_(communicator != nullptr ? communicator->num_members() : size_),
      places_(memory, *home.memory, *this, group.size()) {
  const auto size = static_cast<std::size_t>(size_);
  members_ = static_cast<MemberState*>(memory.allocate(size * sizeof(MemberState), alignof(MemberState)));
  Chunk* const chunk = places_.begin_afresh(0);
  for (std::size_t r = 0; r < size; ++r) new (&members_[r]) MemberState{chunk, 0};
  refusals_ = places_.bound().refusals();
  group.watch_departures();
  CrossingLine::Landing& landing = *this;
  if (communicator != nullptr)
    line_.emplace(memory, *home.crossings, *communicator, group, landing, home.cache_bytes);
}

Channel::~Channel() {
  memory_.free(members_, static_cast<std::size_t>(size_) * sizeof(MemberState), alignof(MemberState));
}

void Channel::begin_run() noexcept {
  if (line_) line_->end_run();
  if (group_.aborted()) {
    // The members may have issued different numbers of collectives, and their packs cannot open any more, not
    // even those of completed collectives. So all members continue with a number that none of them has
    // reached.
    uint32_t latest = members_[0].issued;
    for (int r = 1; r < size_; ++r) {
      if (static_cast<int32_t>(members_[r].issued - latest) > 0) latest = members_[r].issued;
    }
    latest = (latest / Places::kPlaces + 1) * Places::kPlaces;
    Chunk* const chunk = places_.begin_afresh(latest);
    for (int r = 0; r < size_; ++r) members_[r] = {chunk, latest};
  }
  // Another group may need memory that this group has kept for later use.
  const uint32_t refusals = places_.bound().refusals();
  if (refusals != refusals_) {
    // A task that starts late finds no work, but still reads its chunk.
    if (home_.helpers != nullptr) home_.helpers->wait_for_tasks();
    places_.let_go_of_spares();
    refusals_ = refusals;
  }
  first_ = members_[0].issued;
  if (line_) line_->begin_run(first_);
}

Status Channel::find_place(const Member& member, uint32_t number, Patience& patience, Chunk** out) {
  Chunk* const latest = members_[member.me].chunk;
  if (number % Places::kPlaces != 0) {
    *out = latest;
    return kOk;
  }
  Work* oldest = nullptr;
  while ((*out = places_.after(*latest, member.me, &oldest)) == nullptr) DIST_TRY(patience.wait_for(*oldest));
  return kOk;
}

Status Channel::count_copies(const Member& member, uint32_t number, Patience& patience, Counted& copies) {
  while (!copies.take()) {
    Work* const oldest = places_.oldest(member.me, number);
    // Copies for other groups use the rest of the memory. A member without works always gets this memory,
    // because it has no work whose end it could wait for.
    if (oldest == nullptr) copies.take_anyway();
    if (oldest == nullptr) break;
    DIST_TRY(patience.wait_for(*oldest));
  }
  return kOk;
}

Status Channel::issue(const Member& member, Call& call, WorkList& list, Cancel* cancel, Ref<Work>* out) {
  DIST_TRY(group_.aborted() ? group_.failure() : kOk);
  Signature signature;
  signature.asynchronous = 1;
  DIST_TRY(call.check(line_ ? line_->communicator().first() + member.me : member.me, all_, signature));
  close_digest(signature, member.tag);

  MemberState& me = members_[member.me];
  const uint32_t number = me.issued + 1;
  const std::size_t words = kept_words(call, all_);
  Patience patience(member);
  Counted copies(places_.bound(), words);
  Chunk* chunk = nullptr;
  DIST_TRY(count_copies(member, number, patience, copies));
  DIST_TRY(find_place(member, number, patience, &chunk));
  auto work = make_counted_with_room<ChannelWork>(memory_, words * sizeof(uint64_t), *this, list, member,
                                                  call, *chunk, number);
  work->end_by(cancel);
  // From here on, nothing can fail.
  Places::Brought& mine = chunk->brought(member.me, number);
  mine.signature = signature;
  mine.call = &work->call();
  mine.work = work.get();
  mine.call->describe_in(mine.descriptor);
  // relaxed: the thread that completes the pack releases it, and the pack opens only after this member's
  // arrive().
  chunk->place(number).copied.fetch_add(copies.hand_over(), std::memory_order_relaxed);
  me = {chunk, number};
  // release: a peer that finds this digest instead of an earlier one knows that the earlier collective is
  // complete.
  mine.digest.store(signature.digest, std::memory_order_release);
  // release: publishes the signature.
  mine.number.store(number, std::memory_order_release);
  if (chunk->place(number).pack.arrive(static_cast<uint32_t>(size_))) open(*chunk, member.me, number);
  work->begin(member.recorder);
  *out = Ref<Work>::adopt(work.take());
  return kOk;
}

bool Channel::disagree(Chunk& chunk, int rank, uint32_t number, bool* out_decidable) const noexcept {
  auto* const signatures = DIST_ON_STACK(const Signature*, size_);
  const uint64_t digest = chunk.brought(rank, number).signature.digest;
  bool differ = false;
  for (int p = 0; p < size_; ++p) {
    const Places::Brought& theirs = chunk.brought(p, number);
    signatures[p] = has_come(chunk, p, number) ? &theirs.signature : nullptr;
    // acquire: pairs with the release in issue().
    differ = differ || (signatures[p] != nullptr && theirs.digest.load(std::memory_order_acquire) != digest);
  }
  // If the collective is complete, the members agreed, and the place may have been reused for another one. If
  // they disagree, it never completes, and the signatures stay in place.
  if (!differ || chunk.place(number).pack.complete(number)) return false;
  Evidence evidence;
  evidence.signatures = {signatures, static_cast<std::size_t>(size_)};
  *out_decidable = decidable(evidence);
  return true;
}

ErrorRecord Channel::report(Chunk& chunk, uint32_t number, Trouble trouble,
                            int64_t waited_ns) const noexcept {
  return report_on_works(group_, sequence(number), trouble, waited_ns, [&](int rank) {
    return has_come(chunk, rank, number) ? &chunk.brought(rank, number).signature : nullptr;
  });
}

// Called by the last member to arrive. Compares the calls of all members and opens the pack.
void Channel::open(Chunk& chunk, int rank, uint32_t number) noexcept {
  Place& here = chunk.place(number);
  const auto members = static_cast<uint32_t>(size_);
  const auto give_up = [&](const ErrorRecord& why) {
    here.pack.abandon(number, members);
    group_.condemn(why);
  };
  bool decided = false;
  if (disagree(chunk, rank, number, &decided))
    return give_up(report(chunk, number, Trouble::kDisagreement, 0));
  if (line_) {
    here.crossing.store(true, std::memory_order_release);
    return line_->add(chunk, number);
  }
  const Places::Brought& mine = chunk.brought(rank, number);
  const Call& call = *mine.call;
  here.exchange.emplace(call, size_, chunk.descriptors(number), home_.cache_bytes);
  for (int r = 0; r < size_; ++r) {
    ErrorRecord why;
    if (!here.exchange->refuses(group_, r, &why)) continue;
    return give_up(refusal(group_, call.collective, mine.signature.tag, sequence(number), why));
  }
  open(here, rank, number, *here.exchange);
}

// Called when everything that the members bring is in this process.
void Channel::open(Place& here, int rank, uint32_t number, const Exchange& exchange) noexcept {
  const std::size_t units = exchange.units();
  if (units == 0) places_.bound().give_back(here.copied.exchange(0, std::memory_order_relaxed));
  here.pack.open(number, static_cast<uint32_t>(size_), group_.stripes(), exchange);
  if (units == 0) {
    group_.progress().advance();
  } else if (exchange.bytes() <= Pack::kAtOnceBytes) {
    help(here, static_cast<uint32_t>(rank));
  } else {
    launch(here, number);
  }
}

void Channel::here(Place& place, uint32_t number, const Exchange& exchange) noexcept {
  // release: a thread that reads false may access the pack.
  place.crossing.store(false, std::memory_order_release);
  open(place, 0, number, exchange);
}

void Channel::done(Place& place, uint32_t number) noexcept {
  place.crossing.store(false, std::memory_order_release);
  places_.bound().give_back(place.copied.exchange(0, std::memory_order_relaxed));
  place.pack.open_done(number, static_cast<uint32_t>(size_));
  group_.progress().advance();
}

void Channel::stopped(Place& place, uint32_t number) noexcept {
  place.crossing.store(false, std::memory_order_release);
  place.pack.abandon(number, static_cast<uint32_t>(size_));
}

void Channel::run_task(void* place, uint32_t number) noexcept {
  auto& here = *static_cast<Place*>(place);
  here.channel.help(here, number);
}

// Submits the pack to oneTBB. If that fails, the members do the work.
void Channel::launch(Place& place, uint32_t number) noexcept {
  // Waiting members wake up and take part.
  group_.progress().advance();
  if (home_.helpers != nullptr) (void)home_.helpers->submit(run_task, &place, number, group_.stripes());
}

void Channel::help(Place& place, uint32_t first) noexcept {
  place.pack.help(
      first, [&] { places_.bound().give_back(place.copied.exchange(0, std::memory_order_relaxed)); },
      [&] {
        group_.progress().advance();
        // This frees a slot of the line, which another collective may be waiting for.
        if (line_) home_.crossings->wake();
      });
}

LazyChannel::~LazyChannel() {
  // Tasks that start late, including those of plans, find no work, but they read their packs and wake the
  // group.
  if (home_.helpers != nullptr) home_.helpers->wait_for_tasks();
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
    channel = new (place) Channel(memory_, group_, home_, communicator_);
  } catch (...) {
    memory_.free(place, sizeof(Channel), alignof(Channel));
    throw;
  }
  made_.store(channel, std::memory_order_release);
  return *channel;
}

// make_counted_with_room() has allocated room behind the object for the copies.
ChannelWork::ChannelWork(Memory& memory, Channel& channel, WorkList& list, const Member& member,
                         const Call& call, Places::Chunk& chunk, uint32_t number) noexcept
    : Work(memory, channel.group_, list, member.me, member.timeout_ns),
      channel_(channel),
      chunk_(chunk),
      number_(number),
      call_(kept_in(reinterpret_cast<uint64_t*>(this + 1), call, channel.all_)) {
  static_assert(sizeof(ChannelWork) + Places::kCopiedWords * sizeof(uint64_t) <= Places::kHandleBytes);
}

void ChannelWork::begin(Recorder* recorder) noexcept {
  Work::begin();
  int64_t sequence = 0;
  const Signature& stated = signature(&sequence);
  record(recorder, stated, number_, static_cast<uint32_t>(sequence), call_.bytes);
}

Status ChannelWork::start() {
  return failed_precondition("this work has already started. `dist_work_start()` is for planned work only.");
}

Status ChannelWork::ready(std::size_t) {
  return failed_precondition("this work has already started. `dist_work_ready()` is for planned work only.");
}

bool ChannelWork::has_come(int rank) const noexcept { return dist::has_come(chunk_, rank, number_); }

void ChannelWork::give_up() noexcept {
  if (channel_.line_) channel_.line_->let_go();
  place().pack.close(number_, static_cast<uint32_t>(channel_.size_));
}

bool ChannelWork::crosses() const noexcept {
  return channel_.line_ && !complete() && place().crossing.load(std::memory_order_acquire);
}

void ChannelWork::end_late(Trouble trouble, int64_t waited_ns) noexcept {
  if (!crosses()) return Work::end_late(trouble, waited_ns);
  channel_.line_->fail(place(), number_, trouble, waited_ns);
}

bool ChannelWork::advance() noexcept {
  if (complete()) return true;
  if (channel_.line_) channel_.line_->advance();
  channel_.help(place(), static_cast<uint32_t>(rank()));
  return complete();
}

void ChannelWork::check(int64_t waited_ns) noexcept {
  bool decided = false;
  const bool differ =
      channel_.disagree(chunk_, rank(), number_, &decided) && (decided || waited_ns >= kDiagnosisGraceNs);
  // If it is complete by now, the place may have been reused, and the comparison may concern another
  // collective.
  if ((differ || stuck()) && !complete()) group_.condemn(report(Trouble::kDisagreement, waited_ns));
}

}  // namespace dist

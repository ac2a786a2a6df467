// SPDX-License-Identifier: Apache-2.0
#include "core/trace/snapshot.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "core/base/collective_traits.hpp"

namespace dist {
namespace {

OtherWorkers others_of(const Recorder::Slot& slot) noexcept {
  const uint64_t word = slot[Recorder::kWorkers];
  // Sign-extends the number that begins at bit `shift`.
  const auto number = [&](int shift) {
    constexpr int kUnused = 64 - Recorder::kWorkerBits;
    return static_cast<int32_t>(static_cast<int64_t>(word << (kUnused - shift)) >> kUnused);
  };
  return {static_cast<Recorder::WorkersWord>(word & 0xFF), number(8), number(8 + Recorder::kWorkerBits),
          static_cast<int64_t>(slot[Recorder::kLate])};
}

Event decode(const Recorder::Slot& slot, GlobalReplica replica, const FlightRecorder::Scale& scale) noexcept {
  const uint64_t what = slot[Recorder::kWhat];
  const auto byte = [&](int shift) { return static_cast<int32_t>((what >> shift) & 0xFF); };
  Event event{};
  event.replica = replica;
  event.collective = static_cast<int32_t>(collective_at(what & 0xFF));
  event.op = byte(8) == 0 ? 0 : DIST_REDUCE_SUM - 1 + byte(8);
  event.dtype = byte(16);
  event.status = byte(24);
  event.asynchronous = ((what >> 40) & 1) != 0;
  event.of_workers = (what & Recorder::kOfWorkers) != 0;
  event.others = others_of(slot);
  event.members = static_cast<int32_t>(what >> 48);
  event.group = static_cast<int32_t>(static_cast<uint32_t>(slot[Recorder::kRound]));
  event.round = static_cast<uint32_t>(slot[Recorder::kRound] >> 32);
  event.sequence = static_cast<uint32_t>(slot[Recorder::kSequence]);
  event.run = static_cast<uint32_t>(slot[Recorder::kSequence] >> 32);
  event.bytes = slot[Recorder::kBytes];
  event.of_request = (what & Recorder::kOfRequest) != 0;
  if (event.of_request) {
    event.request = static_cast<int64_t>(event.bytes);
    event.accepted_ns = scale.time_ns(slot[Recorder::kLate]);
  }
  event.over = slot[Recorder::kEnd] != 0;
  event.begin_ns = scale.time_ns(slot[Recorder::kBegin]);
  // An event may have begun after the clock was read. Its age is then 0.
  const int64_t now_ns = std::max(event.begin_ns, scale.now_ns());
  event.arrived_ns = event.over ? scale.time_ns(slot[Recorder::kArrived]) : now_ns;
  event.end_ns = event.over ? scale.time_ns(slot[Recorder::kEnd]) : now_ns;
  std::memcpy(event.tag, &slot[Recorder::kTag], sizeof event.tag);
  event.tag[sizeof event.tag - 1] = '\0';
  return event;
}

auto round_of(const Event* event) noexcept {
  return std::tie(event->group, event->asynchronous, event->round);
}

}  // namespace

bool Round::went_well() const noexcept {
  return complete() && std::all_of(events.begin(), events.end(),
                                   [](const Event* e) { return e->over && e->status == DIST_OK; });
}

const OtherWorkers* Round::others() const noexcept {
  const auto knows = [](const Event* e) { return e->others.known != Recorder::WorkersWord::kNothing; };
  const auto found = std::find_if(events.begin(), events.end(), knows);
  return found == events.end() ? nullptr : &(*found)->others;
}

std::optional<Latest> Round::latest(int32_t me) const noexcept {
  if (!of_workers()) return complete() ? std::optional(Latest{last().replica, me, late_ns()}) : std::nullopt;
  const OtherWorkers* const known = others();
  if (known == nullptr || known->known != Recorder::WorkersWord::kLast) return std::nullopt;
  const bool replicas = first().replica != kNoReplica;
  return Latest{replicas ? GlobalReplica{known->number} : kNoReplica, known->worker, known->late_ns};
}

Snapshot::Snapshot(const FlightRecorder& recorder, Memory& memory)
    : replicas_(recorder.replicas()),
      worker_(recorder.worker()),
      events_(&memory),
      by_round_(&memory),
      rounds_(&memory) {
  std::size_t most = 0;
  const auto count = [&](const Recorder& each) { most += std::min(each.count(), each.length()) + 1; };
  for (int r = 0; r < replicas_.local(); ++r) count(recorder[LocalReplica{r}]);
  if (recorder.outside() != nullptr) count(*recorder.outside());
  events_.reserve(most);
  // All stamps are converted with one scale, so that those of different replicas are comparable to the
  // nanosecond.
  const FlightRecorder::Scale scale(recorder);
  now_ns_ = scale.now_ns();
  for (int r = 0; r < replicas_.local(); ++r) {
    read(recorder[LocalReplica{r}], replicas_.global_of(LocalReplica{r}), scale);
  }
  if (recorder.outside() != nullptr) read(*recorder.outside(), kNoReplica, scale);
  join();
}

void Snapshot::read(const Recorder& recorder, GlobalReplica replica, const FlightRecorder::Scale& scale) {
  const uint64_t run_began = recorder.run_began();
  const uint64_t accepted = recorder.accepted();
  const int64_t request = recorder.request();
  const uint64_t end = recorder.count();
  const uint64_t length = recorder.length();
  for (uint64_t index = end > length ? end - length : 0; index < end; ++index) {
    Recorder::Slot slot;
    if (recorder.read(index, slot)) events_.push_back(decode(slot, replica, scale));
  }
  // If the function has ended meanwhile, its event may already be among those that were read.
  if (run_began == 0 || recorder.run_began() != run_began) return;
  Event running{};
  running.replica = replica;
  running.collective = DIST_COLLECTIVE_RETURN;
  running.begin_ns = scale.time_ns(run_began);
  running.of_request = accepted != 0;
  running.request = request;
  running.accepted_ns = running.of_request ? scale.time_ns(accepted) : 0;
  running.arrived_ns = running.end_ns = std::max(running.begin_ns, scale.now_ns());
  events_.push_back(running);
}

void Snapshot::join() {
  by_round_.reserve(events_.size());
  for (const Event& event : events_) {
    if (event.members != 0) by_round_.push_back(&event);
  }
  std::sort(by_round_.begin(), by_round_.end(), [](const Event* a, const Event* b) {
    if (round_of(a) != round_of(b)) return round_of(a) < round_of(b);
    return std::tie(a->begin_ns, a->replica) < std::tie(b->begin_ns, b->replica);
  });
  for (auto at = by_round_.begin(); at != by_round_.end();) {
    const auto next =
        std::find_if(at, by_round_.end(), [&](const Event* e) { return round_of(e) != round_of(*at); });
    rounds_.push_back({{&*at, static_cast<std::size_t>(next - at)}});
    at = next;
  }
}

}  // namespace dist

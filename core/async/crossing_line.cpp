// SPDX-License-Identifier: Apache-2.0
#include "core/async/crossing_line.hpp"

#include <algorithm>

namespace dist {

CrossingLine::CrossingLine(Memory& memory, Crossings& home, WorkerCommunicator& communicator, Group& group,
                           Landing& landing, std::size_t cache_bytes)
    : Item(group), home_(home), communicator_(communicator), landing_(landing) {
  const WorkerCrossing::Options options{
      .stream = WorkerCommunicator::kAsynchronous,
      .most_bytes = std::max<std::size_t>(communicator.own_staging_bytes() / kAtATime, 1),
      .cache_bytes = cache_bytes};
  for (Slot& each : slots_) each.crossing.emplace(memory, communicator, group, options);
}

void CrossingLine::end_run() noexcept {
  home_.end(*this);
  for (Slot& each : slots_) each.chunk = nullptr;
}

void CrossingLine::add(Places::Chunk& chunk, uint32_t number) noexcept {
  home_.begin(*this, [&] {
    Places::Place& place = chunk.place(number);
    place.waiting = {&chunk, number, nullptr};
    (front_ == nullptr ? front_ : back_->waiting.next) = &place;
    back_ = &place;
  });
}

void CrossingLine::begin(Slot& slot, Places::Chunk& chunk, uint32_t number) noexcept {
  slot.chunk = &chunk;
  slot.number = number;
  slot.landed = false;
  for (int p = 0; p < group().size(); ++p) {
    const Places::Brought& brought = chunk.brought(p, number);
    slot.crossing->side(p) = {brought.call, &brought.descriptor};
  }
  slot.crossing->begin(number - first_, chunk.brought(0, number).signature);
}

// Advances the collective in a slot. Returns false if the slot is free, or has become free.
bool CrossingLine::go_on(Slot& slot) noexcept {
  if (slot.chunk == nullptr) return false;
  if (!slot.landed) {
    const WorkerCrossing::State state = slot.crossing->advance();
    if (state == WorkerCrossing::State::kUnderWay) return true;
    slot.landed = true;
    if (state == WorkerCrossing::State::kHere) {
      landing_.here(slot.place(), slot.number, slot.crossing->exchange());
    } else if (state == WorkerCrossing::State::kDone) {
      landing_.done(slot.place(), slot.number);
    } else {
      landing_.stopped(slot.place(), slot.number);
      slot.chunk = nullptr;
      return false;
    }
  }
  // The slot stays in use, because the remaining work reads data in it.
  if (!slot.place().pack.complete(slot.number)) return true;
  slot.chunk = nullptr;
  return false;
}

bool CrossingLine::go_on() noexcept {
  bool busy = false;
  for (Slot& slot : slots_) {
    // Several collectives may complete at once, so this fills the slot until one of them has to wait.
    bool used = go_on(slot);
    while (!used && front_ != nullptr && !group().aborted()) {
      Places::Place& place = *front_;
      front_ = place.waiting.next;
      begin(slot, *place.waiting.chunk, place.waiting.number);
      used = go_on(slot);
    }
    busy = busy || used;
  }
  if (!group().aborted()) return busy;
  stop();
  return false;
}

void CrossingLine::stop() noexcept {
  for (Slot& slot : slots_) {
    // Once all data have arrived, the collective belongs to its pack, which its members close.
    if (slot.chunk == nullptr || slot.landed) continue;
    slot.crossing->stop();
    landing_.stopped(slot.place(), slot.number);
    slot.chunk = nullptr;
  }
  for (; front_ != nullptr; front_ = front_->waiting.next) landing_.stopped(*front_, front_->waiting.number);
}

void CrossingLine::fail(Places::Place& place, uint32_t number, Trouble trouble, int64_t waited_ns) noexcept {
  home_.with_lock([&] {
    for (Slot& slot : slots_) {
      if (slot.chunk != nullptr && !slot.landed && &slot.place() == &place && slot.number == number)
        return slot.crossing->fail(trouble, waited_ns);
    }
    // This collective waits for earlier ones. One of these is late as well, so that one fails.
    for (Slot& slot : slots_) {
      if (slot.chunk != nullptr && !slot.landed) return slot.crossing->fail(trouble, waited_ns);
    }
  });
}

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
#include "core/trace/recorder.hpp"

#include <new>

namespace dist {
namespace {

uint64_t workers_word(Recorder::WorkersWord kind, int32_t a, int32_t b) noexcept {
  constexpr uint32_t kMask = (uint32_t{1} << Recorder::kWorkerBits) - 1;
  return static_cast<uint64_t>(kind) | static_cast<uint64_t>(static_cast<uint32_t>(a) & kMask) << 8 |
         static_cast<uint64_t>(static_cast<uint32_t>(b) & kMask) << (8 + Recorder::kWorkerBits);
}

}  // namespace

void Recorder::end_run(dist_status status, uint64_t end) noexcept {
  // The collective is still open if the thread ended inside a merge function.
  if (inside_) close(status);
  began_ = run_began_.load(std::memory_order_relaxed);
  run_began_.store(0, std::memory_order_relaxed);
  Arrival run;
  run.collective = DIST_COLLECTIVE_RETURN;
  write(run);
  if (accepted_.load(std::memory_order_relaxed) != 0) [[unlikely]]
    name_request();
  finish(next_ - 1, began_, end, status);
  runs_.add(1);
  run_ticks_.add(end - began_);
  if (status != DIST_OK) of(run_errors_, status).add(1);
}

// Adds the request to the event that has just been written.
[[gnu::noinline, gnu::cold]] void Recorder::name_request() noexcept {
  const uint64_t index = next_ - 1;
  Slot& slot = slot_of(index);
  std::atomic_ref<uint64_t>(slot[kVersion]).store(4 * index + 3, std::memory_order_relaxed);  // as finish()
  put(slot[kBytes], request_.load(std::memory_order_relaxed));
  put(slot[kLate], accepted_.load(std::memory_order_relaxed));
  put(slot[kWhat], slot[kWhat] | kOfRequest);
}

uint64_t Recorder::issue(const Arrival& arrival) noexcept {
  began_ = 0;
  open(arrival);
  return next_ - 1;
}

void Recorder::complete(uint64_t issued, dist_status status) noexcept {
  if (status != DIST_OK) of(errors_, status).add(1);
  // After many further events, the slot belongs to a later event.
  if (next_ - issued <= length()) {
    const uint64_t end = now();
    finish(issued, end, end, status);
  }
}

void Recorder::meet_workers() noexcept {
  Slot& slot = slot_of(next_ - 1);
  // The words are written separately: a reader that reads one of them before it changes gets what was true a
  // moment ago.
  put(slot[kLate], 0);
  put(slot[kWorkers], workers_word(WorkersWord::kNothing, 0, 0));
  put(slot[kWhat], slot[kWhat] | kOfWorkers);
}

void Recorder::wait_for_workers(int lowest, int missing) noexcept {
  put(slot_of(next_ - 1)[kWorkers], workers_word(WorkersWord::kMissing, lowest, missing));
}

void Recorder::last_of_workers(int worker, int32_t name, int64_t late_ns) noexcept {
  Slot& slot = slot_of(next_ - 1);
  put(slot[kLate], static_cast<uint64_t>(late_ns));
  // Written after kLate, to which it refers.
  put(slot[kWorkers], workers_word(WorkersWord::kLast, worker, name));
}

bool Recorder::read(uint64_t index, Slot& out) const noexcept {
  Slot& slot = slot_of(index);
  const auto load = [&](int word, std::memory_order order) {
    return std::atomic_ref<uint64_t>(slot[word]).load(order);
  };
  const uint64_t version = load(kVersion, std::memory_order_acquire);
  if (version != 4 * index + 2 && version != 4 * index + 4) return false;
  out[kVersion] = version;
  for (int word = kBegin; word < kTag; ++word) out[word] = load(word, std::memory_order_acquire);
  const uint64_t tag_words = (out[kWhat] >> 32) & 0xFF;
  for (std::size_t i = 0; i < kTagWords; ++i) {
    // If there is no tag, these words may never have been written.
    out[kTag + i] = i < tag_words ? load(static_cast<int>(kTag + i), std::memory_order_acquire) : 0;
  }
  const bool of_workers = (out[kWhat] & kOfWorkers) != 0;
  out[kWorkers] = of_workers ? load(kWorkers, std::memory_order_acquire) : 0;
  const bool has_late = (out[kWhat] & (kOfWorkers | kOfRequest)) != 0;
  out[kLate] = has_late ? load(kLate, std::memory_order_acquire) : 0;
  // relaxed: the acquire loads above keep it after them.
  return load(kVersion, std::memory_order_relaxed) == version;
}

FlightRecorder::FlightRecorder(Memory& memory, ReplicaCount replicas, WorkerNumber worker, int32_t length)
    : memory_(memory),
      replicas_(replicas),
      worker_(worker),
      length_(length),
      counter_(time_counter_is_steady()),
      first_(look(counter_)) {
  const std::size_t n = num_recorders();
  const auto events = static_cast<std::size_t>(length_);
  recorders_ = static_cast<Recorder*>(memory_.allocate(n * sizeof(Recorder), alignof(Recorder)));
  // The slots are not touched here, so that each replica's pages are allocated near it, and only as far as
  // they are used.
  void* slots = memory_.try_allocate(slot_bytes(), alignof(Recorder));
  if (slots == nullptr) {
    memory_.deallocate(recorders_, n * sizeof(Recorder), alignof(Recorder));
    throw std::bad_alloc();
  }
  slots_ = static_cast<Recorder::Slot*>(slots);
  for (std::size_t i = 0; i < n; ++i) {
    new (&recorders_[i]) Recorder(slots_ + i * events, static_cast<uint32_t>(length_), counter_);
  }
}

FlightRecorder::~FlightRecorder() {
  const std::size_t n = num_recorders();
  memory_.free(slots_, slot_bytes(), alignof(Recorder));
  memory_.free(recorders_, n * sizeof(Recorder), alignof(Recorder));
}

// Reads the clock between two reads of the counter. Uses the closest of several attempts, because the thread
// may be preempted in any of them.
FlightRecorder::Moment FlightRecorder::look(bool counter) noexcept {
  if (!counter) {
    const int64_t now = steady_now_ns();
    return {static_cast<uint64_t>(now), now};
  }
  Moment best{};
  uint64_t closest = UINT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const uint64_t before = time_counter();
    const int64_t ns = steady_now_ns();
    const uint64_t apart = time_counter() - before;
    if (apart >= closest) continue;
    closest = apart;
    best = {before + apart / 2, ns};
  }
  return best;
}

FlightRecorder::Scale::Scale(const FlightRecorder& recorder) noexcept
    : first_ticks_(recorder.first_.ticks), first_ns_(recorder.first_.ns) {
  const Moment now = look(recorder.counter_);
  now_ns_ = now.ns;
  ns_per_tick_ = now.ticks > first_ticks_ ? static_cast<double>(now_ns_ - first_ns_) /
                                                static_cast<double>(now.ticks - first_ticks_)
                                          : 1;
}

int64_t FlightRecorder::Scale::time_ns(uint64_t stamp) const noexcept {
  return first_ns_ +
         static_cast<int64_t>(static_cast<double>(static_cast<int64_t>(stamp - first_ticks_)) * ns_per_tick_);
}

uint64_t FlightRecorder::sum_ns(uint64_t ticks) const noexcept {
  double scale = ns_per_tick_.load(std::memory_order_relaxed);
  if (scale == 0) {
    const double fresh = Scale(*this).ns_per_tick();
    if (ns_per_tick_.compare_exchange_strong(scale, fresh, std::memory_order_relaxed)) scale = fresh;
  }
  return static_cast<uint64_t>(static_cast<double>(ticks) * scale);
}

}  // namespace dist

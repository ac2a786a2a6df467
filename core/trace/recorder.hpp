// SPDX-License-Identifier: Apache-2.0
// Recorder: the latest events of one replica, and totals over all of its events.
//
// An event is a collective, or a run of the replica's function. It is written when the replica arrives and
// completed when the replica continues, so a trace that is taken while all replicas wait shows where each of
// them waits. The ring reuses its slots in turn.
//
// Invariant: one thread writes at a time; any thread may read at any time without a lock, and a reader never
// disturbs the writer. Each slot is a sequence lock. Its version is odd while the slot is being written, and
// identifies the event in it:
//
//     4 i + 1   event i is being written          4 i + 2   event i has begun
//     4 i + 3   its end is being written          4 i + 4   event i has ended
//
// Memory orders. A reader keeps what it read only if the version is the same before and after. The stores of
// an event are releases and its loads are acquires: if a reader has read a word of a later event, its second
// load of the version sees at least the odd version of that event. Readers load `count_` first, so they never
// read a slot that has not been written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/memory.hpp"
#include "core/base/os/clock.hpp"
#include "core/base/replicas.hpp"
#include "dist/types.h"

namespace dist {

// A replica's arrival at a collective.
struct Arrival {
  int32_t collective = 0;
  int32_t op = 0;
  int32_t dtype = 0;
  int32_t group = 0;
  int32_t members = 0;        // of the group
  uint32_t round = 0;         // the group's number of the round, which is used once
  uint32_t sequence = 0;      // number of the collective in the run
  bool asynchronous = false;  // asynchronous collectives are numbered separately
  uint64_t bytes = 0;
  const char* tag = "";  // at most DIST_MAX_TAG_BYTES, including the terminator
};

// A total that one thread adds to and any thread may read.
class Sum {
 public:
  void add(uint64_t amount) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

inline constexpr int kCollectives = 32;  // a power of two; the indices of all collectives are smaller
inline constexpr int kStatuses = 16;     // larger statuses count as UNKNOWN

class alignas(128) Recorder {
 public:
  // The length of a ring is a power of two.
  static constexpr int32_t kDefaultEvents = 1024;
  static constexpr int32_t kMostEvents = int32_t{1} << 20;
  static constexpr std::size_t kTagWords = DIST_MAX_TAG_BYTES / sizeof(uint64_t);

  // The words of an event. All except the tag fit in one cache line.
  enum Word {
    kVersion,
    kBegin,
    kArrived,
    kEnd,
    kBytes,
    kWhat,
    kRound,
    kSequence,
    kTag,
    kWorkers = 14,
    kLate,
    kWords
  };
  using Slot = uint64_t[kWords];
  static_assert(kTag + kTagWords <= kWorkers);
  // Flag in kWhat: other workers take part, and kWorkers and kLate have been written.
  static constexpr uint64_t kOfWorkers = uint64_t{1} << 41;
  // Flag in kWhat: the run of a request. kBytes is its id, and kLate is when it was accepted.
  static constexpr uint64_t kOfRequest = uint64_t{1} << 42;
  // The meaning of kWorkers: none; the worker that the event waits for; or the worker that was last, with
  // kLate as its delay.
  enum class WorkersWord : uint8_t { kNothing, kMissing, kLast };
  // kWorkers consists of a WorkersWord (8 bits) and two signed numbers.
  static constexpr int kWorkerBits = 28;

  // `slots`: `length` uninitialized slots. `counter`: whether the CPU's time counter may be used.
  Recorder(Slot* slots, uint32_t length, bool counter) noexcept
      : slots_(slots), counter_(counter), mask_(length - 1) {}

  // Number of events in the ring.
  uint64_t length() const noexcept { return uint64_t{mask_} + 1; }

  uint64_t now() const noexcept { return counter_ ? time_counter() : static_cast<uint64_t>(steady_now_ns()); }

  // ---- Called by the replica. Stamps are values of now() ----

  void begin_run() noexcept { begin_run(now()); }
  void begin_run(uint64_t stamp) noexcept {
    ++run_;
    run_began_.store(stamp, std::memory_order_relaxed);
  }
  void end_run(dist_status status) noexcept { end_run(status, now()); }
  void end_run(dist_status status, uint64_t stamp) noexcept;
  // Like end_run(), for a run that succeeded and made no collectives, such as a request's.
  void end_plain_run(uint64_t stamp) noexcept;
  // Call begin_request() before the run of a request, and end_request() after it. `accepted` is a stamp.
  void begin_request(int64_t id, uint64_t accepted) noexcept {
    request_.store(static_cast<uint64_t>(id), std::memory_order_relaxed);
    accepted_.store(accepted, std::memory_order_relaxed);
  }
  void end_request() noexcept { accepted_.store(0, std::memory_order_relaxed); }

  // A blocking collective: begin(), open() once its arguments have been validated, arrived() when all members
  // have arrived, close(). `began` is a stamp; 0: the replica arrives at open().
  void begin(int32_t collective, uint64_t began = 0) noexcept {
    arrival_ = collective;
    began_ = began;
    arrived_ = 0;
    inside_ = true;
    opened_ = false;
  }
  void open(const Arrival& arrival) noexcept;
  // If arrived() is not called, the event shows that all members had arrived when the collective ended.
  void arrived() noexcept { arrived(now()); }
  void arrived(uint64_t stamp) noexcept { arrived_ = stamp; }
  void close(dist_status status) noexcept;

  // Call these after open(), if other workers take part. One member of each worker knows more about the other
  // workers: how many have not arrived, and the lowest of these; later, which one was last, and by how much.
  void meet_workers() noexcept;
  void wait_for_workers(int lowest, int missing) noexcept;
  void last_of_workers(int worker, int32_t name, int64_t late_ns) noexcept;

  // An asynchronous collective: issue(), complete(). Others may begin and end in between.
  uint64_t issue(const Arrival& arrival) noexcept;
  void complete(uint64_t issued, dist_status status) noexcept;

  // ---- Called by any thread ----

  struct Kind {
    Sum calls;
    Sum bytes;
  };
  const Kind& kind(int32_t collective) const noexcept { return kinds_[collective & (kCollectives - 1)]; }
  const Sum& waited() const noexcept { return waited_; }  // in ticks
  const Sum& runs() const noexcept { return runs_; }
  const Sum& run_ticks() const noexcept { return run_ticks_; }
  const Sum& errors(int status) const noexcept { return errors_[status]; }          // of collectives
  const Sum& run_errors(int status) const noexcept { return run_errors_[status]; }  // of the function
  // When the running function began; 0: none is running.
  uint64_t run_began() const noexcept { return run_began_.load(std::memory_order_relaxed); }
  // The request that the running function handles, and when it was accepted. If accepted() is 0, there is
  // none.
  int64_t request() const noexcept { return static_cast<int64_t>(request_.load(std::memory_order_relaxed)); }
  uint64_t accepted() const noexcept { return accepted_.load(std::memory_order_relaxed); }

  uint64_t count() const noexcept { return count_.load(std::memory_order_acquire); }
  // Copies event `index`. Returns false if it has been overwritten or is being changed.
  bool read(uint64_t index, Slot& out) const noexcept;

 private:
  static void put(uint64_t& word, uint64_t value) noexcept {
    std::atomic_ref<uint64_t>(word).store(value, std::memory_order_release);
  }
  static Sum& of(Sum (&sums)[kStatuses], dist_status status) noexcept {
    return sums[status > 0 && status < kStatuses ? status : DIST_UNKNOWN];
  }
  void write(const Arrival& arrival) noexcept;
  void name_request() noexcept;
  Slot& slot_of(uint64_t index) const noexcept { return slots_[index & mask_]; }
  void finish(uint64_t index, uint64_t arrived, uint64_t end, dist_status status) noexcept;

  Slot* const slots_;
  const bool counter_;
  bool inside_ = false;  // inside a blocking collective
  bool opened_ = false;
  int32_t arrival_ = 0;
  uint32_t run_ = 0;
  const uint32_t mask_;  // selects the slot of an event's index
  uint64_t began_ = 0;
  uint64_t arrived_ = 0;
  uint64_t next_ = 0;  // index of the next event
  std::atomic<uint64_t> count_{0};
  std::atomic<uint64_t> run_began_{0};
  std::atomic<uint64_t> request_{0};
  std::atomic<uint64_t> accepted_{0};
  Sum waited_;
  Sum runs_;
  Sum run_ticks_;
  Kind kinds_[kCollectives];
  Sum errors_[kStatuses];
  Sum run_errors_[kStatuses];
};

// A worker's number, and the number of workers.
struct WorkerNumber {
  int me = 0;
  int count = 1;

  bool among_others() const noexcept { return count > 1; }
};

// The recorders of a strategy's replicas, and the meaning of their stamps.
class FlightRecorder {
 public:
  // `length`: of each ring, as Recorder allows it. Throws std::bad_alloc.
  FlightRecorder(Memory& memory, ReplicaCount replicas, WorkerNumber worker = {},
                 int32_t length = Recorder::kDefaultEvents);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  ReplicaCount replicas() const noexcept { return replicas_; }
  WorkerNumber worker() const noexcept { return worker_; }
  // The recorder of what the worker does with others outside its replicas' functions; NULL if there are no
  // other workers.
  Recorder* outside() noexcept { return worker_.among_others() ? &recorders_[replicas_.local()] : nullptr; }
  const Recorder* outside() const noexcept {
    return worker_.among_others() ? &recorders_[replicas_.local()] : nullptr;
  }
  Recorder& operator[](LocalReplica replica) noexcept { return recorders_[index(replica)]; }
  const Recorder& operator[](LocalReplica replica) const noexcept { return recorders_[index(replica)]; }
  bool uses_counter() const noexcept { return counter_; }
  int32_t length() const noexcept { return length_; }
  // The size of the address space; a ring occupies memory only as far as it has been written.
  std::size_t bytes() const noexcept { return num_recorders() * sizeof(Recorder) + slot_bytes(); }
  // Converts a total of ticks to nanoseconds, always with the scale of the first call, so that totals never
  // decrease.
  uint64_t sum_ns(uint64_t ticks) const noexcept;

  // Converts stamps to nanoseconds of the steady clock by a line through two moments at which both clocks
  // were read. Every stamp lies between the two, so the error is at most the time between the two readings of
  // one moment.
  class Scale {
   public:
    explicit Scale(const FlightRecorder& recorder) noexcept;
    int64_t time_ns(uint64_t stamp) const noexcept;
    int64_t now_ns() const noexcept { return now_ns_; }
    double ns_per_tick() const noexcept { return ns_per_tick_; }

   private:
    uint64_t first_ticks_;
    int64_t first_ns_;
    int64_t now_ns_;
    double ns_per_tick_;
  };

 private:
  // One moment, read on both clocks.
  struct Moment {
    uint64_t ticks;
    int64_t ns;
  };
  static Moment look(bool counter) noexcept;
  std::size_t num_recorders() const noexcept {
    return static_cast<std::size_t>(replicas_.local()) + (worker_.among_others() ? 1 : 0);
  }
  std::size_t slot_bytes() const noexcept {
    return num_recorders() * static_cast<std::size_t>(length_) * sizeof(Recorder::Slot);
  }

  Memory& memory_;
  const ReplicaCount replicas_;
  const WorkerNumber worker_;
  const int32_t length_;
  const bool counter_;
  const Moment first_;
  mutable std::atomic<double> ns_per_tick_{0};  // used by sum_ns(); 0: not determined yet
  Recorder* recorders_;
  Recorder::Slot* slots_;
};

// ---- The hot path ----

inline void Recorder::write(const Arrival& arrival) noexcept {
  const uint64_t index = next_++;
  Slot& slot = slot_of(index);
  std::atomic_ref<uint64_t>(slot[kVersion]).store(4 * index + 1, std::memory_order_relaxed);
  put(slot[kBegin], began_);
  put(slot[kArrived], 0);
  put(slot[kEnd], 0);
  put(slot[kBytes], arrival.bytes);
  uint64_t tag_words = 0;
  if (arrival.tag[0] != '\0') [[unlikely]] {
    const char* end = arrival.tag;
    for (bool more = true; more; ++tag_words) {
      char word[sizeof(uint64_t)] = {};
      std::size_t i = 0;
      while (i < sizeof word && *end != '\0') word[i++] = *end++;
      put(slot[kTag + tag_words], __builtin_bit_cast(uint64_t, word));
      more = *end != '\0' && tag_words + 1 < kTagWords;
    }
  }
  put(slot[kWhat],
      static_cast<uint64_t>(arrival.collective & 0xFF) | static_cast<uint64_t>(arrival.op & 0xFF) << 8 |
          static_cast<uint64_t>(arrival.dtype) << 16 | tag_words << 32 |
          static_cast<uint64_t>(arrival.asynchronous) << 40 | static_cast<uint64_t>(arrival.members) << 48);
  put(slot[kRound], static_cast<uint32_t>(arrival.group) | static_cast<uint64_t>(arrival.round) << 32);
  put(slot[kSequence], arrival.sequence | static_cast<uint64_t>(run_) << 32);
  put(slot[kVersion], 4 * index + 2);
  count_.store(next_, std::memory_order_release);
}

inline void Recorder::end_plain_run(uint64_t end) noexcept {
  const uint64_t began = run_began_.load(std::memory_order_relaxed);
  const uint64_t accepted = accepted_.load(std::memory_order_relaxed);
  const uint64_t index = next_++;
  Slot& slot = slot_of(index);
  // Begins and ends the event in one step.
  std::atomic_ref<uint64_t>(slot[kVersion]).store(4 * index + 3, std::memory_order_relaxed);
  put(slot[kBegin], began);
  put(slot[kArrived], began);
  put(slot[kEnd], end);
  put(slot[kBytes], accepted != 0 ? request_.load(std::memory_order_relaxed) : 0);
  put(slot[kWhat], uint64_t{DIST_COLLECTIVE_RETURN & 0xFF} | (accepted != 0 ? kOfRequest : 0));
  put(slot[kRound], 0);
  put(slot[kSequence], static_cast<uint64_t>(run_) << 32);
  if (accepted != 0) put(slot[kLate], accepted);
  put(slot[kVersion], 4 * index + 4);
  count_.store(next_, std::memory_order_release);
  run_began_.store(0, std::memory_order_relaxed);
  runs_.add(1);
  run_ticks_.add(end - began);
}

inline void Recorder::open(const Arrival& arrival) noexcept {
  opened_ = true;
  if (began_ == 0) began_ = now();
  write(arrival);
  Kind& kind = kinds_[arrival.collective & (kCollectives - 1)];
  kind.calls.add(1);
  kind.bytes.add(arrival.bytes);
}

inline void Recorder::finish(uint64_t index, uint64_t arrived, uint64_t end, dist_status status) noexcept {
  Slot& slot = slot_of(index);
  std::atomic_ref<uint64_t>(slot[kVersion]).store(4 * index + 3, std::memory_order_relaxed);
  put(slot[kArrived], arrived);
  put(slot[kEnd], end);
  if (status != DIST_OK) [[unlikely]]
    put(slot[kWhat], slot[kWhat] | static_cast<uint64_t>(status & 0xFF) << 24);
  put(slot[kVersion], 4 * index + 4);
}

inline void Recorder::close(dist_status status) noexcept {
  const uint64_t end = now();
  const uint64_t arrived = arrived_ != 0 ? arrived_ : end;
  // The arguments were rejected, or the group had already failed, so the replica arrived at no round.
  if (!opened_) [[unlikely]] {
    if (began_ == 0) began_ = end;
    Arrival refused;
    refused.collective = arrival_;
    write(refused);
  }
  inside_ = false;
  finish(next_ - 1, arrived, end, status);
  waited_.add(arrived - began_);
  if (status != DIST_OK) [[unlikely]]
    of(errors_, status).add(1);
}

}  // namespace dist

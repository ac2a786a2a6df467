// SPDX-License-Identifier: Apache-2.0
// The machine that the explorer drives: memory with store buffers, a futex, and a clock. It determines which
// fiber may take which next step.
//
// Stores weaker than seq_cst wait in their fiber's buffer, first in, first out, as on x86 (TSO), until the
// explorer flushes them. seq_cst stores, read-modify-writes and system calls wait until their own fiber's
// buffer is empty. On machines weaker than x86, loads can also be delayed, and relaxed stores reordered. To
// cover these, the machine tracks C++'s happens-before relation and reports two accesses to plain data that
// it does not order, whatever their actual order.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace dist::model {

inline constexpr int kFibers = 6;    // maximum number in a scenario
inline constexpr int kTouchers = 4;  // only this number of fibers, the first ones, may access plain data
inline constexpr int kPlain = 32;    // maximum number of pieces of plain data

inline uint64_t mixed(uint64_t seed, uint64_t value) {
  seed = (seed ^ value) * 0x9E3779B97F4A7C15ull;
  return seed ^ (seed >> 31);
}

// The set of latest accesses to plain data that happened before, with a bit for each piece, fiber, and read
// or write. Unlike counters, it is the same on all paths to a state.
using Known = std::array<uint64_t, 4>;
static_assert(kPlain * kTouchers * 2 <= 4 * 64);

// An atomic variable.
struct Cell {
  uint64_t value = 0;
  Known known{};   // what a fiber learns that acquires this value
  int parked = 0;  // number of fibers that sleep on it
  int id = 0;      // in order of construction
};

enum class Kind : uint8_t {
  kNone,
  kLoad,
  kStore,        // to memory
  kBuffer,       // into the fiber's own buffer
  kModify,       // a read-modify-write
  kRareBarrier,  // starts emptying the buffers of all others
  kBarrierEnd,   // waits until they have been emptied
  kPark,
  kUnpark,
  kYield,       // waits until something that it read changes
  kTimePasses,  // time advances beyond every deadline
  kFlush,       // a buffer's oldest store goes to memory
};

struct Operation {
  Kind kind = Kind::kNone;
  Cell* cell = nullptr;
};

// Whether two operations of different fibers have the same result in either order.
bool independent(const Operation& a, const Operation& b);

class Machine {
 public:
  struct Buffered {
    Cell* cell;
    uint64_t value;
    Known known;
  };
  struct Thread {
    Operation next;
    bool finished = true;
    Cell* parked = nullptr;
    bool parked_forever = false;  // without a time-out
    Known known{};
    std::vector<Buffered> buffer;
    std::array<uint8_t, kFibers> awaited{};  // kBarrierEnd: stores that others still have to flush
    bool stale = false;  // something has changed since its last yield, so the next yield returns
    uint64_t notes = 0;  // state that is not on its stack
  };

  bool weak = true;   // false = sequential consistency, without store buffers
  bool exact = true;  // states with different happens-before relations are different
  Cell time;
  bool timed = false;  // a fiber of the scenario advances the time
  std::array<Thread, kFibers> threads;
  int fibers = 0;

  void reset();
  void add_cell(Cell& cell, uint64_t value);
  int cells() const { return static_cast<int>(cells_.size()); }
  void name_cell(int id, std::string text) { names_[cells_[static_cast<std::size_t>(id)]] = std::move(text); }
  bool has_names() const { return !names_.empty(); }
  std::string name_of(const Cell& cell) const;

  bool can_run(int fiber) const;
  bool can_flush(int fiber) const { return !threads[at(fiber)].buffer.empty(); }
  void flush(int fiber);
  Cell* oldest(int fiber) const { return threads[at(fiber)].buffer.front().cell; }

  // Perform the operation that the fiber was allowed to do.
  uint64_t load(int fiber, Cell& cell, std::memory_order order);
  void store(int fiber, Cell& cell, uint64_t value, std::memory_order order);
  void buffer(int fiber, Cell& cell, uint64_t value, std::memory_order order);
  // Returns the previous value, and replaces it by to(previous, operand).
  uint64_t modify(int fiber, Cell& cell, uint64_t (*to)(uint64_t, uint64_t), uint64_t operand,
                  std::memory_order order);
  void begin_barrier(int fiber);
  // Returns true if the fiber sleeps.
  bool park(int fiber, Cell& cell, uint64_t seen, bool forever);
  void unpark(Cell& cell);
  void looked(int fiber) { threads[at(fiber)].stale = false; }
  void pass_time(int fiber, uint64_t now_ns);

  // Records an access to plain data. Returns the other access with which it races, or "".
  std::string access(int fiber, const void* data, bool write);
  void name(const void* data, std::string text) { names_[data] = std::move(text); }

  // Records state of the fiber that is not on its stack.
  void keeps(int fiber, uint64_t notes) { threads[at(fiber)].notes = notes; }
  void keeps_time(int fiber, uint64_t now_ns) {
    threads[at(fiber)].notes = mixed(threads[at(fiber)].notes, now_ns);
  }
  // Records the content of a piece of plain data, if it does not follow from the fibers' states.
  void holds(const void* data, uint64_t content) { contents_[at(pieces_.at(data))] = content; }

  uint64_t hash() const;

 private:
  static std::size_t at(int fiber) { return static_cast<std::size_t>(fiber); }
  void learn(int fiber, const Cell& cell, std::memory_order order);
  void change(int fiber, Cell& cell, uint64_t value);
  void tell_others(int fiber);

  std::vector<Cell*> cells_;
  std::array<uint64_t, kPlain> contents_{};
  std::unordered_map<const void*, int> pieces_;  // kept between runs, because the same data has the same
                                                 // address in all of them
  std::unordered_map<const void*, std::string> names_;
};

}  // namespace dist::model

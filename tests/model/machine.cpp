// SPDX-License-Identifier: Apache-2.0
#include "tests/model/machine.hpp"

#include <cstdlib>

namespace dist::model {
namespace {

constexpr bool acquires(std::memory_order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_release;
}
constexpr bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

void join(Known& to, const Known& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] |= from[i];
}
bool has(const Known& known, int bit) {
  return (known[static_cast<std::size_t>(bit) / 64] >> (bit % 64) & 1) != 0;
}
void set(Known& known, int bit) { known[static_cast<std::size_t>(bit) / 64] |= uint64_t{1} << (bit % 64); }
void clear(Known& known, int bit) {
  known[static_cast<std::size_t>(bit) / 64] &= ~(uint64_t{1} << (bit % 64));
}
int bit_of(int piece, int fiber, bool write) { return (piece * kTouchers + fiber) * 2 + (write ? 1 : 0); }

bool touches_all(Kind kind) {
  return kind == Kind::kYield || kind == Kind::kTimePasses || kind == Kind::kRareBarrier ||
         kind == Kind::kBarrierEnd;
}

}  // namespace

bool independent(const Operation& a, const Operation& b) {
  if (touches_all(a.kind) || touches_all(b.kind)) return false;
  if (a.kind == Kind::kBuffer || b.kind == Kind::kBuffer) return true;
  if (a.cell != b.cell) return true;
  return a.kind == Kind::kLoad && b.kind == Kind::kLoad;
}

void Machine::reset() {
  contents_.fill(0);
  timed = false;
  cells_.clear();
  time = {};
  add_cell(time, 0);
  for (Thread& thread : threads) {
    thread.next = {};
    thread.finished = true;
    thread.parked = nullptr;
    thread.stale = false;
    thread.notes = 0;
    thread.known.fill(~uint64_t{0});
    thread.buffer.clear();
    thread.awaited.fill(0);
  }
}

void Machine::add_cell(Cell& cell, uint64_t value) {
  cell.value = value;
  cell.id = cells();
  cells_.push_back(&cell);
}

bool Machine::can_run(int fiber) const {
  const Thread& thread = threads[at(fiber)];
  if (thread.finished || thread.parked != nullptr) return false;
  switch (thread.next.kind) {
    case Kind::kNone:
    case Kind::kLoad:
    case Kind::kBuffer:
    case Kind::kTimePasses: return true;
    case Kind::kBarrierEnd:
      for (const uint8_t left : thread.awaited) {
        if (left != 0) return false;
      }
      return true;
    case Kind::kYield: return thread.stale;
    default: return thread.buffer.empty();
  }
}

void Machine::flush(int fiber) {
  Thread& thread = threads[at(fiber)];
  const Buffered entry = thread.buffer.front();
  thread.buffer.erase(thread.buffer.begin());
  change(fiber, *entry.cell, entry.value);
  entry.cell->known = entry.known;
  for (Thread& other : threads) {
    if (other.awaited[at(fiber)] != 0) --other.awaited[at(fiber)];
  }
}

void Machine::learn(int fiber, const Cell& cell, std::memory_order order) {
  if (acquires(order)) join(threads[at(fiber)].known, cell.known);
}

void Machine::change(int fiber, Cell& cell, uint64_t value) {
  if (cell.value != value) tell_others(fiber);
  cell.value = value;
}

// A fiber that yields waits until anything changes. It then looks again, and may yield again.
void Machine::tell_others(int fiber) {
  for (int i = 0; i < fibers; ++i) threads[at(i)].stale |= i != fiber;
}

uint64_t Machine::load(int fiber, Cell& cell, std::memory_order order) {
  Thread& thread = threads[at(fiber)];
  for (auto entry = thread.buffer.rbegin(); entry != thread.buffer.rend(); ++entry) {
    if (entry->cell != &cell) continue;
    return entry->value;
  }
  learn(fiber, cell, order);
  return cell.value;
}

void Machine::store(int fiber, Cell& cell, uint64_t value, std::memory_order order) {
  cell.known = releases(order) ? threads[at(fiber)].known : Known{};
  change(fiber, cell, value);
}

void Machine::buffer(int fiber, Cell& cell, uint64_t value, std::memory_order order) {
  Thread& thread = threads[at(fiber)];
  thread.buffer.push_back({&cell, value, releases(order) ? thread.known : Known{}});
}

uint64_t Machine::modify(int fiber, Cell& cell, uint64_t (*to)(uint64_t, uint64_t), uint64_t operand,
                         std::memory_order order) {
  const uint64_t before = cell.value;
  learn(fiber, cell, order);
  // The new value keeps what was released with the old one.
  if (releases(order)) join(cell.known, threads[at(fiber)].known);
  change(fiber, cell, to(before, operand));
  return before;
}

void Machine::begin_barrier(int fiber) {
  Thread& thread = threads[at(fiber)];
  for (int other = 0; other < fibers; ++other) {
    thread.awaited[at(other)] = static_cast<uint8_t>(threads[at(other)].buffer.size());
  }
}

bool Machine::park(int fiber, Cell& cell, uint64_t seen, bool forever) {
  if (cell.value != seen) return false;
  Thread& thread = threads[at(fiber)];
  thread.parked = &cell;
  thread.parked_forever = forever;
  ++cell.parked;
  tell_others(fiber);
  return true;
}

void Machine::unpark(Cell& cell) {
  for (Thread& thread : threads) {
    if (thread.parked == &cell) thread.parked = nullptr;
  }
  cell.parked = 0;
}

void Machine::pass_time(int fiber, uint64_t now_ns) {
  change(fiber, time, now_ns);
  for (Thread& thread : threads) {
    if (thread.parked == nullptr || thread.parked_forever) continue;
    --thread.parked->parked;
    thread.parked = nullptr;
  }
}

std::string Machine::name_of(const Cell& cell) const {
  const auto name = names_.find(&cell);
  return name != names_.end() ? name->second : "cell " + std::to_string(cell.id);
}

std::string Machine::access(int fiber, const void* data, bool write) {
  if (fiber >= kTouchers) return "only the first fibers may touch plain data";
  const auto [found, added] = pieces_.try_emplace(data, static_cast<int>(pieces_.size()));
  if (pieces_.size() > kPlain) std::abort();
  const int piece = found->second;
  Thread& self = threads[at(fiber)];
  for (int other = 0; other < kTouchers; ++other) {
    for (const bool written : {false, true}) {
      if ((!write && !written) || has(self.known, bit_of(piece, other, written))) continue;
      const auto name = names_.find(data);
      return std::string("fiber ") + std::to_string(fiber) + (write ? " writes " : " reads ") +
             (name != names_.end() ? name->second : "plain data " + std::to_string(piece)) +
             ", which fiber " + std::to_string(other) + (written ? " writes" : " reads") +
             ": nothing puts that before or after";
    }
  }
  const int bit = bit_of(piece, fiber, write);
  for (Thread& thread : threads) {
    clear(thread.known, bit);
    for (Buffered& entry : thread.buffer) clear(entry.known, bit);
  }
  for (Cell* cell : cells_) clear(cell->known, bit);
  set(self.known, bit);
  return {};
}

uint64_t Machine::hash() const {
  // Facts that all fibers know make no difference any more.
  Known old;
  old.fill(~uint64_t{0});
  for (int i = 0; i < fibers && i < kTouchers; ++i) {
    if (threads[at(i)].finished) continue;
    for (std::size_t k = 0; k < old.size(); ++k) old[k] &= threads[at(i)].known[k];
  }
  uint64_t hash = 0;
  for (const uint64_t content : contents_) hash = mixed(hash, content);
  const auto add = [&](const Known& known) {
    if (!exact) return;
    for (std::size_t k = 0; k < old.size(); ++k) hash = mixed(hash, known[k] & ~old[k]);
  };
  for (const Cell* cell : cells_) {
    hash = mixed(hash, cell->value);
    add(cell->known);
  }
  for (int i = 0; i < fibers; ++i) {
    const Thread& thread = threads[at(i)];
    hash = mixed(hash, thread.notes);
    hash =
        mixed(hash, static_cast<uint64_t>(thread.finished) | static_cast<uint64_t>(thread.stale) << 1 |
                        (thread.parked != nullptr ? static_cast<uint64_t>(thread.parked->id + 1) << 8 : 0));
    add(thread.known);
    for (const Buffered& entry : thread.buffer) {
      hash = mixed(mixed(hash, static_cast<uint64_t>(entry.cell->id)), entry.value);
      add(entry.known);
    }
    for (const uint8_t left : thread.awaited) hash = mixed(hash, left);
  }
  return hash;
}

}  // namespace dist::model

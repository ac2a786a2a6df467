// SPDX-License-Identifier: Apache-2.0
// The counterpart of core/comm/sync.hpp's OsSync on the explorer's machine: every operation is a step that
// the explorer grants.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "core/base/status.hpp"
#include "core/comm/signature.hpp"
#include "tests/model/explorer.hpp"

namespace dist::model {

template <class T>
class ModelAtomic {
 public:
  explicit ModelAtomic(T value) {
    Explorer::current().machine().add_cell(cell_, static_cast<uint64_t>(value));
  }
  ModelAtomic(const ModelAtomic&) = delete;
  ModelAtomic& operator=(const ModelAtomic&) = delete;

  T load(std::memory_order order) const {
    Explorer& explorer = Explorer::current();
    if (explorer.running() < 0 || is_hint(order)) return static_cast<T>(cell_.value);
    explorer.step(Kind::kLoad, &cell_, "");
    const uint64_t value = explorer.machine().load(explorer.running(), cell_, order);
    explorer.note(value);
    return static_cast<T>(value);
  }

  void store(T value, std::memory_order order) {
    Explorer& explorer = Explorer::current();
    const auto to = static_cast<uint64_t>(value);
    if (is_hint(order)) return;
    if (explorer.running() < 0) {
      cell_.value = to;
    } else if (explorer.machine().weak && order != std::memory_order_seq_cst) {
      explorer.step(Kind::kBuffer, &cell_, "");
      explorer.note(to);
      explorer.machine().buffer(explorer.running(), cell_, to, order);
    } else {
      explorer.step(Kind::kStore, &cell_, "");
      explorer.note(to);
      explorer.machine().store(explorer.running(), cell_, to, order);
    }
  }

  T fetch_add(T operand, std::memory_order order) {
    return modify([](uint64_t value, uint64_t by) { return uint64_t{static_cast<T>(value + by)}; }, operand,
                  order);
  }
  T fetch_sub(T operand, std::memory_order order) {
    return modify([](uint64_t value, uint64_t by) { return uint64_t{static_cast<T>(value - by)}; }, operand,
                  order);
  }

  bool compare_exchange_strong(T& expected, T desired, std::memory_order order) {
    Explorer& explorer = Explorer::current();
    explorer.step(Kind::kModify, &cell_, "from");
    explorer.note(cell_.value);
    if (cell_.value != static_cast<uint64_t>(expected)) {
      expected = static_cast<T>(explorer.machine().load(explorer.running(), cell_, order));
      return false;
    }
    explorer.machine().modify(
        explorer.running(), cell_, [](uint64_t, uint64_t to) { return to; }, static_cast<uint64_t>(desired),
        order);
    return true;
  }

  Cell& cell() const { return cell_; }

 private:
  // CPU numbers are hints that do not affect correctness. Accessing them is not a step, and they keep their
  // first value.
  static constexpr bool is_hint(std::memory_order order) {
    return std::is_same_v<T, int> && order == std::memory_order_relaxed;
  }
  T modify(uint64_t (*to)(uint64_t, uint64_t), T operand, std::memory_order order) {
    Explorer& explorer = Explorer::current();
    explorer.step(Kind::kModify, &cell_, "from");
    explorer.note(cell_.value);
    return static_cast<T>(
        explorer.machine().modify(explorer.running(), cell_, to, static_cast<uint64_t>(operand), order));
  }

  mutable Cell cell_;
};

struct ModelSync {
  template <class T>
  using Atomic = ModelAtomic<T>;

  static constexpr bool kSpins = false;

  static void compiler_barrier() {}

  static void rare_barrier() {
    Explorer& explorer = Explorer::current();
    explorer.step(Kind::kRareBarrier, nullptr, "");
    explorer.machine().begin_barrier(explorer.running());
    explorer.step(Kind::kBarrierEnd, nullptr, "");
  }

  // A short sleep is a poll: it also ends if something other than the word changes.
  static void park(const Atomic<uint32_t>& word, uint32_t seen, int64_t timeout_ns) {
    constexpr int64_t kLookNs = 1'000'000;
    if (timeout_ns >= 0 && timeout_ns < kLookNs) return yield();
    Explorer& explorer = Explorer::current();
    explorer.step(Kind::kPark, &word.cell(), timeout_ns < 0 ? "for good" : "for a while");
    if (!explorer.machine().park(explorer.running(), word.cell(), seen, timeout_ns < 0)) return;
    explorer.step(Kind::kNone, nullptr, "again");
  }

  static void unpark_all(const Atomic<uint32_t>& word) {
    Explorer& explorer = Explorer::current();
    explorer.step(Kind::kUnpark, &word.cell(), "");
    explorer.machine().unpark(word.cell());
  }

  static void yield() {
    Explorer& explorer = Explorer::current();
    explorer.step(Kind::kYield, nullptr, "");
    explorer.machine().looked(explorer.running());
  }
  static void pause() {}
  static void prefetch(const void*) {}

  // Time stands still, except in scenarios in which a fiber advances it.
  static int64_t now_ns() {
    Explorer& explorer = Explorer::current();
    Machine& machine = explorer.machine();
    if (!machine.timed || explorer.running() < 0) return static_cast<int64_t>(machine.time.value);
    explorer.step(Kind::kLoad, &machine.time, "");
    const uint64_t now = machine.load(explorer.running(), machine.time, std::memory_order_relaxed);
    // The members of the group store times.
    machine.keeps_time(explorer.running(), now);
    return static_cast<int64_t>(now);
  }
  static int cpu() { return 0; }
  static CpuSet allowed_cpus() { return {}; }
  static bool move_to(const CpuSet&) { return false; }

  template <class T>
  static void reading(const T& data) {
    touch(&data, false);
  }
  template <class T>
  static void writing(const T& data) {
    touch(&data, true);
  }
  // The content of a report depends on which members its writer saw, so it is part of the state.
  static void writing(const ErrorRecord& record) {
    touch(&record, true);
    Explorer& explorer = Explorer::current();
    if (explorer.running() >= 0) explorer.machine().holds(&record, hash_of(record));
  }

  static uint64_t hash_of(const ErrorRecord& record) {
    uint64_t hash =
        mixed(static_cast<uint64_t>(record.code),
              static_cast<uint64_t>(record.culprit.replica) << 32 | static_cast<uint32_t>(record.collective));
    hash = mixed(hash, static_cast<uint64_t>(record.sequence));
    for (const char* text : {record.message, record.tag, record.expected, record.received, record.hint}) {
      for (; *text != '\0'; ++text) hash = mixed(hash, static_cast<unsigned char>(*text));
      hash = mixed(hash, 0);
    }
    return hash;
  }

 private:
  static void touch(const void* data, bool write) {
    Explorer& explorer = Explorer::current();
    if (explorer.running() < 0) return;
    std::string race = explorer.machine().access(explorer.running(), data, write);
    if (!race.empty()) explorer.fault(std::move(race));
  }
};

}  // namespace dist::model

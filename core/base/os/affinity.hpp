// SPDX-License-Identifier: Apache-2.0
// CPU sets, and threads that are bound to them.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace dist {

// CPUs by the system's numbers.
class CpuSet {
 public:
  static constexpr int kMost = 1024;

  void add(int cpu) noexcept {
    if (cpu >= 0 && cpu < kMost) words_[index(cpu)] |= bit(cpu);
  }
  void add(const CpuSet& cpus) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= cpus.words_[i];
  }
  void remove(const CpuSet& cpus) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= ~cpus.words_[i];
  }
  void keep(const CpuSet& cpus) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= cpus.words_[i];
  }
  bool has(int cpu) const noexcept { return cpu >= 0 && cpu < kMost && (words_[index(cpu)] & bit(cpu)) != 0; }
  int count() const noexcept;
  bool operator==(const CpuSet&) const noexcept = default;

 private:
  static std::size_t index(int cpu) noexcept { return static_cast<std::size_t>(cpu) / 64; }
  static uint64_t bit(int cpu) noexcept { return uint64_t{1} << (cpu % 64); }

  std::array<uint64_t, kMost / 64> words_{};
};

// "0-3, 6", cut where there is no room.
void list_cpus(const CpuSet& cpus, std::span<char> out) noexcept;

// The affinity mask of the calling thread, and with it that of the process's first one. Empty where the system does not
// tell.
CpuSet cpus_of_this_thread() noexcept;
CpuSet cpus_of_process() noexcept;

// Moves the calling thread to one of these CPUs, of its own or not; where it may run afterwards is as before, also where
// another thread changes that meanwhile, but for the very moment of the move. False where the system refuses, or there is
// none.
bool step_onto(const CpuSet& cpus) noexcept;

// CPUs for a thread that does something for a while: those of its own that are in the set, or exactly those of the set.
enum class Bounds : uint8_t { kOwn, kExact };

// While it lives, the calling thread runs only there; afterwards on all CPUs that it had before. Where there are none,
// or the system refuses, nothing happens.
class OnCpus {
 public:
  explicit OnCpus(const CpuSet& cpus, Bounds bounds = Bounds::kOwn) noexcept;
  ~OnCpus();
  OnCpus(const OnCpus&) = delete;
  OnCpus& operator=(const OnCpus&) = delete;

 private:
  CpuSet before_;
  bool moved_ = false;
};

// Adds to by_cpu[cpu] how many threads of this process, of those whose names begin so, may run on that CPU
// alone. Counts none where the system does not tell.
void count_pinned(const char* prefix, std::span<int> by_cpu) noexcept;

}  // namespace dist

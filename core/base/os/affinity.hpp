// SPDX-License-Identifier: Apache-2.0
// Sets of CPUs, and threads that are bound to them.
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
  bool has(int cpu) const noexcept { return cpu >= 0 && cpu < kMost && (words_[index(cpu)] & bit(cpu)) != 0; }
  int count() const noexcept;

 private:
  static std::size_t index(int cpu) noexcept { return static_cast<std::size_t>(cpu) / 64; }
  static uint64_t bit(int cpu) noexcept { return uint64_t{1} << (cpu % 64); }

  std::array<uint64_t, kMost / 64> words_{};
};

// While it lives, the calling thread runs only on those of its CPUs that are in the set; afterwards on all
// that it had before. Where it may use none of them, or the system refuses, nothing happens.
class OnCpus {
 public:
  explicit OnCpus(const CpuSet& cpus) noexcept;
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

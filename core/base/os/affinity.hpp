// SPDX-License-Identifier: Apache-2.0
// CPU sets, and threads that are bound to them.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace dist {

// A set of CPUs, by the system's numbers.
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

// Writes, for example, "0-3, 6", truncated if necessary.
void list_cpus(const CpuSet& cpus, std::span<char> out) noexcept;

// cpus_of_this_thread() returns the affinity mask of the calling thread, and cpus_of_process() adds the mask of
// the initial thread. Both return an empty set if the system provides no masks.
CpuSet cpus_of_this_thread() noexcept;
CpuSet cpus_of_process() noexcept;

// Moves the calling thread to one of these CPUs, which need not be in its mask, and restores its mask. If
// another thread changes the mask meanwhile, that change is kept, unless it happens at the very moment of the
// move. Returns false if the system refuses, or the set is empty.
bool step_onto(const CpuSet& cpus) noexcept;

// Which CPUs of a set a thread uses for a while: only those that are also in its own mask, or exactly those
// of the set.
enum class Bounds : uint8_t { kOwn, kExact };

// While an object of this class exists, the calling thread runs only on these CPUs; afterwards its mask is
// restored. Does nothing if the set is empty or the system refuses.
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

// Adds to by_cpu[cpu] the number of this process's threads whose name begins with `prefix` and that may only
// run on that CPU. Adds nothing if the system does not provide this.
void count_pinned(const char* prefix, std::span<int> by_cpu) noexcept;

}  // namespace dist

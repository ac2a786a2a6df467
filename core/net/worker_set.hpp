// SPDX-License-Identifier: Apache-2.0
// WorkerSet: a set of workers, by their numbers in the cluster. It grows with the numbers that it contains.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dist {

class WorkerSet {
 public:
  bool operator[](std::size_t worker) const noexcept {
    return worker / kBits < words_.size() && (words_[worker / kBits] >> worker % kBits & 1) != 0;
  }
  void set(std::size_t worker, bool contained = true) {
    if (worker / kBits >= words_.size()) {
      if (!contained) return;
      words_.resize(worker / kBits + 1);
    }
    const uint64_t bit = uint64_t{1} << worker % kBits;
    words_[worker / kBits] = contained ? words_[worker / kBits] | bit : words_[worker / kBits] & ~bit;
  }
  void reset(std::size_t worker) noexcept {
    if ((*this)[worker]) words_[worker / kBits] &= ~(uint64_t{1} << worker % kBits);
  }
  void reset() noexcept { words_.clear(); }
  std::size_t count() const noexcept {
    std::size_t count = 0;
    for (const uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
    return count;
  }
  bool any() const noexcept { return count() != 0; }
  bool none() const noexcept { return !any(); }

  WorkerSet& operator|=(const WorkerSet& other) {
    if (words_.size() < other.words_.size()) words_.resize(other.words_.size());
    for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  WorkerSet& operator&=(const WorkerSet& other) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.word(i);
    return *this;
  }
  // Removes the workers of `other`.
  WorkerSet& operator-=(const WorkerSet& other) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.word(i);
    return *this;
  }
  friend WorkerSet operator|(WorkerSet a, const WorkerSet& b) { return a |= b; }
  friend WorkerSet operator&(WorkerSet a, const WorkerSet& b) noexcept { return a &= b; }
  friend WorkerSet operator-(WorkerSet a, const WorkerSet& b) noexcept { return a -= b; }

 private:
  static constexpr std::size_t kBits = 64;
  uint64_t word(std::size_t i) const noexcept { return i < words_.size() ? words_[i] : 0; }

  std::vector<uint64_t> words_;
};

}  // namespace dist

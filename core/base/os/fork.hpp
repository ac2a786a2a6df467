// SPDX-License-Identifier: Apache-2.0
// Detects a forked child without a system call. Threads do not survive a fork, so in a child every call on a
// strategy's handles must fail and must never wait.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dist {

// The process id. This is a system call.
int64_t process_id() noexcept;

// Words that read as zero in a forked child, whatever they contain in the parent. Each has a pair of cache
// lines of its own.
class WipedWords {
 public:
  using Word = std::atomic<std::uintptr_t>;

  explicit WipedWords(int count) noexcept;
  ~WipedWords();
  WipedWords(const WipedWords&) = delete;
  WipedWords& operator=(const WipedWords&) = delete;

  // NULL if the system cannot wipe memory, or has no memory left.
  Word* at(int index) noexcept {
    return page_ == nullptr ? nullptr : page_ + static_cast<std::size_t>(index) * kStep;
  }
  const Word* first() const noexcept { return page_; }

 private:
  static constexpr std::size_t kStep = 128 / sizeof(Word);

  Word* page_ = nullptr;
  std::size_t bytes_ = 0;
};

// forked() returns true in every child that was forked after this object was created.
class ForkGuard {
 public:
  ForkGuard() noexcept;
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  bool forked() const noexcept {
    // relaxed: the word was written only once, before other threads could access the object.
    if (const WipedWords::Word* word = word_.first(); word != nullptr) [[likely]]
      return word->load(std::memory_order_relaxed) == 0;
    return another_process();
  }

 private:
  bool another_process() const noexcept;

  WipedWords word_{1};
  int64_t process_;  // compared if the system cannot wipe memory
};

}  // namespace dist

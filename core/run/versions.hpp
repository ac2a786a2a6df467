// SPDX-License-Identifier: Apache-2.0
// Versions: a series of what is replaced while runs see it, of which one is the latest. run_pins.hpp has what runs see.
//
// Whoever lets go of a version does so in two steps: under whatever locks it is no longer in use, and outside of all of
// them the host's function ends it (Unseen).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/comm/word.hpp"

namespace dist {

class Unseen;
class Versions;

class Version final : public Counted {
 public:
  using Release = void (*)(void* content, void* user_data);  // the host's

  // In use as the latest one.
  Version(Memory& memory, Versions& series, void* content, Release ending, void* user_data) noexcept
      : Counted(memory),
        series_(Ref<Versions>::share(&series)),
        content_(content),
        release_(ending),
        user_data_(user_data) {}

  Versions& series() const noexcept { return *series_; }
  void* content() const noexcept { return content_; }
  int64_t number() const noexcept { return number_; }

 private:
  friend class Unseen;
  friend class Versions;
  ~Version() override = default;

  const Ref<Versions> series_;
  void* const content_;
  const Release release_;
  void* const user_data_;
  int64_t number_ = 0;
  std::atomic<int64_t> uses_{1};  // as the latest, and by each run that sees it
  // Of those that have not been released, by number.
  Version* next_ = nullptr;
  Version* previous_ = nullptr;
  Version* next_unseen_ = nullptr;
};

// Versions that nobody uses any more. Its end, which is outside of all locks, releases them.
class Unseen {
 public:
  Unseen() noexcept = default;
  ~Unseen() {
    if (first_ != nullptr) [[unlikely]]
      release();
  }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;

  // One use is over. Also under locks.
  void let_go(Version& version) noexcept;
  // What the other one has.
  void take(Unseen& other) noexcept;
  void release() noexcept;

 private:
  Version* first_ = nullptr;
};

class Versions final : public Counted {
 public:
  explicit Versions(Memory& memory) noexcept : Counted(memory) {}

  // Throws std::bad_alloc, and nothing has changed.
  void publish(void* content, Version::Release ending, void* user_data, int64_t* out_number);
  // The number of the latest one; 0: there is none.
  int64_t latest() const noexcept { return number_.load(std::memory_order_acquire); }
  // The latest one, with a use of it for the caller; NULL: there is none.
  Version* see_latest() noexcept;
  // Until all before `number` have been released, at most `timeout_ns` (0: not at all; < 0: no limit).
  Status await(int64_t number, int64_t timeout_ns) noexcept;
  // Nobody publishes any more, nor begins to see one.
  void close() noexcept;

 private:
  friend class Unseen;
  ~Versions() override = default;
  void forget(Version& version) noexcept;
  Status still_seen(int64_t number, int64_t timeout_ns) noexcept;

  std::mutex mutex_;  // what follows; the number is written under it
  Version* latest_ = nullptr;
  Version* first_ = nullptr;  // of those that have not been released, by number
  Version* last_ = nullptr;
  std::atomic<int64_t> number_{0};
  Word released_;  // how often one has been
};

}  // namespace dist

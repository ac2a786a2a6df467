// SPDX-License-Identifier: Apache-2.0
// A series of versions: data that is replaced while runs use it. The latest version is the one that new runs
// see; run_pins.hpp records which version each run sees.
//
// Invariant: the host's release callback is never called under a lock. Releasing therefore takes two steps: a
// use ends under any locks, and `Unseen` collects the versions without users and releases them outside of all
// locks.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/intrusive_list.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/comm/word.hpp"

namespace dist {

class Unseen;
class Versions;

class Version final : public Counted, private ListLink<Versions> {
 public:
  using Release = void (*)(void* content, void* user_data);  // the host's

  // Starts with one use: being the latest version.
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
  friend class IntrusiveList<Version, Versions>;
  ~Version() override = default;

  const Ref<Versions> series_;
  void* const content_;
  const Release release_;
  void* const user_data_;
  int64_t number_ = 0;
  std::atomic<int64_t> uses_{1};  // being the latest one, and each run that sees it
  Version* next_unseen_ = nullptr;
};

// Collects versions without users. Its destructor, which must run outside of all locks, releases them.
class Unseen {
 public:
  Unseen() noexcept = default;
  ~Unseen() {
    if (first_ != nullptr) [[unlikely]]
      release();
  }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;

  // Ends one use. May be called under locks.
  void let_go(Version& version) noexcept;
  // Takes over the versions of `other`.
  void take(Unseen& other) noexcept;
  void release() noexcept;

 private:
  Version* first_ = nullptr;
};

class Versions final : public Counted {
 public:
  explicit Versions(Memory& memory) noexcept : Counted(memory) {}

  // Throws std::bad_alloc and then changes nothing.
  void publish(void* content, Version::Release ending, void* user_data, int64_t* out_number);
  // The number of the latest version; 0 if there is none.
  int64_t latest() const noexcept { return number_.load(std::memory_order_acquire); }
  // The latest version, with a use that the caller must end; NULL if there is none.
  Version* see_latest() noexcept;
  // Waits until all versions before `number` are released, at most `timeout_ns` (0: do not wait; < 0: no
  // limit).
  Status await(int64_t number, int64_t timeout_ns) noexcept;
  // Refuses further versions and readers.
  void close() noexcept;

 private:
  friend class Unseen;
  ~Versions() override = default;
  void forget(Version& version) noexcept;
  Status still_seen(int64_t number, int64_t timeout_ns) noexcept;

  std::mutex mutex_;  // protects the members below; the number is written under it
  Version* latest_ = nullptr;
  IntrusiveList<Version, Versions> unreleased_;  // by number
  std::atomic<int64_t> number_{0};
  Word released_;  // counts released versions
};

}  // namespace dist

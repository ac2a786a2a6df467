// SPDX-License-Identifier: Apache-2.0
// LibraryThread: a thread that libdist creates for a member of a pool.
//
// Invariant: the object waits for its thread before it is destroyed, unless it has left the thread alone. Such a thread
// holds a reference to the keeper and releases it when it ends.
//
// | state | entered by            | the thread                                               |
// |-------|-----------------------|----------------------------------------------------------|
// | none  | join(), leave_alone() | does not exist, or no longer belongs to the object       |
// | owned | start()               | runs, or has ended and waits for join(); see has_ended() |
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "core/base/memory.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/status.hpp"

namespace dist {

class LibraryThread {
 public:
  struct Settings {
    std::size_t stack_bytes = 0;   // 0: system default
    const CpuSet* cpus = nullptr;  // that it may use; NULL: those of the thread that creates it
    int cpu = -1;                  // that it is bound to; -1: none
    char name[16] = "";
  };

  LibraryThread() noexcept = default;
  ~LibraryThread() { forget(); }
  LibraryThread(const LibraryThread&) = delete;
  LibraryThread& operator=(const LibraryThread&) = delete;

  // The thread calls a copy of `main`, which is kept in `memory`.
  template <class Main>
  Status start(Memory& memory, Counted& keeper, const Settings& settings, const Main& main) noexcept {
    static_assert(std::is_trivially_destructible_v<Main>);
    forget();
    void* const place = memory.try_allocate(sizeof(LifeOf<Main>), alignof(LifeOf<Main>));
    if (place == nullptr) return out_of_memory();
    auto* const life = new (place) LifeOf<Main>(keeper, memory, main);
    life_ = life;
    return start_thread(&LifeOf<Main>::live, life, settings);
  }
  bool started() const noexcept { return thread_.started(); }
  // Must be called for a started thread that was not left alone.
  bool has_ended() const noexcept { return life_->fate.load(std::memory_order_acquire) == kEnded; }
  void join() noexcept { thread_.join(); }
  // Stops waiting for the thread. Returns false if it has ended.
  bool leave_alone() noexcept;

 private:
  enum : uint32_t { kOwned, kOrphan, kEnded };
  // Shared by the object and the thread. It frees itself if the thread was left alone.
  struct Life {
    Life(Counted& its_keeper, Memory& its_memory, std::size_t its_bytes, std::size_t its_align) noexcept
        : keeper(its_keeper), memory(its_memory), bytes(its_bytes), align(its_align) {}
    // Called when the thread is done.
    void end() noexcept;
    void free() noexcept;

    Counted& keeper;
    Memory& memory;
    const std::size_t bytes;
    const std::size_t align;
    std::atomic<uint32_t> fate{kOwned};
  };
  // Ends the life also if the thread ends in the middle of its function.
  struct Ending {
    ~Ending() { life.end(); }
    Life& life;
  };
  template <class Main>
  struct LifeOf : Life {
    LifeOf(Counted& its_keeper, Memory& its_memory, const Main& its_main) noexcept
        : Life(its_keeper, its_memory, sizeof(LifeOf), alignof(LifeOf)), main(its_main) {}
    static void* live(void* argument) {
      auto& life = *static_cast<LifeOf*>(argument);
      const Ending ending{life};
      block_async_signals();
      life.main();
      return nullptr;
    }
    const Main main;
  };

  Status start_thread(void* (*main)(void*), void* argument, const Settings& settings) noexcept;
  void forget() noexcept;

  Thread thread_;
  Life* life_ = nullptr;
};

}  // namespace dist

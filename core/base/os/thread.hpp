// SPDX-License-Identifier: Apache-2.0
// Operating system threads: creation, names, signal masks and stack sizes.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "core/base/os/affinity.hpp"
#include "core/base/status.hpp"

namespace dist {

// A number that no other living thread has, and that is never 0 or 1. Costs one instruction where the
// compiler knows the register that threads are told apart by.
inline std::uintptr_t this_thread() noexcept {
#if defined(__x86_64__) || defined(__aarch64__)
  return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
#else
  thread_local const char here = 0;
  return reinterpret_cast<std::uintptr_t>(&here);
#endif
}

// Shown by ps and debuggers; cut to what the system takes (15 bytes on Linux).
void name_this_thread(const char* name) noexcept;

// Leaves asynchronous signals to the host's threads. Synchronous ones (SEGV, BUS, FPE, ILL, TRAP, ABRT, PROF,
// URG) stay open: a JVM and Go turn them into exceptions and need them on every thread.
void block_async_signals() noexcept;

// Gives up the processor to whoever else can run.
void yield_this_thread() noexcept;

// Whether this is the thread that the process began with.
bool is_first_thread() noexcept;

// Thread-specific data of the system's: `end` is called with what is set, when a thread ends that has set it.
class ThreadKey {
 public:
  explicit ThreadKey(void (*end)(void*)) noexcept;
  // False where the system has no further key.
  bool set(void* value) const noexcept;

 private:
  unsigned key_ = 0;
  bool made_;
};

// Has End() called when this thread ends. It may be asked by what runs at the end itself, a destructor of the
// host's thread-specific data, and is then called after that: a thread_local's destructor never would be.
// False where the system has no further key.
template <void (*End)()>
bool call_at_thread_end() noexcept {
  static thread_local constinit bool asked = false;
  static const ThreadKey kKey([](void*) {
    asked = false;
    End();
  });
  if (asked) return true;
  if (is_first_thread()) {  // for which the system calls no such thing where the process ends
    struct AtExit {
      ~AtExit() { End(); }
    };
    [[maybe_unused]] static thread_local const AtExit at_exit;
    asked = true;
  } else {
    asked = kKey.set(&asked);
  }
  return asked;
}

// The smallest stack that a thread of the library does with: what the system takes for itself, thread-local
// data and signal frames included, and what the library's own calls and a modest function of the host's need.
std::size_t least_stack_bytes() noexcept;

// A thread of the system. Unlike std::thread, one that cannot be had is a status.
class Thread {
 public:
  Thread() noexcept = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // Runs main(argument). `stack_bytes` 0: as much as the system gives by default. `cpus`: where it may run from its
  // first instruction on; NULL: where the calling thread may. RESOURCE_EXHAUSTED where the system gives no further thread.
  Status start(void* (*main)(void*), void* argument, std::size_t stack_bytes = 0,
               const CpuSet* cpus = nullptr) noexcept;
  bool started() const noexcept { return started_; }
  // Of a thread that is started: what ps and debuggers show, and the one CPU, by the system's number, that it
  // is kept on. Who made it does both, so that others see them once it is made. False where the system
  // refuses.
  void name(const char* name) noexcept;
  bool keep_on(int cpu) noexcept;
  // Waits for its end; it may be started again. Nothing happens where it was not started.
  void join() noexcept;
  // Nobody waits for its end.
  void detach() noexcept;

 private:
  pthread_t handle_{};
  bool started_ = false;
};

}  // namespace dist

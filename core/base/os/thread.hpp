// SPDX-License-Identifier: Apache-2.0
// Operating system threads: creation, names, signal masks and stack sizes.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstddef>
#include <cstdint>

#include "core/base/os/affinity.hpp"
#include "core/base/status.hpp"

namespace dist {

// A number that is unique among the living threads and never 0 or 1. Costs one instruction if the compiler
// knows the thread pointer register.
inline std::uintptr_t this_thread() noexcept {
#if defined(__x86_64__) || defined(__aarch64__)
  return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
#else
  thread_local const char here = 0;
  return reinterpret_cast<std::uintptr_t>(&here);
#endif
}

// Sets the name that ps and debuggers show, truncated to the system's limit (15 bytes on Linux).
void name_this_thread(const char* name) noexcept;

// Blocks asynchronous signals, so that the host's threads receive them. Synchronous ones (SEGV, BUS, FPE,
// ILL, TRAP, ABRT, PROF, URG) stay unblocked: a JVM and the Go runtime turn them into exceptions and need
// them on every thread.
void block_async_signals() noexcept;

// Blocks asynchronous signals on this thread during the object's lifetime, so that threads that it starts
// inherit the mask.
class AsyncSignalsBlocked {
 public:
  AsyncSignalsBlocked() noexcept;
  ~AsyncSignalsBlocked();
  AsyncSignalsBlocked(const AsyncSignalsBlocked&) = delete;
  AsyncSignalsBlocked& operator=(const AsyncSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Yields the CPU to any other runnable thread.
void yield_this_thread() noexcept;

// Whether this is the initial thread of the process.
bool is_first_thread() noexcept;

// Thread-specific data: when a thread that has set a value ends, `end` is called with that value.
class ThreadKey {
 public:
  explicit ThreadKey(void (*end)(void*)) noexcept;
  // Returns false if the system has no more keys.
  bool set(void* value) const noexcept;

 private:
  unsigned key_ = 0;
  bool made_;
};

// Arranges for End() to be called when this thread ends. A thread that is already ending, in a destructor of
// thread-specific data, may call this as well: End() still runs, but the destructor of a thread_local would
// not. Returns false if the system has no more keys.
template <void (*End)()>
bool call_at_thread_end() noexcept {
  static thread_local constinit bool asked = false;
  static const ThreadKey kKey([](void*) {
    asked = false;
    End();
  });
  if (asked) return true;
  if (is_first_thread()) {  // for which the system runs no such destructors when the process exits
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

// The smallest stack for a thread of the library. It covers what the system needs (including thread-local
// data and signal frames), the library's own calls, and a modest host function.
std::size_t least_stack_bytes() noexcept;

// The maximum number of threads that the system runs at a time, for all processes together.
int64_t most_threads() noexcept;

// A system thread. Unlike with std::thread, a failure to create one is a status.
class Thread {
 public:
  Thread() noexcept = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // Runs main(argument). stack_bytes 0 selects the system's default. `cpus` are the CPUs on which the thread
  // may run from its first instruction on; NULL: those of the calling thread. Fails with RESOURCE_EXHAUSTED
  // if the system has no more threads.
  Status start(void* (*main)(void*), void* argument, std::size_t stack_bytes = 0,
               const CpuSet* cpus = nullptr) noexcept;
  bool started() const noexcept { return started_; }
  // For a started thread: name() sets the name that ps and debuggers show, and keep_on() binds the thread to
  // a CPU (by the system's number). The creator calls both, so that the results are visible once the creation
  // is complete. keep_on() returns false if the system refuses.
  void name(const char* name) noexcept;
  bool keep_on(int cpu) noexcept;
  // Waits for the thread to end; afterwards it may be started again. Does nothing if it was not started.
  void join() noexcept;
  // Lets the thread run to completion on its own.
  void detach() noexcept;

 private:
  pthread_t handle_{};
  bool started_ = false;
};

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/thread.hpp"

#include <limits.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "core/base/os/library.hpp"

namespace dist {

namespace {

void name_thread(pthread_t thread, const char* name) noexcept {
  char cut[16];
  std::snprintf(cut, sizeof cut, "%s", name);
  pthread_setname_np(thread, cut);
}

cpu_set_t system_set(const CpuSet& cpus) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu = 0; cpu < CpuSet::kMost; ++cpu) {
    if (cpus.has(cpu)) CPU_SET(static_cast<unsigned>(cpu), &set);
  }
  return set;
}

}  // namespace

void name_this_thread(const char* name) noexcept { name_thread(pthread_self(), name); }

void block_async_signals() noexcept {
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int open : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF, SIGURG}) {
    sigdelset(&blocked, open);
  }
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

AsyncSignalsBlocked::AsyncSignalsBlocked() noexcept {
  pthread_sigmask(SIG_BLOCK, nullptr, &before_);
  block_async_signals();
}
AsyncSignalsBlocked::~AsyncSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void yield_this_thread() noexcept { sched_yield(); }

bool is_first_thread() noexcept { return gettid() == getpid(); }

static_assert(sizeof(pthread_key_t) == sizeof(unsigned));
ThreadKey::ThreadKey(void (*end)(void*)) noexcept : made_(pthread_key_create(&key_, end) == 0) {
  stay_loaded();
}
bool ThreadKey::set(void* value) const noexcept { return made_ && pthread_setspecific(key_, value) == 0; }

int64_t most_threads() noexcept {
  int64_t most = INT64_MAX;
  for (const char* const limit : {"/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"}) {
    std::FILE* const file = std::fopen(limit, "re");
    if (file == nullptr) continue;
    long long value = 0;
    if (std::fscanf(file, "%lld", &value) == 1 && value > 0) most = std::min<int64_t>(most, value);
    std::fclose(file);
  }
  return most;
}

std::size_t least_stack_bytes() noexcept {
  constexpr std::size_t kOwnBytes = std::size_t{240} << 10;
  // The macro may query the system, because some processors have large register files to save.
  return kOwnBytes + static_cast<std::size_t>(PTHREAD_STACK_MIN);
}

Status Thread::start(void* (*main)(void*), void* argument, std::size_t stack_bytes,
                     const CpuSet* cpus) noexcept {
  stay_loaded();
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error == 0) {
    if (stack_bytes != 0) error = pthread_attr_setstacksize(&attributes, stack_bytes);
    if (error == 0 && cpus != nullptr) {
      const cpu_set_t set = system_set(*cpus);
      error = pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
    }
    if (error == 0) error = pthread_create(&handle_, &attributes, main, argument);
    pthread_attr_destroy(&attributes);
  }
  started_ = error == 0;
  if (started_) return kOk;
  return fail(DIST_RESOURCE_EXHAUSTED,
              "cannot create a thread: %s. Use fewer replicas, or raise the limits of the system (ulimit -u, "
              "the cgroup's pids.max).",
              strerrorname_np(error));
}

void Thread::name(const char* name) noexcept {
  if (started_) name_thread(handle_, name);
}

bool Thread::keep_on(int cpu) noexcept {
  if (!started_ || cpu < 0 || cpu >= CPU_SETSIZE) return false;
  CpuSet one;
  one.add(cpu);
  const cpu_set_t set = system_set(one);
  return pthread_setaffinity_np(handle_, sizeof set, &set) == 0;
}

void Thread::detach() noexcept {
  if (started_) pthread_detach(handle_);
  started_ = false;
}

void Thread::join() noexcept {
  if (started_) pthread_join(handle_, nullptr);
  started_ = false;
}

}  // namespace dist

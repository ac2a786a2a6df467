// SPDX-License-Identifier: Apache-2.0
#include "core/base/arena.hpp"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <thread>

#include "core/base/os/library.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/start_arena.hpp"

namespace dist {
namespace {

// A oneTBB thread inherits its name and signal mask from whichever thread started it.
void prepare_worker() noexcept {
  thread_local bool prepared = false;
  if (prepared) return;
  prepared = true;
  name_this_thread("dist-tbb");
  block_async_signals();
}

}  // namespace

class Arena::Started final : public Counted {
 public:
  Started(Memory& memory, int max_threads) : Counted(memory) { start_arena(arena_, max_threads); }
  tbb::task_arena& arena() noexcept { return arena_; }

 private:
  tbb::task_arena arena_;
};

void start_arena(tbb::task_arena& arena, int width) {
  enum State { kNotTried, kWorks, kUnusable };
  static std::atomic<State> state{kNotTried};
  static std::mutex first;
  if (state.load(std::memory_order_acquire) != kWorks) {
    const std::lock_guard lock(first);
    if (state.load(std::memory_order_relaxed) == kUnusable) throw std::bad_alloc();
    if (state.load(std::memory_order_relaxed) == kNotTried) {
      state.store(kUnusable, std::memory_order_relaxed);
      stay_loaded();
      (void)tbb::info::default_concurrency();
      arena.initialize(width);
      state.store(kWorks, std::memory_order_release);
      return;
    }
  }
  arena.initialize(width);
}

bool Arena::start() noexcept {
  try {
    std::call_once(once_, [this] { started_ = make_counted<Started>(memory_, max_threads_); });
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

Arena::Arena(Memory& memory, int max_threads, const CpuSet* cpus, Bounds bounds,
             const Executor& executor) noexcept
    : memory_(memory),
      max_threads_(std::max(max_threads, 1)),
      cpus_(cpus),
      bounds_(bounds),
      executor_(executor) {}

Arena::~Arena() { wait_for_tasks(); }

void Arena::wait_for_tasks() const noexcept {
  // acquire: pairs with the release at the end of a task.
  while (submitted_.load(std::memory_order_acquire) != 0) yield_this_thread();
}

Status Arena::submit(Task task, void* context, uint32_t number, int copies) {
  if (!start()) return fail(DIST_RESOURCE_EXHAUSTED, "no memory: oneTBB could not start");
  try {
    for (int i = 0; i < copies; ++i) {
      submitted_.fetch_add(1, std::memory_order_relaxed);
      try {
        started_->arena().enqueue([this, task, context, number] {
          prepare_worker();
          {
            std::optional<OnCpus> here;
            if (cpus_ != nullptr) here.emplace(*cpus_, bounds_);
            task(context, number);
          }
          submitted_.fetch_sub(1, std::memory_order_release);
        });
      } catch (...) {
        submitted_.fetch_sub(1, std::memory_order_relaxed);
        throw;
      }
    }
  } catch (const std::exception& error) {
    return fail(DIST_RESOURCE_EXHAUSTED, "oneTBB could not take a task: %s", error.what());
  }
  return kOk;
}

Status Arena::parallel_for(int64_t begin, int64_t end, int64_t grain, Part part, const void* context) {
  if (begin >= end) return kOk;
  // Unsigned, counted from 0: the distance between two int64_t may exceed INT64_MAX.
  const uint64_t n = static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
  const auto least = static_cast<uint64_t>(std::max<int64_t>(grain, 1));
  const auto at = [begin](uint64_t i) { return static_cast<int64_t>(static_cast<uint64_t>(begin) + i); };
  if (max_threads() == 1 || n < 2 * least || (executor_.execute == nullptr && !start())) {
    part(begin, end, context);
    return kOk;
  }
  try {
    if (executor_.execute != nullptr) {
      executor_.parallel_for(memory_, begin, n, least, part, context);
      return kOk;
    }
    const std::thread::id caller = std::this_thread::get_id();
    started_->arena().execute([&] {
      // Isolated: a part may hold a host's lock (in an update function), so no part of another loop may run
      // inside it.
      tbb::this_task_arena::isolate([&] {
        // Divided in halves down to 2 * least - 1 iterations, so that each half has at least `least`.
        const tbb::blocked_range<uint64_t> range(0, n, 2 * least - 1);
        tbb::parallel_for(range, [&](const tbb::blocked_range<uint64_t>& some) {
          // Isolation keeps other callers out, so a thread that is not the caller belongs to oneTBB. It is
          // bound to the CPUs only during the part: a tbb::task_arena with constraints would move the caller
          // as well, and would leave workers bound that are inside when the arena is destroyed.
          if (std::this_thread::get_id() == caller) return part(at(some.begin()), at(some.end()), context);
          prepare_worker();
          std::optional<OnCpus> here;
          if (cpus_ != nullptr) here.emplace(*cpus_, bounds_);
          part(at(some.begin()), at(some.end()), context);
        });
      });
    });
  } catch (const std::exception& error) {
    return fail(DIST_RESOURCE_EXHAUSTED, "%s could not share out a loop over %d threads: %s",
                executor_.execute != nullptr ? "the host's executor" : "oneTBB", max_threads(), error.what());
  }
  return kOk;
}

}  // namespace dist

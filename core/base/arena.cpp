// SPDX-License-Identifier: Apache-2.0
#include "core/base/arena.hpp"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/os/library.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/start_arena.hpp"

namespace dist {
namespace {

// Prepares a oneTBB thread, which would otherwise keep the name and signal mask of the thread that started
// it.
void prepare_worker() noexcept {
  thread_local bool prepared = false;
  if (prepared) return;
  prepared = true;
  name_this_thread("dist-tbb");
  block_async_signals();
}

}  // namespace

// Tasks that were submitted, in order. A oneTBB thread takes one task for each closure that was enqueued, and
// wait_for_tasks() takes the tasks that oneTBB has not started. Each closure keeps this object alive, because
// oneTBB may run it after the arena was destroyed. For the same reason the object is not in the host's
// memory.
class Arena::Tasks {
 public:
  struct Item {
    Task task;
    void* context;
    uint32_t number;
    uint64_t ticket;
  };

  uint64_t add(Task task, void* context, uint32_t number) {
    const std::lock_guard lock(mutex_);
    if (first_ > 0 && items_.size() == items_.capacity()) {  // reuse the room of those that were taken
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    items_.push_back({task, context, number, ++tickets_});
    unfinished_.fetch_add(1, std::memory_order_relaxed);
    return tickets_;
  }

  // Returns false if the task has already been taken.
  bool remove(uint64_t ticket) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(items_.begin() + static_cast<std::ptrdiff_t>(first_), items_.end(),
                                    [&](const Item& item) { return item.ticket == ticket; });
    if (found == items_.end()) return false;
    items_.erase(found);
    finish();
    return true;
  }

  // Takes the oldest task. Returns false if no task is left.
  bool take(Item* out) noexcept {
    const std::lock_guard lock(mutex_);
    if (first_ == items_.size()) return false;
    *out = items_[first_++];
    if (first_ == items_.size()) {
      items_.clear();
      first_ = 0;
    }
    return true;
  }

  // These three count the closures that oneTBB holds.
  void hand_over() noexcept { closures_.fetch_add(1, std::memory_order_relaxed); }
  void came_back() noexcept { closures_.fetch_sub(1, std::memory_order_release); }
  bool all_came_back() const noexcept { return closures_.load(std::memory_order_acquire) == 0; }

  // release: what the task did happens before everything that follows a wait for it.
  void finish() noexcept { unfinished_.fetch_sub(1, std::memory_order_release); }
  bool all_finished() const noexcept { return unfinished_.load(std::memory_order_acquire) == 0; }

 private:
  std::mutex mutex_;
  std::vector<Item> items_;
  std::size_t first_ = 0;  // tasks before this index were taken
  uint64_t tickets_ = 0;
  std::atomic<int> unfinished_{0};
  std::atomic<int> closures_{0};
};

class Arena::Started final : public Counted {
 public:
  Started(Memory& memory, int max_threads) : Counted(memory) { arena_.start(max_threads); }
  TbbArena& arena() noexcept { return arena_; }
  const std::shared_ptr<Tasks>& tasks() const noexcept { return tasks_; }

 private:
  std::shared_ptr<Tasks> tasks_ = std::make_shared<Tasks>();
  TbbArena arena_;
};

namespace {

constinit std::atomic<bool> given_up{false};

}  // namespace

bool TbbArena::usable() noexcept { return !given_up.load(std::memory_order_relaxed); }
void TbbArena::give_up() noexcept { given_up.store(true, std::memory_order_relaxed); }

void TbbArena::start(int width) {
  static std::atomic<bool> works{false};
  static std::mutex first;
  if (!usable()) throw std::bad_alloc();
  if (!works.load(std::memory_order_acquire)) {
    const std::lock_guard lock(first);
    if (!usable()) throw std::bad_alloc();
    if (!works.load(std::memory_order_relaxed)) {
      stay_loaded();
      try {
        (void)tbb::info::default_concurrency();
        arena_.initialize(width);
      } catch (...) {
        give_up();
        throw;
      }
      works.store(true, std::memory_order_release);
      return;
    }
  }
  arena_.initialize(width);
}

bool Arena::start() noexcept {
  if (!TbbArena::usable()) return false;
  try {
    std::call_once(once_, [this] {
      started_ = make_counted<Started>(memory_, max_threads_);
      has_started_.store(true, std::memory_order_release);
    });
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

Arena::~Arena() {
  wait_for_tasks();
  if (!has_started_.load(std::memory_order_acquire)) return;
  // oneTBB frees an arena only after it has run everything that was enqueued there.
  while (!started_->tasks()->all_came_back() && TbbArena::usable()) yield_this_thread();
}

void Arena::wait_for_tasks() const noexcept {
  if (!has_started_.load(std::memory_order_acquire)) return;
  Tasks& tasks = *started_->tasks();
  for (Tasks::Item item; tasks.take(&item);) {
    item.task(item.context, item.number);
    tasks.finish();
  }
  while (!tasks.all_finished()) yield_this_thread();
}

Status Arena::submit(Task task, void* context, uint32_t number, int copies) {
  if (!start()) return fail(DIST_RESOURCE_EXHAUSTED, "out of memory: oneTBB could not start");
  const std::shared_ptr<Tasks>& tasks = started_->tasks();
  try {
    for (int i = 0; i < copies; ++i) {
      const uint64_t ticket = tasks->add(task, context, number);
      tasks->hand_over();
      try {
        started_->arena().enqueue([this, tasks] {
          Tasks::Item item;
          const bool taken = tasks->take(&item);
          tasks->came_back();
          if (!taken) return;  // this arena may no longer exist
          prepare_worker();
          {
            std::optional<OnCpus> here;
            if (cpus_ != nullptr) here.emplace(*cpus_, bounds_);
            item.task(item.context, item.number);
          }
          tasks->finish();
        });
      } catch (...) {
        if (tasks->remove(ticket)) throw;
      }
    }
  } catch (const std::exception& error) {
    return fail(DIST_RESOURCE_EXHAUSTED, "oneTBB could not take a task: %s", error.what());
  }
  return kOk;
}

Status Arena::parallel_for(int64_t begin, int64_t end, int64_t grain, Part part, const void* context) {
  if (begin >= end) return kOk;
  // Indices are unsigned and start at 0, because the distance between two int64_t may exceed INT64_MAX.
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
    started_->arena().get().execute([&] {
      // Isolated: a part may hold a host lock (in an update function), so no part of another loop may run
      // inside it.
      tbb::this_task_arena::isolate([&] {
        // The range is divided in halves down to 2 * least - 1 iterations, so that each half has at least
        // `least`.
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
    if (executor_.execute == nullptr) started_->arena().abandon();
    return fail(DIST_RESOURCE_EXHAUSTED, "%s could not divide a loop among %d threads: %s",
                executor_.execute != nullptr ? "the host's executor" : "oneTBB", max_threads(), error.what());
  }
  return kOk;
}

}  // namespace dist

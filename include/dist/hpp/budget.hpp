// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/budget.hpp: budgets (budget.h) and executors (strategy.h): which threads strategies use, and how many.
//
//     dist::budget budget(8);
//     dist::executor pool(3, [&](dist::task task) { return threads.try_post(task); });
//     dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
//     cpu.budget = budget.get();
//     dist_host_options host = DIST_HOST_OPTIONS_INIT;
//     host.executor = pool.get();
//     dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
//     options.cpu = &cpu;
//     options.host = &host;
//     dist::strategy strategy(options);
#ifndef DIST_HPP_BUDGET_HPP
#define DIST_HPP_BUDGET_HPP

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "error.hpp"

namespace dist {

// One thread's part of a loop. Can be copied freely. Call it exactly once, on any thread, now or later, even after the
// strategy and the executor have been destroyed.
class task {
 public:
  task(dist_task_fn fn, void *data) noexcept : fn_(fn), data_(data) {}
  void operator()() const noexcept { fn_(data_); }

 private:
  dist_task_fn fn_;
  void *data_;
};

// Your own threads for loops, for dist_host_options.executor. It must outlive the strategies that use it, including
// those that a shutdown has left because functions were still running.
class executor {
 public:
  // Calls execute(task) on the thread that starts a loop, once for each of at most `num_threads` helper threads.
  // execute() schedules the task. If it returns bool, false means that the task will not be called. An exception
  // refuses the task, too; the task must then not be called. The exception is discarded, and the loop continues without
  // that thread.
  template <class Execute, class = std::enable_if_t<std::is_invocable_v<std::decay_t<Execute> &, task>>>
  executor(int32_t num_threads, Execute &&execute)
      : execute_(std::make_unique<std::function<bool(task)>>(accepting(std::forward<Execute>(execute)))) {
    c_.num_threads = num_threads;
    c_.execute = call;
    c_.user_data = execute_.get();
  }

  [[nodiscard]] const dist_executor *get() const noexcept { return &c_; }

 private:
  template <class Execute>
  static std::function<bool(task)> accepting(Execute &&execute) {
    if constexpr (std::is_void_v<std::invoke_result_t<std::decay_t<Execute> &, task>>) {
      return [execute = std::forward<Execute>(execute)](task given) mutable {
        execute(given);
        return true;
      };
    } else {
      return std::forward<Execute>(execute);
    }
  }
  static int32_t call(dist_task_fn fn, void *task_data, void *user_data) {
    try {
      return (*static_cast<std::function<bool(task)> *>(user_data))(task(fn, task_data)) ? 0 : 1;
#if defined(__GLIBCXX__)
    } catch (const abi::__forced_unwind &) {  // the thread is being cancelled; must not be caught
      throw;
#endif
    } catch (...) {
      return 1;
    }
  }

  std::unique_ptr<std::function<bool(task)>>
      execute_;  // its address stays the same when the executor is moved
  dist_executor c_ = DIST_EXECUTOR_INIT;
};

// Limits the threads of strategies; for dist_cpu_options.budget. The strategies keep it alive.
class budget {
 public:
  explicit budget(int32_t threads) { check(dist_budget_create(nullptr, threads, &handle_)); }
  budget(int32_t threads, const dist_allocator &allocator) {
    check(dist_budget_create(&allocator, threads, &handle_));
  }
  ~budget() { dist_budget_destroy(handle_); }
  budget(budget &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  budget &operator=(budget &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  budget(const budget &) = delete;
  budget &operator=(const budget &) = delete;

  [[nodiscard]] dist_budget *get() const noexcept { return handle_; }

 private:
  dist_budget *handle_ = nullptr;
};

}  // namespace dist

#endif  // DIST_HPP_BUDGET_HPP

// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/budget.hpp: budget.h for C++, and strategy.h's executors: whose threads strategies take, and how many of them.
//
//     dist::budget budget(8);
//     dist::executor pool(3, [&](dist::task task) { return threads.try_post(task); });
//     dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
//     options.budget = budget.get();
//     options.executor = pool.get();
//     dist::strategy strategy(options);
#ifndef DIST_HPP_BUDGET_HPP
#define DIST_HPP_BUDGET_HPP

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "error.hpp"

namespace dist {

// A thread's part in a loop, to copy at will: called once, on any thread, now or at any later time, also when the strategy and
// the executor have ended.
class task {
 public:
  task(dist_task_fn fn, void *data) noexcept : fn_(fn), data_(data) {}
  void operator()() const noexcept { fn_(data_); }

 private:
  dist_task_fn fn_;
  void *data_;
};

// For dist_strategy_options.executor: the host's own threads for loops. It must live until the strategies that have it have
// ended, also those that a shutdown has left to their functions.
class executor {
 public:
  // execute(task), on the thread that begins a loop, for each of at most `num_threads` threads that may help: has the task
  // called. What gives a bool says false where the task will not be called; what throws has refused it too, and must not
  // have it called. Nobody gets the exception: the loop does without.
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
    } catch (const abi::__forced_unwind &) {  // the thread ends: that is not for anybody to catch
      throw;
#endif
    } catch (...) {
      return 1;
    }
  }

  std::unique_ptr<std::function<bool(task)>> execute_;  // where it stays when the executor is moved
  dist_executor c_ = DIST_EXECUTOR_INIT;
};

}  // namespace dist
#endif  // DIST_HPP_BUDGET_HPP

// ---- Experimental: what follows may change or go in any version, as types.h says

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_HPP_BUDGET_EXPERIMENTAL_HPP)
#define DIST_HPP_BUDGET_EXPERIMENTAL_HPP

#include <cstdint>
#include <utility>

#include "error.hpp"

namespace dist {

// For dist_strategy_options.budget, which holds it.
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
#endif  // DIST_HPP_BUDGET_EXPERIMENTAL_HPP

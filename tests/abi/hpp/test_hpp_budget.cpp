// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp: budgets that strategies share, and loops on host threads.
#include "hpp_support.hpp"

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace {

using dist::replica;
using dist::task;

dist::strategy sharing(const dist::budget &budget, int32_t replicas) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  options.cpu = &cpu;
  options.num_replicas = replicas;
  cpu.budget = budget.get();
  return dist::strategy(options);
}

void a_budget_of_one_lets_one_in() {
  dist::budget made(1);
  dist::budget budget = std::move(made);
  assert_null(made.get());
  const dist::strategy first = sharing(budget, 1), second = sharing(budget, 1);
  budget = dist::budget(1);  // the strategies keep the old one
  std::atomic<int> inside{0}, most{0}, runs{0};
  const auto run_often = [&](const dist::strategy &strategy) {
    for (int i = 0; i < 200; i++) {
      strategy.run([&](replica) {
        const int now = ++inside;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        --inside;
        ++runs;
      });
    }
  };
  std::thread other([&] { run_often(second); });
  run_often(first);
  other.join();
  assert_int_equal(most.load(), 1);
  assert_int_equal(runs.load(), 400);
}

void wrong_budgets_are_refused() {
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::budget(0));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::budget(65537));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT,
                dist::budget(1, dist_allocator{nullptr, [](void *, size_t, size_t, void *) {}, nullptr}));
}

// ---- Executors

constexpr int64_t kLength = 1 << 14;

dist::strategy with_executor(const dist::executor &executor) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = 2;
  host.executor = executor.get();
  return dist::strategy(options);
}

// Visits every index of a loop once.
void loop(const dist::strategy &strategy) {
  strategy.run([](replica here) {
    std::vector<std::atomic<int>> marks(kLength);
    here.parallel_for(0, kLength, 16, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; i++) marks[static_cast<size_t>(i)]++;
    });
    for (const auto &mark : marks) REQUIRE(mark == 1);
  });
}

void loops_are_shared_with_the_hosts_threads() {
  std::mutex mutex;
  std::vector<std::thread> threads;
  {
    dist::executor made(3, [&](task given) {
      const std::lock_guard<std::mutex> lock(mutex);
      threads.emplace_back(given);
    });
    const dist::executor executor = std::move(made);
    loop(with_executor(executor));
  }
  assert_true(threads.size() >= 3);
  for (std::thread &each : threads) each.join();  // some end after the strategy
}

// A host thread takes part: the second half of the loop waits for it.
void a_task_does_a_part_of_the_loop() {
  std::vector<std::thread> threads;
  {
    const dist::executor executor(1, [&](task given) { threads.emplace_back(given); });
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_host_options host = DIST_HOST_OPTIONS_INIT;
    options.host = &host;
    options.num_replicas = 1;
    host.executor = executor.get();
    const dist::strategy strategy(options);
    std::atomic<int> there{0};
    strategy.run([&](replica here) {
      here.parallel_for(0, 2, 1, [&](int64_t, int64_t) noexcept {
        for (++there; there < 2;) std::this_thread::yield();
      });
    });
  }
  for (std::thread &each : threads) each.join();
}

void executors_may_refuse() {
  std::atomic<int> asked{0};
  const dist::executor none(7, [&](task) {
    ++asked;
    return false;
  });
  loop(with_executor(none));
  const dist::executor throwing(7, [&](task) {
    ++asked;
    throw std::runtime_error("the pool is full");
  });
  loop(with_executor(throwing));
  const dist::executor at_once(7, [&](task given) {
    ++asked;
    given();
    return true;
  });
  loop(with_executor(at_once));
  assert_true(asked >= 3);
}

void tasks_may_come_when_all_is_over() {
  std::mutex mutex;
  std::vector<task> kept;
  {
    const dist::executor executor(2, [&](task given) {
      const std::lock_guard<std::mutex> lock(mutex);
      kept.push_back(given);
    });
    loop(with_executor(executor));
  }
  assert_false(kept.empty());
  for (const task &each : kept) each();
}

void wrong_executors_are_refused() {
  for (const int32_t strange : {0, -1, 65536}) {
    const dist::executor executor(strange, [](task given) { given(); });
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, with_executor(executor));
  }
}

void host_threads_may_be_helped() {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = 1;
  options.threads = DIST_THREADS_HOST;
  host.helper_threads = 1;
  const dist::strategy strategy(options);
  strategy.enter(0, [](replica here) {
    std::atomic<int64_t> sum{0};
    here.parallel_for(0, kLength, 16, [&](int64_t begin, int64_t end) noexcept { sum += end - begin; });
    REQUIRE(sum == kLength);
  });
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      HPP_TEST(a_budget_of_one_lets_one_in),
      HPP_TEST(wrong_budgets_are_refused),
      HPP_TEST(loops_are_shared_with_the_hosts_threads),
      HPP_TEST(a_task_does_a_part_of_the_loop),
      HPP_TEST(executors_may_refuse),
      HPP_TEST(tasks_may_come_when_all_is_over),
      HPP_TEST(wrong_executors_are_refused),
      HPP_TEST(host_threads_may_be_helped),
  };
  return cmocka_run_group_tests_name("dist.hpp: budgets and executors", tests, nullptr, nullptr);
}

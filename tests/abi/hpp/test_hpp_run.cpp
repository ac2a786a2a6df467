// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp: runs with arguments and results, deadlines, host threads, and exceptions in each of them.
#include "hpp_support.hpp"

#include <atomic>
#include <condition_variable>
#include <future>
#include <thread>

namespace {

constexpr int32_t R = 3;
using dist::reduce_op;
using dist::replica;
using dist::value;

void arguments_and_results() {
  const dist::strategy strategy(2);
  const value parts = value::per_replica(strategy, {scalar(strategy, 1.0F), scalar(strategy, 2.0F)});
  const value args = value::list(strategy, {parts, scalar(strategy, 10.0F)});
  const value kwargs = value::dict(strategy, {{"scale", scalar(strategy, 3.0F)}});
  const value sums = strategy.run_values(
      [](replica replica, const value &positional, const value &named) {
        const float sum = scalar_of<float>(positional[0]) + scalar_of<float>(positional[1]);
        return scalar(replica.strategy(), sum * scalar_of<float>(named["scale"]));
      },
      args, kwargs);
  assert_int_equal(sums.kind(), DIST_VALUE_PER_REPLICA);
  assert_true(scalar_of<float>(sums[0]) == 33 && scalar_of<float>(sums[1]) == 36);

  // References to arguments outlive the run. If all replicas return one object, the result is this object.
  value kept;
  const value same = strategy.run_values(
      [&](replica replica, const value &positional) {
        if (replica.id() == 0) kept = positional[0];
        return positional[1];
      },
      args);
  assert_true(same == args[1] && same != kept);
  assert_true(scalar_of<float>(kept) == 1);
  assert_false(static_cast<bool>(strategy.run_values([](replica, const value &) {})));
  // A single value is the only argument.
  std::atomic<std::size_t> arguments{0};
  strategy.run_values([&](replica, const value &positional) { arguments += positional.size(); }, parts);
  assert_int_equal(arguments, 2);  // one on each replica
}

void failing_runs() {
  const dist::strategy strategy(R);
  const auto throws = [](replica replica, const value &) {
    if (replica.id() == 2) throw own_error("row 7 is missing");
    replica.barrier();
  };
  REQUIRE_OWN_ERROR("row 7 is missing", strategy.run_values(throws));
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.timeout_ns = 60'000'000'000;
  REQUIRE_OWN_ERROR("row 7 is missing", strategy.run_values(throws, {}, {}, options));
}

void cancelled_runs() {
  const dist::strategy strategy(R);
  const dist::cancel stop;
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.cancel = stop.get();
  std::atomic<int> calls{0};
  strategy.run([&](replica) { ++calls; }, options);
  assert_int_equal(calls.load(), R);
  assert_false(stop.signalled());
  REQUIRE_ERROR(DIST_CANCELLED, strategy.run(
                                    [&](replica replica) {
                                      if (replica.id() == 1) stop.signal("enough");
                                      replica.barrier();
                                    },
                                    options));
  assert_true(stop.signalled());
  REQUIRE_ERROR(DIST_CANCELLED,
                strategy.run_values([&](replica, const value &) { ++calls; }, {}, {}, options));
  options.timeout_ns = 60'000'000'000;
  REQUIRE_ERROR(DIST_CANCELLED, strategy.run([&](replica) { ++calls; }, options));
  options.cancel = nullptr;
  strategy.run([&](replica) { ++calls; }, options);
  assert_int_equal(calls.load(), 2 * R);

  // A collective's own cancel object: all members are cancelled, although only one passed it.
  dist::cancel meeting{dist_allocator{}};
  dist::cancel moved = std::move(meeting);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, moved.signal(std::string("no\0more", 7)));
  assert_false(moved.signalled());
  moved.signal(std::string("no more"));
  REQUIRE_ERROR(DIST_CANCELLED, strategy.run([&](replica replica) {
    dist::collective_options with;
    if (replica.id() == 0) with.cancel = moved.get();
    replica.barrier(with);
  }));
}

void shut_down() {
  dist::strategy idle(2);
  idle.run([](replica replica) { replica.barrier(); });
  idle.shutdown(-1);
  REQUIRE_ERROR(DIST_CANCELLED, idle.run([](replica) {}));
  idle.destroy();
  assert_null(idle.get());

  dist::strategy stuck(2);
  const dist::strategy_ref handle(stuck.get());
  std::promise<void> inside;
  std::promise<void> let_out;
  dist_status seen = DIST_OK;
  std::thread caller([&] {
    try {
      handle.run([&](replica replica) {
        if (replica.id() != 1) return replica.barrier();
        inside.set_value();
        let_out.get_future().wait();
        replica.barrier();
      });
    } catch (const dist::error &error) {
      seen = error.code();
    }
  });
  inside.get_future().wait();
  REQUIRE_ERROR(DIST_DEADLINE_EXCEEDED, stuck.shutdown(0));
  stuck.destroy();  // although a function is running
  assert_null(stuck.get());
  let_out.set_value();
  caller.join();
  assert_int_equal(seen, DIST_CANCELLED);
}

void something_that_is_no_exception() {
  const dist::strategy strategy(2);
  int caught = 0;
  try {
    strategy.run([](replica replica) {
      if (replica.id() == 1) throw 7;  // NOLINT
      replica.barrier();
    });
  } catch (int number) {
    caught = number;
  }
  assert_int_equal(caught, 7);
  bool no_memory = false;
  try {
    strategy.run([](replica) { throw std::bad_alloc(); });
  } catch (const std::bad_alloc &) {
    no_memory = true;
  }
  assert_true(no_memory);
  // A replica may catch an exception of libdist and continue.
  std::string reported;
  const auto caught_inside = [&](replica replica) {
    if (replica.id() == 0) throw own_error("first");
    try {
      replica.barrier();
    } catch (const dist::error &failure) {
      reported = failure.what();
      REQUIRE(failure.code() == DIST_ABORTED && failure.replica() == 0);
      throw;
    }
  };
  REQUIRE_OWN_ERROR("first", strategy.run(caught_inside));
  assert_non_null(std::strstr(reported.c_str(), "first"));
}

// After the run has returned, its function is kept until the last replica has left.
void a_run_past_its_deadline() {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  const auto held = std::make_shared<int>(7);
  {
    const dist::strategy strategy(2);
    dist_run_options options = DIST_RUN_OPTIONS_INIT;
    options.timeout_ns = 1'000'000;
    const auto waits = [&mutex, &changed, &open, held](replica replica, const value &) {
      if (replica.id() == 0) return;
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return open; });
    };
    REQUIRE_ERROR(DIST_DEADLINE_EXCEEDED, strategy.run_values(waits, {}, {}, options));
    REQUIRE_ERROR(DIST_FAILED_PRECONDITION, strategy.run([](replica) {}));
    assert_true(held.use_count() > 2);  // that of the test, the lambda and the run
    {
      const std::lock_guard<std::mutex> lock(mutex);
      open = true;
      changed.notify_all();
    }
    until_they_are_out([&] { strategy.run([](replica) {}); });
  }
  assert_int_equal(held.use_count(), 1);
}

// A run whose turn does not come in time never starts, and releases its function at once.
void a_run_too_late_to_begin() {
  const dist::strategy strategy(2);
  std::atomic<bool> inside{false}, over{false};
  std::thread earlier([&] {
    strategy.run([&](replica) {
      inside = true;
      while (!over) std::this_thread::yield();
    });
  });
  while (!inside) std::this_thread::yield();
  const auto held = std::make_shared<int>(7);
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.timeout_ns = 1'000'000;
  dist_status code = DIST_OK;
  int32_t left_inside = -1;
  try {
    strategy.run_values([held](replica, const value &) {}, {}, {}, options);
  } catch (const dist::error &failure) {
    code = failure.code();
    left_inside = failure.inside();
  }
  over = true;
  earlier.join();
  assert_int_equal(code, DIST_DEADLINE_EXCEEDED);
  assert_int_equal(left_inside, 0);
  assert_int_equal(held.use_count(), 1);
}

void cancelled_from_outside() {
  const dist::strategy strategy(2);
  std::atomic<bool> inside{false}, cancelled{false};
  std::thread host([&] {
    while (!inside) std::this_thread::yield();
    strategy.cancel();
    cancelled = true;
  });
  dist_status code = DIST_OK;
  try {
    strategy.run([&](replica replica) {
      inside = true;
      while (!cancelled) std::this_thread::yield();
      replica.barrier();
    });
  } catch (const dist::error &failure) {
    code = failure.code();
  }
  host.join();
  assert_int_equal(code, DIST_CANCELLED);
}

void host_threads() {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  options.threads = DIST_THREADS_HOST;
  const dist::strategy strategy(options);
  const auto on_both = [&](const std::function<void(replica)> &body) {
    std::array<std::exception_ptr, 2> thrown;
    const auto enter = [&](int32_t id) {
      try {
        strategy.enter(id, body);
      } catch (...) {
        thrown[static_cast<std::size_t>(id)] = std::current_exception();
      }
    };
    std::thread other(enter, 1);
    enter(0);
    other.join();
    return thrown;
  };
  std::array<int32_t, 2> sums{};
  const auto fine = on_both([&](replica replica) {
    int32_t sum = replica.id() + 1;
    replica.all_reduce(reduce_op::sum, dist::tensor(&sum, {}));
    sums[static_cast<std::size_t>(replica.id())] = sum;
  });
  assert_true(!fine[0] && !fine[1] && sums[0] == 3 && sums[1] == 3);

  const auto failed = on_both([](replica replica) {
    if (replica.id() == 1) throw own_error("the host's own");
    replica.barrier();
  });
  REQUIRE_OWN_ERROR("the host's own", std::rethrow_exception(failed[1]));
  REQUIRE_ERROR(DIST_ABORTED, std::rethrow_exception(failed[0]));
  // A replica without an error of its own gets that of the run.
  const auto told = on_both([](replica replica) {
    if (replica.id() == 1) throw own_error("late");
  });
  REQUIRE_OWN_ERROR("late", std::rethrow_exception(told[1]));
  REQUIRE_ERROR(DIST_UNKNOWN, std::rethrow_exception(told[0]));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, strategy.enter(2, [](replica) {}));
}

// A function continues on another thread, and then again on its own.
void another_thread() {
  const dist::strategy strategy(2);
  strategy.run([](replica replica) {
    replica.detach();
    std::exception_ptr thrown;
    std::thread([&] {
      try {
        replica.attach();
        replica.barrier();
        replica.detach();
      } catch (...) {
        thrown = std::current_exception();
      }
    }).join();
    REQUIRE_ERROR(DIST_FAILED_PRECONDITION, replica.barrier());
    replica.attach();
    if (thrown) std::rethrow_exception(thrown);
    replica.barrier();
  });
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      HPP_TEST(arguments_and_results),
      HPP_TEST(failing_runs),
      HPP_TEST(cancelled_runs),
      HPP_TEST(shut_down),
      HPP_TEST(something_that_is_no_exception),
      HPP_TEST(a_run_past_its_deadline),
      HPP_TEST(a_run_too_late_to_begin),
      HPP_TEST(cancelled_from_outside),
      HPP_TEST(host_threads),
      HPP_TEST(another_thread),
  };
  return cmocka_run_group_tests_name("dist.hpp: runs", tests, nullptr, nullptr);
}

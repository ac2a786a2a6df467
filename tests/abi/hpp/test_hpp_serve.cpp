// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp: requests, each of which runs on one idle replica, and the state of instances.
#include "hpp_support.hpp"

#include <poll.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using dist::replica;
using dist::request;

// One thread opens it, and others wait for it.
class gate {
 public:
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void await() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

dist::strategy on_library_threads(int32_t replicas) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = replicas;
  options.threads = DIST_THREADS_LIBRARY;
  return dist::strategy(options);
}

// A state that can only be moved.
struct model {
  std::unique_ptr<std::string> name;
  std::shared_ptr<std::atomic<int>> alive;
  int answers = 0;

  model(std::string of, std::shared_ptr<std::atomic<int>> count)
      : name(std::make_unique<std::string>(std::move(of))), alive(std::move(count)) {
    ++*alive;
  }
  model(model &&other) noexcept = default;
  ~model() {
    if (alive != nullptr) --*alive;
  }
};

void a_function_runs_once() {
  const dist::strategy strategy = on_library_threads(2);
  std::atomic<int> calls{0};
  auto owned = std::make_unique<int>(7);
  request first = strategy.submit([&calls, given = std::move(owned)](replica here) {
    here.check();
    std::atomic<int64_t> sum{0};
    here.parallel_for(0, 100, 10, [&](int64_t begin, int64_t end) noexcept { sum += end - begin; });
    calls += *given == 7 && here.num_replicas() > 0 && sum == 100;
    REQUIRE_ERROR(DIST_FAILED_PRECONDITION, here.barrier());
    REQUIRE(here.instance_state() == nullptr);
    REQUIRE_ERROR(DIST_FAILED_PRECONDITION, dist::instance_state<int>(here));
  });
  assert_true(static_cast<bool>(first) && first.get() != nullptr && first.user_data() == nullptr);
  request same = std::move(first);
  same.wait(-1);
  assert_true(same.test());
  assert_int_equal(calls, 1);
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.priority = DIST_PRIORITY_MAX + 1;
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, strategy.submit([](replica) {}, options));
  options.priority = DIST_PRIORITY_MAX;
  std::vector<request> requests;
  requests.push_back(strategy.submit([](replica) {}, options));
  assert_int_equal(dist::wait_any(requests, -1), 0);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::strategy_ref().submit([](replica) {}));
}

void what_it_throws_is_the_requests() {
  const dist::strategy strategy = on_library_threads(1);
  const request failing = strategy.submit([](replica) { throw own_error("mine"); });
  const request other = strategy.submit([](replica) { throw dist::error(DIST_NOT_FOUND, "no row 7"); });
  const request well = strategy.submit([](replica) {});
  REQUIRE_OWN_ERROR("mine", failing.wait(-1));
  REQUIRE_OWN_ERROR("mine", failing.test());
  REQUIRE_ERROR(DIST_NOT_FOUND, other.wait(-1));
  well.wait(-1);
}

void instances_have_states() {
  const dist::strategy strategy = on_library_threads(2);
  auto alive = std::make_shared<std::atomic<int>>(0);
  std::atomic<int> warm{0};
  {
    dist::instances opened(
        strategy, [&](replica here) { return model("m" + std::to_string(here.id()), alive); },
        [&](replica here) {
          warm += *dist::instance_state<model>(here).name == "m" + std::to_string(here.id());
        });
    assert_int_equal(*alive, 2);
    assert_int_equal(warm, 2);
    std::atomic<int> answers{0};
    for (int i = 0; i < 20; ++i) {
      strategy
          .submit([&](replica here) {
            auto &mine = dist::instance_state<model>(here);
            REQUIRE(*mine.name == "m" + std::to_string(here.id()));
            ++mine.answers;
            ++answers;
          })
          .wait(-1);
    }
    assert_int_equal(answers, 20);
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT,
                  strategy.submit([](replica here) { (void)dist::instance_state<int>(here); }).wait(-1));
    REQUIRE_ERROR(DIST_FAILED_PRECONDITION, dist::instances(strategy));
    dist::instances moved = std::move(opened);
  }
  assert_int_equal(*alive, 0);
  REQUIRE_ERROR(DIST_UNAVAILABLE, strategy.submit([](replica) {}));
  // Exceptions of a maker are rethrown, and the instances can be opened again.
  REQUIRE_OWN_ERROR("no model", dist::instances(strategy, [](replica here) -> int {
                      if (here.id() == 1) throw own_error("no model");
                      return 1;
                    }));
  REQUIRE_OWN_ERROR("cold", dist::instances(
                                strategy, [&](replica) { return model("m", alive); },
                                [](replica) { throw own_error("cold"); }));
  assert_int_equal(*alive, 0);
  dist_instances_options options = DIST_INSTANCES_OPTIONS_INIT;
  options.max_queued = -1;
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::instances(strategy, options));
  options.max_queued = 4;
  dist::instances again(
      strategy, [](replica) { return 3; }, [](replica) {}, options);
  strategy.submit([](replica here) { REQUIRE(dist::instance_state<int>(here) == 3); }).wait(-1);
  again.close(1000000000);
}

void whoever_is_cancelled_ends() {
  const dist::strategy strategy = on_library_threads(1);
  gate inside, released;
  std::atomic<int> calls{0};
  {
    const request held = strategy.submit([&](replica) {
      inside.open();
      released.await();
    });
    inside.await();
    const request queued = strategy.submit([&](replica) { ++calls; });
    queued.cancel();
    REQUIRE_ERROR(DIST_CANCELLED, queued.wait(-1));
    dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
    options.timeout_ns = 1;
    REQUIRE_ERROR(DIST_DEADLINE_EXCEEDED, strategy.submit([&](replica) { ++calls; }, options).wait(-1));
    const dist::cancel stop;
    options.timeout_ns = 0;
    options.cancel = stop.get();
    const request stopped = strategy.submit([&](replica) { ++calls; }, options);
    stop.signal("the client is gone");
    const std::string said = REQUIRE_ERROR(DIST_CANCELLED, stopped.wait(-1));
    assert_non_null(strstr(said.c_str(), "the client is gone"));
    (void)strategy.submit([&](replica) { ++calls; });  // the handle is dropped, which cancels the request
    released.open();
  }
  assert_int_equal(calls, 0);
  // A running request is asked to end, and destroying its handle waits for its function.
  gate runs;
  std::atomic<bool> told{false};
  {
    const request running = strategy.submit([&](replica here) {
      runs.open();
      try {
        for (;;) here.check();
      } catch (const dist::error &why) {
        told = why.code() == DIST_CANCELLED;
        throw;
      }
    });
    runs.await();
  }
  assert_true(told);
}

void what_has_ended_arrives() {
  const dist::strategy strategy = on_library_threads(2);
  dist::instances opened(strategy, [](replica) { return 0; });
  constexpr int N = 1000;
  std::vector<int> answers(N, 0);
  {
    dist::completions completions;
    assert_false(static_cast<bool>(completions.next(0)));
    assert_non_null(completions.get());
    const dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
    for (int i = 0; i < N; ++i) {
      int *const answer = &answers[static_cast<std::size_t>(i)];
      strategy.submit(
          completions, [answer](replica) { *answer += 1; }, options, answer);
    }
    pollfd each{};
    each.fd = completions.descriptor();
    each.events = POLLIN;
    for (int taken = 0; taken < N;) {
      assert_int_equal(poll(&each, 1, -1), 1);
      while (const request ended = completions.next(0)) {
        ended.wait();
        *static_cast<int *>(ended.user_data()) += 1;
        ++taken;
      }
    }
    for (const int answer : answers) assert_int_equal(answer, 2);
    strategy.submit(completions, [](replica) { throw own_error("mine"); });
    REQUIRE_OWN_ERROR("mine", completions.next().wait());
    strategy.submit(completions, [&](replica) { answers[0] = 9; });
  }
  assert_int_equal(answers[0], 9);  // destroying the queue has waited for it
  dist_submit_options wrong = DIST_SUBMIT_OPTIONS_INIT;
  wrong.done = [](dist_request *, void *) {};
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, strategy.submit([](replica) {}, wrong));
  opened.close();
  dist::completions none;
  REQUIRE_ERROR(DIST_UNAVAILABLE, strategy.submit(none, [](replica) {}));
}

void the_end_is_told() {
  const dist::strategy strategy = on_library_threads(1);
  gate told, failed;
  std::atomic<bool> well{false}, mine{false};
  auto owned = std::make_shared<int>(1);
  strategy.submit_then([owned](replica) {},
                       [&, owned](const request &ended) noexcept {
                         try {
                           well = ended.test();
                         } catch (...) {
                         }
                         told.open();
                       });
  told.await();
  assert_true(well);
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.priority = 1;
  strategy.submit_then([owned](replica) { throw own_error("mine"); },
                       [&, owned](const request &ended) noexcept {
                         try {
                           (void)ended.test();
                         } catch (const own_error &) {
                           mine = true;
                         } catch (...) {
                         }
                         failed.open();
                       },
                       options);
  failed.await();
  assert_true(mine);
  strategy.close_instances();
  assert_int_equal(owned.use_count(), 1);
}

void threads_of_the_host_serve() {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  options.threads = DIST_THREADS_HOST;
  const dist::strategy strategy(options);
  dist_instances_options host = DIST_INSTANCES_OPTIONS_INIT;
  host.helper_threads = 1;
  std::atomic<int> ready{0}, failed{0};
  dist::instances opened(
      strategy, [](replica here) { return here.id(); }, [&](replica) { ++ready; }, host);
  std::vector<std::thread> threads;
  for (int32_t id = 0; id < 2; ++id) {
    threads.emplace_back([&, id] {
      try {
        strategy.serve(id);
      } catch (const std::exception &) {
        ++failed;
      }
    });
  }
  std::atomic<int> calls{0};
  for (int i = 0; i < 10; ++i) strategy.submit([&](replica) { ++calls; }).wait(-1);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, strategy.serve(2));
  while (ready < 2) std::this_thread::yield();
  opened.close();
  for (std::thread &each : threads) each.join();
  assert_int_equal(calls, 10);
  assert_int_equal(failed, 0);
}

// In a replica, which must not wait, dropping a handle only cancels the request.
void dropped_inside_a_replica() {
  const dist::strategy strategy = on_library_threads(1);
  auto owned = std::make_shared<int>(1);
  gate inside;
  const request outer = strategy.submit([&, owned](replica here) {
    (void)here.strategy().submit([owned](replica) {});
    inside.open();
  });
  inside.await();
  outer.wait(-1);
  strategy.close_instances();
  assert_int_equal(owned.use_count(), 2);  // ours and that of the function of `outer`
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      HPP_TEST(a_function_runs_once),      HPP_TEST(what_it_throws_is_the_requests),
      HPP_TEST(instances_have_states),     HPP_TEST(whoever_is_cancelled_ends),
      HPP_TEST(what_has_ended_arrives),    HPP_TEST(the_end_is_told),
      HPP_TEST(threads_of_the_host_serve), HPP_TEST(dropped_inside_a_replica),
  };
  return cmocka_run_group_tests_name("dist.hpp: requests", tests, nullptr, nullptr);
}

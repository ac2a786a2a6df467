// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp: versions of an object that is replaced while replicas read it.
#include "hpp_support.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using dist::replica;
using dist::versions;

dist::strategy on_library_threads(int32_t replicas) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = replicas;
  options.threads = DIST_THREADS_LIBRARY;
  return dist::strategy(options);
}

// A model whose two parts are equal as long as it is intact.
struct model {
  int64_t first, second;
  std::shared_ptr<std::atomic<int>> ended;

  model(int64_t number, std::shared_ptr<std::atomic<int>> counts)
      : first(number), second(number), ended(std::move(counts)) {}
  model(model &&) = default;
  model &operator=(model &&) = delete;
  ~model() {
    first = -1;
    if (ended != nullptr) ++*ended;
  }
};

void a_swap_under_load() {
  const auto ended = std::make_shared<std::atomic<int>>(0);
  const dist::strategy strategy = on_library_threads(2);
  {
    versions<model> made, models;
    made = std::move(models);
    models = std::move(made);
    assert_int_equal(models.latest(), 0);
    assert_int_equal(models.publish(model(1, ended)), 1);
    std::vector<dist::request> requests;
    std::atomic<int64_t> most{0};
    for (int64_t number = 2; number <= 50; ++number) {
      for (int i = 0; i < 4; ++i) {
        requests.push_back(strategy.submit([&](replica here) {
          const auto before = here.version(models);
          std::this_thread::yield();
          const auto after = here.version(models);
          REQUIRE(before.content == after.content && before.number == after.number);
          REQUIRE(before->first == before->second && before->first == before.number);
          int64_t known = most.load();
          while (known < before.number && !most.compare_exchange_weak(known, before.number)) {
          }
        }));
      }
      assert_int_equal(models.publish(std::make_shared<model>(number, ended)), number);
      assert_int_equal(models.latest(), number);
    }
    models.await(50);
    assert_int_equal(*ended, 49);
    for (const dist::request &each : requests) each.wait(-1);
    strategy.submit([&](replica here) { REQUIRE(here.version(models).number == 50); }).wait(-1);
    REQUIRE(most <= 50);
    assert_int_equal(*ended, 49);
  }
  assert_int_equal(*ended, 50);
}

void a_version_stays_while_it_is_seen() {
  const dist::strategy strategy = on_library_threads(2);
  versions<const std::string> texts;
  const auto first = std::make_shared<const std::string>("one");
  texts.publish(first);
  strategy.run([&](replica here) {
    REQUIRE(*here.version(texts) == "one");
    here.barrier();
    if (here.id() == 0) {
      REQUIRE(texts.publish(std::string("two")) == 2);
      REQUIRE_ERROR(DIST_FAILED_PRECONDITION, texts.await(2, 0));
    }
    here.barrier();
    REQUIRE(&*here.version(texts) == first.get() && here.version(texts).number == 1);
    REQUIRE(first.use_count() == 2);
  });
  assert_int_equal(first.use_count(), 1);
  strategy.run([&](replica here) { REQUIRE(*here.version(texts) == "two"); });

  std::atomic<bool> inside{false}, go_on{false};
  const dist::request held = strategy.submit([&](replica here) {
    REQUIRE(here.version(texts).number == 2);
    inside = true;
    while (!go_on) std::this_thread::yield();
  });
  while (!inside) std::this_thread::yield();
  texts.publish(std::string("three"));
  REQUIRE_ERROR(DIST_DEADLINE_EXCEEDED, texts.await(3, 0));
  go_on = true;
  texts.await(3);
  held.wait(-1);
}

void what_is_refused() {
  const dist::strategy strategy = on_library_threads(1);
  versions<int> numbers;
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, numbers.publish(std::shared_ptr<int>()));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, numbers.await(1));
  strategy.run([&](replica here) { REQUIRE_ERROR(DIST_FAILED_PRECONDITION, here.version(numbers)); });
  numbers.publish(5);
  dist_replica *gone = nullptr;
  strategy.run([&](replica here) {
    REQUIRE(*here.version(numbers) == 5);
    gone = here.get();
  });
  REQUIRE_ERROR(DIST_FAILED_PRECONDITION, replica(gone).version(numbers));
  const versions<int> taken = std::move(numbers);
  assert_int_equal(numbers.latest(), 0);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, numbers.publish(6));
  assert_int_equal(taken.latest(), 1);
}

void memory_is_the_hosts() {
  static std::atomic<int> held{0};
  dist_allocator allocator{};
  allocator.alloc = [](size_t size, size_t, void *) {
    ++held;
    return ::operator new(size);
  };
  allocator.free = [](void *memory, size_t, size_t, void *) {
    --held;
    ::operator delete(memory);
  };
  {
    versions<int> numbers(allocator);
    numbers.publish(1);
    assert_true(held > 0);
  }
  assert_int_equal(held, 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      HPP_TEST(a_swap_under_load),
      HPP_TEST(a_version_stays_while_it_is_seen),
      HPP_TEST(what_is_refused),
      HPP_TEST(memory_is_the_hosts),
  };
  return cmocka_run_group_tests_name("dist.hpp: versions", tests, nullptr, nullptr);
}

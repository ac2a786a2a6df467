// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp: requests that are answered in batches, step by step.
#include "hpp_support.hpp"

#include <poll.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using dist::batch;
using dist::batcher;
using dist::item;
using dist::replica;

dist::strategy on_library_threads(int32_t replicas) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = replicas;
  options.threads = DIST_THREADS_LIBRARY;
  return dist::strategy(options);
}

void items_are_answered_together() {
  const dist::strategy strategy = on_library_threads(2);
  std::atomic<int> answered{0}, steps{0};
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  const int64_t buckets[] = {8, 64};
  options.buckets = buckets;
  options.num_buckets = 2;
  options.max_items = 4;
  batcher made(
      strategy,
      [&, owned = std::make_unique<int>(1)](replica here, batch &step) {
        REQUIRE(here.num_replicas() > 0 && *owned == 1 && step.size() <= 4);
        REQUIRE(step.bucket() == 8 || step.bucket() == 64);
        for (std::size_t i = 0; i < step.size(); ++i) {
          step.check(i);
          *static_cast<int *>(step.user_data(i)) += 1;
          ++answered;
        }
        REQUIRE_ERROR(DIST_INVALID_ARGUMENT, step.check(step.size()));
        ++steps;
      },
      options);
  const batcher batches = std::move(made);
  assert_true(batches.get() != nullptr);
  std::vector<int> answers(100, 0);
  std::vector<item> items;
  dist_item_options how = DIST_ITEM_OPTIONS_INIT;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    how.length = static_cast<int64_t>(i % 65);
    items.push_back(batches.submit(&answers[i], how));
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].wait(-1);
    assert_true(items[i].test() && items[i].user_data() == &answers[i] && items[i].get() != nullptr);
    assert_int_equal(answers[i], 1);
  }
  assert_int_equal(answered, 100);
  assert_in_range(steps, 25, 100);
  how.length = 65;
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, batches.submit(nullptr, how));
  const dist::batch_count now = batches.count();
  assert_int_equal(now.waiting, 0);
  assert_int_equal(now.active, 0);
}

void what_a_step_throws_is_its_items() {
  const dist::strategy strategy = on_library_threads(1);
  batcher failing(strategy, [](replica, batch &step) {
    for (std::size_t i = 0; i < step.size(); ++i) {
      if (step.user_data(i) != nullptr) step.end(i);
    }
    throw own_error("mine");
  });
  int well = 0;
  {
    const item ended = failing.submit(&well), failed = failing.submit(nullptr);
    ended.wait(-1);
    REQUIRE_OWN_ERROR("mine", failed.wait(-1));
    REQUIRE_OWN_ERROR("mine", failed.test());
    REQUIRE_ERROR(DIST_FAILED_PRECONDITION, failing.destroy());
  }
  failing.destroy();
  batcher one(strategy, [](replica, batch &step) {
    for (std::size_t i = 0; i < step.size(); ++i)
      step.end(i,
               std::make_exception_ptr(own_error("item " + *static_cast<std::string *>(step.user_data(i)))));
  });
  std::string names[] = {"a", "b"};
  const item first = one.submit(&names[0]), second = one.submit(&names[1]);
  REQUIRE_OWN_ERROR("item a", first.wait(-1));
  REQUIRE_OWN_ERROR("item b", second.wait(-1));
}

// An item's state in its instance, and the results that it emits.
struct cache {
  std::unique_ptr<int> left;
  std::shared_ptr<std::atomic<int>> alive;

  cache(int steps, std::shared_ptr<std::atomic<int>> count)
      : left(std::make_unique<int>(steps)), alive(std::move(count)) {
    ++*alive;
  }
  cache(cache &&other) noexcept = default;
  ~cache() {
    if (alive != nullptr) --*alive;
  }
};

void items_stay_and_give_results() {
  auto alive = std::make_shared<std::atomic<int>>(0);
  const dist::strategy strategy = on_library_threads(2);
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.continuous = 1;
  options.max_results = 2;
  const batcher decoding(
      strategy,
      [&](replica, batch &step) {
        for (std::size_t i = 0; i < step.size(); ++i) {
          cache *mine = step.state<cache>(i);
          if (mine == nullptr)
            mine = &step.set_state(i, cache(*static_cast<int *>(step.user_data(i)), alive));
          REQUIRE_ERROR(DIST_INVALID_ARGUMENT, step.state<int>(i));
          step.emit(i, "token " + std::to_string(--*mine->left));
          if (*mine->left == 0) step.end(i);
        }
      },
      options);
  int lengths[] = {3, 1, 5};
  {
    std::vector<item> items;
    for (int &length : lengths) items.push_back(decoding.submit(&length));
    for (std::size_t i = 0; i < items.size(); ++i) {
      for (int left = lengths[i]; left-- > 0;) {
        const std::optional<std::string> token = items[i].take<std::string>();
        assert_true(token.has_value());
        assert_string_equal(token->c_str(), ("token " + std::to_string(left)).c_str());
      }
      assert_false(items[i].take<std::string>().has_value());
      items[i].wait(-1);
    }
    // An item whose results are not taken is in no step, and its results are freed with it.
    int many = 1000;
    const item slow = decoding.submit(&many);
    slow.cancel();
    REQUIRE_ERROR(DIST_CANCELLED, slow.wait(-1));
  }
  {
    const dist::item_completions completions;
    assert_false(static_cast<bool>(completions.next(0)));
    assert_non_null(completions.get());
    decoding.submit(completions, &lengths[2]);
    pollfd each{};
    each.fd = completions.descriptor();
    each.events = POLLIN;
    int taken = 0;
    for (bool ended = false; !ended;) {
      assert_int_equal(poll(&each, 1, -1), 1);
      const item arrived = completions.next(0);
      if (!arrived) continue;
      ended = arrived.test();
      while (arrived.take<std::string>(0).has_value()) ++taken;
    }
    assert_int_equal(taken, lengths[2]);
  }
  assert_int_equal(*alive, 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      HPP_TEST(items_are_answered_together),
      HPP_TEST(what_a_step_throws_is_its_items),
      HPP_TEST(items_stay_and_give_results),
  };
  return cmocka_run_group_tests_name("dist.hpp: batches", tests, nullptr, nullptr);
}

// SPDX-License-Identifier: Apache-2.0
// Tests the explorer: it must report the group with one of its safeguards removed, and textbook errors.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <string>

#include "tests/model/round.hpp"

// Last: it makes fail a macro.
extern "C" {
#include <cmocka.h>
}

namespace dist::model {
namespace {

const Step kB{Act::kBarrier};
const Step kX{Act::kExchange};
const Step kHasty{Act::kHasty};

// Omits the rare side's half of the asymmetric barrier.
struct WithoutRareBarrier : ModelSync {
  static void rare_barrier() {}
};

// A changed word wakes no sleeper.
struct WithoutWakeUps : ModelSync {
  static void unpark_all(const Atomic<uint32_t>&) {}
};

// Sleeps even if the word has changed since it was read.
struct BlindSleep : ModelSync {
  static void park(const Atomic<uint32_t>& word, uint32_t, int64_t timeout_ns) {
    ModelSync::park(word, static_cast<uint32_t>(word.cell().value), timeout_ns);
  }
};

// Atomics with other memory orders.
template <class T, std::memory_order (*kOrder)(std::memory_order)>
struct Reordered : ModelAtomic<T> {
  using Base = ModelAtomic<T>;
  explicit Reordered(T value) : Base(value) {}
  T load(std::memory_order order) const { return Base::load(kOrder(order)); }
  void store(T value, std::memory_order order) { Base::store(value, kOrder(order)); }
  T fetch_add(T operand, std::memory_order order) { return Base::fetch_add(operand, kOrder(order)); }
  T fetch_sub(T operand, std::memory_order order) { return Base::fetch_sub(operand, kOrder(order)); }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order order) {
    return Base::compare_exchange_strong(expected, desired, kOrder(order));
  }
};

// Acquire and release where a total order is needed.
constexpr std::memory_order no_total_order(std::memory_order order) {
  return order == std::memory_order_seq_cst ? std::memory_order_acq_rel : order;
}
struct WithoutTotalOrder : ModelSync {
  template <class T>
  using Atomic = Reordered<T, no_total_order>;
};

// No order at all, so that no data is ever published.
constexpr std::memory_order relaxed(std::memory_order) { return std::memory_order_relaxed; }
struct Relaxed : ModelSync {
  template <class T>
  using Atomic = Reordered<T, relaxed>;
};

Plan of(std::vector<std::vector<Step>> programs, bool oversubscribed, bool asymmetric) {
  Plan plan;
  plan.programs = std::move(programs);
  plan.oversubscribed = oversubscribed;
  plan.asymmetric = asymmetric;
  return plan;
}

template <class Sync>
Explorer::Result explored(const Plan& plan) {
  Round<Sync> round(plan);
  return Explorer::explore_to_the_point(round.scenario(), {});
}

// Checks that the explorer reports a fault that begins with this text, and a schedule that leads to it.
template <class Sync>
void expect_fault(const Plan& plan, const char* expected) {
  const auto result = explored<Sync>(plan);
  if (result.fault.empty())
    fail_msg("nothing found in %llu states", static_cast<unsigned long long>(result.states));
  if (result.fault.find(expected) == std::string::npos)
    fail_msg("found: %s\n%s", result.fault.c_str(), result.schedule.c_str());
  assert_int_not_equal(result.schedule.size(), 0);
}

constexpr const char* kStuck = "nobody can go on";
constexpr const char* kRace = "nothing puts that before or after";

void a_missing_rare_barrier_is_found(void**) {
  expect_fault<WithoutRareBarrier>(of({{kB}, {kB}}, false, true), kStuck);
  expect_fault<WithoutRareBarrier>(of({{kB}, {kB}}, true, true), kStuck);
}

void a_touch_after_return_is_found(void**) {
  // A member that does not wait for its peers reuses its buffers while they access them.
  expect_fault<ModelSync>(of({{kHasty}, {kHasty}}, false, false), kRace);
  expect_fault<ModelSync>(of({{kHasty}, {kHasty}}, true, true), kRace);
}

void missing_wake_ups_are_found(void**) {
  expect_fault<WithoutWakeUps>(of({{kB}, {kB}}, false, false), kStuck);
  expect_fault<WithoutWakeUps>(of({{kX}, {kX}}, true, false), kStuck);
}

void blind_sleep_is_found(void**) { expect_fault<BlindSleep>(of({{kB}, {kB}}, false, false), kStuck); }

void a_missing_total_order_is_found(void**) {
  // Store, then load: both sides load before their stores are visible.
  expect_fault<WithoutTotalOrder>(of({{kB}, {kB}}, false, false), kStuck);
}

void missing_hand_overs_are_found(void**) {
  expect_fault<Relaxed>(of({{kB}, {kB}}, false, false), kRace);
  expect_fault<Relaxed>(of({{kX}, {kX}}, true, false), kRace);
}

// ---- The explorer ----

// Two fibers each store one variable and load the other. Checks whether both can load 0.
Explorer::Result store_buffering(bool weak, std::memory_order order) {
  struct Cells {
    ModelAtomic<uint32_t> x{0};
    ModelAtomic<uint32_t> y{0};
  };
  alignas(Cells) static std::byte place[sizeof(Cells)];
  static uint32_t read[2];
  Explorer::Scenario scenario;
  scenario.make = [order](Explorer& explorer) {
    auto* cells = new (place) Cells();
    explorer.add_fiber([cells, order] {
      cells->x.store(1, order);
      read[0] = cells->y.load(order == std::memory_order_release ? std::memory_order_acquire : order);
    });
    explorer.add_fiber([cells, order] {
      cells->y.store(1, order);
      read[1] = cells->x.load(order == std::memory_order_release ? std::memory_order_acquire : order);
    });
  };
  scenario.end = [] { return std::string(read[0] == 0 && read[1] == 0 ? "neither saw the other" : ""); };
  Explorer::Options options;
  options.weak = weak;
  return Explorer::explore(scenario, options);
}

void stores_wait_in_buffers(void**) {
  assert_string_equal(store_buffering(true, std::memory_order_release).fault.c_str(),
                      "neither saw the other");
  assert_true(store_buffering(false, std::memory_order_release).complete);
  assert_true(store_buffering(true, std::memory_order_seq_cst).complete);
}

}  // namespace
}  // namespace dist::model

int main() {
  using namespace dist::model;
  const CMUnitTest tests[] = {
      cmocka_unit_test(stores_wait_in_buffers),        cmocka_unit_test(a_missing_rare_barrier_is_found),
      cmocka_unit_test(a_touch_after_return_is_found), cmocka_unit_test(missing_wake_ups_are_found),
      cmocka_unit_test(blind_sleep_is_found),          cmocka_unit_test(a_missing_total_order_is_found),
      cmocka_unit_test(missing_hand_overs_are_found),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

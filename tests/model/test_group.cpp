// SPDX-License-Identifier: Apache-2.0
// Tests the unmodified source of BasicGroup under every interleaving: two and three members, each wait mode,
// each kind of fault. DIST_MODEL_THOROUGH=1 removes the bounds that keep the ordinary run short.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cstdlib>
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
const Step kA{Act::kAlone};
const Step kS{Act::kShared};
const Step kO{Act::kOneWay};
const Step kT{Act::kTickets};
const Step kR{Act::kRefuse};
const Step kL{Act::kTravel};
const Step kF{Act::kFail};

constexpr int kUnbounded = -1;
constexpr int kSkipped = -2;  // in the ordinary run

bool thorough() {
  const char* text = std::getenv("DIST_MODEL_THOROUGH");
  return text != nullptr && *text != '\0' && *text != '0';
}

void expect_sound(const char* name, const Plan& plan, const Explorer::Options& options) {
  Round<ModelSync> round(plan);
  const auto result = Explorer::explore_to_the_point(round.scenario(), options);
  const std::string bound = options.preemptions < 0
                                ? "all interleavings"
                                : "up to " + std::to_string(options.preemptions) + " preemptions";
  print_message("# %s, %s, %s: %s%s, %llu states in %llu runs, at most %d steps\n", name,
                plan.oversubscribed ? "oversubscribed" : "a CPU each",
                plan.asymmetric ? "asymmetric" : "symmetric", bound.c_str(),
                options.exact ? "" : " (happens-before along them)",
                static_cast<unsigned long long>(result.states), static_cast<unsigned long long>(result.runs),
                result.longest);
  if (!result.fault.empty()) fail_msg("%s: %s\n%s", name, result.fault.c_str(), result.schedule.c_str());
  if (!result.complete) fail_msg("%s: not all was explored", name);
}

// Bounds of the ordinary run. Store buffers multiply the states, so the asymmetric barrier has its own.
struct Bounds {
  int symmetric = kUnbounded;  // preemptions
  int asymmetric = kUnbounded;
  bool exact = true;
};
constexpr Bounds kAll;
constexpr Bounds kSome{2, 1, false};
constexpr Bounds kFew{1, 0, false};
constexpr Bounds kFewer{0, kSkipped, false};

// Explores both ways to wait, with and without the asymmetric barrier.
void explore(const char* name, Plan plan, const Bounds& bounds) {
  for (const bool oversubscribed : {false, true}) {
    for (const bool asymmetric : {false, true}) {
      plan.oversubscribed = oversubscribed;
      plan.asymmetric = asymmetric;
      Explorer::Options options;
      options.most_runs = thorough() ? 1'000'000'000 : 5'000'000;
      options.exact = bounds.exact;
      if (!thorough()) options.preemptions = asymmetric ? bounds.asymmetric : bounds.symmetric;
      if (options.preemptions == kSkipped) continue;
      expect_sound(name, plan, options);
    }
  }
}

Plan of(std::vector<std::vector<Step>> programs) {
  Plan plan;
  plan.programs = std::move(programs);
  return plan;
}
Plan blaming(Plan plan, dist_status report, int culprit) {
  plan.report = report;
  plan.culprit = culprit;
  return plan;
}

void two_members_meet(void**) {
  explore("two barriers", of({{kB, kB}, {kB, kB}}), kAll);
  explore("three barriers", of({{kB, kB, kB}, {kB, kB, kB}}), kAll);
  explore("exchange, barrier, exchange", of({{kX, kB, kX}, {kX, kB, kX}}), {kUnbounded, 1, false});
  explore("two exchanges", of({{kX, kX}, {kX, kX}}), kAll);
  explore("barrier, exchange, barrier", of({{kB, kX, kB}, {kB, kX, kB}}), kAll);
  explore("one way, then exchange", of({{kO, kX}, {kO, kX}}), kAll);
  explore("shared blocks, twice", of({{kT, kT}, {kT, kT}}), kAll);
  explore("bytes that travel, three times", of({{kL, kL, kL}, {kL, kL, kL}}), kAll);
}

void two_members_in_two_runs(void**) {
  Plan plan = of({{kB}, {kB}});
  plan.runs = 2;
  explore("a barrier in each of two runs", plan, kAll);
}

void the_last_one_works_for_all(void**) {
  Explorer::Options options;
  for (const bool asymmetric : {false, true}) {
    Plan plan = of({{kA, kA}, {kA, kA}});
    plan.oversubscribed = true;
    plan.asymmetric = asymmetric;
    expect_sound("alone, twice", plan, options);
    plan.programs = {{kA, kS, kA}, {kA, kS, kA}};
    options.preemptions = thorough() || !asymmetric ? kUnbounded : 1;
    options.exact = thorough();
    expect_sound("alone, shared, alone", plan, options);
    options = {};
  }
}

void departures_are_told(void**) {
  explore("an early return", blaming(of({{kB}, {}}), DIST_ABORTED, 1), kAll);
  explore("an early return from the second", blaming(of({{kX}, {kX, kX}}), DIST_ABORTED, 0), kAll);
  explore("an early return from the third", blaming(of({{kL, kL}, {kL, kL, kL}}), DIST_ABORTED, 0), kAll);
  explore("an error", blaming(of({{kX}, {kF}}), DIST_ABORTED, 1), kAll);
}

void mistakes_are_told(void**) {
  explore("another tag", blaming(of({{kB}, {{Act::kBarrier, "other"}}}), DIST_INVALID_ARGUMENT, 1), kAll);
  explore("another collective", blaming(of({{kX, kX}, {kX, kB}}), DIST_INVALID_ARGUMENT, 1), kAll);
  explore("a refusal", blaming(of({{kR}, {kR}}), DIST_INVALID_ARGUMENT, 0), kAll);
}

void the_run_after_trouble_is_clean(void**) {
  Plan plan = blaming(of({{kB}, {}}), DIST_ABORTED, 1);
  plan.runs = 2;
  explore("an early return in each of two runs", plan, kAll);
}

void two_members_are_cancelled(void**) {
  Plan plan = of({{kB}, {kB}});
  plan.cancels = true;
  explore("barrier, cancelled", plan, kSome);
  plan.programs = {{kX}, {kX}};
  explore("exchange, cancelled", plan, kFew);
  plan.programs = {{kX, kO}, {kX, kO}};
  explore("exchange, one way, cancelled", plan, kFew);
}

void two_members_run_out_of_time(void**) {
  Plan plan = of({{kX}, {kX}});
  plan.time_passes = true;
  plan.timeout_ns = 1000;
  explore("exchange with a time-out", plan, kSome);
  plan.timeout_ns = -1;
  plan.deadline_ns = 1000;
  explore("exchange with a deadline", plan, kFew);
  plan.deadline_ns = 0;
  explore("exchange that takes long", plan, kFew);
  plan = of({{kX}, {kX}});
  plan.condemns = true;
  explore("exchange in a run past its deadline", plan, kFew);
}

void three_members_meet(void**) {
  explore("three members, barrier", of({{kB}, {kB}, {kB}}), {kUnbounded, 0, false});
  explore("three members, exchange", of({{kX}, {kX}, {kX}}), kFew);
}

void three_members_in_trouble(void**) {
  explore("three members, an early return", blaming(of({{kX}, {kX}, {}}), DIST_ABORTED, 2), kFew);
  explore("three members, another tag",
          blaming(of({{kB}, {kB}, {{Act::kBarrier, "other"}}}), DIST_INVALID_ARGUMENT, 2), kFewer);
  Plan plan = of({{kX}, {kX}, {kX}});
  plan.cancels = true;
  explore("three members, cancelled", plan, kFewer);
}

}  // namespace
}  // namespace dist::model

int main() {
  using namespace dist::model;
  const CMUnitTest tests[] = {
      cmocka_unit_test(two_members_meet),           cmocka_unit_test(two_members_in_two_runs),
      cmocka_unit_test(the_last_one_works_for_all), cmocka_unit_test(departures_are_told),
      cmocka_unit_test(mistakes_are_told),          cmocka_unit_test(the_run_after_trouble_is_clean),
      cmocka_unit_test(two_members_are_cancelled),  cmocka_unit_test(two_members_run_out_of_time),
      cmocka_unit_test(three_members_meet),         cmocka_unit_test(three_members_in_trouble),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

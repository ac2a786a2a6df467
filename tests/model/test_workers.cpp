// SPDX-License-Identifier: Apache-2.0
// Tests the source of WorkerCommunicator, and of the collectives above it, under every order of message
// arrival.
#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "tests/model/worker_world.hpp"

extern "C" {
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
}

namespace dist::model {
namespace {

struct Choice {
  std::size_t taken;
  std::size_t of;
};

void explore(const char* name, const Plan& plan) {
  World world(plan);
  std::unordered_set<uint64_t> visited;
  std::vector<Choice> choices;
  uint64_t runs = 0;
  std::size_t longest = 0;
  for (bool more = true; more; ++runs) {
    world.reset();
    std::size_t depth = 0;
    bool known = false;
    for (;;) {
      const std::vector<World::Action> actions = world.actions();
      if (actions.empty()) break;
      if (depth == choices.size()) {
        known = !visited.insert(world.state()).second;
        if (known) break;
        choices.push_back({0, actions.size()});
      }
      // The same choices must lead to the same actions.
      assert_int_equal(choices[depth].of, actions.size());
      world.act(actions[choices[depth].taken]);
      ++depth;
    }
    longest = std::max(longest, depth);
    if (const std::string fault = known ? "" : world.fault(); !fault.empty()) {
      std::string schedule;
      for (const Choice& each : choices) schedule += " " + std::to_string(each.taken);
      fail_msg("%s: %s; choices:%s", name, fault.c_str(), schedule.c_str());
    }
    while (!choices.empty() && choices.back().taken + 1 == choices.back().of) choices.pop_back();
    more = !choices.empty();
    if (more) ++choices.back().taken;
  }
  print_message("# %s: all orders, %zu states in %llu runs, at most %zu steps\n", name, visited.size(),
                static_cast<unsigned long long>(runs), longest);
  assert_true(visited.size() > 10);
}

constexpr auto kS = Act::kSum;
constexpr auto kM = Act::kMaximum;
constexpr auto kB = Act::kBroadcast;
constexpr auto kX = Act::kSwap;
constexpr auto kF = Act::kFail;

// Explores each plan with all data at once and in pieces.
void explore_ways(const char* name, Plan plan) {
  explore((std::string(name) + ", together").c_str(), plan);
  plan.most_bytes = 1;
  explore((std::string(name) + ", by owners").c_str(), plan);
}

void two_collectives(void**) {
  explore_ways("sum, sum", {.programs = {{kS, kS}, {kS, kS}}});
  explore_ways("sum, broadcast", {.programs = {{kS, kB}, {kS, kB}}});
  explore_ways("all_to_all, sum", {.programs = {{kX, kS}, {kX, kS}}});
  explore("two pieces", {.programs = {{kS}, {kS}}, .elements = kMostElements, .most_bytes = 1});
}

void a_peer_dies(void**) {
  explore_ways("sum, sum, a death", {.programs = {{kS, kS}, {kS, kS}}, .dies = true});
  explore_ways("broadcast, all_to_all, a death", {.programs = {{kB, kX}, {kB, kX}}, .dies = true});
  explore("two pieces, a death",
          {.programs = {{kS}, {kS}}, .elements = kMostElements, .most_bytes = 1, .dies = true});
}

void a_peer_returns_or_fails(void**) {
  explore_ways("an early return of worker 1",
               {.programs = {{kS, kS}, {kS}}, .report = DIST_ABORTED, .culprit = 1});
  explore_ways("an early return of worker 0",
               {.programs = {{kS}, {kS, kS}}, .report = DIST_ABORTED, .culprit = 0});
  explore_ways("an error of worker 1",
               {.programs = {{kS, kS}, {kS, kF}}, .report = DIST_ABORTED, .culprit = 1});
  explore_ways("an error of worker 0", {.programs = {{kS, kS}, {kF}}, .report = DIST_ABORTED, .culprit = 1});
}

void they_disagree(void**) {
  explore_ways("another operator",
               {.programs = {{kS, kS}, {kS, kM}}, .report = DIST_INVALID_ARGUMENT, .culprit = 1});
  explore_ways("another collective",
               {.programs = {{kX}, {kB}}, .report = DIST_INVALID_ARGUMENT, .culprit = 1});
}

void one_is_cancelled(void**) {
  explore_ways("sum, sum, a cancel", {.programs = {{kS, kS}, {kS, kS}}, .cancels = true});
  explore("two pieces, a cancel",
          {.programs = {{kS}, {kS}}, .elements = kMostElements, .most_bytes = 1, .cancels = true});
}

}  // namespace
}  // namespace dist::model

int main() {
  using namespace dist::model;
  const CMUnitTest tests[] = {
      cmocka_unit_test(two_collectives),         cmocka_unit_test(a_peer_dies),
      cmocka_unit_test(a_peer_returns_or_fails), cmocka_unit_test(they_disagree),
      cmocka_unit_test(one_is_cancelled),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

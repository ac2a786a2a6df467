// SPDX-License-Identifier: Apache-2.0
// An exchange among members of two processes: each process has its own members' buffers, and copies of what the
// others bring. Their outputs together are what one process with all members writes.
#include <cinttypes>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "core/kernel/fp_environment.hpp"
#include "tests/unit/exchange_cases.hpp"

namespace dist {
namespace {

constexpr int kSize = 4;
constexpr uint64_t kSeed = 20261122;

// Two processes of `first` and the other members.
std::vector<std::vector<std::vector<float>>> apart(Members& members, int first) {
  for (const TaskList::Ranks local : {TaskList::Ranks{0, first}, TaskList::Ranks{first, kSize}}) {
    std::vector<std::vector<dist_tensor>> tensors(kSize);
    std::vector<std::vector<std::vector<float>>> memory(kSize);
    Offer staged[kSize];
    const Offer* offers[kSize];
    for (int p = 0; p < kSize; ++p) {
      const auto at = static_cast<std::size_t>(p);
      const bool here = p >= local.begin && p < local.end;
      if (!here) staged[p] = members[p].staged(tensors[at], memory[at]);
      offers[p] = here ? &members[p].offer : &staged[p];
    }
    const Exchange exchange(members[local.begin].call, kSize, offers, 1 << 20, local);
    // In blocks, as members share it out.
    TaskList::Cursor cursor;
    for (std::size_t unit = 0; unit < exchange.units(); unit += 3)
      exchange.run({unit, std::min(unit + 3, exchange.units())}, cursor, [] { return true; });
  }
  return members.take();
}

void two_processes_write_what_one_does(void**) {
  std::mt19937_64 random(kSeed);
  const FpEnvironment environment;
  for (const Case& each : kCases) {
    int written = 0;
    for (const std::size_t n : {std::size_t{1}, std::size_t{3}}) {
      for (int turn = 0; turn < 20; ++turn) {
        Members members(each, kSize, n, random);
        const auto expected = members.together();
        for (const auto& tensors : expected) written += tensors[0].size() > 0 && tensors[0][0] != -1;
        for (int first = 1; first < kSize; ++first) {
          if (apart(members, first) == expected) continue;
          std::printf("# %s of %zu tensors, %d of %d members in the first process\n",
                      traits_of(each.collective).name, n, first, kSize);
          assert_true(false);
        }
      }
    }
    assert_true(written >= 30);
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  std::printf("# seed %" PRIu64 "\n", kSeed);
  const CMUnitTest tests[] = {cmocka_unit_test(two_processes_write_what_one_does)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

// SPDX-License-Identifier: Apache-2.0
// An exchange between members in two processes: each process has its own members' buffers and copies of the
// others' contributions. Together, their outputs equal those of a single process with all members.
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

// Runs two processes, one with the first `first` members and one with the others.
std::vector<std::vector<std::vector<float>>> apart(Members& members, int first) {
  for (const TaskList::Ranks local : {TaskList::Ranks{0, first}, TaskList::Ranks{first, kSize}}) {
    std::vector<std::vector<dist_tensor>> tensors(kSize);
    std::vector<std::vector<std::vector<float>>> memory(kSize);
    CallDescriptor staged[kSize];
    const CallDescriptor* descriptors[kSize];
    for (int p = 0; p < kSize; ++p) {
      const auto at = static_cast<std::size_t>(p);
      const bool here = p >= local.begin && p < local.end;
      if (!here) staged[p] = members[p].staged(tensors[at], memory[at]);
      descriptors[p] = here ? &members[p].descriptor : &staged[p];
    }
    const Exchange exchange(members[local.begin].call, kSize, descriptors, 1 << 20, local);
    // In blocks, as the members divide the work.
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
        for (const auto& tensors : expected) written += !tensors[0].empty() && tensors[0][0] != -1;
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

// Scalars have no shape at all.
void lists_of_scalars_are_permuted(void**) {
  double in[2][2] = {{1, 2}, {3, 4}};
  double out[2][2] = {};
  dist_tensor tensors[2][2][2];
  Call calls[2];
  CallDescriptor descriptors[2] = {};
  const CallDescriptor* all[] = {&descriptors[0], &descriptors[1]};
  for (std::size_t p = 0; p < 2; ++p) {
    for (std::size_t t = 0; t < 2; ++t) {
      tensors[p][0][t] = {&in[p][t], DIST_F64, 0, nullptr, nullptr};
      tensors[p][1][t] = {&out[p][t], DIST_F64, 0, nullptr, nullptr};
    }
    calls[p].collective = Collective::kPermute;
    calls[p].in = tensors[p][0];
    calls[p].out = tensors[p][1];
    calls[p].n = 2;
    calls[p].destination = calls[p].source = 1 - static_cast<int32_t>(p);
    Signature signature;
    assert_true(calls[p].check(static_cast<int>(p), 2, signature).ok());
    calls[p].describe_in(descriptors[p]);
  }
  const Exchange exchange(calls[0], 2, all, 1 << 20);
  struct Both final : MemberNames {
    int local_rank(int rank) const noexcept override { return rank; }
    Naming naming() const noexcept override { return {}; }
  };
  for (int p = 0; p < 2; ++p) assert_false(exchange.refuses(Both(), p, nullptr));
  exchange.run_all();
  assert_true(out[0][0] == 3 && out[0][1] == 4 && out[1][0] == 1 && out[1][1] == 2);
}

// A virtual machine may report a large cache although it can use only a small part of it.
void large_caches_do_not_keep_all_results(void**) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  assert_int_equal(Exchange::stream_bytes(2, 16 * kMiB), 4 * kMiB);
  assert_int_equal(Exchange::stream_bytes(8, 32 * kMiB), 2 * kMiB);
  assert_int_equal(Exchange::stream_bytes(2, 260 * kMiB), Exchange::stream_bytes(2, 1000 * kMiB));
  assert_true(Exchange::stream_bytes(2, 260 * kMiB) < 16 * kMiB);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  std::printf("# seed %" PRIu64 "\n", kSeed);
  const CMUnitTest tests[] = {cmocka_unit_test(two_processes_write_what_one_does),
                              cmocka_unit_test(lists_of_scalars_are_permuted),
                              cmocka_unit_test(large_caches_do_not_keep_all_results)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

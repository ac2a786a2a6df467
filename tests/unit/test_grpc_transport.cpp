// SPDX-License-Identifier: Apache-2.0
// core/engine/grpc: the guarantees of every transport, between workers on loopback.
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <vector>

#include "tests/unit/grpc_support.hpp"
#include "tests/unit/transport_suite.hpp"

int main() {
  using namespace dist;
  constexpr uint64_t kSeed = 20261123;
  std::printf("# seed %" PRIu64 "\n", kSeed);
  TransportSuite suite{
      "grpc", [](int n, std::size_t credit) { return std::make_unique<GrpcWorkers>(n, credit); }, kSeed};
  suite.senders_know_receives = false;
  const std::vector<CMUnitTest> tests = tests_of(suite);
  return _cmocka_run_group_tests("grpc_transport", tests.data(), tests.size(), nullptr, nullptr);
}

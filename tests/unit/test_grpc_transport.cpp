// SPDX-License-Identifier: Apache-2.0
// core/net/grpc: the guarantees of every transport, between workers on loopback, steady and unsteady. With
// LINK_MODULE, a link module moves their data.
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <vector>

#include "tests/unit/grpc_support.hpp"
#include "tests/unit/transport_suite.hpp"
#include "tests/unit/unsteady_transport.hpp"

int main() {
  using namespace dist;
  constexpr uint64_t kSeed = 20261123;
  std::printf("# seed %" PRIu64 "\n", kSeed);
  TransportSuite suite{
      "grpc", [](int n, std::size_t credit) { return std::make_unique<GrpcWorkers>(n, credit); }, kSeed};
  suite.senders_know_receives = false;
  TransportSuite unsteady{"grpc, unsteady",
                          [](int n, std::size_t credit) {
                            return std::make_unique<UnsteadyWorkers<GrpcWorkers, kSeed>>(n, credit);
                          },
                          kSeed};
  unsteady.senders_know_receives = false;
  std::vector<CMUnitTest> tests = tests_of(suite);
  for (const CMUnitTest& each : tests_of(unsteady)) tests.push_back(each);
  return _cmocka_run_group_tests("grpc_transport", tests.data(), tests.size(), nullptr, nullptr);
}

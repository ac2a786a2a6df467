// SPDX-License-Identifier: Apache-2.0
// core/comm over core/net/grpc: collectives of workers that exchange messages over loopback.
//
// Include this header first, because cmocka has a macro with the name of dist::fail(), which the header
// undefines.
#include "tests/unit/worker_cluster.hpp"

#include <memory>
#include <string>
#include <vector>

#include "tests/unit/grpc_support.hpp"

namespace dist {
namespace {

// A cluster of workers that are connected by gRPC.
struct Scene {
  explicit Scene(const std::vector<int>& members)
      : workers(static_cast<int>(members.size()), std::size_t{1} << 16) {
    std::vector<Transport*> transports;
    for (std::size_t w = 0; w < members.size(); ++w) transports.push_back(&workers.join(static_cast<int>(w)));
    own = transports;
    cluster = std::make_unique<Cluster>(members, Cluster::Options{.transports = transports});
  }
  ~Scene() {
    for (Transport* const each : own) each->close();
    cluster = nullptr;
  }
  GrpcWorkers workers;
  std::vector<Transport*> own;
  std::unique_ptr<Cluster> cluster;
};

void assert_sums(Cluster& cluster, int times) {
  const int n = cluster.size();
  std::vector<double> results(static_cast<std::size_t>(n));
  const auto outcomes = cluster.run([&](const Member& member, WorkerCommunicator& communicator, int rank) {
    return sum(member, communicator, rank, times, &results[static_cast<std::size_t>(rank)]);
  });
  for (int rank = 0; rank < n; ++rank) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    if (!outcome.status.ok()) print_error("replica %d: %s\n", rank, outcome.error.message);
    assert_true(outcome.status.ok());
    assert_true(results[static_cast<std::size_t>(rank)] == n * (n - 1) / 2.0 + n * (times - 1));
  }
}

void workers_add_up(void**) {
  for (const std::vector<int>& members : {std::vector<int>{1, 1}, {2, 1, 2}, {1, 1, 1, 1}}) {
    Scene scene(members);
    for (int run = 0; run < 3; ++run) assert_sums(*scene.cluster, 50);
  }
}

// Larger than the whole credit, and than one chunk.
void large_tensors_add_up(void**) {
  Scene scene({1, 2, 1});
  constexpr int64_t kElements = 300'000;
  std::vector<std::vector<double>> data(4, std::vector<double>(kElements));
  for (std::size_t rank = 0; rank < 4; ++rank) {
    for (std::size_t i = 0; i < kElements; ++i) data[rank][i] = static_cast<double>(rank * 1000 + i % 977);
  }
  const auto outcomes =
      scene.cluster->run([&](const Member& member, WorkerCommunicator& communicator, int rank) {
        double* const mine = data[static_cast<std::size_t>(rank)].data();
        const dist_tensor tensor{mine, DIST_F64, 1, &kElements, nullptr};
        Call call;
        call.collective = Collective::kAllReduce;
        call.op = DIST_REDUCE_SUM;
        call.in = call.out = &tensor;
        call.n = 1;
        return worker_collective(member, communicator, call);
      });
  for (const Outcome& each : outcomes) assert_true(each.status.ok());
  for (const std::vector<double>& each : data) {
    for (std::size_t i = 0; i < kElements; ++i) {
      assert_true(each[i] == 6000.0 + 4.0 * static_cast<double>(i % 977));
    }
  }
}

// All members get one report, and the next run succeeds.
void who_returns_early_is_named_to_all(void**) {
  Scene scene({2, 1, 1});
  double out[4];
  const auto outcomes =
      scene.cluster->run([&](const Member& member, WorkerCommunicator& communicator, int rank) {
        return sum(member, communicator, rank, rank == 2 ? 5 : 20, &out[rank]);
      });
  for (int rank = 0; rank < 4; ++rank) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    assert_int_equal(outcome.status.ok(), rank == 2);
    if (rank == 2) continue;
    const std::string message = outcome.error.message;
    assert_true(message.find("all_reduce #6: worker 1 returned early") == 0);
  }
  assert_sums(*scene.cluster, 10);
}

void who_leaves_in_a_run_ends_it_for_all(void**) {
  Scene scene({1, 1, 1});
  double out[3];
  const auto outcomes =
      scene.cluster->run([&](const Member& member, WorkerCommunicator& communicator, int rank) -> Status {
        if (rank == 1) DIST_TRY(sum(member, communicator, rank, 3, &out[rank]));
        if (rank == 1) scene.own[1]->close();
        return sum(member, communicator, rank, 20, &out[rank]);
      });
  for (const Outcome& each : outcomes) assert_false(each.status.ok());
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(workers_add_up),
      cmocka_unit_test(large_tensors_add_up),
      cmocka_unit_test(who_returns_early_is_named_to_all),
      cmocka_unit_test(who_leaves_in_a_run_ends_it_for_all),
  };
  return cmocka_run_group_tests_name("grpc_workers", tests, nullptr, nullptr);
}

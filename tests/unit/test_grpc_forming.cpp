// SPDX-License-Identifier: Apache-2.0
// core/net/grpc: workers that leave their network to form the next generation in a new one.
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/grpc_support.hpp"
#include "tests/unit/plain_error.hpp"

namespace dist {
namespace {

Ref<GrpcNetwork> network_of(const GrpcOptions& options, Transport** out) {
  Ref<GrpcNetwork> network;
  if (!GrpcNetwork::create({}, options, &network).ok() || !network->join(options.me, out).ok()) {
    print_error("%s\n", last_message());
    assert_true(false);
  }
  return network;
}

constexpr int kWorkers = 3;

struct Workers {
  explicit Workers(const GrpcWorkers& workers) {
    for (int w = 0; w < kWorkers; ++w) {
      const auto at = static_cast<std::size_t>(w);
      networks[at] = network_of(workers.options(w), &transports[at]);
    }
    for (Transport* const from : transports) {
      for (Transport* const to : transports) {
        if (from != to) assert_speak(*from, *to, 1);
      }
    }
  }
  // Makes all workers leave, or `only` one of them, or all `but` one.
  void leave(int only, int but) {
    std::vector<std::thread> leaving;
    for (int w = 0; w < kWorkers; ++w) {
      if (w == but || (only >= 0 && w != only)) continue;
      leaving.emplace_back([this, at = static_cast<std::size_t>(w)] { known[at] = networks[at]->leave(); });
    }
    for (std::thread& each : leaving) each.join();
  }
  std::array<Ref<GrpcNetwork>, kWorkers> networks;
  std::array<Transport*, kWorkers> transports{};
  std::array<Parting, kWorkers> known;
};

// No worker is considered dead, whether all leave at the same time or one before the others.
void who_leaves_to_form_a_generation_comes_back(void**) {
  constexpr int kTimes = 200;
  const GrpcWorkers addresses(kWorkers, 4096);
  for (int time = 0; time < kTimes; ++time) {
    Workers workers(addresses);
    const int first = time % (kWorkers + 1);
    if (first < kWorkers) workers.leave(first, -1);
    workers.leave(-1, first);
    // Worker 0 forms the generation with the workers that are not gone, and the others connect to worker 0.
    for (std::size_t w = 0; w < kWorkers; ++w) {
      const Parting& known = workers.known[w];
      if (known.met && (w == 0 ? known.gone.none() : !known.gone[0])) continue;
      std::string gone;
      for (std::size_t each = 0; each < kWorkers; ++each) gone += known.gone[each] ? '1' : '0';
      fail_msg("time %d: worker %zu takes %s for gone", time, w, gone.c_str());
    }
  }
}

// ---- Members of a generation ----

// Takes part again each time worker 0 starts over.
struct Joiner {
  Joiner(const GrpcWorkers& workers, int worker) : number(worker), options(workers.options(worker)) {
    options.forms = true;
    thread = std::thread([this] {
      do {
        network = network_of(options, &transport);
        Forming wanted;
        wanted.expected.set(2);
        wanted.least = kWorkers;
        wanted.window_ns = kGuardNs;
        wanted.timeout_ns = kGuardNs;
        wanted.cancelled = &cancelled;
        ready = true;
        result = network->form(wanted, &formed).code();
        if (result == DIST_ABORTED) (void)network->leave();
      } while (result == DIST_ABORTED);
    });
  }
  void join() { thread.join(); }
  static constexpr int64_t kGuardNs = 60 * int64_t{1'000'000'000};
  const int number;
  GrpcOptions options;
  Ref<GrpcNetwork> network;
  Transport* transport = nullptr;
  std::atomic<bool> ready{false};
  std::atomic<bool> cancelled{false};
  Formed formed;
  dist_status result = DIST_OK;
  std::thread thread;
};

// The sets of workers that worker 0 announces are larger than any other control message.
void a_generation_of_a_large_cluster_is_announced(void**) {
  constexpr int kAddresses = 6000;
  const GrpcWorkers workers(kAddresses, 4096);
  GrpcOptions options[2] = {workers.options(0), workers.options(1)};
  Transport* transports[2] = {};
  Ref<GrpcNetwork> networks[2];
  for (int w = 0; w < 2; ++w) {
    options[w].forms = true;
    networks[w] = network_of(options[w], &transports[w]);
  }
  Forming wanted;
  wanted.expected.set(0);
  wanted.expected.set(1);
  wanted.least = 2;
  wanted.timeout_ns = Joiner::kGuardNs;
  Formed formed[2];
  std::thread other([&] { assert_true(networks[1]->form(wanted, &formed[1]).ok()); });
  assert_true(networks[0]->form(wanted, &formed[0]).ok());
  other.join();
  for (const Formed& each : formed) {
    assert_int_equal(each.members.count(), 2);
    assert_true(each.members[0] && each.members[1]);
  }
}

// All workers are needed, and one dies before or after it has asked to join. When it is started again, it is
// admitted.
void who_dies_before_a_generation_is_formed_joins_it(void**) {
  constexpr int kTimes = 12;
  for (int time = 0; time < kTimes; ++time) {
    const GrpcWorkers workers(kWorkers, 4096);
    Joiner worker_0(workers, 0);
    {
      Joiner dies(workers, 2);
      await([&] { return dies.ready.load(); });
      for (int i = 0; i < time * 2000; ++i) std::this_thread::yield();
      dies.cancelled = true;
      dies.join();
    }
    Joiner again(workers, 2);
    Joiner other(workers, 1);
    Joiner* const all[] = {&worker_0, &other, &again};
    for (Joiner* const each : all) each->join();
    for (const Joiner* const each : all) {
      if (each->result == DIST_OK) continue;
      fail_msg("time %d: worker %d: %s; 1: %s; 2: %s", time, each->number, status_name(each->result),
               status_name(other.result), status_name(again.result));
    }
    for (const Joiner* const each : all) assert_int_equal(each->formed.members.count(), kWorkers);
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(who_leaves_to_form_a_generation_comes_back),
      cmocka_unit_test(a_generation_of_a_large_cluster_is_announced),
      cmocka_unit_test(who_dies_before_a_generation_is_formed_joins_it),
  };
  return cmocka_run_group_tests_name("grpc_forming", tests, nullptr, nullptr);
}

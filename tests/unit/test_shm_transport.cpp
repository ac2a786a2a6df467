// SPDX-License-Identifier: Apache-2.0
// core/net/shm: the guarantees of every transport, between workers that share memory. The workers are in one
// process and use its own transport below.
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "core/net/forwarding_transport.hpp"
#include "core/net/in_process.hpp"
#include "core/net/shm/shm_transport.hpp"
#include "tests/unit/counting_memory.hpp"
#include "tests/unit/transport_suite.hpp"
#include "tests/unit/transport_workers.hpp"

namespace dist {
namespace {

constexpr uint64_t kSeed = 20261126;

// With `reads`, a receiver reads large messages from the sender's memory. Workers with an even number use
// shared memory; the others do so only if `shares` is true.
class Sharing final : public TransportFixture {
 public:
  Sharing(int num_workers, std::size_t credit, bool reads, bool shares = true)
      : num_workers_(num_workers),
        network_(make_counted<InProcessNetwork>(*below_memory_, num_workers, credit)),
        reads_(reads),
        shares_(shares) {}
  Transport& join(int worker) override {
    Transport* below = nullptr;
    assert_true(network_->join(worker, &below).ok());
    ShmTransport::Options options;
    options.reads = reads_;
    if (worker % 2 == 1 && !shares_) copy_text(options.refuses, "the test forbids it");
    made_.push_back(std::make_unique<ShmTransport>(*memory_, *below, options));
    if (num_workers_ == static_cast<int>(made_.size()) && num_workers_ <= 4) introduce_all();
    return *made_.back();
  }

 private:
  // The suite expects that everything that can happen does so within a few calls of progress(). This holds
  // only after the workers have introduced themselves. Larger jobs of the suite do without it.
  void introduce_all() {
    const std::size_t n = made_.size();
    std::vector<Transfer> transfers(2 * n * n);
    // Larger than the credit, so that the messages use none of it.
    const std::size_t bytes = made_[0]->credit() + 1;
    const std::vector<std::byte> sent(bytes);
    std::vector<std::byte> got(n * n * bytes);  // separate memory for each pair, because several threads
                                                // write at once
    for (std::size_t from = 0; from < n; ++from) {
      for (std::size_t to = 0; to < n; ++to) {
        if (from == to) continue;
        const MessageKey key{.generation = UINT32_MAX, .number = 1};
        const std::size_t at = from * n + to;
        made_[from]->send(static_cast<int>(to), key, sent.data(), bytes, transfers[2 * at]);
        made_[to]->receive(static_cast<int>(from), key, got.data() + at * bytes, bytes,
                           transfers[2 * at + 1]);
      }
    }
    for (const Transfer& each : transfers) {
      while (!each.over()) {
        for (const auto& one : made_) one->progress();
        std::this_thread::yield();
      }
    }
  }

  const int num_workers_;
  CountingMemory below_memory_;
  CountingMemory memory_;
  Ref<InProcessNetwork> network_;
  const bool reads_;
  const bool shares_;
  std::vector<std::unique_ptr<ShmTransport>> made_;
};

// Acts like a transport whose worker 1 has been rejected by worker 0.
class Rejected final : public ForwardingTransport {
 public:
  explicit Rejected(Transport& below) noexcept : ForwardingTransport(below) {}
  bool rejected(int worker) const noexcept override { return worker == 0; }
};

void a_rejection_by_a_peer_is_reported(void**) {
  CountingMemory memory;
  const auto network = make_counted<InProcessNetwork>(*memory, 2, std::size_t{1} << 16);
  Transport* below = nullptr;
  assert_true(network->join(1, &below).ok());
  Rejected rejected(*below);
  ShmTransport transport(*memory, rejected, {});
  assert_true(transport.rejected(0));
  transport.close();
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  std::printf("# seed %" PRIu64 "\n", kSeed);
  TransportSuite reading{
      "reading", [](int n, std::size_t credit) { return std::make_unique<Sharing>(n, credit, true); }, kSeed};
  TransportSuite copying{
      "copying", [](int n, std::size_t credit) { return std::make_unique<Sharing>(n, credit, false); },
      kSeed};
  TransportSuite mixed{
      "mixed", [](int n, std::size_t credit) { return std::make_unique<Sharing>(n, credit, true, false); },
      kSeed};
  std::vector<CMUnitTest> tests = {cmocka_unit_test(a_rejection_by_a_peer_is_reported)};
  for (TransportSuite* suite : {&reading, &copying, &mixed}) {
    suite->senders_know_receives = suite == &mixed;  // workers 0 and 1 do not share memory
    for (const CMUnitTest& each : tests_of(*suite)) tests.push_back(each);
  }
  return _cmocka_run_group_tests("shm_transport", tests.data(), tests.size(), nullptr, nullptr);
}

// SPDX-License-Identifier: Apache-2.0
// core/net: the guarantees of every transport, tested on each of them, steady and unsteady.
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <vector>

#include "core/net/in_process.hpp"
#include "core/net/shared_transport.hpp"
#include "core/net/subset_transport.hpp"
#include "tests/unit/counting_memory.hpp"
#include "tests/unit/transport_suite.hpp"
#include "tests/unit/unsteady_transport.hpp"

namespace dist {
namespace {

constexpr uint64_t kSeed = 20261122;

class InProcess final : public TransportFixture {
 public:
  InProcess(int num_workers, std::size_t credit)
      : network_(make_counted<InProcessNetwork>(*memory_, num_workers, credit)) {}
  Transport& join(int worker) override {
    Transport* transport = nullptr;
    assert_true(network_->join(worker, &transport).ok());
    return *transport;
  }
  InProcessNetwork& network() { return *network_; }
  CountingMemory& memory() { return memory_; }

 private:
  CountingMemory memory_;
  Ref<InProcessNetwork> network_;
};

using Unsteady = UnsteadyWorkers<InProcess, kSeed>;

// Every other one of twice as many workers. Each uses one share of its transport, next to another share.
class Subset final : public TransportFixture {
 public:
  Subset(int num_workers, std::size_t credit) : inner_(2 * num_workers, credit) {
    for (int w = 0; w < num_workers; ++w) workers_.push_back(2 * w + 1);
  }
  Transport& join(int worker) override {
    made_.push_back(std::make_unique<Made>(inner_.join(2 * worker + 1), workers_));
    return made_.back()->subset;
  }

 private:
  struct Made {
    Made(Transport& below, const std::vector<int>& workers)
        : whole(below), other(whole), share(whole), subset(*memory, share, workers) {}
    CountingMemory memory;
    SharedTransport whole;
    SharedTransport::Share other;
    SharedTransport::Share share;
    SubsetTransport subset;
  };
  InProcess inner_;
  std::vector<int> workers_;
  std::vector<std::unique_ptr<Made>> made_;
};

struct Counter final : TransportListener {
  void happened() noexcept override { ++count; }
  int count = 0;
};

std::byte* bytes_of(uint64_t& value) { return reinterpret_cast<std::byte*>(&value); }

// A message notifies the shares that listen, and no others, while shares are added and removed.
void shares_come_and_go(void**) {
  InProcess workers(2, 4096);
  SharedTransport whole(workers.join(0));
  Transport& peer = workers.join(1);
  uint64_t sent = 5;
  uint64_t got = 0;
  int32_t number = 0;
  // Counts how often each listener is notified of one message.
  const auto arrive = [&](Transport& to) {
    Transfer send;
    Transfer receive;
    const MessageKey key{.group = ++number};
    to.receive(1, key, bytes_of(got), sizeof got, receive);
    peer.send(0, key, bytes_of(sent), sizeof sent, send);
    assert_true(receive.end() == Transfer::End::kDone && send.end() == Transfer::End::kDone);
  };
  Counter counters[3];
  SharedTransport::Share first(whole);
  first.listen(&counters[0]);
  {
    SharedTransport::Share second(whole);
    SharedTransport::Share third(whole);
    second.listen(&counters[1]);
    third.listen(&counters[2]);
    third.listen(&counters[2]);
    arrive(second);
    for (const Counter& each : counters) assert_int_equal(each.count, 1);
    second.listen(nullptr);
    second.listen(nullptr);
    arrive(second);
    assert_int_equal(counters[0].count, 2);
    assert_int_equal(counters[1].count, 1);
    assert_int_equal(counters[2].count, 2);
    second.listen(&counters[1]);
  }
  arrive(first);
  assert_int_equal(counters[0].count, 3);
  assert_int_equal(counters[1].count, 1);
  assert_int_equal(counters[2].count, 2);
}

// Messages are kept until all shares have forgotten them. Shares that never forget keep nothing, and neither
// do shares that have ended.
void shares_forget_together(void**) {
  InProcess workers(2, 4096);
  SharedTransport whole(workers.join(0));
  Transport& peer = workers.join(1);
  const std::size_t before = workers.memory().live();
  uint64_t sent = 5;
  Transfer sends[4];
  SharedTransport::Share first(whole);
  const SharedTransport::Share idle(whole);
  first.forget(0, 1);
  {
    SharedTransport::Share second(whole);
    second.forget(0, 1);
    for (uint32_t run = 1; run <= 4; ++run)
      peer.send(0, {.run = run}, bytes_of(sent), sizeof sent, sends[run - 1]);
    assert_int_equal(workers.memory().live(), before + 4);
    first.forget(0, 3);
    assert_int_equal(workers.memory().live(), before + 4);
    second.forget(0, 2);
    assert_int_equal(workers.memory().live(), before + 3);
    second.forget(0, 3);
    assert_int_equal(workers.memory().live(), before + 2);
  }
  first.forget(0, 5);
  assert_int_equal(workers.memory().live(), before);
}

void workers_join_once(void**) {
  InProcess workers(2, 64);
  Transport* transport = nullptr;
  for (const int none : {-1, 2}) {
    assert_int_equal(workers.network().join(none, &transport).code(), DIST_INVALID_ARGUMENT);
  }
  workers.join(1);
  assert_int_equal(workers.network().join(1, &transport).code(), DIST_FAILED_PRECONDITION);
  assert_null(transport);
}

// If memory is exhausted, no message is sent ahead, and all messages arrive.
void no_memory_holds_no_message_up(void**) {
  InProcess workers(2, 4096);
  Transport& first = workers.join(0);
  Transport& second = workers.join(1);
  const uint64_t sent = 77;
  for (int k = 0; k < 2; ++k) {
    uint64_t got = 0;
    Transfer send;
    Transfer receive;
    workers.memory().refuse(k);
    first.send(1, {}, reinterpret_cast<const std::byte*>(&sent), sizeof sent, send);
    assert_int_equal(send.over(), k != 0);
    second.receive(0, {}, reinterpret_cast<std::byte*>(&got), sizeof got, receive);
    assert_true(send.end() == Transfer::End::kDone && receive.end() == Transfer::End::kDone);
    assert_int_equal(got, sent);
  }
}

// A message that is never received is freed with the network.
void nothing_is_left(void**) {
  InProcess workers(2, 4096);
  const std::size_t before = workers.memory().live();
  Transport& first = workers.join(0);
  Transport& second = workers.join(1);
  Transfer send;
  const std::byte sent{1};
  first.send(1, {}, &sent, 1, send);
  assert_true(send.over());
  assert_int_equal(workers.memory().live(), before + 1);
  second.close();
  assert_int_equal(workers.memory().live(), before);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  std::printf("# seed %" PRIu64 "\n", kSeed);
  TransportSuite steady{
      "in process", [](int n, std::size_t credit) { return std::make_unique<InProcess>(n, credit); }, kSeed};
  TransportSuite unsteady{
      "unsteady", [](int n, std::size_t credit) { return std::make_unique<Unsteady>(n, credit); }, kSeed};
  TransportSuite subset{"subset",
                        [](int n, std::size_t credit) { return std::make_unique<Subset>(n, credit); }, kSeed};
  std::vector<CMUnitTest> tests = {
      cmocka_unit_test(shares_come_and_go), cmocka_unit_test(shares_forget_together),
      cmocka_unit_test(workers_join_once),  cmocka_unit_test(no_memory_holds_no_message_up),
      cmocka_unit_test(nothing_is_left),
  };
  for (TransportSuite* suite : {&steady, &unsteady, &subset}) {
    for (const CMUnitTest& each : tests_of(*suite)) tests.push_back(each);
  }
  return _cmocka_run_group_tests("transport", tests.data(), tests.size(), nullptr, nullptr);
}

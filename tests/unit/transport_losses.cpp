// SPDX-License-Identifier: Apache-2.0
// The behaviour of every transport when a worker is lost.
#include <cstddef>
#include <deque>
#include <vector>

#include "tests/unit/transport_workers.hpp"

namespace dist {

void who_is_lost_ends_what_waits_for_it(void** state) {
  Workers workers(state, 3, 1024);
  const auto sent = pattern(1000, 9);
  std::vector<std::byte> got(1000);
  Transfer ahead;
  workers[1].send(0, {.number = 1}, sent.data(), sent.size(), ahead);
  assert_end(workers.wait(ahead), kDone);
  Transfer sends[2];
  Transfer own;
  Transfer other;
  for (uint64_t i = 0; i < 2; ++i) workers[0].send(1, {.number = 2 + i}, sent.data(), sent.size(), sends[i]);
  workers.settle();
  workers[1].receive(0, {.number = 9}, got.data(), got.size(), own);
  Transfer waiting;
  workers[0].receive(1, {.number = 4}, got.data(), got.size(), waiting);
  workers[0].receive(2, {.number = 4}, got.data(), got.size(), other);
  workers.settle();
  assert_false(workers[0].lost(1));
  workers[1].close();
  workers.until([&] { return workers[0].lost(1) && workers[2].lost(1); });
  assert_false(workers[0].lost(2) || workers[0].lost(0));
  assert_end(workers.wait(own), kCancelled);
  assert_end(workers.wait(waiting), kLost);
  // One of the messages was within the credit.
  const bool first = workers.wait(sends[0]) == End::kDone;
  assert_end(workers.wait(sends[first ? 0 : 1]), kDone);
  assert_end(workers.wait(sends[first ? 1 : 0]), kLost);
  Transfer again;
  workers[0].send(1, {.number = 5}, sent.data(), sent.size(), again);
  assert_end(workers.wait(again), kLost);
  workers[0].receive(1, {.number = 5}, got.data(), got.size(), again);
  assert_end(workers.wait(again), kLost);
  workers[1].send(0, {.number = 6}, sent.data(), sent.size(), again);
  assert_end(workers.wait(again), kCancelled);
  // A message sent before the loss is received, and the other workers continue.
  Transfer late;
  workers[0].receive(1, {.number = 1}, got.data(), got.size(), late);
  assert_end(workers.wait(late), kDone);
  assert_memory_equal(got.data(), sent.data(), sent.size());
  workers.settle();
  assert_false(other.over());
  workers[2].send(0, {.number = 4}, sent.data(), sent.size(), again);
  assert_end(workers.wait(other), kDone);
  assert_end(workers.wait(again), kDone);
}

namespace {

// One message between two workers. Its send and its receive have the same number.
struct Passing {
  int from;
  int to;
  std::vector<std::byte> sent;
  std::vector<std::byte> got;
  Transfer send;
  Transfer receive;
};

// Small messages, which are sent ahead, and large ones, which wait. Each worker sends some to every other.
void make_passings(std::deque<Passing>& made) {
  for (const std::size_t bytes : {std::size_t{200}, std::size_t{5000}, std::size_t{300}}) {
    for (int from = 0; from < 3; ++from) {
      for (int step = 1; step < 3; ++step) {
        Passing& passing = made.emplace_back();
        passing.from = from;
        passing.to = (from + step) % 3;
        passing.sent = pattern(bytes, made.size());
        passing.got.resize(bytes);
      }
    }
  }
}

// Worker 1 leaves before message k is sent. Its transfers end soon, messages that arrive are complete, and
// the other two workers continue.
void leave_before(void** state, std::size_t k) {
  Workers workers(state, 3, 1024);
  std::deque<Passing> passings;
  make_passings(passings);
  const auto receive = [&](std::size_t i) {
    Passing& p = passings[i];
    workers[p.to].receive(p.from, {.number = i}, p.got.data(), p.got.size(), p.receive);
  };
  // Every other receive is posted before its message is sent.
  for (std::size_t i = 0; i < passings.size(); i += 2) receive(i);
  for (std::size_t i = 0; i < passings.size(); ++i) {
    if (i == k) workers[1].close();
    Passing& p = passings[i];
    workers[p.from].send(p.to, {.number = i}, p.sent.data(), p.sent.size(), p.send);
    workers.progress();
  }
  for (std::size_t i = 1; i < passings.size(); i += 2) receive(i);
  for (std::size_t i = 0; i < passings.size(); ++i) {
    Passing& p = passings[i];
    const End sent = workers.wait(p.send);
    const End got = workers.wait(p.receive);
    const bool well = sent == End::kDone && got == End::kDone;
    if (got == End::kDone) assert_memory_equal(p.got.data(), p.sent.data(), p.sent.size());
    if (k == passings.size() || (p.from != 1 && p.to != 1)) {
      assert_true(well);
    } else if (p.from == 1) {
      // A message whose send is reported as done has arrived.
      assert_true(well || (sent == End::kCancelled && got == End::kLost));
      if (i >= k) assert_false(well);
    } else {
      assert_true(sent == End::kDone || sent == End::kLost);
      assert_true(well || got == End::kCancelled);
      if (i >= k) assert_end(got, kCancelled);
    }
  }
}

}  // namespace

void one_leaves_before_any_message(void** state) {
  std::deque<Passing> passings;
  make_passings(passings);
  for (std::size_t k = 0; k <= passings.size(); ++k) leave_before(state, k);
}

// While worker 1 receives large messages, it sends small ones ahead and leaves. The small ones arrive.
void one_leaves_while_much_comes_to_it(void** state) {
  constexpr std::size_t kMessages = 16;
  const auto large = pattern(100'000, 1);
  const auto small = pattern(200, 2);
  for (int round = 0; round < 8; ++round) {
    Workers workers(state, 3, 1024);
    std::vector<std::byte> into(large.size());
    Transfer sends[kMessages];
    Transfer receives[kMessages];
    for (std::size_t i = 0; i < kMessages; ++i) {
      workers[1].receive(0, {.number = i}, into.data(), into.size(), receives[i]);
      workers[0].send(1, {.number = i}, large.data(), large.size(), sends[i]);
    }
    workers.until([&] { return receives[0].over(); });
    Transfer ahead[2];
    workers[1].send(0, {.number = 100}, small.data(), small.size(), ahead[0]);
    workers[1].send(2, {.number = 100}, small.data(), small.size(), ahead[1]);
    for (Transfer& each : ahead) assert_end(workers.wait(each), kDone);
    workers[1].close();
    for (std::size_t i = 0; i < kMessages; ++i) {
      const End sent = workers.wait(sends[i]);
      assert_true(sent == End::kDone || sent == End::kLost);
      if (workers.wait(receives[i]) == End::kDone) assert_end(sent, kDone);
    }
    for (const int to : {0, 2}) {
      std::vector<std::byte> got(small.size());
      Transfer receive;
      workers[to].receive(1, {.number = 100}, got.data(), got.size(), receive);
      assert_end(workers.wait(receive), kDone);
      assert_memory_equal(got.data(), small.data(), small.size());
    }
  }
}

}  // namespace dist

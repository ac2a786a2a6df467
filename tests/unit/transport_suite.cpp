// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/transport_workers.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <vector>

namespace dist {
namespace {

void messages_arrive_whole(void** state) {
  Workers workers(state, 2);
  uint64_t number = 0;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64},
                                  std::size_t{65}, kCredit, kCredit + 1, std::size_t{1} << 20}) {
    for (const bool send_first : {true, false}) {
      const MessageKey key{.number = ++number};
      const auto sent = pattern(bytes, number);
      // The bytes before and after the message must not change.
      std::vector<std::byte> got(bytes + 2, std::byte{0xEE});
      Transfer send;
      Transfer receive;
      assert_true(send.over());
      if (send_first) workers[0].send(1, key, sent.data(), bytes, send);
      workers[1].receive(0, key, got.data() + 1, bytes, receive);
      if (!send_first) workers[0].send(1, key, sent.data(), bytes, send);
      assert_end(workers.wait(send), kDone);
      assert_end(workers.wait(receive), kDone);
      if (bytes != 0) assert_memory_equal(got.data() + 1, sent.data(), bytes);
      assert_true(got.front() == std::byte{0xEE} && got.back() == std::byte{0xEE});
    }
  }
}

void keys_tell_messages_apart(void** state) {
  Workers workers(state, 3, std::size_t{1} << 16);
  const MessageKey keys[] = {{.number = 1},
                             {.generation = 1, .number = 1},
                             {.run = 1, .number = 1},
                             {.group = 1, .number = 1},
                             {.series = 1, .number = 1},
                             {.number = 2},
                             {.number = 1, .part = 1}};
  constexpr std::size_t kKeys = std::size(keys);
  Transfer sends[3][kKeys];
  Transfer receives[2 * kKeys];
  uint64_t values[3][kKeys];
  uint64_t got[2 * kKeys] = {};
  for (int from : {1, 2}) {
    for (std::size_t k = 0; k < kKeys; ++k) {
      values[from][k] = static_cast<uint64_t>(from) * 100 + k;
      workers[from].send(0, keys[k], reinterpret_cast<const std::byte*>(&values[from][k]), sizeof(uint64_t),
                         sends[from][k]);
    }
  }
  // In reverse order of sending.
  for (std::size_t i = 2 * kKeys; i-- > 0;) {
    workers[0].receive(i % 2 == 0 ? 1 : 2, keys[i / 2], reinterpret_cast<std::byte*>(&got[i]),
                       sizeof(uint64_t), receives[i]);
  }
  for (std::size_t i = 0; i < 2 * kKeys; ++i) {
    assert_end(workers.wait(receives[i]), kDone);
    assert_int_equal(got[i], values[i % 2 == 0 ? 1 : 2][i / 2]);
  }
  for (int from : {1, 2}) {
    for (Transfer& send : sends[from]) assert_end(workers.wait(send), kDone);
  }
}

void senders_run_ahead_by_the_credit(void** state) {
  Workers workers(state, 2, 1024);
  assert_int_equal(workers[0].credit(), 1024);
  const auto sent = pattern(256, 1);
  std::deque<Transfer> sends;
  for (uint64_t i = 0; i < 4; ++i) {
    workers[0].send(1, {.number = i}, sent.data(), sent.size(), sends.emplace_back());
    assert_end(workers.wait(sends.back()), kDone);
  }
  // Neither one byte nor an empty message fits any more.
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{0}}) {
    workers[0].send(1, {.number = 10 + bytes}, sent.data(), bytes, sends.emplace_back());
    workers.settle();
    assert_false(sends.back().over());
  }
  std::vector<std::byte> got(256);
  Transfer receive;
  workers[1].receive(0, {.number = 10}, got.data(), 0, receive);
  assert_end(workers.wait(receive), kDone);
  workers[1].receive(0, {.number = 11}, got.data(), 1, receive);
  assert_end(workers.wait(receive), kDone);
  for (Transfer& send : sends) assert_end(workers.wait(send), kDone);
  // Received bytes become available as credit again.
  for (uint64_t i = 0; i < 4; ++i) {
    workers[1].receive(0, {.number = i}, got.data(), got.size(), receive);
    assert_end(workers.wait(receive), kDone);
    assert_memory_equal(got.data(), sent.data(), sent.size());
    workers[0].send(1, {.number = 20 + i}, sent.data(), sent.size(), sends.emplace_back());
    assert_end(workers.wait(sends.back()), kDone);
  }
}

void another_size_is_a_misfit(void** state) {
  Workers workers(state, 2);
  const auto sent = pattern(2 * kCredit, 3);
  for (const std::size_t bytes : {std::size_t{8}, 2 * kCredit}) {
    for (const std::size_t wanted : {bytes - 1, bytes + 1}) {
      std::vector<std::byte> got(wanted, std::byte{0xEE});
      Transfer send;
      Transfer receive;
      const MessageKey key{.number = bytes * 10 + wanted};
      workers[1].receive(0, key, got.data(), wanted, receive);
      workers.settle();
      workers[0].send(1, key, sent.data(), bytes, send);
      assert_end(workers.wait(receive), kMisfit);
      if (bytes > kCredit || suite_of(state).senders_know_receives) {
        assert_end(workers.wait(send), kMisfit);
      } else {
        assert_end(workers.wait(send), kDone);
      }
      for (const std::byte b : got) assert_true(b == std::byte{0xEE});
    }
  }
}

void cancelled_transfers_are_over(void** state) {
  Workers workers(state, 2, 64);
  const auto sent = pattern(1000, 5);
  std::vector<std::byte> got(1000);
  for (const bool settled : {false, true}) {
    const MessageKey key{.series = 7, .number = settled ? 1u : 0u};
    Transfer send;
    Transfer receive;
    workers[1].receive(0, key, got.data(), got.size(), receive);
    if (settled) workers.settle();
    workers[1].cancel(receive);
    assert_end(workers.wait(receive), kCancelled);
    workers[0].send(1, key, sent.data(), sent.size(), send);
    if (settled) workers.settle();
    workers[0].cancel(send);
    assert_end(workers.wait(send), kCancelled);
    // Neither leaves anything behind, and the ended transfers do not change.
    workers[0].send(1, key, sent.data(), sent.size(), send);
    workers[1].receive(0, key, got.data(), got.size(), receive);
    assert_end(workers.wait(receive), kDone);
    assert_end(workers.wait(send), kDone);
    workers[0].cancel(send);
    assert_end(send.end(), kDone);
    assert_memory_equal(got.data(), sent.data(), sent.size());
  }
}

void what_is_forgotten_is_let_go(void** state) {
  Workers workers(state, 2, 256);
  const auto sent = pattern(200, 4);
  std::vector<std::byte> got(200);
  Transfer sends[3];
  for (uint64_t i = 0; i < 3; ++i)
    workers[0].send(1, {.generation = 1, .run = 4, .number = i}, sent.data(), sent.size(), sends[i]);
  workers.settle();
  // One message was within the credit.
  assert_int_equal(sends[0].over() + sends[1].over() + sends[2].over(), 1);
  workers[1].forget(1, 4);
  workers.settle();
  assert_int_equal(sends[0].over() + sends[1].over() + sends[2].over(), 1);
  workers[1].forget(1, 5);
  for (Transfer& send : sends) assert_end(workers.wait(send), kDone);
  // A late message, one of an earlier generation, and one that is expected.
  Transfer send;
  for (const MessageKey key : {MessageKey{.generation = 1, .run = 4, .number = 9}, MessageKey{.run = 9}}) {
    for (int i = 0; i < 5; ++i) {
      workers[0].send(1, key, sent.data(), sent.size(), send);
      assert_end(workers.wait(send), kDone);
    }
  }
  Transfer receive;
  workers[0].send(1, {.generation = 1, .run = 5}, sent.data(), sent.size(), send);
  workers[1].receive(0, {.generation = 1, .run = 5}, got.data(), got.size(), receive);
  assert_end(workers.wait(receive), kDone);
  assert_end(workers.wait(send), kDone);
  assert_memory_equal(got.data(), sent.data(), sent.size());
}

void who_has_not_joined_is_waited_for(void** state) {
  const std::unique_ptr<TransportFixture> fixture = suite_of(state).make(2, 64);
  Transport& first = fixture->join(0);
  const auto sent = pattern(500, 2);
  std::vector<std::byte> got(500);
  std::vector<std::byte> back(500);
  Transfer send;
  Transfer receive;
  first.send(1, {.number = 1}, sent.data(), sent.size(), send);
  first.receive(1, {.number = 2}, back.data(), back.size(), receive);
  for (int i = 0; i < 64; ++i) first.progress();
  assert_false(send.over() || receive.over() || first.lost(1));
  Transport& second = fixture->join(1);
  Transfer there;
  Transfer here;
  second.receive(0, {.number = 1}, got.data(), got.size(), there);
  second.send(0, {.number = 2}, sent.data(), sent.size(), here);
  for (const Transfer* each : {&send, &receive, &there, &here}) {
    while (!each->over()) {
      first.progress();
      second.progress();
      std::this_thread::yield();
    }
    assert_end(each->end(), kDone);
  }
  assert_memory_equal(got.data(), sent.data(), sent.size());
  assert_memory_equal(back.data(), sent.data(), sent.size());
  first.close();
  second.close();
}

struct Counter final : TransportListener {
  void happened() noexcept override { count.fetch_add(1); }
  std::atomic<int> count{0};
};

void the_listener_is_told(void** state) {
  Workers workers(state, 2, 64);
  Counter counters[2];
  workers[0].listen(&counters[0]);
  workers[1].listen(&counters[1]);
  const auto sent = pattern(100, 1);
  std::vector<std::byte> got(100);
  Transfer send;
  Transfer receive;
  workers[0].send(1, {.number = 1}, sent.data(), sent.size(), send);
  workers.settle();
  assert_int_equal(counters[0].count.load(), 0);
  workers[1].receive(0, {.number = 1}, got.data(), got.size(), receive);
  assert_end(workers.wait(send), kDone);
  workers.until([&] { return counters[0].count.load() >= 1 && counters[1].count.load() >= 1; });
  assert_end(workers.wait(receive), kDone);
  workers[1].receive(0, {.number = 2}, got.data(), got.size(), receive);
  int before = counters[1].count.load();
  workers[1].cancel(receive);
  assert_true(counters[1].count.load() > before);
  workers[1].listen(nullptr);
  before = counters[1].count.load();
  const int before_other = counters[0].count.load();
  workers[1].close();
  assert_int_equal(counters[1].count.load(), before);
  workers.until([&] { return counters[0].count.load() > before_other; });
  workers[0].listen(nullptr);
}

void only_who_is_spoken_to_is_connected(void** state) {
  Workers workers(state, 16);
  for (int w = 0; w < 16; ++w) assert_int_equal(workers[w].num_connections(), 0);
  // Messages in a ring.
  Transfer sends[16];
  Transfer receives[16];
  std::byte sent{5};
  std::byte got[16];
  for (int w = 0; w < 16; ++w) {
    workers[w].send((w + 1) % 16, {}, &sent, 1, sends[w]);
    workers[w].receive((w + 15) % 16, {}, &got[w], 1, receives[w]);
  }
  for (int w = 0; w < 16; ++w) {
    assert_end(workers.wait(receives[w]), kDone);
    assert_end(workers.wait(sends[w]), kDone);
    assert_true(got[w] == sent);
  }
  for (int w = 0; w < 16; ++w) assert_true(workers[w].num_connections() <= 2);
}

// For each pair, a thousand messages are in transit at once in both directions, with one thread per worker.
// Some are cancelled. If `leaver` is a worker, it leaves in the middle.
void crowd(void** state, int leaver) {
  constexpr int kWorkers = 4;
  constexpr int kMessages = 1000;
  Workers workers(state, kWorkers);
  std::atomic<int> wrong{0};
  std::atomic<int> arrived{0};
  std::vector<std::thread> threads;
  for (int me = 0; me < kWorkers; ++me) {
    threads.emplace_back([&, me] {
      std::mt19937_64 random(suite_of(state).seed + static_cast<uint64_t>(me));
      struct Message {
        Transfer transfer;
        std::vector<std::byte> bytes;
        uint64_t number = 0;
        int peer = 0;
        bool sends = false;
        bool cancelled = false;
      };
      std::deque<Message> messages;
      const auto size_of = [](int from, int to, uint64_t number) {
        return static_cast<std::size_t>(
            (static_cast<uint64_t>(from) * 31 + static_cast<uint64_t>(to) * 17 + number * 13) % 300);
      };
      for (int i = 0; i < kMessages; ++i) {
        if (me == leaver && i == kMessages / 2) workers[me].close();
        for (int peer = 0; peer < kWorkers; ++peer) {
          if (peer == me) continue;
          for (const bool sends : {true, false}) {
            Message& m = messages.emplace_back();
            m.peer = peer;
            m.sends = sends;
            // Receives are posted in another order.
            m.number = static_cast<uint64_t>(sends ? i : (i * 7) % kMessages);
            const std::size_t bytes = sends ? size_of(me, peer, m.number) : size_of(peer, me, m.number);
            m.bytes = sends ? pattern(bytes, m.number) : std::vector<std::byte>(bytes);
            if (sends) {
              workers[me].send(peer, {.number = m.number}, m.bytes.data(), bytes, m.transfer);
            } else {
              workers[me].receive(peer, {.number = m.number}, m.bytes.data(), bytes, m.transfer);
            }
          }
        }
        if (random() % 16 == 0) workers[me].progress();
      }
      // The receiver cancels every number that is a multiple of 50, early or late.
      for (Message& m : messages) {
        if (m.sends || m.number % 50 != 0) continue;
        m.cancelled = true;
        workers[me].cancel(m.transfer);
      }
      for (Message& m : messages) {
        // A message whose receiver has cancelled may never be asked for.
        if (m.sends && m.number % 50 == 0) workers[me].cancel(m.transfer);
        while (!m.transfer.over()) {
          workers[me].progress();
          std::this_thread::yield();
        }
        const End end = m.transfer.end();
        const bool leaving = leaver >= 0 && (me == leaver || m.peer == leaver);
        const bool may_fail = m.cancelled || (m.sends && m.number % 50 == 0) || leaving;
        if (end != End::kDone && !may_fail) ++wrong;
        if (end == End::kMisfit) ++wrong;
        if (end != End::kDone || m.sends) continue;
        ++arrived;
        if (m.bytes != pattern(m.bytes.size(), m.number)) ++wrong;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  assert_int_equal(wrong.load(), 0);
  assert_true(arrived.load() >= (kWorkers - 1) * (kWorkers - 2) * kMessages * 9 / 10);
}

void a_thousand_at_once(void** state) { crowd(state, -1); }
void one_leaves_among_many(void** state) { crowd(state, 2); }

}  // namespace

std::vector<CMUnitTest> tests_of(TransportSuite& suite) {
  std::vector<CMUnitTest> tests;
  const auto add = [&](const char* title, CMUnitTestFunction body) {
    const std::string& whole = suite.titles.emplace_back(std::string(suite.name) + ": " + title);
    tests.push_back({whole.c_str(), body, nullptr, nullptr, &suite});
  };
#define ADD(body) add(#body, body)
  ADD(messages_arrive_whole);
  ADD(keys_tell_messages_apart);
  ADD(senders_run_ahead_by_the_credit);
  ADD(another_size_is_a_misfit);
  ADD(cancelled_transfers_are_over);
  ADD(what_is_forgotten_is_let_go);
  ADD(who_is_lost_ends_what_waits_for_it);
  ADD(one_leaves_before_any_message);
  ADD(one_leaves_while_much_comes_to_it);
  ADD(who_has_not_joined_is_waited_for);
  ADD(the_listener_is_told);
  ADD(only_who_is_spoken_to_is_connected);
  ADD(a_thousand_at_once);
  ADD(one_leaves_among_many);
#undef ADD
  return tests;
}

}  // namespace dist

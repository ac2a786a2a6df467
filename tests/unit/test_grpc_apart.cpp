// SPDX-License-Identifier: Apache-2.0
// core/net/grpc: pieces of large messages that are sent separately from frames, split at any position and
// released at any point.
#include <algorithm>
#include <memory>
#include <vector>

#include "tests/unit/grpc_halves.hpp"

namespace dist::grpc_link {
namespace {

// A pair that sends large messages apart from frames. The test moves them in steps, which may end at any
// byte.
struct ApartPair : Pair {
  ApartPair() : Pair(kCredit, Piece::kLeastMessageBytes) {}
  // Starts the next piece.
  bool begin() {
    Piece piece;
    if (!out.next_apart(&piece)) return false;
    assert_null(in.begin_apart(piece));
    return true;
  }
  // Moves at most `most` bytes and returns how many. 0 means that no piece is in progress.
  std::size_t step(std::size_t most) {
    const Outbox::Going going = out.apart();
    const Inbox::Coming coming = in.apart();
    assert_int_equal(going.data.empty() && going.end.empty(), coming.data.empty() && coming.end.empty());
    std::vector<std::byte> sent(going.data.begin(), going.data.end());
    sent.insert(sent.end(), going.end.begin(), going.end.end());
    if (sent.empty()) return 0;
    const std::size_t bytes =
        std::min<std::size_t>({sent.size(), coming.data.size() + coming.end.size(), most});
    const std::size_t data = std::min(bytes, coming.data.size());
    std::copy_n(sent.begin(), data, coming.data.begin());
    if (bytes > data) coming.end[0] = sent[data];
    out.apart_gone(bytes);
    assert_null(in.apart_came(bytes));
    return bytes;
  }
  void finish() {
    while (step(100'000) != 0) {
    }
  }
  // Starts a receive that waits and a send that is granted.
  void grant(const std::vector<std::byte>& sent, std::vector<std::byte>& got, Transfer& send,
             Transfer& receive) {
    this->receive({.number = 1}, got, receive);
    this->send({.number = 1}, sent, send);
    forward(1000);
    backward();
  }
};

void large_ones_go_apart(void**) {
  ApartPair pair;
  const auto sent = pattern(2 * Piece::kMostBytes + 17, 3);
  std::vector<std::byte> got(sent.size());
  Transfer send;
  Transfer receive;
  pair.grant(sent, got, send, receive);
  assert_false(pair.out.put_chunk());
  // Only one piece at a time.
  assert_true(pair.begin());
  Piece none;
  assert_false(pair.out.next_apart(&none));
  for (std::size_t left = Piece::kMostBytes + 1; left != 0;)
    left -= pair.step(std::min<std::size_t>(left, 65'537));
  assert_false(send.over());
  assert_true(pair.begin());
  pair.finish();
  assert_true(pair.begin());
  pair.finish();
  assert_false(pair.begin());
  assert_end(send, kDone);
  assert_end(receive, kDone);
  assert_true(got == sent);
  // Smaller messages are sent in chunks.
  const auto small = pattern(2 * kCredit, 4);
  std::vector<std::byte> got_small(small.size());
  pair.grant(small, got_small, send, receive);
  assert_false(pair.out.next_apart(&none));
  assert_true(pair.out.put_chunk());
  pair.forward(1000);
  assert_end(receive, kDone);
  assert_true(got_small == small);
}

// Either end cancels its transfer at every point of a piece. Memory that was released is not accessed any
// more, and the receive gets the whole next message of its key.
void what_goes_apart_may_be_let_go(void**) {
  const std::size_t size = Piece::kMostBytes + Piece::kLeastMessageBytes;
  for (const bool sender : {true, false}) {
    for (const std::size_t moved : {std::size_t{0}, std::size_t{1}, Piece::kMostBytes - 1, Piece::kMostBytes,
                                    Piece::kMostBytes + 1, size, size + 1}) {
      ApartPair pair;
      auto sent = std::make_unique<std::vector<std::byte>>(pattern(size, 3));
      auto got = std::make_unique<std::vector<std::byte>>(size);
      Transfer send;
      Transfer receive;
      pair.grant(*sent, *got, send, receive);
      for (std::size_t left = moved; left != 0;) {
        const std::size_t some = pair.step(left);
        if (some == 0) assert_true(pair.begin());
        left -= some;
      }
      if (sender) {
        pair.out.cancel(send);
        assert_end(send, kCancelled);
        sent.reset();
      } else {
        pair.in.cancel(receive);
        assert_end(receive, kCancelled);
        got.reset();
      }
      const auto again = pattern(size, 4);
      if (sender) {
        pair.send({.number = 1}, again, send);
      } else {
        got = std::make_unique<std::vector<std::byte>>(size);
        pair.receive({.number = 1}, *got, receive);
      }
      for (int turn = 0; turn < 4; ++turn) {
        pair.backward();
        do {
          pair.finish();
        } while (pair.begin());
        pair.forward(1000);
      }
      assert_end(send, kDone);
      assert_end(receive, kDone);
      assert_true(*got == (sender ? again : *sent));
    }
  }
}

void who_sends_apart_what_cannot_come_so_is_told(void**) {
  const auto refuses = [](bool apart, const Piece& piece) {
    Pair pair(kCredit, apart ? Piece::kLeastMessageBytes : SIZE_MAX);
    std::vector<std::byte> got(3 * Piece::kMostBytes);
    Transfer receive;
    pair.receive({.number = 1}, got, receive);
    const auto sent = pattern(got.size(), 1);
    Transfer send;
    pair.send({.number = 1}, sent, send);
    pair.forward(1000);
    const bool refused = pair.in.begin_apart(piece) != nullptr;
    pair.in.end_all(End::kLost);
    pair.out.end_all(End::kLost);
    return refused;
  };
  assert_false(refuses(true, {1, 0, 1}));
  assert_true(refuses(false, {1, 0, 1}));
  assert_true(refuses(true, {2, 0, 1}));
  assert_true(refuses(true, {0, 0, 1}));
  assert_true(refuses(true, {1, 1, 1}));
  assert_true(refuses(true, {1, 0, 0}));
  assert_true(refuses(true, {1, 0, Piece::kMostBytes + 1}));
  assert_true(refuses(true, {1, UINT64_MAX, 2}));
  // The byte after the data must be 0 or 1.
  ApartPair pair;
  const auto sent = pattern(Piece::kLeastMessageBytes, 3);
  std::vector<std::byte> got(sent.size());
  Transfer send;
  Transfer receive;
  pair.grant(sent, got, send, receive);
  assert_true(pair.begin());
  const Inbox::Coming coming = pair.in.apart();
  assert_int_equal(coming.data.size(), sent.size());
  coming.end[0] = std::byte{2};
  assert_non_null(pair.in.apart_came(sent.size() + 1));
  pair.in.end_all(End::kLost);
  pair.out.end_all(End::kLost);
}

// A piece of a granted message starts after its receiver has left. The bytes are discarded.
void what_comes_apart_to_one_who_has_left_is_discarded(void**) {
  ApartPair pair;
  const auto sent = pattern(Piece::kLeastMessageBytes, 3);
  std::vector<std::byte> got(sent.size());
  Transfer send;
  Transfer receive;
  pair.grant(sent, got, send, receive);
  pair.in.close();
  assert_end(receive, kCancelled);
  assert_true(pair.begin());
  assert_true(pair.in.apart().data.empty() && pair.in.apart().end.empty());
  pair.out.end_all(End::kLost);
}

}  // namespace
}  // namespace dist::grpc_link

int main() {
  using namespace dist::grpc_link;
  const CMUnitTest tests[] = {
      cmocka_unit_test(large_ones_go_apart),
      cmocka_unit_test(what_goes_apart_may_be_let_go),
      cmocka_unit_test(who_sends_apart_what_cannot_come_so_is_told),
      cmocka_unit_test(what_comes_apart_to_one_who_has_left_is_discarded),
  };
  return cmocka_run_group_tests_name("grpc_apart", tests, nullptr, nullptr);
}

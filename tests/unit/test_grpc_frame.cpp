// SPDX-License-Identifier: Apache-2.0
// core/net/grpc: frames as bytes, and the two halves of a link as state machines, without gRPC.
#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "core/net/grpc/frame.hpp"
#include "core/net/grpc/hello.hpp"
#include "tests/unit/grpc_halves.hpp"

namespace dist::grpc_link {
namespace {

// ---- Bytes ----

void frames_read_as_written(void**) {
  const Frame frame{.kind = FrameKind::kOffer,
                    .id = 0x1122334455667788,
                    .key = {.generation = 1, .run = 2, .group = -3, .series = 4, .number = 5, .part = 6},
                    .bytes = 777};
  std::byte bytes[Frame::kBytes];
  frame.write(bytes);
  assert_int_equal(bytes[0], static_cast<int>(FrameKind::kOffer));
  assert_int_equal(bytes[32], 0x88);
  Frame read;
  assert_true(read.read(bytes));
  assert_true(read.kind == frame.kind && read.id == frame.id && read.key == frame.key &&
              read.bytes == frame.bytes);
  assert_int_equal(read.data_bytes(), 0);
}

void what_is_no_frame_is_refused(void**) {
  std::byte bytes[Frame::kBytes] = {};
  Frame frame;
  // Kind 0, kinds that do not exist, fields that a kind does not have, and sizes beyond the limits.
  assert_false(frame.read(bytes));
  for (int kind = 1; kind < 256; ++kind) {
    bytes[0] = static_cast<std::byte>(kind);
    assert_int_equal(frame.read(bytes), kind < static_cast<int>(FrameKind::kEnd));
  }
  bytes[0] = static_cast<std::byte>(FrameKind::kBye);
  for (std::size_t i = 4; i < sizeof bytes; ++i) {
    bytes[i] = std::byte{1};
    assert_false(frame.read(bytes));
    bytes[i] = std::byte{0};
  }
  assert_true(frame.read(bytes));
  bytes[0] = static_cast<std::byte>(FrameKind::kMessage);
  bytes[46] = std::byte{2};
  assert_false(frame.read(bytes));
}

void proofs_differ_by_all_that_was_said(void**) {
  std::byte hello[Hello::kBytes] = {};
  std::byte answer[Answer::kBytes] = {};
  const Digest server = prove(Prover::kServer, "secret", hello, answer);
  const auto differs = [&](const Digest& other) { return !equal(server.data(), other.data(), other.size()); };
  assert_false(differs(prove(Prover::kServer, "secret", hello, answer)));
  assert_true(differs(prove(Prover::kClient, "secret", hello, answer)));
  assert_true(differs(prove(Prover::kServer, "Secret", hello, answer)));
  assert_true(differs(prove(Prover::kServer, "", hello, answer)));
  for (std::byte* each : {&hello[0], &hello[Hello::kBytes - 1], &answer[0], &answer[Answer::kProofAt - 1]}) {
    *each = std::byte{1};
    assert_true(differs(prove(Prover::kServer, "secret", hello, answer)));
    *each = std::byte{0};
  }
  // The digest depends on where texts end.
  ClusterDigest one;
  one.add("ab");
  one.add("c");
  ClusterDigest other;
  other.add("a");
  other.add("bc");
  assert_true(one.take() != other.take());
}

void hellos_read_as_written(void**) {
  Hello hello;
  std::strcpy(hello.version, "1.2.3");
  hello.from = 3;
  hello.credit = 99;
  hello.replicas = 5;
  hello.job[15] = std::byte{6};
  hello.nonce[31] = std::byte{7};
  std::byte bytes[Hello::kBytes];
  hello.write(bytes);
  Hello read;
  assert_true(read.read(bytes));
  assert_true(read.from == 3 && read.credit == 99 && read.nonce == hello.nonce);
  assert_true(read.replicas == 5 && read.job == hello.job);
  assert_string_equal(read.version, "1.2.3");
  // A hello of another protocol version may differ in everything after its version.
  bytes[8] = std::byte{9};
  bytes[8 + 4 + kVersionBytes] = std::byte{77};
  assert_true(read.read(bytes));
  assert_int_equal(read.protocol, 9);
  bytes[8] = std::byte{kProtocol};
  assert_false(read.read(bytes));
  bytes[0] = std::byte{0};
  assert_false(read.read(bytes));
}

// ---- Halves ----

void large_ones_go_in_chunks(void**) {
  for (const bool receive_first : {true, false}) {
    Pair pair;
    const auto sent = pattern(2 * kChunkBytes + 17, 3);
    std::vector<std::byte> got(sent.size());
    Transfer send;
    Transfer receive;
    if (receive_first) pair.receive({.number = 1}, got, receive);
    pair.send({.number = 1}, sent, send);
    pair.forward(1000);
    if (!receive_first) pair.receive({.number = 1}, got, receive);
    pair.backward();
    int chunks = 0;
    for (; pair.out.put_chunk(); ++chunks) pair.forward(100'000);
    assert_int_equal(chunks, 3);
    assert_end(send, kDone);
    assert_end(receive, kDone);
    assert_true(got == sent);
  }
}

void a_half_received_one_is_offered_again(void**) {
  Pair pair;
  const auto sent = pattern(3 * kChunkBytes, 3);
  std::vector<std::byte> got(sent.size());
  Transfer send;
  Transfer receive;
  pair.receive({.number = 1}, got, receive);
  pair.send({.number = 1}, sent, send);
  pair.forward(1000);
  pair.backward();
  assert_true(pair.out.put_chunk());
  pair.forward(100'000);
  pair.in.cancel(receive);
  assert_end(receive, kCancelled);
  // Data that arrived in the meantime is released.
  assert_true(pair.out.put_chunk());
  pair.forward(100'000);
  pair.backward();
  assert_false(send.over());
  std::vector<std::byte> again(sent.size());
  pair.receive({.number = 1}, again, receive);
  pair.move();
  assert_end(receive, kDone);
  assert_end(send, kDone);
  assert_true(again == sent);
}

void a_half_sent_one_leaves_its_receive_waiting(void**) {
  Pair pair;
  const auto sent = pattern(3 * kChunkBytes, 4);
  std::vector<std::byte> got(sent.size());
  Transfer send;
  Transfer receive;
  pair.receive({.number = 1}, got, receive);
  pair.send({.number = 1}, sent, send);
  pair.forward(1000);
  pair.backward();
  assert_true(pair.out.put_chunk());
  pair.out.cancel(send);
  assert_end(send, kCancelled);
  pair.move();
  assert_false(receive.over());
  pair.send({.number = 1}, sent, send);
  pair.move();
  assert_end(receive, kDone);
  assert_true(got == sent);
}

void credit_that_comes_back_is_used(void**) {
  Pair pair;
  const auto sent = pattern(kCredit, 5);
  const auto small = pattern(1, 6);
  std::vector<std::byte> got(kCredit);
  Transfer first;
  Transfer second;
  Transfer third;
  pair.send({.number = 1}, sent, first);
  assert_end(first, kDone);
  pair.send({.number = 2}, sent, second);
  pair.send({.number = 3}, small, third);
  pair.move();
  assert_false(second.over() || third.over());
  Transfer receive;
  pair.receive({.number = 1}, got, receive);
  assert_end(receive, kDone);
  pair.move();
  assert_end(second, kDone);
  assert_false(third.over());
  assert_true(got == sent);
  // Both ends act at once: the message is granted while it is being sent ahead.
  pair.receive({.number = 2}, got, receive);
  std::vector<std::byte> one(1);
  Transfer last;
  pair.receive({.number = 3}, one, last);
  pair.move();
  assert_end(third, kDone);
  assert_end(last, kDone);
  assert_true(one == small);
}

void too_large_a_message_holds_up_no_other(void**) {
  Pair pair;
  const auto large = pattern(kCredit + 1, 5);
  const auto small = pattern(8, 6);
  Transfer first;
  Transfer second;
  pair.send({.number = 1}, large, first);
  pair.send({.number = 2}, small, second);
  assert_false(first.over());
  assert_end(second, kDone);
}

void small_messages_cost_few_frames_backwards(void**) {
  Pair pair;
  const auto sent = pattern(64, 5);
  std::vector<std::byte> got(64);
  for (uint64_t i = 0; i < 64; ++i) {
    Transfer send;
    Transfer receive;
    pair.receive({.number = i}, got, receive);
    pair.send({.number = i}, sent, send);
    pair.move();
    assert_end(receive, kDone);
  }
  // One frame per quarter of the credit.
  assert_int_equal(pair.backwards.frames, 64 / 4);
}

void memory_is_bounded_and_given_back(void**) {
  Pair pair;
  const std::size_t before = pair.memory.live();
  const auto sent = pattern(64, 5);
  std::deque<Transfer> sends;
  for (uint64_t i = 0; i < 100; ++i) pair.send({.number = i}, sent, sends.emplace_back());
  pair.move();
  assert_int_equal(pair.memory.live(), before + 100);
  pair.in.forget(0, 1);
  pair.move();
  assert_int_equal(pair.memory.live(), before);
  for (const Transfer& each : sends) assert_end(each, kDone);
}

void without_memory_the_link_ends(void**) {
  Pair pair;
  const auto sent = pattern(64, 5);
  Transfer send;
  pair.send({.number = 1}, sent, send);
  pair.memory.refuse(0);
  const char* const why = pair.there.feed(pair.forwards.bytes.data(), pair.forwards.bytes.size(), pair.in);
  assert_string_equal(why, "no memory is left for a message that it sent ahead");
  std::vector<std::byte> got(64);
  Transfer receive;
  pair.receive({.number = 1}, got, receive);
  pair.in.end_all(End::kLost);
  assert_end(receive, kLost);
}

// Protocol violations by a proven peer: each is refused, and then all waiting transfers end.
void who_breaks_the_protocol_is_told_so(void**) {
  const auto breaks = [](std::initializer_list<Frame> frames) {
    Pair pair;
    std::vector<std::byte> got(3 * kChunkBytes);
    std::vector<std::byte> data(2 * kChunkBytes);
    Transfer receive;
    pair.receive({.number = 1}, got, receive);
    const char* why = nullptr;
    for (const Frame& each : frames) {
      assert_null(why);
      Wire wire;
      wire.put(each, data.data());
      why = pair.there.feed(wire.bytes.data(), wire.bytes.size(), pair.in);
    }
    assert_non_null(why);
    pair.in.end_all(End::kLost);
    assert_end(receive, kLost);
  };
  const Frame offer{.kind = FrameKind::kOffer, .id = 1, .key = {.number = 1}, .bytes = 3 * kChunkBytes};
  const Frame chunk{.kind = FrameKind::kChunk, .id = 1, .bytes = 10};
  breaks({{.kind = FrameKind::kGrant, .id = 1}});
  breaks({{.kind = FrameKind::kMessage, .key = {.number = 2}, .bytes = kCredit + 1}});
  breaks({{.kind = FrameKind::kMessage, .key = {.number = 2}, .bytes = kCredit},
          {.kind = FrameKind::kMessage, .key = {.number = 3}}});
  breaks({{.kind = FrameKind::kOffer, .id = 2, .bytes = 1}});
  breaks({offer, offer});
  breaks({chunk});
  breaks({{.kind = FrameKind::kOffer, .id = 1, .key = {.number = 7}, .bytes = 20}, chunk});
  breaks({offer, {.kind = FrameKind::kChunk, .id = 1, .bytes = kChunkBytes + 1}});
  breaks({offer, {.kind = FrameKind::kChunk, .id = 1, .bytes = 0}});
  breaks({offer, chunk, chunk});
  breaks({offer, chunk, {.kind = FrameKind::kAhead, .id = 1, .bytes = 10}});
  breaks({{.kind = FrameKind::kDrop, .id = 5}});
  breaks({{.kind = FrameKind::kAhead, .id = 5}});
  breaks({{.kind = FrameKind::kBye}, offer});
  // Violations by a receiver.
  Pair pair;
  for (const Frame& each : {Frame{.kind = FrameKind::kCredit, .bytes = 1},
                            Frame{.kind = FrameKind::kGrant, .id = 1}, Frame{.kind = FrameKind::kMessage}}) {
    Wire wire;
    wire.put(each, nullptr);
    FrameReader reader;
    assert_non_null(reader.feed(wire.bytes.data(), wire.bytes.size(), pair.out));
  }
}

// The link ends in the middle of a message.
void what_is_cut_off_is_lost(void**) {
  Pair pair;
  const auto sent = pattern(500, 5);
  std::vector<std::byte> got(500);
  Transfer send;
  Transfer receive;
  pair.receive({.number = 1}, got, receive);
  pair.send({.number = 1}, sent, send);
  assert_null(pair.there.feed(pair.forwards.bytes.data(), 300, pair.in));
  assert_false(receive.over());
  pair.in.end_all(End::kLost);
  assert_end(receive, kLost);
}

// The sender may still send until it learns that the receiver has left. Such frames are discarded, and are no
// error.
void what_comes_to_one_who_has_left_is_discarded(void**) {
  Pair pair;
  const auto sent = pattern(2 * kCredit, 5);
  std::vector<std::byte> got(sent.size());
  Transfer sends[3];
  Transfer receive;
  pair.receive({.number = 1}, got, receive);
  pair.send({.number = 1}, sent, sends[0]);
  pair.forward();
  pair.backward();
  pair.in.close();
  assert_end(receive, kCancelled);
  // A granted message, one that is sent ahead, and an offer.
  assert_true(pair.out.put_chunk());
  pair.send({.number = 2}, pattern(kCredit, 1), sends[1]);
  pair.send({.number = 3}, sent, sends[2]);
  pair.out.end_all(End::kCancelled);
  pair.forwards.put({.kind = FrameKind::kBye}, nullptr);
  pair.forward();
  assert_true(pair.in.bye());
  for (const std::byte each : got) assert_int_equal(static_cast<int>(each), 0);
}

}  // namespace
}  // namespace dist::grpc_link

int main() {
  using namespace dist::grpc_link;
  const CMUnitTest tests[] = {
      cmocka_unit_test(frames_read_as_written),
      cmocka_unit_test(what_is_no_frame_is_refused),
      cmocka_unit_test(proofs_differ_by_all_that_was_said),
      cmocka_unit_test(hellos_read_as_written),
      cmocka_unit_test(large_ones_go_in_chunks),
      cmocka_unit_test(a_half_received_one_is_offered_again),
      cmocka_unit_test(a_half_sent_one_leaves_its_receive_waiting),
      cmocka_unit_test(credit_that_comes_back_is_used),
      cmocka_unit_test(too_large_a_message_holds_up_no_other),
      cmocka_unit_test(small_messages_cost_few_frames_backwards),
      cmocka_unit_test(memory_is_bounded_and_given_back),
      cmocka_unit_test(without_memory_the_link_ends),
      cmocka_unit_test(who_breaks_the_protocol_is_told_so),
      cmocka_unit_test(what_is_cut_off_is_lost),
      cmocka_unit_test(what_comes_to_one_who_has_left_is_discarded),
  };
  return cmocka_run_group_tests_name("grpc_frame", tests, nullptr, nullptr);
}

// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: data that arrives over a link between worker processes, at its receiving half or, if the first
// byte is odd, its sending half. The input encodes steps: frames with fields near those that the half
// expects, frames of arbitrary bytes, pieces of arbitrary bytes, and actions of the half's own worker. The
// memory that the half keeps must be bounded, every transfer must end exactly once, and nothing may leak.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

extern "C" {
#include <cmocka.h>
}
#undef fail

#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include "core/net/grpc/frame.hpp"
#include "core/net/grpc/hello.hpp"
#include "core/net/grpc/inbox.hpp"
#include "core/net/grpc/outbox.hpp"
#include "tests/fuzz/bytes.h"

namespace dist::grpc_link {
namespace {

constexpr std::size_t kCredit = 512;

struct Sink final : FrameSink {
  void put(const Frame& frame, const std::byte* data) noexcept override {
    std::byte bytes[Frame::kBytes];
    frame.write(bytes);
    Frame read;
    assert_true(read.read(bytes));
    // Reading all data detects wrong addresses.
    for (uint64_t i = 0; i < frame.data_bytes(); ++i) sum += static_cast<unsigned>(data[i]);
  }
  unsigned sum = 0;
};

// One end of a link, its worker, and a peer that sends arbitrary data.
struct Half {
  Half(FrameTaker& of, bytes* from) : taker(of), in(from) {}

  void feed(const std::byte* data, std::size_t size) {
    if (broken) return;
    broken = reader.feed(data, size, taker) != nullptr;
  }
  void feed_frame() {
    Frame frame;
    frame.kind = static_cast<FrameKind>(1 + take_below(in, static_cast<int>(FrameKind::kEnd) - 1));
    const uint8_t has = take(in);
    if ((has & 1) != 0) frame.id = take(in) % 8;
    if ((has & 2) != 0) frame.key.number = take(in) % 4;
    if ((has & 4) != 0) frame.bytes = static_cast<uint64_t>(take_below(in, 200)) * (1 + take(in) % 5);
    if ((has & 8) != 0) frame.offset = take(in);
    if ((has & 16) != 0) frame.bytes = static_cast<uint64_t>(take_hostile(in));
    std::byte header[Frame::kBytes];
    frame.write(header);
    feed(header, sizeof header);
    const std::vector<std::byte> data(frame.data_bytes() < 4096 ? static_cast<std::size_t>(frame.data_bytes())
                                                                : 64);
    feed(data.data(), data.size());
  }
  void feed_bytes() {
    std::vector<std::byte> data(take(in));
    take_into(in, data.data(), data.size());
    feed(data.data(), data.size());
  }
  // Begins a transfer of exactly its memory's size.
  Transfer& begin() {
    const auto size =
        static_cast<std::size_t>(take_below(in, 200)) * static_cast<std::size_t>(1 + take(in) % 5);
    Transfer& transfer = transfers.emplace_back();
    memory.emplace_back(size);
    transfer.begin({0, {.number = static_cast<uint64_t>(take(in) % 4)}, memory.back().data(), size});
    transfer.before = nullptr;
    return transfer;
  }
  Transfer* some() {
    return transfers.empty() ? nullptr : &transfers[static_cast<std::size_t>(take(in)) % transfers.size()];
  }

  FrameTaker& taker;
  bytes* const in;
  FrameReader reader;
  bool broken = false;
  std::deque<Transfer> transfers;
  std::deque<std::vector<std::byte>> memory;
};

// Returns false if the sender breaks the protocol.
bool begin_apart(Inbox& inbox, bytes* in) {
  const auto number = [&] {
    return static_cast<uint64_t>(take(in) < 128 ? take_below(in, 8) : take_hostile(in));
  };
  const uint64_t id = number();
  const uint64_t offset = number();
  return inbox.begin_apart({id, offset, number()}) == nullptr;
}
bool come_apart(Inbox& inbox, bytes* in) {
  const Inbox::Coming coming = inbox.apart();
  const std::size_t all = coming.data.size() + coming.end.size();
  if (all == 0) return true;
  const std::size_t some = 1 + static_cast<std::size_t>(take_number(in, 2)) % all;
  std::fill_n(coming.data.begin(), std::min(some, coming.data.size()), std::byte{7});
  if (some > coming.data.size()) coming.end[0] = static_cast<std::byte>(take(in) % 3);
  return inbox.apart_came(some) == nullptr;
}

void play_inbox(bytes* in) {
  Ref<Memory> memory = Ref<Memory>::adopt(Memory::create({}));
  const std::size_t before = memory->held();
  {
    Sink sink;
    Inbox inbox(*memory, sink, kCredit, SIZE_MAX, true);
    Half half(inbox, in);
    int offers = 0;
    while (in->left > 0) {
      switch (take_below(in, 8)) {
        case 6: {
          const Inbox::Coming coming = inbox.apart();
          // A piece begins only after the previous one has ended.
          if (!half.broken && coming.data.empty() && coming.end.empty())
            half.broken = !begin_apart(inbox, in);
          break;
        }
        case 7:
          if (!half.broken) half.broken = !come_apart(inbox, in);
          break;
        case 0: inbox.receive(half.begin(), false); break;
        case 1:
          if (Transfer* const one = half.some(); one != nullptr) inbox.cancel(*one);
          break;
        case 2: inbox.forget(0, take(in) % 2); break;
        case 3: half.feed_bytes(); break;
        default: half.feed_frame(); ++offers;
      }
      // A message that was sent in advance counts as at least 64 bytes, and an offer as one entry.
      assert_true(memory->held() - before <=
                  kCredit + (kCredit / 64 + static_cast<std::size_t>(offers) + 300) * 256);
    }
    inbox.end_all(Transfer::End::kLost);
    for (const Transfer& each : half.transfers) assert_true(each.over());
  }
  assert_int_equal(memory->held(), before);
}

void play_outbox(bytes* in) {
  Sink sink;
  Outbox outbox(sink, kCredit, kChunkBytes, 100);
  Half half(outbox, in);
  uint64_t sum = 0;
  while (in->left > 0) {
    switch (take_below(in, 8)) {
      case 6: {
        Piece piece;
        outbox.next_apart(&piece);
        break;
      }
      case 7: {
        const Outbox::Going going = outbox.apart();
        const std::size_t all = going.data.size() + going.end.size();
        if (all == 0) break;
        for (const std::byte each : going.data) sum += static_cast<uint64_t>(each);
        outbox.apart_gone(1 + static_cast<std::size_t>(take_number(in, 2)) % all);
        break;
      }
      case 0: outbox.send(half.begin()); break;
      case 1:
        if (Transfer* const one = half.some(); one != nullptr) outbox.cancel(*one);
        break;
      case 2: outbox.put_chunk(); break;
      case 3: half.feed_bytes(); break;
      default: half.feed_frame();
    }
  }
  outbox.end_all(Transfer::End::kLost);
  for (const Transfer& each : half.transfers) assert_true(each.over());
  assert_false(outbox.has_chunks());
  assert_true(sum < UINT64_MAX);  // uses the sum, so that reading the data is not optimised away
}

// Damages the first messages of a link. If one can still be read, writing it gives the same bytes, as far as
// they are meaningful.
void play_hello(bytes* in) {
  std::byte given[Hello::kBytes + Answer::kBytes];
  Hello hello;
  hello.write(given);
  Answer answer;
  answer.write(given + Hello::kBytes);
  while (in->left > 0) {
    const auto at = static_cast<std::size_t>(take_number(in, 2));
    given[at % sizeof given] = static_cast<std::byte>(take(in));
  }
  if (hello.read(given) && hello.protocol == kProtocol) {
    std::byte again[Hello::kBytes];
    hello.write(again);
    Hello read;
    assert_true(read.read(again));
    assert_true(read.from == hello.from && read.nonce == hello.nonce);
  }
  if (answer.read({given + Hello::kBytes, Answer::kBytes})) {
    assert_true(strnlen(answer.text, sizeof answer.text) < sizeof answer.text);
    assert_true(strnlen(answer.version, sizeof answer.version) < sizeof answer.version);
  }
}

}  // namespace
}  // namespace dist::grpc_link

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bytes in = {data, size};
  switch (take(&in) % 4) {
    case 0:
    case 2: dist::grpc_link::play_inbox(&in); break;
    case 1: dist::grpc_link::play_outbox(&in); break;
    default: dist::grpc_link::play_hello(&in);
  }
  return 0;
}

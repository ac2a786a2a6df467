// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: what arrives over a connection of a link module, at its receiving end or, if the first byte is
// odd, its sending end. The module moves any number of bytes at a time. The peer knows the job's secret if
// the second byte is odd; whatever it sends, the carrier must report its end exactly once, hand on no byte of
// an unproven peer, and keep every size within its limit. A carrier that has ended keeps no link and connects
// no more.
#include <dist/experimental/links.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

extern "C" {
#include <cmocka.h>
}
#undef fail

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/net/grpc/carrier.hpp"
#include "core/net/grpc/link.hpp"
#include "tests/fuzz/bytes.h"

namespace dist::grpc_link {
namespace {

// A connection of the fake module.
struct Wire {
  bytes* in = nullptr;
  std::vector<std::byte> arriving;  // bytes that have not been read yet
  std::size_t written = 0;
  bool cut = false;
  int connects = 0;
};
Wire* wire = nullptr;  // the connection of the current input

std::ptrdiff_t move_some(std::size_t most) {
  if (wire->cut) return -1;
  const auto limit = static_cast<std::size_t>(take(wire->in));
  return static_cast<std::ptrdiff_t>(limit >= 250 ? most : std::min(most, limit));
}

const dist_link_functions kFunctions = {
    sizeof kFunctions,
    0,
    "fuzz",
    "nothing",
    [](const dist_link_module_options*, void**, char*, std::size_t) -> dist_status { return DIST_OK; },
    [](void*) {},
    [](void*, const dist_link_options*, void** out, void*, std::size_t* size, char*,
       std::size_t) -> dist_status {
      *out = wire;
      *size = 0;
      return DIST_OK;
    },
    [](void*, const void*, std::size_t) { ++wire->connects; },
    [](void*, const dist_link_block* blocks, std::size_t n) -> std::ptrdiff_t {
      std::size_t all = 0;
      unsigned sum = 0;
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < blocks[i].size_bytes; ++k)
          sum += static_cast<unsigned char*>(blocks[i].data)[k];
        all += blocks[i].size_bytes;
      }
      const std::ptrdiff_t went = sum == UINT32_MAX ? 0 : move_some(all);
      if (went > 0) wire->written += static_cast<std::size_t>(went);
      return went;
    },
    [](void*, const dist_link_block* blocks, std::size_t n) -> std::ptrdiff_t {
      std::size_t room = 0;
      for (std::size_t i = 0; i < n; ++i) room += blocks[i].size_bytes;
      std::ptrdiff_t came = move_some(std::min(room, wire->arriving.size()));
      std::size_t left = came < 0 ? 0 : static_cast<std::size_t>(came);
      for (std::size_t i = 0; i < n && left != 0; ++i) {
        const std::size_t some = std::min(left, blocks[i].size_bytes);
        std::copy_n(wire->arriving.begin(), some, static_cast<std::byte*>(blocks[i].data));
        wire->arriving.erase(wire->arriving.begin(),
                             wire->arriving.begin() + static_cast<std::ptrdiff_t>(some));
        left -= some;
      }
      return came;
    },
    [](void*) { wire->cut = true; },
    [](void*) {}};

struct NoLinkUser final : LinkUser {
  std::string took(const LinkRef&, std::span<const grpc::Slice>) noexcept override { return ""; }
  bool more(Link&) noexcept override { return false; }
  void over(const LinkRef&, const std::string&, const std::string&) noexcept override {}
  void destroyed() noexcept override {}
};

struct NoLink final : Link {
  explicit NoLink(LinkUser& user) : Link(user) {}
  std::string peer_host() const override { return ""; }
  void start_write(const grpc::ByteBuffer*) noexcept override {}
  void start_read(grpc::ByteBuffer*) noexcept override {}
  void cut() noexcept override {}
  void writes_over() noexcept override {}
};

struct User final : CarrierUser {
  bool carried(const LinkRef&, const Carrier&) noexcept override {
    assert_true(++carries == 1);
    return take_below(in, 8) != 7;
  }
  std::string took_carried(const LinkRef&, std::span<const std::byte> frames) noexcept override {
    assert_true(carries == 1 && !frames.empty() && frames.size() <= kCarriedBytes + Frame::kBytes);
    assert_int_equal(piece_left, 0);
    for (const std::byte each : frames) sum += static_cast<unsigned>(each);
    return take_below(in, 8) != 7 ? "" : "no";
  }
  bool more(Link&) noexcept override {
    if (frames_to_send == 0) return false;
    --frames_to_send;
    queue.put({.kind = FrameKind::kGrant, .id = 1});
    return true;
  }
  bool next_apart(Link&, Piece* piece) noexcept override {
    if (pieces_to_send == 0) return false;
    --pieces_to_send;
    *piece = {1, 0, static_cast<uint64_t>(take(in))};
    going = static_cast<std::size_t>(piece->bytes) + 1;
    return true;
  }
  const char* begin_apart(Link&, const Piece& piece) noexcept override {
    assert_true(carries == 1 && piece_left == 0 && piece.bytes <= Piece::kMostBytes);
    piece_left = static_cast<std::size_t>(piece.bytes) + 1;
    return nullptr;
  }
  std::ptrdiff_t send_apart(Link&, Carrier& carrier, std::span<const std::byte> before) noexcept override {
    assert_true(going != 0);
    const std::vector<std::byte> data(going);
    const std::span<const std::byte> parts[] = {before, std::span(data).first(going - 1),
                                                std::span(data).last(1)};
    const std::ptrdiff_t went = carrier.write(parts);
    if (went > static_cast<std::ptrdiff_t>(before.size()))
      going -= static_cast<std::size_t>(went) - before.size();
    return went;
  }
  std::ptrdiff_t receive_apart(Link&, Carrier& carrier, std::size_t most,
                               const char** why) noexcept override {
    assert_int_equal(most, piece_left);
    std::vector<std::byte> data(std::min<std::size_t>(most, 5000));
    const std::span<std::byte> part(data);
    const std::ptrdiff_t came = carrier.read({&part, 1});
    if (came <= 0) return came;
    piece_left -= static_cast<std::size_t>(came);
    if (piece_left == 0 && take_below(in, 8) == 7) {
      *why = "no";
      return -1;
    }
    return came;
  }
  void moved_apart(const LinkRef& link) noexcept override { assert_non_null(link.get()); }
  void carrier_over(const LinkRef&, const Carrier&, const std::string&) noexcept override { ++ends; }

  bytes* in = nullptr;
  FrameQueue queue;
  int carries = 0;
  int ends = 0;
  unsigned sum = 0;
  std::size_t piece_left = 0;
  std::size_t going = 0;
  int frames_to_send = 0;
  int pieces_to_send = 0;
};

void put(std::vector<std::byte>& to, uint64_t value, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) to.push_back(static_cast<std::byte>(value >> 8 * i));
}

void play(bytes* in) {
  const bool sends = take_below(in, 2) == 1;
  const bool knows = take_below(in, 2) == 1;
  const Ref<Memory> memory = Ref<Memory>::adopt(Memory::create({}));
  Wire own;
  own.in = in;
  wire = &own;
  NoLinkUser link_user;
  User user;
  user.in = in;
  Carrier carrier(*memory, kFunctions, user, sends, 1);
  assert_true(carrier.listen(nullptr, "127.0.0.1").empty());
  const auto start = [&] {
    Carrier::Meeting communicator;
    communicator.link = std::make_shared<NoLink>(link_user);
    communicator.queue = &user.queue;
    communicator.wanted.fill(std::byte{7});
    const std::weak_ptr<Link> link = communicator.link;
    carrier.start(std::move(communicator));
    assert_int_equal(own.connects, 1);
    return link;
  };
  const std::weak_ptr<Link> link = start();
  if (knows) {
    own.arriving.assign(32, std::byte{7});
    if (!sends) put(own.arriving, 1, 4), put(own.arriving, 0, 24);
  }
  while (in->left > 0) {
    switch (take_below(in, 7)) {
      case 0:  // a header whose fields are near the expected ones
        put(own.arriving, static_cast<uint64_t>(take_below(in, 5)), 4);
        for (int i = 0; i < 3; ++i)
          put(own.arriving, (take(in) & 1) != 0 ? static_cast<uint64_t>(take_hostile(in)) : take(in), 8);
        break;
      case 1:
        for (int n = take(in); n > 0; --n) own.arriving.push_back(static_cast<std::byte>(take(in)));
        break;
      case 2: own.arriving.resize(own.arriving.size() + static_cast<std::size_t>(take(in)) * 300); break;
      case 3: user.frames_to_send = take_below(in, 4); break;
      case 4: user.pieces_to_send = sends ? take_below(in, 4) : 0; break;
      case 5: carrier.flush(); break;
      default: Carrier::kCallbacks.ready(&carrier);
    }
    if (own.arriving.size() > 1'000'000) break;
  }
  Carrier::kCallbacks.ready(&carrier);
  assert_true(knows || user.carries == 0);
  assert_int_equal(user.ends, 0);
  // The carrier is ended by its link or by the end of the connection.
  if (sends) carrier.end();
  Carrier::kCallbacks.ended(&carrier, "over");
  Carrier::kCallbacks.ready(&carrier);
  assert_true(user.ends == 1 && carrier.over());
  assert_true(link.expired() && start().expired());
  wire = nullptr;
}

}  // namespace
}  // namespace dist::grpc_link

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bytes in = {data, size};
  dist::grpc_link::play(&in);
  return 0;
}

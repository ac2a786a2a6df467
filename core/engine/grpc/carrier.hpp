// SPDX-License-Identifier: Apache-2.0
// Carrier: moves the frames of a data link in place of its gRPC stream. The stream stays open: it identifies
// the peer, both ends use it to agree on the carrier, and the link ends with it.
//
//     sender (it made the link)                    receiver
//     Meet: attempt, nonce, address   --stream-->
//                                     <--stream--  Meet: the same attempt, a nonce, its address
//     proof                           --carrier->
//                                     <--carrier-  proof
//     first message                   --carrier->  frames flow from here on
//
// If a carrier fails, for example because a stranger connected to its address first, another one is tried:
// the sender starts the next attempt, and a receiver that has failed asks for it. Proofs are computed from
// the job's secret and the nonces, so only a party that has seen the stream can make one.
//
// Pieces of large messages bypass the carrier's buffers (piece.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/engine/grpc/hello.hpp"
#include "core/engine/grpc/piece.hpp"
#include "core/engine/grpc/queue.hpp"

namespace dist::grpc_link {

class Link;
using LinkRef = std::shared_ptr<Link>;

// What one carries at a time, and so what the chunks of a large message are. Frames are not cut, but for what goes ahead and
// has more data.
inline constexpr std::size_t kCarriedBytes = std::size_t{256} << 10;

struct Meet {
  static constexpr std::size_t kMostAddressBytes = 256;
  static constexpr std::size_t kBytes = 3 * 4 + 32 + kMostAddressBytes;

  uint32_t attempt = 0;
  bool failed = false;  // this attempt has: make the next
  uint32_t address_bytes = 0;
  Nonce nonce{};
  char address[kMostAddressBytes] = {};

  void write(std::byte* to_bytes) const noexcept;
  bool read(const std::byte* bytes) noexcept;
};

// HMAC-SHA256 by the secret, over how the link began and what was said at the meeting.
Digest prove_carrier(Prover who, std::string_view secret, const Link& link) noexcept;

class Carrier {
 public:
  // What it needs to meet the other end.
  struct Meeting {
    LinkRef link;
    FrameQueue* queue = nullptr;
    std::string address;
    Digest own{};     // its proof
    Digest wanted{};  // the other end's
  };

  explicit Carrier(uint32_t number) noexcept : attempt(number) {}
  virtual ~Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  const uint32_t attempt;
  virtual const std::string& address() const noexcept = 0;
  // Once. False: there is no thread for it.
  virtual bool start(Meeting meeting) noexcept = 0;
  // There may be frames in the queue, or chunks of its user's. Any thread; it waits for no peer.
  virtual void flush() noexcept = 0;
  // Cuts it: over soon after. Any thread, any number of times.
  virtual void end() noexcept = 0;
  virtual bool over() const noexcept = 0;
  // Waits for the end of its thread, if there is one; not from that.
  virtual void join() noexcept = 0;
};
using CarrierRef = std::shared_ptr<Carrier>;

// Who is told. Some of it is called under locks of the carrier's: more(), and all that is called apart but
// moved_apart().
class CarrierUser {
 public:
  // Both ends are proven. False: nobody wants it any more.
  virtual bool carried(const LinkRef& link, const Carrier& carrier) noexcept = 0;
  // A piece of the other end's frames. The answer: why the link must end, or "".
  virtual std::string took_carried(const LinkRef& link, std::span<const std::byte> piece) noexcept = 0;
  // The queue is empty. Whether something has been put there.
  virtual bool more(Link& link) noexcept = 0;
  // The same: whether this piece, which is not put there, goes next.
  virtual bool next_apart(Link& link, Piece* piece) noexcept = 0;
  // The piece begins to come. The answer: as took_carried()'s, NULL for "".
  virtual const char* begin_apart(Link& link, const Piece& piece) noexcept = 0;
  // Moves what goes apart to or from a connected socket, as far as that goes without waiting: in front of it `before`; `most`
  // bytes at most. The answer is send_now()'s; -1 too where the other end breaks the protocol, and `why` says how.
  virtual std::ptrdiff_t send_apart(Link& link, int socket, std::span<const std::byte> before) noexcept = 0;
  virtual std::ptrdiff_t receive_apart(Link& link, int socket, std::size_t most,
                                       const char** why) noexcept = 0;
  // After those, soon.
  virtual void moved_apart(const LinkRef& link) noexcept = 0;
  // Its last call. `why`: what has gone wrong, "" where the other end is gone.
  virtual void carrier_over(const LinkRef& link, const Carrier& carrier, const std::string& why) noexcept = 0;

 protected:
  ~CarrierUser() = default;
};

// What makes them.
class Carriers {
 public:
  virtual ~Carriers() = default;
  // Those that are made listen on this host. "": done.
  virtual std::string start(const std::string& host) noexcept = 0;
  // NULL: `why` says why. `sends`: this end is the sender's.
  virtual CarrierRef make(CarrierUser& user, bool sends, uint32_t attempt, std::string* why) noexcept = 0;
};

}  // namespace dist::grpc_link

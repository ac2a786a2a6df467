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

// The maximum size of what a carrier moves at a time, and so of a large message's chunks. Frames are not
// split, except messages that are sent ahead with more data.
inline constexpr std::size_t kCarriedBytes = std::size_t{256} << 10;

struct Meet {
  static constexpr std::size_t kMostAddressBytes = 256;
  static constexpr std::size_t kBytes = 3 * 4 + 32 + kMostAddressBytes;

  uint32_t attempt = 0;
  bool failed = false;  // this attempt has failed: make the next one
  uint32_t address_bytes = 0;
  Nonce nonce{};
  char address[kMostAddressBytes] = {};

  void write(std::byte* to_bytes) const noexcept;
  bool read(const std::byte* bytes) noexcept;
};

// HMAC-SHA256, keyed with the secret, over the handshake of the link and the Meet messages.
Digest prove_carrier(Prover who, std::string_view secret, const Link& link) noexcept;

class Carrier {
 public:
  // The data that a carrier needs to connect to its peer.
  struct Meeting {
    LinkRef link;
    FrameQueue* queue = nullptr;
    std::string address;
    Digest own{};     // this end's proof
    Digest wanted{};  // the expected proof of the other end
  };

  explicit Carrier(uint32_t number) noexcept : attempt(number) {}
  virtual ~Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  const uint32_t attempt;
  virtual const std::string& address() const noexcept = 0;
  // Call this once. Returns false if no thread can be created.
  virtual bool start(Meeting meeting) noexcept = 0;
  // There may be frames in the queue, or pieces to send. Any thread. Does not wait for a peer.
  virtual void flush() noexcept = 0;
  // Ends the carrier; carrier_over() follows soon. Any thread, any number of times.
  virtual void end() noexcept = 0;
  virtual bool over() const noexcept = 0;
  // Waits for its thread, if there is one, to end. Must not be called on that thread.
  virtual void join() noexcept = 0;
};
using CarrierRef = std::shared_ptr<Carrier>;

// The user of a carrier. more(), and the functions for pieces except moved_apart(), are called under locks of
// the carrier.
class CarrierUser {
 public:
  // Both ends are authenticated. Returns false if the carrier is no longer needed.
  virtual bool carried(const LinkRef& link, const Carrier& carrier) noexcept = 0;
  // Frames from the peer have arrived. Returns an empty string, or the reason for which the link must end.
  virtual std::string took_carried(const LinkRef& link, std::span<const std::byte> piece) noexcept = 0;
  // The queue is empty. Returns whether something has been added to it.
  virtual bool more(Link& link) noexcept = 0;
  // Likewise. Returns whether this piece, which is not in the queue, is to be sent next.
  virtual bool next_apart(Link& link, Piece* piece) noexcept = 0;
  // A piece begins to arrive. Returns NULL, or the reason for which the link must end.
  virtual const char* begin_apart(Link& link, const Piece& piece) noexcept = 0;
  // Move the bytes of pieces to or from a connected socket, as far as possible without waiting. send_apart()
  // sends `before` first; receive_apart() takes at most `most` bytes. They return what send_now() returns,
  // and also -1 with the reason in `why` if the peer violates the protocol.
  virtual std::ptrdiff_t send_apart(Link& link, int socket, std::span<const std::byte> before) noexcept = 0;
  virtual std::ptrdiff_t receive_apart(Link& link, int socket, std::size_t most,
                                       const char** why) noexcept = 0;
  // Called soon after those.
  virtual void moved_apart(const LinkRef& link) noexcept = 0;
  // The last call. `why` is the error; it is empty if the peer is gone.
  virtual void carrier_over(const LinkRef& link, const Carrier& carrier, const std::string& why) noexcept = 0;

 protected:
  ~CarrierUser() = default;
};

// Creates carriers.
class Carriers {
 public:
  virtual ~Carriers() = default;
  // Prepares for carriers that listen on this IP address. Returns an empty string, or the reason for a failure.
  virtual std::string start(const std::string& host) noexcept = 0;
  // Returns NULL on failure, with the reason in `why`. `sends`: this end is the sender. `host`: the IP address of this
  // machine on which the carrier listens. A carrier fails if the peer's system does not acknowledge data for a lease.
  virtual CarrierRef make(CarrierUser& user, bool sends, uint32_t attempt, const std::string& host,
                          int64_t lease_ns, std::string* why) noexcept = 0;
};

}  // namespace dist::grpc_link

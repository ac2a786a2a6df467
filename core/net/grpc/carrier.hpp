// SPDX-License-Identifier: Apache-2.0
// Carrier: moves the frames of a data link in place of its gRPC stream, over a connection of a link module
// (dist/experimental/links.h). The stream stays open: it identifies the peer, both ends use it to agree on
// the carrier, and the link ends with it.
//
//     sender (it created the link)                 receiver
//     Meet: attempt, nonce, address   --stream-->
//                                     <--stream--  Meet: the same attempt, a nonce, its address
//     proof                           --carrier->
//                                     <--carrier-  proof
//     a block of kind kBegin          --carrier->  frames flow from here on
//
// If a carrier fails before kBegin, for example because a stranger connected to its address first, another
// one is tried: the sender starts the next attempt, and a receiver that has failed asks for it. Proofs are
// computed from the job's secret and the nonces, so only a party that has seen the stream can make one.
//
// After the proofs, each direction consists of blocks: a Head, followed by whole frames or by a piece of a
// large message with its final byte (piece.hpp). Pieces move between the connection and the memory of a
// transfer without a copy in between.
//
// Invariant: the module's write() is called under `sending_`, and its read() under `receiving_`. A thread
// that finds the lock held leaves its work to the thread that holds it, so no thread waits for a peer.
//
// Lock order: `receiving_`, `sending_`, `state_`, locks of the module.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "core/base/memory.hpp"
#include "core/net/grpc/hello.hpp"
#include "core/net/grpc/piece.hpp"
#include "core/net/grpc/queue.hpp"
#include "dist/experimental/links.h"

struct dist_link {};  // a Carrier

namespace dist::grpc_link {

class Link;
using LinkRef = std::shared_ptr<Link>;

// The maximum number of frame bytes in a block. Only messages that are sent ahead and are larger than this
// are split.
inline constexpr std::size_t kCarriedBytes = std::size_t{256} << 10;

struct Meet {
  static constexpr std::size_t kMostAddressBytes = DIST_LINK_MAX_ADDRESS_BYTES;
  static constexpr std::size_t kBytes = 3 * 4 + 32 + kMostAddressBytes;

  uint32_t attempt = 0;
  bool failed = false;  // this attempt has failed, and the sender should start the next one
  uint32_t address_bytes = 0;
  Nonce nonce{};
  char address[kMostAddressBytes] = {};

  void write(std::byte* to_bytes) const noexcept;
  bool read(const std::byte* bytes) noexcept;
};

// HMAC-SHA256, keyed with the secret, over the handshake of the link and the Meet messages.
Digest prove_carrier(Prover who, std::string_view secret, const Link& link) noexcept;

class Carrier;
using CarrierRef = std::shared_ptr<Carrier>;

// The user of a carrier. more(), and the functions for pieces except moved_apart(), are called under locks of
// the carrier.
class CarrierUser {
 public:
  // Both ends are authenticated. Returns false if the carrier is no longer needed.
  virtual bool carried(const LinkRef& link, const Carrier& carrier) noexcept = 0;
  // Frames from the peer have arrived. Returns an empty string, or the reason for which the link must end.
  virtual std::string took_carried(const LinkRef& link, std::span<const std::byte> frames) noexcept = 0;
  // The queue is empty. The user may add frames to it. Returns whether it has.
  virtual bool more(Link& link) noexcept = 0;
  // The queue is empty. Returns whether a piece, which is then in `piece`, should be sent next.
  virtual bool next_apart(Link& link, Piece* piece) noexcept = 0;
  // A piece begins to arrive. Returns NULL, or the reason for which the link must end.
  virtual const char* begin_apart(Link& link, const Piece& piece) noexcept = 0;
  // Move the bytes of pieces by Carrier::write() or read(), as far as possible without waiting. send_apart()
  // sends `before` first; receive_apart() takes at most `most` bytes. They return what write() and read()
  // return, and also -1 with the reason in `why` if the peer violates the protocol.
  virtual std::ptrdiff_t send_apart(Link& link, Carrier& carrier,
                                    std::span<const std::byte> before) noexcept = 0;
  virtual std::ptrdiff_t receive_apart(Link& link, Carrier& carrier, std::size_t most,
                                       const char** why) noexcept = 0;
  // Called without locks soon after send_apart() or receive_apart() has moved bytes.
  virtual void moved_apart(const LinkRef& link) noexcept = 0;
  // The last call. `why` is the error; it is empty if the peer has disconnected.
  virtual void carrier_over(const LinkRef& link, const Carrier& carrier, const std::string& why) noexcept = 0;

 protected:
  ~CarrierUser() = default;
};

class Carrier final : public dist_link {
 public:
  // The data that a carrier needs to connect to its peer.
  struct Meeting {
    LinkRef link;
    FrameQueue* queue = nullptr;
    std::string address;
    Digest own{};     // this end's proof
    Digest wanted{};  // the expected proof of the other end
  };

  // `sends`: this end is the sender. Throws std::bad_alloc.
  Carrier(Memory& memory, const dist_link_functions& functions, CarrierUser& user, bool sends,
          uint32_t number);
  ~Carrier();
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  // Creates this end of the connection. Returns an empty string, or the reason for a failure.
  std::string listen(void* module, const std::string& host) noexcept;
  const uint32_t attempt;
  const std::string& address() const noexcept { return address_; }
  // Connects, after listen(). Further calls have no effect.
  void start(Meeting meeting) noexcept;
  // Sends the frames in the queue and the pieces that are due. Can be called on any thread. Does not wait for
  // a peer.
  void flush() noexcept;
  // Ends the carrier. If it was started, carrier_over() follows soon. Can be called on any thread, any number
  // of times.
  void end() noexcept;
  bool over() const noexcept { return over_; }
  // The time at which the carrier must end if its peer has not proven its identity; 0 if it has.
  int64_t prove_until_ns() const noexcept { return proven_ ? 0 : prove_until_ns_; }
  // Frees the connection, and waits until the module no longer uses the carrier. Must not be called on a
  // thread of the module.
  void join() noexcept;

  // For CarrierUser. They return the number of bytes moved, 0 if none can be moved now, or -1 if the
  // connection is closed.
  std::ptrdiff_t write(std::span<const std::span<const std::byte>> parts) noexcept;
  std::ptrdiff_t read(std::span<const std::span<std::byte>> parts) noexcept;

  // The callbacks that modules receive.
  static const dist_link_callbacks kCallbacks;

 private:
  enum class Kind : uint32_t { kBegin = 1, kFrames, kPiece, kEnd };
  struct Head {
    static constexpr std::size_t kBytes = 4 + 3 * 8;
    Kind kind = Kind::kFrames;
    uint64_t bytes = 0;  // of frames, or of the piece without its final byte
    uint64_t id = 0;
    uint64_t offset = 0;
    void write(std::byte* to) const noexcept;
    bool read(const std::byte* from) noexcept;
  };
  // Bytes that have been read from the module but not consumed, or are about to be written to it.
  struct Buffer {
    Buffer(Memory& memory, std::size_t bytes);
    ~Buffer();
    std::span<const std::byte> left() const noexcept { return {data + at, end - at}; }
    void take(std::size_t bytes) noexcept { at += bytes; }
    Memory& owner;
    const std::size_t size;
    std::byte* const data;
    std::size_t at = 0;
    std::size_t end = 0;
  };
  // The part that the peer sends next.
  enum class Stage { kProof, kBegin, kHead, kFrames, kPiece };

  void receive() noexcept;
  void take_all() noexcept;
  bool fill_in(std::size_t bytes) noexcept;
  bool take_proof() noexcept;
  bool take_head() noexcept;
  bool take_frames() noexcept;
  bool take_piece() noexcept;
  bool begin() noexcept;
  void put(std::span<const std::byte> bytes) noexcept;
  void pump() noexcept;
  bool fill_out() noexcept;
  bool push() noexcept;
  bool fail(const std::string& why) noexcept;
  void ended(const char* reason) noexcept;

  const bool sends_;
  const int64_t prove_until_ns_;
  const dist_link_functions& functions_;
  CarrierUser& user_;
  void* connection_ = nullptr;
  std::string address_;
  Meeting meeting_;  // changes under both `sending_` and `receiving_`

  std::atomic<bool> proven_{false};  // carried() has been called
  std::atomic<bool> over_{false};

  std::mutex state_;
  bool started_ = false;
  bool ending_ = false;
  bool freed_ = false;
  std::string why_;

  std::atomic<uint32_t> flushes_{0};  // calls to flush() that have not been handled
  std::mutex sending_;
  Buffer out_;
  bool can_send_ = false;
  bool may_fill_ = false;
  std::size_t piece_out_ = 0;  // remaining bytes of the piece that is being sent, including the final one
  bool blocked_ = false;       // the latest write() moved only some of its bytes
  bool moved_out_ = false;     // pieces have moved, and the user has not been notified

  std::atomic<uint32_t> arrivals_{0};  // calls to receive() that have not been handled
  std::mutex receiving_;
  Buffer in_;
  bool takes_ = false;
  Stage stage_ = Stage::kProof;
  Head head_;
  std::size_t piece_in_ = 0;
  bool moved_in_ = false;
};

// A link module that one worker uses. It creates the worker's carriers.
class Carriers final {
 public:
  Carriers(Memory& memory, const dist_link_functions& functions) noexcept
      : memory_(memory), functions_(functions) {}
  ~Carriers();
  Carriers(const Carriers&) = delete;
  Carriers& operator=(const Carriers&) = delete;

  // `host`: the IP address of this machine on which all carriers listen. If it is empty, the address depends
  // on the peer. A carrier fails if the peer's system does not acknowledge data for a lease. Returns an empty
  // string, or the reason for a failure.
  std::string open(const std::string& host, int64_t lease_ns) noexcept;
  // Returns NULL on failure, with the reason in `why`. `host`: the IP address of this machine on which it
  // listens.
  CarrierRef make(CarrierUser& user, bool sends, uint32_t attempt, const std::string& host,
                  std::string* why) noexcept;

 private:
  Memory& memory_;
  const dist_link_functions& functions_;
  void* module_ = nullptr;
  bool opened_ = false;
};

}  // namespace dist::grpc_link

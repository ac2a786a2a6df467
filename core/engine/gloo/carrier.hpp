// SPDX-License-Identifier: Apache-2.0
// GlooCarrier: carries the frames of one data link over one connection of Gloo's tcp transport. Messages have
// a maximum size and are written into a ring in the peer's memory.
//
// The design follows from Gloo's behaviour. A wait ends when the operation completes, when it is aborted, or
// when its whole context fails. So each link has a context of its own with two ranks: a failure affects only
// this link. The link blocks only while it begins, on a thread that also waits for its end. A message into
// memory that both ends know in advance takes a single write and no prior message from the receiver. So each
// end has a ring whose slots are filled in turn; Gloo's thread reads the messages out of it. No thread waits
// for a send: a slot is free again when the peer reports that it has consumed the message in it.
//
//     message: number of frame bytes that follow, number of messages consumed, this message's number (from 1),
//              frames
//
// Pieces of large messages bypass the rings and take turns with the messages on the connection.
//
// kReserved of the messages that may be in flight carry only the number of consumed messages, so that this
// report can always be sent. Integers are in native byte order, as in Gloo: both ends must run on the same
// kind of machine. A peer that has not proven its identity has no ring to write to, and its connection ends
// if it sends a piece. After the proof it is trusted with the ring's address.
#pragma once

#include <gloo/transport/buffer.h>
#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/base/memory.hpp"
#include "core/base/os/thread.hpp"
#include "core/engine/gloo/guarded.hpp"
#include "core/engine/grpc/carrier.hpp"

namespace dist::grpc_link {

using DeviceRef = std::shared_ptr<GuardedDevice>;

class GlooCarrier final : public Carrier, public ConnectionUser {
 public:
  // Listens. Throws Gloo's exceptions and std::bad_alloc.
  GlooCarrier(Memory& memory, DeviceRef device, CarrierUser& user, bool sends, uint32_t attempt,
              int64_t lease_ns);
  ~GlooCarrier() override;

  const std::string& address() const noexcept override { return address_; }
  bool start(Meeting meeting) noexcept override;
  void flush() noexcept override;
  void end() noexcept override;
  bool over() const noexcept override { return over_; }
  void join() noexcept override;

 private:
  static constexpr uint32_t kSlots = 8;
  static constexpr uint32_t kReserved = 2;
  static constexpr uint32_t kTellAfter = 3;
  static_assert(kTellAfter + kReserved < kSlots);
  struct Header {
    uint32_t bytes;
    uint32_t consumed;
    uint32_t number;
  };
  // The messages in one direction, numbered from 0. No two messages that occupy a slot at the same time have
  // the same number.
  struct Ring {
    Ring(Memory& memory, std::size_t payload);
    ~Ring();
    std::size_t all() const noexcept { return kSlots * each; }
    std::size_t offset(uint32_t number) const noexcept { return number % kSlots * each; }
    std::byte* at(uint32_t number) const noexcept { return memory + offset(number); }
    Header header(uint32_t number) const noexcept;
    void write(uint32_t number, const Header& header) const noexcept;

    Memory& owner;
    const std::size_t payload;
    const std::size_t each = sizeof(Header) + payload;
    std::byte* memory;
    std::unique_ptr<gloo::transport::Buffer> buffer;  // set when the peer is authenticated
  };

  void one_came() noexcept override;
  void came() noexcept override;
  void closed() noexcept override { finish(""); }
  bool begin_apart(const Piece& piece) noexcept override;
  std::ptrdiff_t receive_apart(int socket, std::size_t most) noexcept override;
  std::ptrdiff_t send_apart(int socket, std::span<const std::byte> before) noexcept override;

  static void* thread_main(void* self);
  void run() noexcept;
  void prove();
  void begin();
  void await_end();
  bool take(uint32_t number);
  void finish(const std::string& why) noexcept;
  void pump();
  bool pump_message();

  const bool sends_;
  const int peer_;
  CarrierUser& user_;
  Ring out_, in_;
  std::shared_ptr<GuardedContext> context_;
  std::string address_;
  Digest own_proof_{};
  Digest peer_proof_{};
  std::unique_ptr<gloo::transport::UnboundBuffer> proof_out_, proof_in_;
  Meeting meeting_;
  Thread thread_;

  // For sending threads.
  std::mutex mutex_;
  bool can_send_ = false;
  std::atomic<bool> proven_{false};  // the peer's identity
  std::atomic<bool> ending_{false};
  std::atomic<bool> over_{false};
  std::atomic<uint32_t> calls_{0};  // calls of flush() that have not been handled
  std::atomic<uint32_t> sent_{0};
  std::atomic<uint32_t> acknowledged_{0};  // of those that were sent
  std::atomic<uint32_t> consumed_{0};
  uint32_t told_ = 0;               // of those that were consumed
  std::atomic<bool> moved_{false};  // pieces have moved, and the user has not been notified

  // For the thread that consumes messages: Gloo's, except for messages that arrived before it was allowed to.
  std::mutex taking_;
  bool takes_ = false;
  uint32_t taken_ = 0;
  std::atomic<uint32_t> arrived_{0};

  // For the carrier's thread and the threads that start and wake it. Never held while waiting for Gloo.
  std::mutex waking_;
  std::condition_variable woken_;
  bool started_ = false;  // its thread
  bool begun_ = false;    // the peer has sent something
  bool finished_ = false;
  std::string why_;
};

class GlooCarriers final : public Carriers {
 public:
  explicit GlooCarriers(Memory& memory) noexcept : memory_(memory) {}
  std::string start(const std::string& host) noexcept override;
  CarrierRef make(CarrierUser& user, bool sends, uint32_t attempt, const std::string& host, int64_t lease_ns,
                  std::string* why) noexcept override;

 private:
  // Throws Gloo's exceptions and std::bad_alloc.
  DeviceRef device(const std::string& host);

  Memory& memory_;
  std::mutex mutex_;
  std::map<std::string, DeviceRef> devices_;  // by the IP address on which they listen
};

}  // namespace dist::grpc_link

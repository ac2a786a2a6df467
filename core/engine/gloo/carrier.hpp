// SPDX-License-Identifier: Apache-2.0
// GlooCarrier: the frames of one data link over one connection of Gloo's tcp transport, as messages of at most one size into
// memory that has been posted for them.
//
// What Gloo does makes the shape. A receive that has been posted cannot be taken back: the connection stands still, and
// Gloo's thread spins, when its buffer is gone. A message that is larger than what was posted for it ends the process. A wait
// ends when it is done, when it is told to, or with the whole context. So each link has a context of two, whose failure is
// its own; all receives are posted into a ring of the carrier's; and a thread waits for them, one after the other. Nobody
// waits for a send: its memory is free again when the other end says that it has consumed the message.
//
//     message: how many bytes of frames follow, how many messages have been consumed, frames
//
// Of the messages that may be on their way kReserved say only what has been consumed, so that this can always be said.
// Integers are the machine's own, as those of Gloo are: both ends are of one kind.
#pragma once

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "core/base/memory.hpp"
#include "core/base/os/thread.hpp"
#include "core/engine/grpc/carrier.hpp"

namespace dist::grpc_link {

class GlooCarrier final : public Carrier {
 public:
  // Listens. Throws what Gloo throws, and std::bad_alloc.
  GlooCarrier(Memory& memory, gloo::transport::Device& device, CarrierUser& user, bool sends,
              uint32_t attempt);
  ~GlooCarrier() override;

  const std::string& address() const noexcept override { return address_; }
  bool start(Meeting meeting) noexcept override;
  void flush() noexcept override;
  void end() noexcept override;
  bool over() const noexcept override { return over_; }
  void join() noexcept override { thread_.join(); }

 private:
  using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;
  static constexpr uint32_t kSlots = 16;
  static constexpr uint32_t kReserved = 2;
  static constexpr uint32_t kTellAfter = 8;
  static_assert(kTellAfter + kReserved < kSlots);
  struct Header {
    uint32_t bytes;
    uint32_t consumed;
  };
  // Messages in one direction.
  struct Ring {
    Ring(Memory& memory, gloo::transport::Context& context, std::size_t payload);
    ~Ring();
    std::byte* at(uint32_t number) const noexcept {
      return memory + (number % kSlots) * (sizeof(Header) + payload);
    }
    Buffer& buffer(uint32_t number) noexcept { return buffers[number % kSlots]; }

    Memory& owner;
    const std::size_t payload;
    std::byte* memory;
    Buffer buffers[kSlots];
    bool used[kSlots] = {};  // it has been sent from
  };

  static void* thread_main(void* self);
  void run() noexcept;
  void prove();
  std::string receive();
  void pump();

  const bool sends_;
  const int peer_;
  CarrierUser& user_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::string address_;
  Digest own_proof_{};
  Digest peer_proof_{};
  Buffer proof_out_, proof_in_;
  std::unique_ptr<Ring> out_, in_;
  Meeting meeting_;
  Thread thread_;

  // Of whoever sends, ends, or lets go what is Gloo's.
  std::mutex mutex_;
  bool let_go_ = false;
  bool can_send_ = false;
  std::atomic<bool> ending_{false};
  std::atomic<bool> over_{false};
  std::atomic<uint32_t> calls_{0};  // of flush() that nobody has seen to
  std::atomic<uint32_t> sent_{0};
  std::atomic<uint32_t> acknowledged_{0};  // of those
  std::atomic<uint32_t> consumed_{0};
  uint32_t told_ = 0;  // of those
};

class GlooCarriers final : public Carriers {
 public:
  explicit GlooCarriers(Memory& memory) noexcept : memory_(memory) {}
  std::string start(const std::string& host) noexcept override;
  CarrierRef make(CarrierUser& user, bool sends, uint32_t attempt, std::string* why) noexcept override;

 private:
  Memory& memory_;
  std::shared_ptr<gloo::transport::Device> device_;
};

}  // namespace dist::grpc_link

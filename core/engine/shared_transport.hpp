// SPDX-License-Identifier: Apache-2.0
// SharedTransport: one transport for several meetings. They keep their messages apart by the group in their keys; each
// has a share, with a listener of its own. A run's messages are let go when every share has forgotten that run.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>

#include "core/engine/transport.hpp"

namespace dist {

class SharedTransport final : public TransportListener {
 public:
  static constexpr std::size_t kShares = 2;

  // `below` outlives it.
  explicit SharedTransport(Transport& below) noexcept;
  // No share is used any more.
  ~SharedTransport();
  SharedTransport(const SharedTransport&) = delete;
  SharedTransport& operator=(const SharedTransport&) = delete;

  Transport& share(std::size_t k) noexcept { return shares_[k]; }
  void happened() noexcept override;

 private:
  class Share final : public Transport {
   public:
    int num_workers() const noexcept override { return below().num_workers(); }
    int me() const noexcept override { return below().me(); }
    std::size_t credit() const noexcept override { return below().credit(); }
    void send(int to, const MessageKey& key, const std::byte* data, std::size_t bytes,
              Transfer& transfer) noexcept override {
      below().send(to, key, data, bytes, transfer);
    }
    void receive(int from, const MessageKey& key, std::byte* data, std::size_t bytes,
                 Transfer& transfer) noexcept override {
      below().receive(from, key, data, bytes, transfer);
    }
    void cancel(Transfer& transfer) noexcept override { below().cancel(transfer); }
    void forget(uint32_t generation, uint32_t run) noexcept override {
      whole_->forget(*this, generation, run);
    }
    void progress() noexcept override { below().progress(); }
    bool reaches_others() const noexcept override { return below().reaches_others(); }
    bool lost(int worker) const noexcept override { return below().lost(worker); }
    int num_connections() const noexcept override { return below().num_connections(); }
    void listen(TransportListener* listener) noexcept override { whole_->listen(*this, listener); }
    void close() noexcept override { below().close(); }

   private:
    friend class SharedTransport;
    Transport& below() const noexcept { return whole_->below_; }

    SharedTransport* whole_ = nullptr;
    TransportListener* listener_ = nullptr;
    MessageKey first_;  // the first run that it has not forgotten
  };

  void forget(Share& share, uint32_t generation, uint32_t run) noexcept;
  void listen(Share& share, TransportListener* listener) noexcept;

  Transport& below_;
  std::mutex mutex_;
  std::array<Share, kShares> shares_;
};

}  // namespace dist

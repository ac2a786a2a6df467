// SPDX-License-Identifier: Apache-2.0
// SharedTransport: one transport for several meetings of a worker. Message keys contain the group, which
// keeps the meetings' messages apart. Each meeting has a share with a listener of its own.
//
// Invariant: the messages of a run are released only after every share that ever calls forget() has forgotten
// the run. Shares that never call it leave that to the others.
#pragma once

#include <cstddef>
#include <mutex>

#include "core/net/transport.hpp"

namespace dist {

class SharedTransport final : public TransportListener {
 public:
  // `below` must outlive it.
  explicit SharedTransport(Transport& below) noexcept;
  // All shares must have been destroyed.
  ~SharedTransport();
  SharedTransport(const SharedTransport&) = delete;
  SharedTransport& operator=(const SharedTransport&) = delete;

  // One meeting's share, which exists as long as this object. It must have no transfer in flight when it is
  // destroyed.
  class Share final : public Transport {
   public:
    explicit Share(SharedTransport& whole) noexcept;
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

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
      whole_.forget(*this, generation, run);
    }
    void progress() noexcept override { below().progress(); }
    bool polls() const noexcept override { return below().polls(); }
    void poll(bool begins) noexcept override { below().poll(begins); }
    void sleep(bool begins) noexcept override { below().sleep(begins); }
    bool shares_cpu() noexcept override { return below().shares_cpu(); }
    bool up_to_date() const noexcept override { return below().up_to_date(); }
    bool reaches_others() const noexcept override { return below().reaches_others(); }
    bool given_up() const noexcept override { return below().given_up(); }
    bool lost(int worker) const noexcept override { return below().lost(worker); }
    bool left(int worker) const noexcept override { return below().left(worker); }
    bool rejected(int worker) const noexcept override { return below().rejected(worker); }
    void why_lost(int worker, char* text, std::size_t size) const noexcept override {
      below().why_lost(worker, text, size);
    }
    int num_connections() const noexcept override { return below().num_connections(); }
    void listen(TransportListener* listener) noexcept override { whole_.listen(*this, listener); }
    void close() noexcept override { below().close(); }

   private:
    friend class SharedTransport;
    // The links of a list that the share is in.
    struct Link {
      Share* next = nullptr;
      Share** before = nullptr;  // NULL: it is in no list
    };
    Transport& below() const noexcept { return whole_.below_; }

    SharedTransport& whole_;
    TransportListener* listener_ = nullptr;
    MessageKey first_;  // the first run that it has not forgotten
    Link listening_;
    Link forgetting_;
  };

  void happened() noexcept override;

 private:
  using List = Share::Link Share::*;
  static void link(Share*& list, Share& share, List at) noexcept;
  static void unlink(Share& share, List at) noexcept;
  void forget(Share& share, uint32_t generation, uint32_t run) noexcept;
  void listen(Share& share, TransportListener* listener) noexcept;

  Transport& below_;
  std::mutex mutex_;
  // Separate lists, so that a share that neither listens nor forgets costs the others nothing.
  Share* listening_ = nullptr;
  Share* forgetting_ = nullptr;
};

}  // namespace dist

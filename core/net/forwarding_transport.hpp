// SPDX-License-Identifier: Apache-2.0
// ForwardingTransport: the base of transports that pass most calls on to another one.
#pragma once

#include <cstddef>

#include "core/net/transport.hpp"

namespace dist {

class ForwardingTransport : public Transport {
 public:
  int num_workers() const noexcept override { return below_.num_workers(); }
  int me() const noexcept override { return below_.me(); }
  std::size_t credit() const noexcept override { return below_.credit(); }
  void send(int to, const MessageKey& key, const std::byte* data, std::size_t bytes,
            Transfer& transfer) noexcept override {
    below_.send(to, key, data, bytes, transfer);
  }
  void receive(int from, const MessageKey& key, std::byte* data, std::size_t bytes,
               Transfer& transfer) noexcept override {
    below_.receive(from, key, data, bytes, transfer);
  }
  void cancel(Transfer& transfer) noexcept override { below_.cancel(transfer); }
  void forget(uint32_t generation, uint32_t run) noexcept override { below_.forget(generation, run); }
  void progress() noexcept override { below_.progress(); }
  bool polls() const noexcept override { return below_.polls(); }
  void poll(bool begins) noexcept override { below_.poll(begins); }
  void sleep(bool begins) noexcept override { below_.sleep(begins); }
  bool shares_cpu() noexcept override { return below_.shares_cpu(); }
  bool up_to_date() const noexcept override { return below_.up_to_date(); }
  bool reaches_others() const noexcept override { return below_.reaches_others(); }
  bool given_up() const noexcept override { return below_.given_up(); }
  bool lost(int worker) const noexcept override { return below_.lost(worker); }
  bool left(int worker) const noexcept override { return below_.left(worker); }
  bool rejected(int worker) const noexcept override { return below_.rejected(worker); }
  void why_lost(int worker, char* text, std::size_t size) const noexcept override {
    below_.why_lost(worker, text, size);
  }
  int num_connections() const noexcept override { return below_.num_connections(); }
  void log_to(const Host& host) noexcept override { below_.log_to(host); }
  void listen(TransportListener* listener) noexcept override { below_.listen(listener); }
  void close() noexcept override { below_.close(); }

 protected:
  // `below` must outlive this object.
  explicit ForwardingTransport(Transport& below) noexcept : below_(below) {}
  ~ForwardingTransport() = default;
  ForwardingTransport(const ForwardingTransport&) = delete;
  ForwardingTransport& operator=(const ForwardingTransport&) = delete;

  Transport& below_;
};

}  // namespace dist

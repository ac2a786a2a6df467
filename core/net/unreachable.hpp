// SPDX-License-Identifier: Apache-2.0
// UnreachableTransport: the transport of a worker that has no way to reach the others. Creating it does not
// wait, as with every transport. The first call that needs another worker fails immediately with the reason.
#pragma once

#include <cstdio>

#include "core/net/transport.hpp"

namespace dist {

class UnreachableTransport final : public Transport {
 public:
  // `why`, a sentence without a final period, must outlive it.
  UnreachableTransport(int num_workers, int me, const char* why) noexcept
      : num_workers_(num_workers), me_(me), why_(why) {}

  int num_workers() const noexcept override { return num_workers_; }
  int me() const noexcept override { return me_; }
  std::size_t credit() const noexcept override { return 0; }
  void send(int to, const MessageKey& key, const std::byte* data, std::size_t bytes,
            Transfer& transfer) noexcept override {
    receive(to, key, const_cast<std::byte*>(data), bytes, transfer);
  }
  void receive(int from, const MessageKey& key, std::byte* data, std::size_t bytes,
               Transfer& transfer) noexcept override {
    transfer.begin({from, key, data, bytes});
    transfer.finish(Transfer::End::kLost);
  }
  void cancel(Transfer&) noexcept override {}
  void forget(uint32_t, uint32_t) noexcept override {}
  void progress() noexcept override {}
  bool reaches_others() const noexcept override { return false; }
  bool lost(int worker) const noexcept override { return worker != me_; }
  void why_lost(int worker, char* text, std::size_t size) const noexcept override {
    if (size != 0) std::snprintf(text, size, "%s", lost(worker) ? why_ : "");
  }
  int num_connections() const noexcept override { return 0; }
  void listen(TransportListener*) noexcept override {}
  void close() noexcept override {}

 private:
  const int num_workers_;
  const int me_;
  const char* const why_;
};

}  // namespace dist

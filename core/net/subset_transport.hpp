// SPDX-License-Identifier: Apache-2.0
// SubsetTransport: a view of some of a transport's workers, numbered 0, 1, ... in their order there. Other
// workers are invisible, and nothing is sent to them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/net/transport.hpp"

namespace dist {

class SubsetTransport final : public Transport {
 public:
  // `workers` must be in ascending order and include this one. `below` must outlive it. Throws
  // std::bad_alloc.
  SubsetTransport(Memory& memory, Transport& below, std::span<const int> workers)
      : below_(below),
        workers_(workers.begin(), workers.end(), &memory),
        me_(static_cast<int>(std::find(workers.begin(), workers.end(), below.me()) - workers.begin())) {}

  int num_workers() const noexcept override { return static_cast<int>(workers_.size()); }
  int me() const noexcept override { return me_; }
  std::size_t credit() const noexcept override { return below_.credit(); }
  void send(int to, const MessageKey& key, const std::byte* data, std::size_t bytes,
            Transfer& transfer) noexcept override {
    below_.send(there(to), key, data, bytes, transfer);
  }
  void receive(int from, const MessageKey& key, std::byte* data, std::size_t bytes,
               Transfer& transfer) noexcept override {
    below_.receive(there(from), key, data, bytes, transfer);
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
  bool lost(int worker) const noexcept override { return below_.lost(there(worker)); }
  bool left(int worker) const noexcept override { return below_.left(there(worker)); }
  bool rejected(int worker) const noexcept override { return below_.rejected(there(worker)); }
  void why_lost(int worker, char* text, std::size_t size) const noexcept override {
    below_.why_lost(there(worker), text, size);
  }
  // Connections to other workers are included.
  int num_connections() const noexcept override { return below_.num_connections(); }
  void listen(TransportListener* listener) noexcept override { below_.listen(listener); }
  void close() noexcept override { below_.close(); }

 private:
  int there(int worker) const noexcept { return workers_[static_cast<std::size_t>(worker)]; }

  Transport& below_;
  const std::pmr::vector<int> workers_;
  const int me_;
};

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
// SubsetTransport: a view of some of a transport's workers, numbered 0, 1, ... in the order of their numbers
// there. It hides all other workers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/net/forwarding_transport.hpp"

namespace dist {

class SubsetTransport final : public ForwardingTransport {
 public:
  // `workers` must be in ascending order and include this one. `below` must outlive it. Throws
  // std::bad_alloc.
  SubsetTransport(Memory& memory, Transport& below, std::span<const int> workers)
      : ForwardingTransport(below),
        workers_(workers.begin(), workers.end(), &memory),
        me_(static_cast<int>(std::find(workers.begin(), workers.end(), below.me()) - workers.begin())) {}

  int num_workers() const noexcept override { return static_cast<int>(workers_.size()); }
  int me() const noexcept override { return me_; }
  void send(int to, const MessageKey& key, const std::byte* data, std::size_t bytes,
            Transfer& transfer) noexcept override {
    below_.send(there(to), key, data, bytes, transfer);
  }
  void receive(int from, const MessageKey& key, std::byte* data, std::size_t bytes,
               Transfer& transfer) noexcept override {
    below_.receive(there(from), key, data, bytes, transfer);
  }
  bool lost(int worker) const noexcept override { return below_.lost(there(worker)); }
  bool left(int worker) const noexcept override { return below_.left(there(worker)); }
  bool rejected(int worker) const noexcept override { return below_.rejected(there(worker)); }
  void why_lost(int worker, char* text, std::size_t size) const noexcept override {
    below_.why_lost(there(worker), text, size);
  }
  // num_connections() includes connections to other workers.

 private:
  int there(int worker) const noexcept { return workers_[static_cast<std::size_t>(worker)]; }

  const std::pmr::vector<int> workers_;
  const int me_;
};

}  // namespace dist

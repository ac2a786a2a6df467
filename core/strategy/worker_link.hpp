// SPDX-License-Identifier: Apache-2.0
// WorkerLink: what a strategy has of the other workers: the transport to them, and the meeting of all replicas.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/host.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/comm/workers.hpp"
#include "core/engine/in_process.hpp"
#include "core/engine/unreachable.hpp"
#include "core/strategy/worker_place.hpp"

namespace dist {

class WorkerLink {
 public:
  // How the others are reached. Joined once; what nobody keeps is closed.
  class Way {
   public:
    Way() noexcept = default;
    Way(Way&& other) noexcept
        : network_(std::move(other.network_)), transport_(std::exchange(other.transport_, nullptr)) {}
    ~Way() { close(); }
    // `network` NULL: nothing leads to the others.
    Status join(InProcessNetwork* network, const WorkerPlace& place) noexcept;
    Transport* transport() const noexcept { return transport_; }
    void close() noexcept {
      if (transport_ != nullptr) transport_->close();
    }

   private:
    Ref<InProcessNetwork> network_;
    Transport* transport_ = nullptr;
  };

  WorkerLink(Memory& memory, Group& group, const Host& host, const WorkerPlace& place, Way way,
             int64_t timeout_ns)
      : way_(std::move(way)),
        unreachable_(place.num_workers(), place.me),
        meeting_(memory, way_.transport() != nullptr ? *way_.transport() : unreachable_, group, host,
                 {.members = place.replicas, .timeout_ns = timeout_ns}) {}

  WorkerMeeting& meeting() noexcept { return meeting_; }
  bool reaches_others() const noexcept { return way_.transport() != nullptr; }
  // Peers hear that this worker has left. Any thread, also while a replica is inside a collective.
  void close() noexcept { way_.close(); }

 private:
  Way way_;
  UnreachableTransport unreachable_;
  WorkerMeeting meeting_;
};

}  // namespace dist

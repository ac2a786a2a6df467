// SPDX-License-Identifier: Apache-2.0
// The idle handler: lets instances serve on the replicas between runs, and gives all replicas to a run when it is
// first in the queue.
//
// | a thread that wants all replicas | RunAsker::word |
// |---|---|
// | waits | kWaiting |
// | has them until give_back() | kHas |
// | was cancelled | kCancelled |
// | was refused, because the strategy ends | kRefused |
//
// Invariant: a thread in take_all() is counted in `askers_`, and the destruction of the strategy waits for it.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/run/idle_handler.hpp"
#include "core/serve/instance_thread.hpp"

namespace dist {

class IdleReplicas final : public IdleHandler {
 public:
  explicit IdleReplicas(Serving& serving) noexcept : serving_(serving), dispatcher_(serving.dispatcher) {}
  IdleReplicas(const IdleReplicas&) = delete;
  IdleReplicas& operator=(const IdleReplicas&) = delete;

  Status take_all(const Asking& asking) noexcept override;
  void give_back() noexcept override;
  bool ask_to_enter() noexcept override;
  void no_longer_asks() noexcept override;
  bool serve(int rank, const std::atomic<uint32_t>& started, uint32_t seen,
             const std::atomic<bool>& stopping) override;
  void wake() noexcept override { dispatcher_.wake(); }
  void refuse_all() noexcept override;
  void cancel(const char* reason) noexcept override { dispatcher_.cancel_running(reason); }
  bool is_inside(int rank) const noexcept override { return dispatcher_.is_inside(rank); }

 private:
  void refuse_askers() noexcept;

  Serving& serving_;
  Dispatcher& dispatcher_;
  std::atomic<int> askers_{0};  // threads in take_all()
  RunAsker entering_{true};     // the request of entering host threads
};

}  // namespace dist

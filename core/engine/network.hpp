// SPDX-License-Identifier: Apache-2.0
// Network: what leads to the workers of a cluster. Each worker joins it once and has a transport then, which lies in the
// network and is closed before that ends.
#pragma once

#include <cstddef>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/engine/forming.hpp"
#include "core/engine/transport.hpp"

namespace dist {

class Network : public Counted {
 public:
  virtual int num_workers() const noexcept = 0;
  // The transport of one worker, once.
  virtual Status join(int worker, Transport** out) noexcept = 0;
  // Messages move by threads of its own.
  virtual bool has_threads() const noexcept { return false; }

  // Of a network whose workers come and go. form(), once after join() and before the first message, waits until worker 0
  // says which of them take part: UNAVAILABLE, CANCELLED or DEADLINE_EXCEEDED where it does not, PERMISSION_DENIED where it
  // refuses this one, and ABORTED where worker 0
  // has given up, and comes back in another network; at worker 0 itself, where it is to: only so can a worker be let in that
  // had come, died, and was started again.
  virtual bool forms() const noexcept { return false; }
  virtual Status form(const Forming& wanted, Formed* out) noexcept {
    (void)wanted, (void)out;
    return fail(DIST_UNIMPLEMENTED, "workers that share a process end together");
  }
  // At worker 0: whether anybody has asked to be let in of late, and could not be.
  virtual bool has_newcomers() const noexcept { return false; }
  // This worker leaves, to form another generation in another network: its transport is closed, and its address is free
  // when this returns.
  virtual Parting leave() noexcept { return {}; }

  // What the other workers are, and how they are reached: "strategies of this process, on the network that was given".
  virtual void describe(char* text, std::size_t size) const noexcept = 0;

 protected:
  explicit Network(Memory& memory) noexcept : Counted(memory) {}
  ~Network() override = default;
};

}  // namespace dist

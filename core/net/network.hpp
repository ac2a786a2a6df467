// SPDX-License-Identifier: Apache-2.0
// Network: connects the workers of a cluster. Each worker joins once and then has a transport, which is part
// of the network.
//
// Invariant: the transport is closed before the network is destroyed.
#pragma once

#include <cstddef>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/net/forming.hpp"
#include "core/net/transport.hpp"

namespace dist {

class Network : public Counted {
 public:
  virtual int num_workers() const noexcept = 0;
  // Returns the transport of one worker. May be called once for each worker.
  virtual Status join(int worker, Transport** out) noexcept = 0;
  // Whether messages move on threads of the network.
  virtual bool has_threads() const noexcept { return false; }
  // Whether data are sent to other machines without encryption.
  virtual bool is_exposed() const noexcept { return false; }

  // For a network that forms generations. form() is called once, after join() and before the first message,
  // and waits until worker 0 decides which workers take part. It fails with UNAVAILABLE, CANCELLED or
  // DEADLINE_EXCEEDED if there is no decision, with PERMISSION_DENIED if worker 0 rejects this worker, and
  // with ABORTED if worker 0 has given up and will return in another network. On worker 0, ABORTED means that
  // it must create another network itself. Only then can it admit a worker that had arrived, died, and been
  // restarted.
  virtual bool forms() const noexcept { return false; }
  virtual Status form(const Forming& wanted, Formed* out) noexcept {
    (void)wanted, (void)out;
    return fail(DIST_UNIMPLEMENTED, "workers that share a process end together");
  }
  // On worker 0: whether a worker has recently asked to join and could not be admitted.
  virtual bool has_newcomers() const noexcept { return false; }
  // This worker leaves to form another generation in another network. When this returns, its transport is
  // closed and its address is free.
  virtual Parting leave() noexcept { return {}; }

  // Describes the other workers and the connection to them: "other strategies of this process".
  virtual void describe(char* text, std::size_t size) const noexcept = 0;

 protected:
  explicit Network(Memory& memory) noexcept : Counted(memory) {}
  ~Network() override = default;
};

}  // namespace dist

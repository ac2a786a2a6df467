// SPDX-License-Identifier: Apache-2.0
// Network: what leads to the workers of a cluster. Each worker joins it once and has a transport then, which lies in the
// network and is closed before that ends.
#pragma once

#include <cstddef>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/engine/transport.hpp"

namespace dist {

class Network : public Counted {
 public:
  virtual int num_workers() const noexcept = 0;
  // The transport of one worker, once.
  virtual Status join(int worker, Transport** out) noexcept = 0;
  // Messages move by threads of its own.
  virtual bool has_threads() const noexcept { return false; }
  // What the other workers are, and how they are reached: "strategies of this process, on the network that was given".
  virtual void describe(char* text, std::size_t size) const noexcept = 0;

 protected:
  explicit Network(Memory& memory) noexcept : Counted(memory) {}
  ~Network() override = default;
};

}  // namespace dist

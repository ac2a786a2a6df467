// SPDX-License-Identifier: Apache-2.0
// HeldPort: a port of this machine on which the process listens before anything accepts connections there.
// The process can thus publish the port first, and no other program can take it meanwhile.
//
// Invariant: at most one user at a time accepts connections.
#pragma once

#include <atomic>
#include <memory_resource>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/os/tcp.hpp"

namespace dist {

class HeldPort final : public Counted {
 public:
  // `address`: where the process listens, as text, for messages.
  HeldPort(Memory& memory, Listening listening, std::string_view address)
      : Counted(memory), listening_(std::move(listening)), address_(address, &memory) {}

  int port() const noexcept { return listening_.port; }
  const std::vector<Descriptor>& sockets() const noexcept { return listening_.sockets; }
  const char* address() const noexcept { return address_.c_str(); }

  // Begins to use the port. Returns false if it is in use.
  bool take() noexcept { return !taken_.exchange(true); }
  void give_back() noexcept { taken_ = false; }

 private:
  ~HeldPort() override = default;

  const Listening listening_;
  const std::pmr::string address_;
  std::atomic<bool> taken_{false};
};

}  // namespace dist

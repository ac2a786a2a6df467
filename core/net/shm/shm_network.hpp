// SPDX-License-Identifier: Apache-2.0
// ShmNetwork: a network whose workers share memory if they are on one machine (ShmTransport). The network
// below does everything else.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

#include "core/net/network.hpp"
#include "core/net/shm/shm_transport.hpp"

namespace dist {

class ShmNetwork final : public Network {
 public:
  // Throws nothing; create it with make_counted(). The network below must not have been joined.
  ShmNetwork(Memory& memory, Ref<Network> below, const ShmTransport::Options& options) noexcept
      : Network(memory), below_(std::move(below)), options_(options) {}

  int num_workers() const noexcept override { return below_->num_workers(); }
  Status join(int worker, Transport** out) noexcept override {
    Transport* below = nullptr;
    DIST_TRY(below_->join(worker, &below));
    try {
      transport_.emplace(memory(), *below, options_);
    } catch (const std::bad_alloc&) {
      below->close();
      return out_of_memory();
    }
    *out = &*transport_;
    return kOk;
  }
  // The thread of the transport does not count, because it sleeps nearly always. Only messages between
  // machines need threads that move them.
  bool has_threads() const noexcept override { return below_->has_threads(); }
  bool is_exposed() const noexcept override { return below_->is_exposed(); }
  bool forms() const noexcept override { return below_->forms(); }
  Status form(const Forming& wanted, Formed* out) noexcept override { return below_->form(wanted, out); }
  bool has_newcomers() const noexcept override { return below_->has_newcomers(); }
  Parting leave() noexcept override {
    if (transport_) transport_->close_links();
    return below_->leave();
  }
  void describe(char* text, std::size_t size) const noexcept override {
    below_->describe(text, size);
    const std::size_t length = std::strlen(text);
    if (!transport_ || length + 3 >= size) return;
    char more[512];
    transport_->describe(more, sizeof more);
    if (*more != '\0') std::snprintf(text + length, size - length, "; %s", more);
  }

 private:
  ~ShmNetwork() override = default;

  Ref<Network> below_;  // destroyed last
  const ShmTransport::Options options_;
  std::optional<ShmTransport> transport_;
};

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
// The messages of a rendezvous, as JSON. A worker sends a Registration; the response is the cluster, in the
// format of ClusterSpec::from_json().
//
//     {"job": "", "rank": 1, "size": 4, "host": "127.0.0.1", "port": 41234}
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/cluster_spec.hpp"
#include "core/net/calls.hpp"

namespace dist {

// Limit for the job's name, which distinguishes jobs that use the same address one after another.
inline constexpr std::size_t kMostJobNameBytes = 255;
// Limits for a message to worker 0, and for its response in a job of this size.
inline constexpr std::size_t kMostRegistrationBytes = 4096;
constexpr std::size_t most_cluster_bytes(int32_t size) noexcept {
  return (std::size_t{256} << 10) + (std::size_t{1} << 10) * static_cast<std::size_t>(size);
}

struct Registration {
  explicit Registration(Memory& memory) : job(&memory), host(&memory) {}

  std::pmr::string job;
  int32_t rank = 0;
  int32_t size = 0;
  std::pmr::string host;  // at which others reach the worker; "" stands for the address that worker 0 sees
  int32_t port = 0;

  // Appends the message.
  void write(std::pmr::string* out) const;
  // The bytes need not be valid. Fails with INVALID_ARGUMENT if they are not a message or a value is out of
  // range.
  Status read(Memory& memory, std::span<const std::byte> bytes);
};

// "host:port", with brackets if the host contains colons.
std::pmr::string address_text(Memory& memory, std::string_view host, int port);

// Parses the response. Fails with INVALID_ARGUMENT unless it is a cluster of `size` workers in which the
// worker `rank` has this port.
Status read_cluster(Memory& memory, std::span<const std::byte> bytes, int32_t rank, int32_t size, int port,
                    Ref<ClusterSpec>* out);

// Makes a message of a text.
Ref<CallParts> make_text(Memory& memory, std::string_view text);

}  // namespace dist

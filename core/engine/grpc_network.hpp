// SPDX-License-Identifier: Apache-2.0
// GrpcNetwork: workers that are processes, and reach each other by gRPC. What speaks gRPC is a library of its own, which is
// loaded when such a network is made (core/engine/grpc); nothing of gRPC is in libdist itself. With `gloo` it is another one
// (core/engine/gloo): gRPC says who the workers are and who lives, and the data go as plain text over Gloo's tcp transport.
//
// Each worker listens on its own address from join() on, and not before. Worker 0 says who has joined and who lives. A worker
// is lost when its connection breaks, or when nothing has been heard of it for a lease; it stays lost in this generation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/engine/grpc_module.hpp"
#include "core/engine/link_security.hpp"
#include "core/engine/network.hpp"

namespace dist {

inline constexpr int kMaxGrpcWorkers = 256;

struct GrpcOptions : LinkSecurity {
  std::span<const char* const> addresses;  // of all workers, in order: "host:port", "[v6]:port"
  int me = 0;
  const char* bind_address = nullptr;  // where this one listens; NULL: its own address
  const char* digest = nullptr;        // of what else all must agree on; NULL: nothing
  bool gloo = false;                   // carries the data: never with TLS
  bool forms = false;                  // Network::form() says who takes part
  CameFrom came_from;                  // of one that forms
  std::span<const int> replicas;       // of each worker, as this one was told; empty: not said
  int64_t credit = 0;                  // 0: kDefaultCredit
  const char* module = nullptr;        // the library's path; NULL: it is looked for
};

class GrpcNetwork final : public Network {
 public:
  static constexpr std::size_t kDefaultCredit = std::size_t{1} << 20;
  static constexpr std::size_t kMostCredit = std::size_t{64} << 20;

  // In memory of the host's. Checks the options, and finds and loads the library. UNAVAILABLE: it is not there.
  static Status create(const dist_allocator& allocator, const GrpcOptions& options, Ref<GrpcNetwork>* out);
  // The options have been checked. Throws std::bad_alloc.
  GrpcNetwork(Memory& memory, const GrpcOptions& options, const GrpcModule& module);
  ~GrpcNetwork() override;

  int num_workers() const noexcept override { return static_cast<int>(addresses_.size()); }
  // `worker` is this one. UNAVAILABLE: its address cannot be listened on.
  Status join(int worker, Transport** out) noexcept override;
  bool has_threads() const noexcept override { return true; }
  bool is_exposed() const noexcept override;
  void describe(char* text, std::size_t size) const noexcept override;
  bool forms() const noexcept override { return true; }
  Status form(const Forming& wanted, Formed* out) noexcept override;
  bool has_newcomers() const noexcept override;
  Parting leave() noexcept override;

 private:
  using Text = std::pmr::string;

  std::pmr::vector<Text> addresses_;
  const int me_;
  const Text bind_address_;
  const Text digest_;
  Text secret_;
  const Text ca_, certificate_;
  Text key_;
  const bool forms_;
  const CameFrom came_from_;
  const std::pmr::vector<int> replicas_;
  const int64_t lease_ns_;
  const std::size_t credit_;
  const bool gloo_;
  const GrpcModule& module_;
  bool joined_ = false;
  void* handle_ = nullptr;
};

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
// GrpcNetwork: workers that are processes and communicate over gRPC. The code that uses gRPC is in a library
// that is loaded when such a network is created (core/net/grpc). With a link module, membership and liveness
// still use gRPC, and the module moves the data, which libdist treats as unencrypted.
//
// A worker listens from join() on, and not before. Worker 0 decides who has joined and who is
// alive. A worker is lost when its connection breaks or when its lease expires without a message from it. It
// stays lost for the rest of the generation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "core/base/held_port.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/link_security.hpp"
#include "core/net/grpc_module.hpp"
#include "core/net/network.hpp"

namespace dist {

struct GrpcOptions : LinkSecurity {
  std::span<const char* const> addresses;  // of all workers, in order: "host:port", "[v6]:port"
  int me = 0;
  // DIST_BIND_ADDRESS, the address to listen on; NULL: default_bind_address() of this worker's address
  const char* bind_address = nullptr;
  HeldPort* port = nullptr;      // if not NULL, this worker listens there already, not on bind_address
  const char* digest = nullptr;  // digest of other settings on which all workers must agree; NULL: none
  const dist_link_functions* links = nullptr;  // moves the data; cannot be combined with TLS. NULL: gRPC does
  bool forms = false;                          // Network::form() decides which workers take part
  CameFrom came_from;                          // if it forms generations
  std::span<const int> replicas;               // of each worker, as configured here; empty: not specified
  int64_t credit = 0;                          // 0: kDefaultCredit
  const char* module_folder = nullptr;         // the folder of libdist-grpc.so; NULL: search for it
};

class GrpcNetwork final : public Network {
 public:
  static constexpr std::size_t kDefaultCredit = std::size_t{1} << 20;
  static constexpr std::size_t kMostCredit = std::size_t{64} << 20;

  // Allocates from the host's memory, validates the options, and loads the library. Fails with UNAVAILABLE if
  // it is not found.
  static Status create(const dist_allocator& allocator, const GrpcOptions& options, Ref<GrpcNetwork>* out);
  // The options must be valid. Throws std::bad_alloc.
  GrpcNetwork(Memory& memory, const GrpcOptions& options, const GrpcModule& module);
  ~GrpcNetwork() override;

  int num_workers() const noexcept override { return static_cast<int>(addresses_.size()); }
  // `worker` must be this worker. Fails with UNAVAILABLE if it cannot listen on its address.
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
  void give_port_back() noexcept;

  std::pmr::vector<Text> addresses_;
  const int me_;
  const Text bind_address_;
  const bool listens_elsewhere_;  // not on default_bind_address()
  const Ref<HeldPort> port_;
  bool uses_port_ = false;
  const Text digest_;
  const KeptSecurity security_;
  const bool forms_;
  const CameFrom came_from_;
  const std::pmr::vector<int> replicas_;
  const std::size_t credit_;
  const dist_link_functions* const links_;
  const GrpcModule& module_;
  bool joined_ = false;
  void* handle_ = nullptr;
};

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
// GrpcCalls: calls between processes over gRPC, in the library that grpc_library.hpp finds. A server listens
// as soon as the object exists. A process that only makes calls has no address.
#pragma once

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/cluster/link_security.hpp"
#include "core/net/calls.hpp"
#include "core/net/grpc_module.hpp"

namespace dist {

struct GrpcCallOptions : LinkSecurity {
  const char* bind_address = nullptr;              // NULL: do not listen; port 0: the system chooses one
  const char* bind_name = "the server's address";  // what specified it, for messages
  const char* bind_value = nullptr;                // the value that was specified; NULL: the address itself
  CallHandler* handler = nullptr;                  // required if it listens; must outlive this object
  CallLimits limits;
  const char* module_folder = nullptr;  // the folder of libdist-grpc.so; NULL: search for it
};

class GrpcCalls final : public Counted {
 public:
  // Fails with UNAVAILABLE if the library is not found, or if it is impossible to listen on the address.
  static Status create(Memory& memory, const GrpcCallOptions& options, Ref<GrpcCalls>* out);
  GrpcCalls(Memory& memory, const GrpcModule& module, const LinkSecurity& security) noexcept
      : Counted(memory),
        module_(module),
        tls_(security.tls()),
        secret_(security.secret != nullptr),
        allow_plaintext_(security.allow_plaintext),
        lease_ns_(security.lease_ns != 0 ? security.lease_ns : kDefaultLeaseNs) {}

  // How long a peer that sends nothing is considered alive.
  int64_t lease_ns() const noexcept { return lease_ns_; }
  int port() const noexcept { return network_->port(); }
  // Opens a channel to the server at `address`, which need not be running yet. `call` is the beginning of
  // messages.
  Status open(const char* call, const char* address, CallChannel** out) noexcept;
  void close(CallChannel* channel) noexcept;

 private:
  ~GrpcCalls() override;

  const GrpcModule& module_;
  const bool tls_, secret_, allow_plaintext_;
  const int64_t lease_ns_;
  CallNetwork* network_ = nullptr;
};

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
// RemoteVariables: the parameter servers of a job as the coordinator and its workers use them. Callable from
// several threads at a time.
//
// An unreachable server is reported as ABORTED, not UNAVAILABLE: its variables are lost, so retrying is
// useless. It also keeps a worker that reports it from being taken for a lost worker itself.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/net/rpc/client.hpp"
#include "core/ps/directory.hpp"
#include "core/ps/pushes.hpp"

namespace dist {

inline constexpr int32_t kNoServer = -1;

// How long to wait for a call, and its outcome.
struct RemoteWait {
  int64_t timeout_ns = -1;  // < 0: no limit
  Cancel* cancel = nullptr;
  int32_t lost = kNoServer;  // out: a parameter server that could not be reached
};

class RemoteVariables {
 public:
  using List = std::pmr::vector<const RemoteVariable*>;

  RemoteVariables(Memory& memory, int64_t epoch) : memory_(memory), epoch_(epoch), servers_(&memory) {}

  // Adds the next server.
  Status add_server(const Ref<GrpcCalls>& calls, const char* address);
  // No thread may be using any server.
  void clear() noexcept { servers_.clear(); }
  std::size_t num_servers() const noexcept { return servers_.size(); }
  RpcClient& server(std::size_t ps) const noexcept { return *servers_[ps]; }
  int64_t epoch() const noexcept { return epoch_; }

  // Creates the parts of the variable with their initial values.
  Status create(const RemoteVariable& variable, Value& initial, RemoteWait* wait);
  // Reads variables. The values from one server are of the same moment.
  Status read(std::span<const RemoteVariable* const> variables, RemoteWait* wait, std::span<ValueRef> out);
  // Rows [k, rest] of a variable for the indices i32 or i64 [k].
  Status rows(const RemoteVariable& variable, Value& indices, RemoteWait* wait, ValueRef* out);
  // `id`: Commit::kNoClosure, or the id of the closure.
  Status commit(const Pushes& pushes, int64_t id, int64_t watermark, RemoteWait* wait);
  // Any call to one server.
  Status call(std::size_t ps, std::string_view method, Value& message, RemoteWait* wait, ValueRef* out);

 private:
  class Calls;
  class Reading;

  Memory& memory_;
  const int64_t epoch_;
  std::pmr::vector<Ref<RpcClient>> servers_;
};

}  // namespace dist

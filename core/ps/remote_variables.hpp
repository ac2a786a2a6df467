// SPDX-License-Identifier: Apache-2.0
// RemoteVariables: the parameter servers of a job, as the coordinator and its workers use them. Several threads at a time.
//
// A server that cannot be reached is ABORTED here, not UNAVAILABLE: its variables are gone with it, so that trying again is of
// no use, and a worker that has heard so is not taken for a lost one.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/ps/directory.hpp"
#include "core/ps/pushes.hpp"
#include "core/rpc/client.hpp"

namespace dist {

inline constexpr int32_t kNoServer = -1;

// How long a call waits, and what it comes to.
struct RemoteWait {
  int64_t timeout_ns = -1;  // < 0: no limit
  Cancel* cancel = nullptr;
  int32_t lost = kNoServer;  // a parameter server that could not be reached
};

class RemoteVariables {
 public:
  using List = std::pmr::vector<const RemoteVariable*>;

  RemoteVariables(Memory& memory, int64_t epoch) : memory_(memory), epoch_(epoch), servers_(&memory) {}

  // The next server.
  Status add_server(const Ref<GrpcCalls>& calls, const char* address);
  // Nobody uses any of them.
  void clear() noexcept { servers_.clear(); }
  std::size_t num_servers() const noexcept { return servers_.size(); }
  RpcClient& server(std::size_t ps) const noexcept { return *servers_[ps]; }
  int64_t epoch() const noexcept { return epoch_; }

  // Creates its parts, with the values that `initial` has for them.
  Status create(const RemoteVariable& variable, Value& initial, RemoteWait* wait);
  // What they are: all of one server's are of one moment.
  Status read(std::span<const RemoteVariable* const> variables, RemoteWait* wait, std::span<ValueRef> out);
  // Rows [k, rest] of a variable, by indices i32 or i64 [k].
  Status rows(const RemoteVariable& variable, Value& indices, RemoteWait* wait, ValueRef* out);
  // `id`: Commit::kNoClosure, or the closure's.
  Status commit(const Pushes& pushes, int64_t id, int64_t mark, RemoteWait* wait);
  // A call of one server, or of all one after another, whatever it is.
  Status call(std::size_t ps, std::string_view method, Value& message, RemoteWait* wait, ValueRef* out);

 private:
  class Calls;
  class Reading;

  Memory& memory_;
  const int64_t epoch_;
  std::pmr::vector<Ref<RpcClient>> servers_;
};

}  // namespace dist

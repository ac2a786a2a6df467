// SPDX-License-Identifier: Apache-2.0
// Current: the replica's function, merge function and strategy's scope that this thread is in. It tells the
// two contexts apart.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"

namespace dist {

class Replica;
class ReplicaPool;

struct Current {
  Replica* replica = nullptr;  // NULL: no replica's function
  bool merging = false;        // inside a merge function: cross-replica again, on replica 0's thread
  // The strategy whose scope the thread is in, by entering it or by choice; NULL: none. Never a default one,
  // whose scope is no different from being outside.
  const void* scope = nullptr;
  const void* chosen = nullptr;  // what `scope` is where none is entered
  int32_t entered = 0;           // how often `scope` is
  int32_t default_entered = 0;   // scopes of default strategies, all of them outside that of `scope`
  // The pool in whose turn this thread reads or writes variables from outside; NULL: none. `turn_shared`: in
  // a host's function that is called for several copies at the same time.
  const ReplicaPool* turn = nullptr;
  bool turn_shared = false;
  // The replica whose function this thread runs and has let go of (dist_replica_detach()); NULL: none.
  const Replica* detached = nullptr;
};

Current& current() noexcept;

// From now on it is seen where the thread ends as a replica that it entered, or is attached to.
void watch_thread_end() noexcept;

// For as long as it lives the thread is in something else, with no scope entered; then where it was.
class Within {
 public:
  Within(Replica* replica, bool merging) noexcept : here_(current()), before_(here_) {
    here_ = Current{replica, merging, nullptr, nullptr, 0, 0, nullptr, false};
  }
  ~Within() { here_ = before_; }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  Current& here_;  // of the one thread that this lives on: asked for once
  const Current before_;
};

}  // namespace dist

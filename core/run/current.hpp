// SPDX-License-Identifier: Apache-2.0
// Which replica function, merge function and strategy scope the calling thread is in. This decides whether a
// call is in replica context or in cross-replica context. Thread-local.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"

namespace dist {

class Counted;
class Replica;
class ReplicaPool;

struct Current {
  Replica* replica = nullptr;  // NULL: not in a replica's function
  bool merging = false;        // in a merge function: cross-replica context again, on replica 0's thread
  // The strategy whose scope the thread is in, whether entered or chosen; NULL: none. A default strategy is
  // never stored here, because being in its scope is the same as being outside of all scopes.
  const Counted* scope = nullptr;
  const Counted* chosen = nullptr;  // the value of `scope` when no scope is entered
  int32_t entered = 0;              // how many times `scope` is entered
  // entered scopes of default strategies; all of them are outside that of `scope`
  int32_t default_entered = 0;
  // The pool in whose turn this thread accesses variables from outside runs; NULL: none. `turn_shared` is set
  // inside a host callback that may run for several copies at the same time.
  const ReplicaPool* turn = nullptr;
  bool turn_shared = false;
  // The replica whose function this thread runs but has detached from (dist_replica_detach()); NULL: none.
  const Replica* detached = nullptr;
};

Current& current() noexcept;

// Makes libdist notice if this thread ends while it has entered a replica or is attached to one.
void watch_thread_end() noexcept;

// Puts the thread into another context, with no scope entered, and restores the previous one at the end of
// the scope.
class Within {
 public:
  Within(Replica* replica, bool merging) noexcept : Within(current(), replica, merging) {}
  // `here` is current(), if the caller has looked it up already.
  Within(Current& here, Replica* replica, bool merging) noexcept : here_(here), before_(here) {
    here_ = Current{replica, merging, nullptr, nullptr, 0, 0, nullptr, false};
  }
  ~Within() { here_ = before_; }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  Current& here_;  // of this thread; looked up once, because the object never leaves it
  const Current before_;
};

}  // namespace dist

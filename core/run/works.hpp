// SPDX-License-Identifier: Apache-2.0
// Starts, plans or executes a collective in a replica. Works already in progress in that replica advance
// meanwhile.
#pragma once

#include <cstdint>

#include "core/async/work.hpp"
#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/collective/collectives.hpp"
#include "core/run/replica.hpp"
#include "core/run/subgroups.hpp"

namespace dist {

// Options of a collective that its member does not wait for.
struct Later {
  const Subgroup* group;   // NULL: all replicas
  Cancel* cancel;          // may be NULL
  bool planned;            // only prepare it, to be started any number of times; otherwise start it now
  int64_t bytes_per_pack;  // approximate, for plans; 0: the strategy's default
};
Status begin(Replica& replica, const Member& member, Call& call, const Later& later, Ref<Work>* out);

void advance_works(Replica& replica) noexcept;

// Executes a collective and waits for it.
inline Status collective_of(Replica& replica, const Member& member, Call& call) noexcept {
  if (!replica.works().empty()) advance_works(replica);
  return collective(member, call);
}

// Calls body(), which executes a collective of the group. The cancel object ends it.
template <class Body>
Status ended_by(Cancel& cancel, Group& group, Body&& body) {
  GroupCancelLink link(group);
  const CancelScope scope(&cancel, link);
  if (scope.late()) group.cancel(cancel.reason());
  return body();
}

}  // namespace dist

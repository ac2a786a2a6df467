// SPDX-License-Identifier: Apache-2.0
// How a replica begins, plans or makes a collective, beside the works that it has under way.
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

// How a collective is made that its member does not wait for.
struct Later {
  const Subgroup* group;   // NULL: all replicas
  Cancel* cancel;          // ends it; NULL: nothing does
  bool planned;            // made now, and begun any number of times; else it begins now
  int64_t bytes_per_pack;  // of a plan, about; 0: as the strategy says
};
Status begin(Replica& replica, const Member& member, Call& call, const Later& later, Ref<Work>* out);

void advance_works(Replica& replica) noexcept;

// Makes a collective, and waits for it.
inline Status collective_of(Replica& replica, const Member& member, Call& call) noexcept {
  if (!replica.works().empty()) advance_works(replica);
  return collective(member, call);
}

// Calls body(), which makes a collective of the group; the cancel object ends it.
template <class Body>
Status ended_by(Cancel& cancel, Group& group, Body&& body) {
  GroupCancelLink link(group);
  const CancelScope scope(&cancel, link);
  if (scope.late()) group.cancel(cancel.reason());
  return body();
}

}  // namespace dist

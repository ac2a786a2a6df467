// SPDX-License-Identifier: Apache-2.0
// Shared by all collectives: reading their options and finding the calling member.
#pragma once

#include <optional>

#include "capi/guard.hpp"
#include "core/collective/collectives.hpp"
#include "core/run/works.hpp"

namespace dist::capi {

// The calling member of all replicas, or of the group in the options.
Status make_member(dist_replica* replica, const dist_collective_options& options, const char* name,
                   std::optional<Member>* out);

// Fails if an option is set that the collective does not use with this operator.
Status require_used(const dist_collective_options& options, Collective collective, dist_reduce_op op,
                    const char* name) noexcept;
// The same, for calls that always block.
Status require_blocking(const dist_collective_options& options, Collective collective, dist_reduce_op op,
                        const char* name) noexcept;
// The same, for calls that do not reduce tensors of their own, and require all replicas.
Status require_plain(const dist_collective_options& options, const char* name) noexcept;

// Makes the checks that every collective needs and calls `body` with the member. The text in the options is
// used until it returns.
template <class Body>
dist_status with_member(dist_replica* replica, const dist_collective_options* options, const char* name,
                        Body&& body) {
  const auto checked = [&]() -> Status {
    DIST_TRY(check_may_wait(name));
    DIST_TRY(require(replica, name, "replica"));
    DIST_TRY(unwrap(replica).check(name));
    static constexpr dist_collective_options kNone{};
    if (options == nullptr) return body(unwrap(replica).member(nullptr, 0), kNone);
    dist_collective_options given;
    DIST_TRY(read_options(options, &given, "dist_collective_options"));
    std::optional<Member> member;
    DIST_TRY(make_member(replica, given, name, &member));
    if (given.cancel == nullptr) return body(*member, given);
    return ended_by(*unwrap(given.cancel), member->group, [&] { return body(*member, given); });
  };
  // Not guard(), which would look again for a callback that this thread may be in.
  const dist_status status = guarded(nullptr, [&] { return checked().code(); });
  return named(Status(status), name);
}

}  // namespace dist::capi

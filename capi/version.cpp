// SPDX-License-Identifier: Apache-2.0
// version.h: data that is replaced while runs use it.
#include "core/run/versions.hpp"

#include "capi/guard.hpp"
#include "core/run/current.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

Versions& unwrap(dist_versions* handle) noexcept { return *reinterpret_cast<Versions*>(handle); }

Status check_process(const Versions& versions, const char* call) noexcept {
  if (!versions.memory().forked()) return kOk;
  return failed_precondition(
      "`%s()`: this is a forked child of the process that created the versions. Create another one in the "
      "child.",
      call);
}

// Fails inside a run, which may still see the version that the call would wait for.
Status check_outside(const char* call) noexcept {
  const Current& here = current();
  const Replica* const inside = here.replica != nullptr ? here.replica : here.detached;
  if (inside == nullptr || inside->pool().memory().forked()) return kOk;
  return failed_precondition(
      "`%s()`: this `thread` is in the function of %s %d, whose run may hold the version that this call "
      "waits "
      "for. Call it outside the replicas.",
      call, inside->name().word(), inside->name().number());
}

}  // namespace

dist_status dist_versions_create(const dist_allocator* allocator, dist_versions** out_versions) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_versions, "dist_versions_create", "out_versions"));
    const dist_allocator chosen = allocator == nullptr ? dist_allocator{} : *allocator;
    Ref<Memory> memory;
    DIST_TRY(create_memory(chosen, "dist_versions_create()", &memory));
    *out_versions = reinterpret_cast<dist_versions*>(make_counted<Versions>(*memory).take());
    return kOk;
  });
}

dist_status dist_versions_publish(dist_versions* versions, void* content, dist_version_release_fn release,
                                  void* user_data, int64_t* out_number) {
  return guard([&]() -> Status {
    DIST_TRY(require(versions, "dist_versions_publish", "versions"));
    DIST_TRY(require(content, "dist_versions_publish", "content"));
    DIST_TRY(check_process(unwrap(versions), "dist_versions_publish"));
    unwrap(versions).publish(content, release, user_data, out_number);
    return kOk;
  });
}

dist_status dist_replica_version(dist_replica* replica, dist_versions* versions, void** out_content,
                                 int64_t* out_number) {
  return guard([&]() -> Status {
    DIST_TRY(require(replica, "dist_replica_version", "replica"));
    DIST_TRY(require(versions, "dist_replica_version", "versions"));
    DIST_TRY(require(out_content, "dist_replica_version", "out_content"));
    DIST_TRY(check_process(unwrap(versions), "dist_replica_version"));
    Version* seen = nullptr;
    DIST_TRY(unwrap(replica).see(unwrap(versions), &seen));
    *out_content = seen->content();
    if (out_number != nullptr) *out_number = seen->number();
    return kOk;
  });
}

int64_t dist_versions_latest(const dist_versions* versions) {
  return versions == nullptr ? 0 : reinterpret_cast<const Versions*>(versions)->latest();
}

dist_status dist_versions_await(dist_versions* versions, int64_t number, int64_t timeout_ns) {
  return guard([&]() -> Status {
    DIST_TRY(require(versions, "dist_versions_await", "versions"));
    DIST_TRY(require_wait(timeout_ns, "dist_versions_await"));
    DIST_TRY(check_process(unwrap(versions), "dist_versions_await"));
    const int64_t latest = unwrap(versions).latest();
    if (number < 1 || number > latest) {
      if (latest == 0) {
        return invalid_argument(
            "`dist_versions_await()`: `number` is %lld, but no version has been published",
            static_cast<long long>(number));
      }
      return invalid_argument(
          "`dist_versions_await()`: `number` is %lld, but the published versions are 1 to %lld",
          static_cast<long long>(number), static_cast<long long>(latest));
    }
    DIST_TRY(check_outside("dist_versions_await"));
    return unwrap(versions).await(number, timeout_ns);
  });
}

void dist_versions_destroy(dist_versions* versions) {
  if (versions == nullptr || unwrap(versions).memory().forked()) return;
  unwrap(versions).close();
  unwrap(versions).release();
}

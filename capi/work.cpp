// SPDX-License-Identifier: Apache-2.0
// work.h: collectives in progress and planned collectives.
#include "core/async/work.hpp"

#include "capi/guard.hpp"
#include "core/strategy/scope.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

// The works of the replica that this thread is inside; NULL: none.
const WorkList* works_here() noexcept {
  Replica* const here = replica_here();
  return here == nullptr ? nullptr : &here->works();
}

Status check_use(const Work& work, const char* name) noexcept {
  return work.memory().forked() ? in_forked_child() : work.check_use(works_here(), name);
}

template <class Body>
dist_status on_work(dist_work* work, const char* name, Body&& body) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(work, name, "work"));
        DIST_TRY(check_use(*unwrap(work), name));
        return body(*unwrap(work));
      },
      name);
}

template <class Body>
dist_status on_plan(dist_work* work, const char* name, Body&& body) {
  return on_work(work, name, [&](Work& own) -> Status {
    DIST_TRY(own.check_owner(works_here(), name));
    return body(own);
  });
}

}  // namespace

dist_status dist_work_start(dist_work* work) {
  return on_plan(work, "dist_work_start", [](Work& w) { return w.start(); });
}

dist_status dist_work_ready(dist_work* work, size_t tensor) {
  return on_plan(work, "dist_work_ready", [&](Work& w) { return w.ready(tensor); });
}

dist_status dist_work_test(dist_work* work, int32_t* out_done) {
  return on_work(work, "dist_work_test", [&](Work& w) -> Status {
    DIST_TRY(require(out_done, "dist_work_test", "out_done"));
    bool ended = false;
    DIST_TRY(w.test(&ended));
    *out_done = ended ? 1 : 0;
    return kOk;
  });
}

dist_status dist_work_wait(dist_work* work, int64_t timeout_ns) {
  return on_work(work, "dist_work_wait", [&](Work& w) -> Status {
    DIST_TRY(require_wait(timeout_ns, "dist_work_wait"));
    return w.wait(timeout_ns);
  });
}

dist_status dist_work_wait_any(dist_work* const* works, size_t n, int64_t timeout_ns, size_t* out_index) {
  return guard([&]() -> Status {
    if (n == 0) return invalid_argument("`dist_work_wait_any()`: the list of works is empty");
    DIST_TRY(require(works, "dist_work_wait_any", "works"));
    DIST_TRY(check_list(works, n, "dist_work_wait_any", "works"));
    DIST_TRY(require(out_index, "dist_work_wait_any", "out_index"));
    DIST_TRY(require_wait(timeout_ns, "dist_work_wait_any"));
    for (std::size_t i = 0; i < n; ++i) {
      if (works[i] == nullptr) return invalid_argument("`dist_work_wait_any()`: `works[%zu]` is `NULL`", i);
      DIST_TRY(check_use(*unwrap(works[i]), "dist_work_wait_any"));
    }
    return Work::wait_any(reinterpret_cast<Work* const*>(works), n, timeout_ns, out_index);
  });
}

dist_status dist_work_cancel(dist_work* work) {
  return on_work(work, "dist_work_cancel", [](Work& w) -> Status {
    w.cancel();
    return kOk;
  });
}

void dist_work_destroy(dist_work* work) {
  if (work != nullptr) unwrap(work)->close();
}

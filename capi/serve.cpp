// SPDX-License-Identifier: Apache-2.0
// serve.h: requests, each handled by one replica.
#include "capi/guard.hpp"
#include "capi/submission.hpp"
#include "core/run/current.hpp"
#include "core/serve/completions.hpp"
#include "core/serve/instances.hpp"
#include "core/strategy/scope.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

constexpr int64_t kMostQueued = int64_t{1} << 24;

dist_status call_request(Replica& replica, const Body& self) {
  return reinterpret_cast<dist_replica_fn>(self.function)(wrap(&replica), self.context);
}

dist_status call_create(Replica& replica, const InstancesOptions& self, void** out_state) {
  return reinterpret_cast<dist_instance_create_fn>(self.host_create)(wrap(&replica), out_state,
                                                                     self.user_data);
}

void call_destroy(void* state, const InstancesOptions& self) {
  (void)survived(
      [&] { reinterpret_cast<dist_instance_destroy_fn>(self.host_destroy)(state, self.user_data); });
}

dist_status call_warm_up(Replica& replica, const InstancesOptions& self) {
  return reinterpret_cast<dist_replica_fn>(self.host_warm_up)(wrap(&replica), self.user_data);
}

Status read_instances_options(const dist_instances_options* options, InstancesOptions* out) noexcept {
  dist_instances_options given;
  DIST_TRY(read_options(options, &given, "dist_instances_options"));
  DIST_TRY(require_flag(given.helper_threads, "dist_instances_options.helper_threads"));
  if (given.max_queued < 0 || given.max_queued > kMostQueued) {
    return invalid_argument(
        "`dist_instances_options.max_queued` is %lld, but must be 1 to %lld, or 0 for 1024",
        static_cast<long long>(given.max_queued), static_cast<long long>(kMostQueued));
  }
  DIST_TRY(require_zero(given.reserved, "dist_instances_options.reserved"));
  if (given.stuck_ns < 0) {
    return invalid_argument("`dist_instances_options.stuck_ns` is %lld, but must be 0 (never) or more",
                            static_cast<long long>(given.stuck_ns));
  }
  if (given.max_replaced < 0) {
    return invalid_argument("`dist_instances_options.max_replaced` is %d, but must be 1 or more, or 0 for 4",
                            given.max_replaced);
  }
  out->stuck_ns = given.stuck_ns;
  if (given.max_replaced != 0) out->max_replaced = given.max_replaced;
  out->helper_threads = given.helper_threads == 1;
  if (given.max_queued != 0) out->max_queued = static_cast<std::size_t>(given.max_queued);
  if (given.spin_ns != 0) out->spin_ns = given.spin_ns;
  out->user_data = given.user_data;
  if (given.create_state != nullptr) {
    out->create_state = call_create;
    out->host_create = reinterpret_cast<void (*)()>(given.create_state);
  }
  if (given.destroy_state != nullptr) {
    out->destroy_state = call_destroy;
    out->host_destroy = reinterpret_cast<void (*)()>(given.destroy_state);
  }
  if (given.warm_up != nullptr) {
    out->warm_up = call_warm_up;
    out->host_warm_up = reinterpret_cast<void (*)()>(given.warm_up);
  }
  return kOk;
}

Status check_process(const Completions& completions, const char* call) noexcept {
  if (!completions.memory().forked()) return kOk;
  return failed_precondition(
      "`%s()`: this is a forked child of the process that created the completions. Create another one in the "
      "child.",
      call);
}

}  // namespace

void dist_instances_options_init(dist_instances_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

void dist_submit_options_init(dist_submit_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_instances_open(dist_strategy* strategy, const dist_instances_options* options) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_instances_open", "strategy"));
    DIST_TRY(unwrap(strategy).check_process());
    InstancesOptions wanted;
    DIST_TRY(read_instances_options(options, &wanted));
    return unwrap(strategy).instances().open(wanted);
  });
}

dist_status dist_instances_close(dist_strategy* strategy, int64_t timeout_ns) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_instances_close", "strategy"));
    DIST_TRY(require_wait(timeout_ns, "dist_instances_close"));
    DIST_TRY(unwrap(strategy).check_process());
    Instances* const instances = unwrap(strategy).known_instances();
    return instances == nullptr ? kOk : instances->close(timeout_ns);
  });
}

dist_status dist_serve(dist_strategy* strategy, int32_t replica_id) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_serve", "strategy"));
    DIST_TRY(check_enter(unwrap(strategy)));
    // The strategy may be shut down and destroyed meanwhile.
    const auto kept = Ref<Strategy>::share(&unwrap(strategy));
    return unwrap(strategy).instances().serve_here(GlobalReplica{replica_id});
  });
}

void* dist_instance_state(const dist_replica* replica) {
  return replica == nullptr ? nullptr : unwrap(replica).host_state();
}

dist_status dist_replica_check(dist_replica* replica) {
  return guard([&]() -> Status {
    DIST_TRY(require(replica, "dist_replica_check", "replica"));
    return unwrap(replica).check_going_on();
  });
}

dist_status dist_submit(dist_strategy* strategy, dist_replica_fn fn, void* user_data,
                        const dist_submit_options* options, dist_request** out_request) {
  return guard([&]() -> Status {
    DIST_TRY(require(strategy, "dist_submit", "strategy"));
    if (fn == nullptr) return invalid_argument("`dist_submit()`: `fn` is `NULL`");
    DIST_TRY(unwrap(strategy).check_process());
    dist_submit_options given;
    DIST_TRY(read_options(options, &given, "dist_submit_options"));
    Submission wanted;
    wanted.body = {.call = call_request, .context = user_data, .function = reinterpret_cast<void (*)()>(fn)};
    wanted.id = given.request_id;
    DIST_TRY(read_asking(given, "dist_submit_options", &wanted));
    Instances& instances = unwrap(strategy).instances();
    DIST_TRY(instances.open_once("dist_submit"));
    Request* request = nullptr;
    DIST_TRY(instances.submit(wanted, out_request == nullptr ? nullptr : &request));
    if (out_request != nullptr) *out_request = wrap_request(request);
    return kOk;
  });
}

namespace {

template <class Body>
dist_status on_request(dist_request* request, const char* name, Body&& body) {
  return guard(
      [&]() -> Status {
        DIST_TRY(require(request, name, "request"));
        RequestHandle& known = *unwrap(request);
        if (known.memory().forked()) return in_forked_child();
        return body(known);
      },
      name);
}

}  // namespace

dist_status dist_request_test(dist_request* request, int32_t* out_done) {
  return on_request(request, "dist_request_test", [&](RequestHandle& known) -> Status {
    DIST_TRY(require(out_done, "dist_request_test", "out_done"));
    bool ended = false;
    DIST_TRY(known.test(&ended));
    *out_done = ended ? 1 : 0;
    return kOk;
  });
}

dist_status dist_request_wait(dist_request* request, int64_t timeout_ns) {
  return on_request(request, "dist_request_wait", [&](RequestHandle& known) -> Status {
    DIST_TRY(require_wait(timeout_ns, "dist_request_wait"));
    return known.wait(timeout_ns);
  });
}

dist_status dist_request_wait_any(dist_request* const* requests, size_t n, int64_t timeout_ns,
                                  size_t* out_index) {
  constexpr const char* kCall = "dist_request_wait_any";
  return guard([&]() -> Status {
    if (n == 0) return invalid_argument("`%s()`: the list of requests is empty", kCall);
    DIST_TRY(require(requests, kCall, "requests"));
    DIST_TRY(check_list(requests, n, kCall, "requests"));
    DIST_TRY(require(out_index, kCall, "out_index"));
    DIST_TRY(require_wait(timeout_ns, kCall));
    for (std::size_t i = 0; i < n; ++i) {
      if (requests[i] == nullptr) return invalid_argument("`%s()`: `requests[%zu]` is `NULL`", kCall, i);
      if (unwrap(requests[i])->memory().forked()) return in_forked_child();
    }
    auto* const all = reinterpret_cast<RequestHandle* const*>(requests);
    return all[0]->wait_any(all, n, timeout_ns, out_index);
  });
}

dist_status dist_request_cancel(dist_request* request) {
  return on_request(request, "dist_request_cancel", [](RequestHandle& known) -> Status {
    known.cancel();
    return kOk;
  });
}

void* dist_request_user_data(const dist_request* request) {
  return request == nullptr ? nullptr : unwrap(request)->user_data();
}

void dist_request_destroy(dist_request* request) {
  if (request != nullptr) unwrap(request)->close();
}

dist_status dist_completions_create(const dist_allocator* allocator, dist_completions** out_completions) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_completions, "dist_completions_create", "out_completions"));
    const dist_allocator chosen = allocator == nullptr ? dist_allocator{} : *allocator;
    Ref<Memory> memory;
    DIST_TRY(create_memory(chosen, "dist_completions_create()", &memory));
    *out_completions = reinterpret_cast<dist_completions*>(make_counted<Completions>(*memory).take());
    return kOk;
  });
}

dist_status dist_completions_next(dist_completions* completions, int64_t timeout_ns,
                                  dist_request** out_request) {
  return guard([&]() -> Status {
    DIST_TRY(require(completions, "dist_completions_next", "completions"));
    DIST_TRY(require(out_request, "dist_completions_next", "out_request"));
    DIST_TRY(require_wait(timeout_ns, "dist_completions_next"));
    DIST_TRY(check_process(*completions_of(completions), "dist_completions_next"));
    if (timeout_ns != 0 && current().replica != nullptr) {
      return failed_precondition(
          "`dist_completions_next()`: `timeout_ns` must be 0 inside a replica's function, because waiting "
          "there "
          "could block the requests");
    }
    *out_request = wrap_request(completions_of(completions)->next(timeout_ns));
    return kOk;
  });
}

dist_status dist_completions_descriptor(dist_completions* completions, int32_t* out_descriptor) {
  return guard([&]() -> Status {
    DIST_TRY(require(completions, "dist_completions_descriptor", "completions"));
    DIST_TRY(require(out_descriptor, "dist_completions_descriptor", "out_descriptor"));
    DIST_TRY(check_process(*completions_of(completions), "dist_completions_descriptor"));
    return completions_of(completions)->descriptor(out_descriptor);
  });
}

void dist_completions_destroy(dist_completions* completions) {
  if (completions == nullptr || completions_of(completions)->memory().forked()) return;
  completions_of(completions)->close();
  completions_of(completions)->release();
}

// SPDX-License-Identifier: Apache-2.0
// server.h: the tasks that work for a coordinator.
#include <dist/experimental/server.h>
#include <vector>

#include "capi/cluster.hpp"
#include "capi/guard.hpp"
#include "capi/host_function.hpp"
#include "capi/options.hpp"
#include "capi/remote_names.hpp"
#include "core/cluster/resolvers.hpp"
#include "core/ps/task_server.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

TaskServer* unwrap(dist_server* handle) noexcept { return reinterpret_cast<TaskServer*>(handle); }
const TaskServer* unwrap(const dist_server* handle) noexcept {
  return reinterpret_cast<const TaskServer*>(handle);
}
Closure* unwrap(dist_closure* handle) noexcept { return reinterpret_cast<Closure*>(handle); }
const Closure* unwrap(const dist_closure* handle) noexcept {
  return reinterpret_cast<const Closure*>(handle);
}

using HostClosure = HostFunction<dist_closure_fn>;
using HostUpdate = HostFunction<dist_server_update_fn>;

dist_status call_closure(Closure& closure, Value* arguments, Value** out_value, void* host) {
  const auto& function = *static_cast<const HostClosure*>(host);
  dist_value* value = nullptr;
  // An exception from a function ends only its own closure.
  const dist_status status = guarded("the closure", [&] {
    return function.fn(reinterpret_cast<dist_closure*>(&closure), wrap(arguments), &value,
                       function.user_data);
  });
  *out_value = capi::unwrap(value);
  return status;
}

dist_status call_update(dist_tensor* variables, std::size_t n, Value* arguments, void* host) {
  const auto& function = *static_cast<const HostUpdate*>(host);
  return guarded("the update function",
                 [&] { return function.fn(variables, n, wrap(arguments), function.user_data); });
}

Status read(const dist_server_options* options, dist_server_options* out) noexcept {
  return read_options(options, out, "dist_server_options");
}

Status make(const dist_server_options& given, const char* job, int32_t index, const char* address,
            dist_server** out) {
  DIST_TRY(require_timeout(given.start_timeout_ns, "dist_server_options.start_timeout_ns"));
  int64_t max_message_bytes = 0;
  DIST_TRY(read_size(given.max_message_bytes, "dist_server_options.max_message_bytes", &max_message_bytes));
  Ref<Memory> memory;
  DIST_TRY(create_memory(given.allocator, "dist_server_options.allocator", &memory));
  Ref<TaskServer> made;
  DIST_TRY(TaskServer::create(
      *memory,
      {job, index, address, given.bind_address, given.num_threads, given.start_timeout_ns, max_message_bytes},
      &made));
  *out = reinterpret_cast<dist_server*>(made.take());
  return kOk;
}

Status check_closure(const dist_closure* closure, const char* name, const char* call) noexcept {
  DIST_TRY(require(closure, call, "closure"));
  return require(name, call, "name");
}

}  // namespace

// ---- Servers ----

void dist_server_options_init(dist_server_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_server_create(const dist_cluster_spec* cluster, const char* job, int32_t index,
                               const dist_server_options* options, dist_server** out_server) {
  constexpr const char* kCall = "dist_server_create";
  return guard([&]() -> Status {
    DIST_TRY(require(out_server, kCall, "out_server"));
    dist_server_options given;
    DIST_TRY(read(options, &given));
    Ref<Memory> memory;
    DIST_TRY(create_memory(given.allocator, "dist_server_options.allocator", &memory));
    Ref<ClusterResolver> resolver;
    DIST_TRY(create_tf_config_resolver(*memory, {}, &resolver));
    Ref<ClusterSpec> spec = Ref<ClusterSpec>::share(capi::unwrap(const_cast<dist_cluster_spec*>(cluster)));
    if (!spec) DIST_TRY(resolver->spec(&spec));
    FoundText found_job;
    const char* task = job;
    if (task == nullptr) {
      DIST_TRY(resolver->task_type(&found_job));
      if (!found_job.is_set) {
        return invalid_argument(
            "`%s()`: `job` is `NULL`, and TF_CONFIG does not name the task of this process. Pass job and "
            "task, or "
            "set \"task\" in TF_CONFIG.",
            kCall);
      }
      task = found_job.text;
    }
    if (index == DIST_TASK_UNSET) {
      FoundNumber found;
      DIST_TRY(resolver->task_id(&found));
      index = found.number;
    }
    const char* address = nullptr;
    DIST_TRY(spec->task_address(task, index, &address));
    return make(given, task, index, address, out_server);
  });
}

dist_status dist_server_create_local(const dist_server_options* options, dist_server** out_server) {
  return guard([&]() -> Status {
    DIST_TRY(require(out_server, "dist_server_create_local", "out_server"));
    dist_server_options given;
    DIST_TRY(read(options, &given));
    return make(given, kLocalJob, 0, "127.0.0.1:0", out_server);
  });
}

dist_status dist_server_register(dist_server* server, const char* name, dist_closure_fn fn, void* user_data,
                                 dist_release_fn release) {
  constexpr const char* kCall = "dist_server_register";
  return guard([&]() -> Status {
    DIST_TRY(require(server, kCall, "server"));
    DIST_TRY(require(name, kCall, "name"));
    DIST_TRY(require(reinterpret_cast<const void*>(fn), kCall, "fn"));
    return HostClosure::add(unwrap(server)->memory(), fn, user_data, release, [&](HostClosure* host) {
      return unwrap(server)->add_closure(name, {call_closure, host, HostClosure::end});
    });
  });
}

dist_status dist_server_register_update(dist_server* server, const char* name, dist_server_update_fn fn,
                                        void* user_data, dist_release_fn release) {
  constexpr const char* kCall = "dist_server_register_update";
  return guard([&]() -> Status {
    DIST_TRY(require(server, kCall, "server"));
    DIST_TRY(require(name, kCall, "name"));
    DIST_TRY(require(reinterpret_cast<const void*>(fn), kCall, "fn"));
    return HostUpdate::add(unwrap(server)->memory(), fn, user_data, release, [&](HostUpdate* host) {
      return unwrap(server)->add_update(name, {call_update, host, HostUpdate::end});
    });
  });
}

dist_status dist_server_start(dist_server* server) {
  return guard([&]() -> Status {
    DIST_TRY(require(server, "dist_server_start", "server"));
    return unwrap(server)->start();
  });
}

const char* dist_server_target(const dist_server* server) {
  return server == nullptr ? "" : unwrap(server)->target();
}

dist_status dist_server_join(dist_server* server, int64_t timeout_ns, dist_cancel* cancel) {
  return guard([&]() -> Status {
    DIST_TRY(require(server, "dist_server_join", "server"));
    DIST_TRY(require_wait(timeout_ns, "dist_server_join"));
    return unwrap(server)->join(timeout_ns, capi::unwrap(cancel));
  });
}

dist_status dist_server_write_trace(dist_server* server, dist_text_fn fn, void* user_data) {
  constexpr const char* kCall = "dist_server_write_trace";
  return guard([&]() -> Status {
    DIST_TRY(require(server, kCall, "server"));
    DIST_TRY(require(reinterpret_cast<const void*>(fn), kCall, "fn"));
    TaskServer& self = *unwrap(server);
    if (self.memory().forked())
      return failed_precondition(
          "this is a forked child of the server's process. Create another one in the child.");
    return write_span_trace(self.trace(), fn, user_data);
  });
}

void dist_server_stop(dist_server* server) {
  if (server != nullptr && !unwrap(server)->memory().forked()) unwrap(server)->end();
}

dist_status dist_server_destroy(dist_server* server) {
  if (server == nullptr || unwrap(server)->memory().forked()) return DIST_OK;
  return guard([&]() -> Status {
    DIST_TRY(unwrap(server)->stop("dist_server_destroy"));
    unwrap(server)->release();
    return kOk;
  });
}

// ---- Closures ----

const char* dist_closure_name(const dist_closure* closure) {
  return closure == nullptr ? "" : unwrap(closure)->name();
}

int64_t dist_closure_id(const dist_closure* closure) {
  return closure == nullptr ? -1 : unwrap(closure)->id();
}

int32_t dist_closure_worker(const dist_closure* closure) {
  return closure == nullptr ? -1 : unwrap(closure)->worker();
}

dist_cancel* dist_closure_cancel(const dist_closure* closure) {
  return closure == nullptr ? nullptr : wrap(&unwrap(closure)->cancel());
}

dist_status dist_closure_read(dist_closure* closure, const char* const* names, size_t n,
                              dist_value** out_values) {
  constexpr const char* kCall = "dist_closure_read";
  return guard([&]() -> Status {
    DIST_TRY(require(closure, kCall, "closure"));
    DIST_TRY(check_names(names, n, kCall));
    DIST_TRY(check_list(out_values, n, kCall, "out_values"));
    std::pmr::vector<ValueRef> values(n, &unwrap(closure)->memory());
    DIST_TRY(unwrap(closure)->read({names, n}, values));
    for (std::size_t i = 0; i < n; ++i) out_values[i] = wrap(values[i].take());
    return kOk;
  });
}

dist_status dist_closure_read_rows(dist_closure* closure, const char* name, dist_value* indices,
                                   dist_value** out_value) {
  constexpr const char* kCall = "dist_closure_read_rows";
  return guard([&]() -> Status {
    DIST_TRY(check_closure(closure, name, kCall));
    DIST_TRY(require(indices, kCall, "indices"));
    DIST_TRY(require(out_value, kCall, "out_value"));
    ValueRef value;
    DIST_TRY(unwrap(closure)->rows(name, *capi::unwrap(indices), &value));
    *out_value = wrap(value.take());
    return kOk;
  });
}

dist_status dist_closure_assign(dist_closure* closure, const char* name, dist_assign_op how,
                                dist_value* value) {
  constexpr const char* kCall = "dist_closure_assign";
  return guard([&]() -> Status {
    DIST_TRY(check_closure(closure, name, kCall));
    DIST_TRY(require(value, kCall, "value"));
    return unwrap(closure)->assign(name, how, *capi::unwrap(value));
  });
}

dist_status dist_closure_scatter(dist_closure* closure, const char* name, dist_scatter_op how,
                                 dist_value* slices) {
  constexpr const char* kCall = "dist_closure_scatter";
  return guard([&]() -> Status {
    DIST_TRY(check_closure(closure, name, kCall));
    DIST_TRY(require(slices, kCall, "slices"));
    return unwrap(closure)->scatter(name, how, *capi::unwrap(slices));
  });
}

dist_status dist_closure_update(dist_closure* closure, const char* function, const char* const* names,
                                size_t n, dist_value* arguments) {
  constexpr const char* kCall = "dist_closure_update";
  return guard([&]() -> Status {
    DIST_TRY(require(closure, kCall, "closure"));
    DIST_TRY(require(function, kCall, "function"));
    DIST_TRY(check_names(names, n, kCall));
    return unwrap(closure)->update(function, {names, n}, capi::unwrap(arguments));
  });
}

dist_status dist_closure_per_worker(dist_closure* closure, const char* name, dist_value** out_value) {
  constexpr const char* kCall = "dist_closure_per_worker";
  return guard([&]() -> Status {
    DIST_TRY(check_closure(closure, name, kCall));
    DIST_TRY(require(out_value, kCall, "out_value"));
    ValueRef value;
    DIST_TRY(unwrap(closure)->per_worker(name, &value));
    *out_value = wrap(value.take());
    return kOk;
  });
}

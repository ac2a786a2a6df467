// SPDX-License-Identifier: Apache-2.0
// rpc.h: remote procedure calls.
#include <dist/experimental/rpc.h>
#include "capi/guard.hpp"
#include "capi/host_function.hpp"
#include "capi/options.hpp"
#include "core/net/rpc/client.hpp"
#include "core/net/rpc/job_calls.hpp"
#include "core/net/rpc/server.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

RpcServer* unwrap(dist_rpc_server* handle) noexcept { return reinterpret_cast<RpcServer*>(handle); }
const RpcServer* unwrap(const dist_rpc_server* handle) noexcept {
  return reinterpret_cast<const RpcServer*>(handle);
}
RpcClient* unwrap(dist_rpc_client* handle) noexcept { return reinterpret_cast<RpcClient*>(handle); }
RemoteValue* unwrap(dist_remote_value* handle) noexcept { return reinterpret_cast<RemoteValue*>(handle); }

using HostMethod = HostFunction<dist_rpc_fn>;

dist_status call_method(const RpcContext& context, Value* arguments, Value** out_value, void* host) {
  const auto& method = *static_cast<const HostMethod*>(host);
  const dist_rpc_context given{context.method, wrap(context.cancel), context.timeout_ns};
  dist_value* value = nullptr;
  // An exception from a method ends only its own call.
  const dist_status status =
      guarded("the method", [&] { return method.fn(&given, wrap(arguments), &value, method.user_data); });
  *out_value = capi::unwrap(value);
  return status;
}

Status read_call(const dist_rpc_call_options* options, RpcCallOptions* out) noexcept {
  dist_rpc_call_options given;
  DIST_TRY(read_options(options, &given, "dist_rpc_call_options"));
  DIST_TRY(require_zero(given.reserved, "dist_rpc_call_options.reserved"));
  DIST_TRY(require_timeout(given.timeout_ns, "dist_rpc_call_options.timeout_ns"));
  *out = {given.timeout_ns, capi::unwrap(given.cancel), nullptr};
  return kOk;
}

Status wait_for(RpcClient& client, std::string_view method, Value* arguments, const RpcCallOptions& options,
                dist_value** out) {
  Ref<RemoteValue> remote;
  DIST_TRY(client.begin(method, arguments, options, &remote));
  ValueRef value;
  DIST_TRY(remote->get(-1, &value));
  *out = wrap(value.take());
  return kOk;
}

}  // namespace

// ---- Servers ----

void dist_rpc_server_options_init(dist_rpc_server_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_rpc_server_create(const char* rpc_layer, const char* address,
                                   const dist_rpc_server_options* options, dist_rpc_server** out_server) {
  constexpr const char* kCall = "dist_rpc_server_create";
  return guard([&]() -> Status {
    DIST_TRY(require(address, kCall, "address"));
    DIST_TRY(require(out_server, kCall, "out_server"));
    DIST_TRY(check_rpc_layer(kCall, rpc_layer));
    dist_rpc_server_options given;
    DIST_TRY(read_options(options, &given, "dist_rpc_server_options"));
    DIST_TRY(require_zero(given.reserved, "dist_rpc_server_options.reserved"));
    Ref<Memory> memory;
    DIST_TRY(create_memory(given.allocator, "dist_rpc_server_options.allocator", &memory));
    Ref<RpcServer> made;
    DIST_TRY(RpcServer::create(*memory, {address, given.num_threads, given.max_queued}, &made));
    *out_server = reinterpret_cast<dist_rpc_server*>(made.take());
    return kOk;
  });
}

dist_status dist_rpc_server_register(dist_rpc_server* server, const char* method, dist_rpc_fn fn,
                                     void* user_data, dist_release_fn release) {
  constexpr const char* kCall = "dist_rpc_server_register";
  return guard([&]() -> Status {
    DIST_TRY(require(server, kCall, "server"));
    DIST_TRY(require(method, kCall, "method"));
    DIST_TRY(require(reinterpret_cast<const void*>(fn), kCall, "fn"));
    return HostMethod::add(unwrap(server)->memory(), fn, user_data, release, [&](HostMethod* host) {
      return unwrap(server)->add(method, {call_method, host, HostMethod::end});
    });
  });
}

dist_status dist_rpc_server_start(dist_rpc_server* server) {
  return guard([&]() -> Status {
    DIST_TRY(require(server, "dist_rpc_server_start", "server"));
    return unwrap(server)->start();
  });
}

const char* dist_rpc_server_address(const dist_rpc_server* server) {
  return server == nullptr ? "" : unwrap(server)->address();
}

dist_status dist_rpc_server_destroy(dist_rpc_server* server) {
  if (server == nullptr || unwrap(server)->memory().forked()) return DIST_OK;
  return guard([&]() -> Status {
    DIST_TRY(unwrap(server)->stop("dist_rpc_server_destroy"));
    unwrap(server)->release();
    return kOk;
  });
}

// ---- Clients ----

void dist_rpc_client_options_init(dist_rpc_client_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_rpc_client_create(const char* rpc_layer, const char* address,
                                   const dist_rpc_client_options* options, dist_rpc_client** out_client) {
  constexpr const char* kCall = "dist_rpc_client_create";
  return guard([&]() -> Status {
    DIST_TRY(require(address, kCall, "address"));
    DIST_TRY(require(out_client, kCall, "out_client"));
    DIST_TRY(check_rpc_layer(kCall, rpc_layer));
    dist_rpc_client_options given;
    DIST_TRY(read_options(options, &given, "dist_rpc_client_options"));
    DIST_TRY(require_zero(given.reserved, "dist_rpc_client_options.reserved"));
    DIST_TRY(require_timeout(given.timeout_ns, "dist_rpc_client_options.timeout_ns"));
    Ref<Memory> memory;
    DIST_TRY(create_memory(given.allocator, "dist_rpc_client_options.allocator", &memory));
    Ref<GrpcCalls> calls;
    DIST_TRY(create_job_calls(*memory, {}, &calls));
    Ref<RpcClient> made;
    DIST_TRY(RpcClient::create(*memory, calls, address, given.timeout_ns, &made));
    *out_client = reinterpret_cast<dist_rpc_client*>(made.take());
    return kOk;
  });
}

void dist_rpc_client_destroy(dist_rpc_client* client) {
  if (client == nullptr || unwrap(client)->memory().forked()) return;
  unwrap(client)->end();
  unwrap(client)->release();
}

void dist_rpc_call_options_init(dist_rpc_call_options* options, uint32_t struct_size_bytes) {
  init_options(options, struct_size_bytes);
}

dist_status dist_rpc_call(dist_rpc_client* client, const char* method, dist_value* arguments,
                          const dist_rpc_call_options* options, dist_value** out_result) {
  constexpr const char* kCall = "dist_rpc_call";
  return guard([&]() -> Status {
    DIST_TRY(require(client, kCall, "client"));
    DIST_TRY(require(method, kCall, "method"));
    DIST_TRY(require(out_result, kCall, "out_result"));
    RpcCallOptions call;
    DIST_TRY(read_call(options, &call));
    return wait_for(*unwrap(client), method, capi::unwrap(arguments), call, out_result);
  });
}

dist_status dist_rpc_begin(dist_rpc_client* client, const char* method, dist_value* arguments,
                           const dist_rpc_call_options* options, dist_remote_value** out_remote) {
  constexpr const char* kCall = "dist_rpc_begin";
  return guard([&]() -> Status {
    DIST_TRY(require(client, kCall, "client"));
    DIST_TRY(require(method, kCall, "method"));
    DIST_TRY(require(out_remote, kCall, "out_remote"));
    RpcCallOptions call;
    DIST_TRY(read_call(options, &call));
    Ref<RemoteValue> remote;
    DIST_TRY(unwrap(client)->begin(method, capi::unwrap(arguments), call, &remote));
    *out_remote = reinterpret_cast<dist_remote_value*>(remote.take());
    return kOk;
  });
}

dist_status dist_rpc_client_methods(dist_rpc_client* client, const dist_rpc_call_options* options,
                                    dist_value** out_names) {
  constexpr const char* kCall = "dist_rpc_client_methods";
  return guard([&]() -> Status {
    DIST_TRY(require(client, kCall, "client"));
    DIST_TRY(require(out_names, kCall, "out_names"));
    RpcCallOptions call;
    DIST_TRY(read_call(options, &call));
    return wait_for(*unwrap(client), RpcServer::kMethods, nullptr, call, out_names);
  });
}

// ---- Remote values ----

dist_status dist_remote_value_get(dist_remote_value* remote, int64_t timeout_ns, dist_value** out_value) {
  constexpr const char* kCall = "dist_remote_value_get";
  return guard([&]() -> Status {
    DIST_TRY(require(remote, kCall, "remote"));
    DIST_TRY(require(out_value, kCall, "out_value"));
    DIST_TRY(require_wait(timeout_ns, kCall));
    ValueRef value;
    DIST_TRY(unwrap(remote)->get(timeout_ns, &value));
    *out_value = wrap(value.take());
    return kOk;
  });
}

int32_t dist_remote_value_ready(dist_remote_value* remote) {
  return remote != nullptr && unwrap(remote)->ready() ? 1 : 0;
}

void dist_remote_value_cancel(dist_remote_value* remote) {
  if (remote != nullptr) unwrap(remote)->cancel("the remote value was cancelled");
}

dist_remote_value* dist_remote_value_retain(dist_remote_value* remote) {
  if (remote != nullptr) unwrap(remote)->retain();
  return remote;
}

void dist_remote_value_release(dist_remote_value* remote) {
  if (remote != nullptr) unwrap(remote)->release();
}

// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp: methods of other processes. Without libdist-grpc.so, only the parts that do not need it.
#include <dist/experimental/rpc.hpp>
#include "hpp_support.hpp"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using dist::rpc_client;
using dist::rpc_server;
using dist::value;

dist::strategy_ref here() { return dist::get_strategy(); }

value number(float of) { return value(here(), dist::const_tensor(&of, {})); }

float number_of(const value &given) {
  const dist::const_tensor view = given.tensor();
  return *static_cast<const float *>(view.get().data);
}

void servers_begin_and_end() {
  auto counted = std::make_shared<int>(0);
  {
    rpc_server first("127.0.0.1:0");
    first.add("count", [counted](const dist::rpc_call &, const value &given) { return given; });
    rpc_server server = std::move(first);
    REQUIRE_ERROR(DIST_ALREADY_EXISTS,
                  server.add("count", [](const dist::rpc_call &, const value &given) { return given; }));
    assert_int_equal(counted.use_count(), 2);
    assert_string_equal(server.address().c_str(), "127.0.0.1:0");
    assert_true(server.get() != nullptr);
    dist_rpc_server_options options = DIST_RPC_SERVER_OPTIONS_INIT;
    options.num_threads = -1;
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, rpc_server("127.0.0.1:0", options));
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, rpc_server("nowhere"));
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, rpc_client("nowhere"));
  }
  assert_int_equal(counted.use_count(), 1);
}

// Without gRPC, the test is still compiled, because programs may contain these calls.
void methods_are_called() {
  if (!HAS_GRPC) return;
  rpc_server server("127.0.0.1:0");
  server.add("twice", [](const dist::rpc_call &call, const value &given) {
    if (std::string(call.method()) != "twice" || call.timeout_ns() == 0 || call.cancel() == nullptr)
      throw std::runtime_error(call.method());
    return number(2 * number_of(given));
  });
  server.add("fail", [](const dist::rpc_call &, const value &given) -> value {
    if (given.kind() == DIST_VALUE_NONE) throw dist::error(DIST_NOT_FOUND, "no row 7");
    throw std::runtime_error("own");
  });
  std::atomic<bool> inside{false};
  std::atomic<bool> told{false};
  server.add("wait", [&](const dist::rpc_call &call, const value &given) {
    inside = true;
    while (!call.cancelled()) std::this_thread::yield();
    told = true;
    return given;
  });
  server.start();
  dist_rpc_client_options options = DIST_RPC_CLIENT_OPTIONS_INIT;
  rpc_client made(server.address(), options);
  const rpc_client client = std::move(made);
  assert_true(client.get() != nullptr);
  assert_true(number_of(client.call("twice", number(21))) == 42);
  assert_true(client.methods() == (std::vector<std::string>{"fail", "twice", "wait"}));
  REQUIRE_ERROR(DIST_NOT_FOUND, client.call("fail"));
  REQUIRE_ERROR(DIST_UNKNOWN, client.call("fail", number(1)));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, client.call(std::string("a\0b", 3)));
  dist::remote_value remote = client.begin("twice", number(4));
  const dist::remote_value same = remote;
  assert_true(number_of(same.fetch()) == 8);
  assert_true(remote.ready());
  remote = client.begin("wait");
  while (!inside) std::this_thread::yield();
  REQUIRE_ERROR(DIST_DEADLINE_EXCEEDED, remote.fetch(0));
  remote.cancel();
  REQUIRE_ERROR(DIST_CANCELLED, remote.fetch());
  assert_true(remote.get() != nullptr);
  while (!told) std::this_thread::yield();
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      HPP_TEST(servers_begin_and_end),
      HPP_TEST(methods_are_called),
  };
  return cmocka_run_group_tests_name("dist.hpp: methods of other processes", tests, nullptr, nullptr);
}

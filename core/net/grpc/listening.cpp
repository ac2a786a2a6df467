// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/listening.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "core/base/os/addresses.hpp"
#include "core/base/os/socket.hpp"
#include "core/net/grpc/names.hpp"

namespace dist::grpc_link {
namespace {

HostAddresses await_name(const std::string& host, int64_t timeout_ns) {
  std::mutex mutex;
  std::condition_variable woken;
  bool over = false;
  Names names([&] {
    const std::scoped_lock lock(mutex);
    over = true;
    woken.notify_all();
  });
  HostAddresses answer = names.ask(host);
  if (!answer.list.empty()) return answer;
  {
    std::unique_lock lock(mutex);
    woken.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [&] { return over; });
  }
  return names.ask(host);
}

std::string with_port(const std::string& host, const std::string& port) {
  return host.find(':') == std::string::npos ? host + ":" + port : "[" + host + "]:" + port;
}

}  // namespace

std::string cannot_listen(const Config& config, const std::string& reason) {
  const bool worker = !config.addresses.empty();
  return "cannot listen on " + config.bind_address + ": " + reason +
         (worker ? ". Set DIST_BIND_ADDRESS to another address, or correct the addresses of the cluster."
                 : ". Use another address; for a task of a cluster, DIST_BIND_ADDRESS specifies it.");
}

bool is_any_address(const std::string& host) noexcept { return host == "::" || host == "0.0.0.0"; }

std::vector<std::string> listening_addresses(const Config& config, std::string* why) {
  const std::string host = host_of(config.bind_address);
  const std::string port = port_of(config.bind_address);
  if (is_ip_address(host) || !config.sockets.empty()) return {config.bind_address};
  if (host == "localhost") {
    std::vector<std::string> all{with_port("127.0.0.1", port)};
    // The system cannot choose the same port for two addresses.
    if (port != "0" && why_not_bind("::1", 0).empty()) all.push_back(with_port("::1", port));
    return all;
  }
  const HostAddresses found = await_name(host, config.lease_ns);
  for (const std::string& each : found.list) {
    if (why_not_bind(each, 0).empty()) return {with_port(each, port)};
  }
  *why = cannot_listen(config, found.list.empty()
                                   ? "the host name " + host + " does not resolve (" +
                                         (found.why.empty() ? "no answer" : found.why) + ")"
                                   : "the host name " + host + " resolves to " + found.list.front() +
                                         ", which belongs to no interface of this machine");
  return {};
}

std::string why_not_started(const Config& config) {
  return config.tls()
             ? "cannot listen on " + config.bind_address +
                   ": the TLS certificates or the key are invalid. Correct the files that DIST_TLS_CA, "
                   "DIST_TLS_CERTIFICATE and DIST_TLS_KEY name."
             : cannot_listen(config, "gRPC cannot start a server");
}

}  // namespace dist::grpc_link

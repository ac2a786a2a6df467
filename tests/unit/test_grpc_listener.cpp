// SPDX-License-Identifier: Apache-2.0
// core/net/grpc: the token that begins a connection, and the limits for connections that have presented one
// and have not been proven.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/net/grpc/connect_token.hpp"
#include "core/net/grpc/listener.hpp"
#include "tests/skip.h"
#include "tests/unit/grpc_stranger.hpp"
#include "tests/unit/grpc_support.hpp"

namespace dist {
namespace {

using namespace grpc_link;

std::string request_with(const std::string& header) {
  return "CONNECT libdist HTTP/1.1\r\nHost: libdist\r\n" + header + "\r\n\r\n";
}

// ---- Tokens ----

void a_request_needs_a_token_of_the_secret(void**) {
  const std::string good = request_with(connect_header("s3cret", 7));
  int from = 0;
  assert_true(read_request(good, "s3cret", &from) == Request::kGood);
  assert_int_equal(from, 7);
  assert_true(read_request(good, "another", &from) == Request::kWrongSecret);
  assert_true(read_request(good, "", &from) == Request::kWrongSecret);
  assert_true(read_request(request_with(connect_header("", -1)), "", &from) == Request::kGood);
  assert_int_equal(from, -1);
  for (std::size_t n = 0; n < good.size(); ++n)
    assert_true(read_request(good.substr(0, n), "s3cret", &from) == Request::kIncomplete);
  // Every digit of the token counts.
  for (std::size_t at = good.find("Dist-Token:") + 13; at < good.size() - 4; ++at) {
    std::string changed = good;
    changed[at] = changed[at] == '0' ? '1' : '0';
    assert_true(read_request(changed, "s3cret", &from) != Request::kGood);
  }
  // Two tokens differ.
  assert_string_not_equal(connect_header("s3cret", 7).c_str(), connect_header("s3cret", 7).c_str());
}

void other_requests_are_recognized(void**) {
  int from = 0;
  const std::string header = connect_header("s3cret", 7);
  for (const std::string& text :
       {std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), std::string("\x16\x03\x01"), std::string("GET /"),
        std::string("CONNECT example.org HTTP/1.1\r\n"), request_with("Host: x"), request_with("Dist-Token:"),
        request_with("Dist-Token:2" + header.substr(12)), request_with(header.substr(0, header.size() - 1)),
        request_with(header + "0"), request_with("Dist-Token:1 99999999999999999999" + header.substr(14)),
        request_with(header) + "P", "CONNECT libdist HTTP/1.1\r\n" + std::string(kMostRequestBytes, 'x')}) {
    if (read_request(text, "s3cret", &from) != Request::kOther) fail_msg("%s", text.c_str());
  }
}

// ---- Connections ----

// A server that proves the connections of all links.
struct ProvingServer final : LinkUser, grpc::CallbackGenericService {
  explicit ProvingServer(const char* address) {
    Config config;
    config.bind_address = address;
    config.secret = "s3cret";
    config.lease_ns = kDefaultLeaseNs;
    grpc::ServerBuilder builder;
    why = listener.listen(config, {config.bind_address}, builder);
    if (!why.empty()) return;
    builder.RegisterCallbackGenericService(this);
    server = builder.BuildAndStart();
    assert_true(server != nullptr && listener.start());
  }
  ~ProvingServer() override {
    listener.stop();
    if (server != nullptr) server->Shutdown(std::chrono::system_clock::now());
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return links == 0; });
  }
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    const std::scoped_lock lock(mutex);
    ++links;
    const auto link = std::make_shared<ServerLink>(*this, context);
    link->connection = context->peer();
    link->start();
    return link.get();
  }
  std::string took(const LinkRef& link, std::span<const grpc::Slice>) noexcept override {
    const std::scoped_lock lock(mutex);
    ++messages;
    before = listener.num_unproven();
    listener.proven(link->connection);
    changed.notify_all();
    return "";
  }
  bool more(Link&) noexcept override { return false; }
  void over(const LinkRef&, const std::string&, const std::string&) noexcept override {}
  void destroyed() noexcept override {
    const std::scoped_lock lock(mutex);
    --links;
    changed.notify_all();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(listener.port()); }

  std::mutex mutex;
  std::condition_variable changed;
  std::string why;
  int links = 0;
  int messages = 0;
  std::size_t before = 0;
  Listener listener{[](int) {}};
  std::unique_ptr<grpc::Server> server;
};

void a_proven_connection_is_forgotten(void**) {
  for (const char* const host : {"127.0.0.1", "[::1]"}) {
    ProvingServer server((std::string(host) + ":0").c_str());
    if (host[0] == '[' && server.listener.port() == 0) skip_because("this machine has no IPv6");
    assert_string_equal(server.why.c_str(), "");
    Stranger peer(std::string(host) + ":" + std::to_string(server.listener.port()), "s3cret");
    peer.say("hello", 5);
    std::unique_lock lock(server.mutex);
    server.changed.wait(lock, [&] { return server.messages == 1; });
    assert_int_equal(server.before, 1);
    assert_int_equal(server.listener.num_unproven(), 0);
  }
}

int connect_to(const std::string& address) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str())));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  assert_int_equal(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return fd;
}

void send_text(int fd, const std::string& text) { (void)!::send(fd, text.data(), text.size(), MSG_NOSIGNAL); }

// Everything that arrives until the connection ends.
std::string read_all(int fd) {
  std::string text;
  char bytes[4096];
  for (ssize_t n; (n = ::recv(fd, bytes, sizeof bytes, 0)) > 0;)
    text.append(bytes, static_cast<std::size_t>(n));
  return text;
}

void whoever_presents_no_token_is_told_and_disconnected(void**) {
  ProvingServer server("127.0.0.1:0");
  const auto answer_to = [&](const std::string& text) {
    const int fd = connect_to(server.address());
    send_text(fd, text);
    const std::string answer = read_all(fd);
    ::close(fd);
    return answer.substr(0, answer.find("\r\n"));
  };
  assert_string_equal(answer_to("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").c_str(),
                      "HTTP/1.1 400 only libdist can connect here");
  assert_string_equal(answer_to(request_with(connect_header("another", 1))).c_str(),
                      "HTTP/1.1 477 another secret");
  // A silent connection makes room for others, and is finally closed.
  const int silent = connect_to(server.address());
  assert_string_equal(read_all(silent).c_str(), "");
  ::close(silent);
  assert_int_equal(server.listener.num_unproven(), 0);
}

void an_unproven_connection_may_send_little(void**) {
  ProvingServer server("127.0.0.1:0");
  const int fd = connect_to(server.address());
  send_text(fd, request_with(connect_header("s3cret", 1)));
  char first = '\0';
  assert_int_equal(::recv(fd, &first, 1, 0), 1);
  assert_int_equal(first, 'H');
  // HTTP/2: many PRIORITY frames, which need no answer.
  std::string frames = std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + std::string("\0\0\0\4\0\0\0\0\0", 9);
  for (int i = 0; i < 100; ++i) frames += std::string("\0\0\5\2\0\0\0\0\1\0\0\0\0\1", 14);
  send_text(fd, frames);
  assert_int_equal(server.listener.num_unproven(), 1);
  while (::send(fd, frames.data() + 33, 1400, MSG_NOSIGNAL) > 0) {
  }
  ::close(fd);
  await([&] { return server.listener.num_unproven() == 0; });
  assert_int_equal(server.messages, 0);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_request_needs_a_token_of_the_secret),
      cmocka_unit_test(other_requests_are_recognized),
      cmocka_unit_test(a_proven_connection_is_forgotten),
      cmocka_unit_test(whoever_presents_no_token_is_told_and_disconnected),
      cmocka_unit_test(an_unproven_connection_may_send_little),
  };
  return cmocka_run_group_tests_name("grpc_listener", tests, nullptr, nullptr);
}

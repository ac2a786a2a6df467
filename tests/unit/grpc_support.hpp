// SPDX-License-Identifier: Apache-2.0
// Workers with separate gRPC networks on loopback. LINK_MODULE, if it is defined, is the name of the link
// module that moves their data. It is in LINK_FOLDER, or in the folder of the environment variable of that
// name.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/net/grpc_network.hpp"
#include "core/net/link_modules.hpp"
#include "tests/unit/counting_memory.hpp"
#include "tests/unit/plain_error.hpp"
#include "tests/unit/transport_suite.hpp"

namespace dist {

// Returns addresses on loopback on which nothing listens. The ports are below the range that the system uses
// for outgoing connections. Each process begins at a different port, and processes that start one after
// another begin far apart.
inline std::vector<std::string> free_addresses(int n) {
  static unsigned next = static_cast<unsigned>(getpid()) * 12361;
  std::vector<std::string> found;
  while (static_cast<int>(found.size()) < n) {
    const auto port = static_cast<uint16_t>(10000 + next++ % 20000);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      found.push_back("127.0.0.1:" + std::to_string(port));
    }
    ::close(fd);
  }
  return found;
}

// Selects the modules that the test is built for.
inline void use_module(GrpcOptions& options) {
  options.module_folder = MODULE_FOLDER;
#ifdef LINK_MODULE
  const char* const given = std::getenv("LINK_FOLDER");
  if (!find_link_module(LINK_MODULE, given != nullptr ? given : LINK_FOLDER, &options.links).ok()) {
    fail_msg("%s", last_message());
  }
#endif
}

class GrpcWorkers final : public TransportFixture {
 public:
  GrpcWorkers(int num_workers, std::size_t credit) : credit_(credit), texts_(free_addresses(num_workers)) {
    for (const std::string& each : texts_) addresses_.push_back(each.c_str());
  }
  GrpcOptions options(int worker) const {
    GrpcOptions options;
    options.addresses = addresses_;
    options.me = worker;
    options.credit = static_cast<int64_t>(credit_);
    use_module(options);
    return options;
  }
  // Calls `change` on the worker's options before it joins.
  template <class Change>
  Transport& join_with(int worker, const Change& change) {
    GrpcOptions with = options(worker);
    change(with);
    Ref<GrpcNetwork> network;
    Transport* transport = nullptr;
    if (!GrpcNetwork::create({}, with, &network).ok() || !network->join(worker, &transport).ok()) {
      print_error("%s\n", last_message());
      assert_true(false);
    }
    networks_.push_back(std::move(network));
    return *transport;
  }
  Transport& join(int worker) override {
    return join_with(worker, [](GrpcOptions&) {});
  }
  const std::string& address(int worker) const { return texts_[static_cast<std::size_t>(worker)]; }
  // Destroys the network that joined at this place.
  void end(std::size_t place) { networks_[place] = Ref<GrpcNetwork>(); }

 private:
  const std::size_t credit_;
  const std::vector<std::string> texts_;
  std::vector<const char*> addresses_;
  std::vector<Ref<GrpcNetwork>> networks_;
};

inline std::string why(const Transport& transport, int worker) {
  char text[2048];
  transport.why_lost(worker, text, sizeof text);
  return text;
}

inline void await(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::yield();
}

#define assert_says(text, part)               \
  if ((text).find(part) == std::string::npos) \
  fail_msg("'%s' is not in: %s", std::string(part).c_str(), (text).c_str())

// Asserts that a message from one transport to the other arrives.
inline void assert_speak(Transport& from, Transport& to, uint64_t number) {
  uint64_t got = 0;
  Transfer send;
  Transfer receive;
  to.receive(from.me(), {.number = number}, reinterpret_cast<std::byte*>(&got), sizeof got, receive);
  from.send(to.me(), {.number = number}, reinterpret_cast<const std::byte*>(&number), sizeof number, send);
  await([&] { return send.over() && receive.over(); });
  assert_true(send.end() == Transfer::End::kDone && receive.end() == Transfer::End::kDone && got == number);
}

}  // namespace dist

// SPDX-License-Identifier: Apache-2.0
// core/net/gloo: what happens to a connection in cases in which Gloo would terminate the process.
#include <arpa/inet.h>
#include <dist/experimental/links.h>
#include <gloo/transport/tcp/pair.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "core/net/gloo/connection.hpp"
#include "tests/unit/grpc_support.hpp"

namespace dist::gloo_link {
namespace {

struct Calls {
  dist_link* link() { return reinterpret_cast<dist_link*>(this); }
  std::atomic<int> ready{0};
  std::atomic<int> ended{0};
};
Calls& calls_of(dist_link* link) { return *reinterpret_cast<Calls*>(link); }

const dist_link_callbacks kCounts = {sizeof kCounts, 0, [](dist_link* link) { ++calls_of(link).ready; },
                                     [](dist_link* link, const char*) { ++calls_of(link).ended; }};
const dist_link_module_options kOptions = {sizeof kOptions, 0, "127.0.0.1", 60'000'000'000, &kCounts};

// The guarded class derives from a Gloo class, whose size in the library must match the headers.
void pairs_are_as_large_as_the_library_makes_them(void**) {
  namespace tcp = gloo::transport::tcp;
  const auto device = tcp::CreateDevice(tcp::attr("127.0.0.1"));
  const auto context = device->createContext(0, 2);
  const std::size_t usable = malloc_usable_size(dynamic_cast<void*>(context->createPair(1).get()));
  assert_in_range(usable, sizeof(tcp::Pair), sizeof(tcp::Pair) + 2 * sizeof(void*) + 8);
}

// Keeps Gloo's thread busy, so that it does not see events.
struct Busy final : gloo::transport::tcp::Handler {
  explicit Busy(gloo::transport::tcp::Device& owner) : device(owner), fd(eventfd(1, EFD_CLOEXEC)) {
    device.registerDescriptor(fd, EPOLLIN, this);
    await([this] { return here.load(); });
  }
  ~Busy() override {
    done = true;
    device.unregisterDescriptor(fd, this);
    ::close(fd);
  }
  void handleEvents(int) override {
    here = true;
    await([this] { return done.load(); });
  }
  gloo::transport::tcp::Device& device;
  const int fd;
  std::atomic<bool> here{false};
  std::atomic<bool> done{false};
};

int connect_to(const Connection& connection) {
  const std::vector<char> bytes = connection.address();
  sockaddr_in address;
  std::memcpy(&address, bytes.data(), sizeof address);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

// The connection is opened and reset before Gloo's thread looks at it.
void a_connection_that_is_reset_at_once_fails_alone(void**) {
  Module module(kOptions);
  Calls calls;
  Connection connection(module, {sizeof(dist_link_options), 0, "127.0.0.1", calls.link()});
  // Gloo connects from the end with the higher address, so this end waits.
  std::vector<char> peer = connection.address();
  reinterpret_cast<sockaddr_in*>(peer.data())->sin_port = 0xffff;
  connection.connect(peer.data(), peer.size());
  {
    const Busy busy(*module.device("127.0.0.1")->get());
    const int fd = connect_to(connection);
    const linger at_once{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(fd);
  }
  await([&] { return calls.ended == 1; });
}

// The head of a Gloo message.
struct Head {
  std::size_t bytes = sizeof(Head) + 8;
  std::size_t kind = 0;
  std::size_t slot = 1000;
  std::size_t offset = 0;
  std::size_t length = 8;
  std::size_t remote_offset = 0;
};

// A client, which may be any program, connects before connect() is called, when libdist is not ready for it.
void who_comes_early_waits(void**) {
  Module module(kOptions);
  Calls calls;
  Connection connection(module, {sizeof(dist_link_options), 0, "127.0.0.1", calls.link()});
  const int fd = connect_to(connection);
  const Head head;
  assert_int_equal(::send(fd, &head, sizeof head, MSG_NOSIGNAL), sizeof head);
  { const Busy once(*module.device("127.0.0.1")->get()); }
  { const Busy more(*module.device("127.0.0.1")->get()); }
  assert_int_equal(calls.ready, 0);
  ::close(fd);
}

// Messages of every kind that Gloo does not expect, with size 0, and with random sizes.
void nonsense_ends_only_the_connection(void**) {
  Module module(kOptions);
  for (std::size_t kind = 0; kind < 6; ++kind) {
    for (const std::size_t length : {std::size_t{0}, std::size_t{8}, SIZE_MAX}) {
      Calls calls;
      Connection connection(module, {sizeof(dist_link_options), 0, "127.0.0.1", calls.link()});
      std::vector<char> peer = connection.address();
      reinterpret_cast<sockaddr_in*>(peer.data())->sin_port = 0xffff;
      connection.connect(peer.data(), peer.size());
      const int fd = connect_to(connection);
      Head head;
      head.kind = kind;
      head.length = length;
      head.slot = kind == 0 ? 7 : 1000;
      assert_int_equal(::send(fd, &head, sizeof head, MSG_NOSIGNAL), sizeof head);
      await([&] { return calls.ready > 0 || calls.ended > 0; });
      std::byte read[64];
      const dist_link_block block = {read, sizeof read};
      assert_true(connection.read(&block, 1) <= 0);
      ::close(fd);
    }
  }
}

}  // namespace
}  // namespace dist::gloo_link

int main() {
  using namespace dist::gloo_link;
  const CMUnitTest tests[] = {
      cmocka_unit_test(pairs_are_as_large_as_the_library_makes_them),
      cmocka_unit_test(a_connection_that_is_reset_at_once_fails_alone),
      cmocka_unit_test(who_comes_early_waits),
      cmocka_unit_test(nonsense_ends_only_the_connection),
  };
  return cmocka_run_group_tests_name("gloo_connection", tests, nullptr, nullptr);
}
